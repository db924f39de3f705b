"""Convert a stored `resultDisplay` to a typed display.

The stored forms are described in assets/gemini-cli.md#displays. A value of any other form becomes a
`JsonDisplay`.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from msgspec.structs import replace

from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    AnsiSpan,
    DiffDisplay,
    Display,
    FilesDisplay,
    JsonDisplay,
    Match,
    MatchesDisplay,
    ScreenDisplay,
    TableDisplay,
    TextDisplay,
    Todo,
    TodosDisplay,
)
from gemtui.transcript.parts import Part, objects, pretty, string
from gemtui.transcript.tool_output import coloured


def display_of(value: object, *, markdown: bool = False) -> Display | None:
    """Convert a stored `resultDisplay` to a display; None if there is nothing to show.

    `markdown`: whether a string is Markdown (`renderOutputAsMarkdown`).
    """
    match value:
        case None | "" | []:
            return None
        case str():
            return table_display(value) or TextDisplay(text=value, markdown=markdown)
        case list():
            return _screen(value) or _rows(value) or JsonDisplay(value=value)
        case Mapping():
            return _object(value) or (JsonDisplay(value=value) if value else None)
        case _:
            return JsonDisplay(value=value)


def written_display(text: str | None) -> Display | None:
    """Convert a program's terminal output, with its colours; None if it is empty."""
    return coloured(text or "") or display_of(text)


def _object(value: Part) -> Display | None:
    match value:
        case {"fileDiff": str()}:
            return _diff(value)
        case {"matches": list(found)}:
            return _matches(value, found)
        case {"files": list(found)}:
            return _files(value, found)
        case {"isSubagentProgress": True}:
            return _agent(value)
        case {"todos": list(items)}:
            return _todos(items)
        case _:
            return None


# --- objects ---------------------------------------------------------------------------------


def _diff(value: Part) -> DiffDisplay:
    diff = string(value.get("fileDiff"))
    path = string(value.get("filePath"))
    added, removed = count_changes(diff)
    return DiffDisplay(
        diff=diff,
        path=path,
        name=string(value.get("fileName")) or _base_name(path),
        added=added,
        removed=removed,
        is_new=value.get("isNewFile") is True,
        original=_text_or_none(value.get("originalContent")),
        new=_text_or_none(value.get("newContent")),
    )


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def hunks(diff: str) -> str:
    """Return a unified diff of one file without its header; "" if it has no hunks."""
    _, at, rest = f"\n{diff}".partition("\n@@")
    return f"@@{rest}" if at else ""


def count_changes(diff: str) -> tuple[int, int]:
    """Return how many lines a unified diff of one file adds and removes.

    The stored `diffStat` is not used, because it attributes lines to the model and the user in a
    way that doesn't add up to the diff.
    """
    lines = hunks(diff).split("\n")
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)


def _matches(value: Part, values: list[object]) -> MatchesDisplay | None:
    if len(items := objects(values)) < len(values):
        return None
    return MatchesDisplay(summary=string(value.get("summary")), matches=tuple(map(_match, items)))


def _match(item: Part) -> Match:
    line = item.get("lineNumber")
    return Match(
        path=string(item.get("filePath")) or string(item.get("absolutePath")),
        line=line if type(line) is int else None,
        text=string(item.get("line")),
    )


def _files(value: Part, values: list[object]) -> FilesDisplay:
    skipped = value.get("skipped")
    return FilesDisplay(
        summary=string(value.get("summary")),
        files=tuple(cell(item) for item in values),
        skipped=tuple(map(_skipped, skipped)) if isinstance(skipped, list) else (),
    )


def _skipped(item: object) -> tuple[str, str]:
    if isinstance(item, Mapping):
        return string(item.get("path")), string(item.get("reason"))
    return cell(item), ""


def _agent(value: Part) -> AgentDisplay:
    return AgentDisplay(
        agent=string(value.get("agentName")),
        state=string(value.get("state")),
        activities=tuple(map(_activity, objects(value.get("recentActivity")))),
        result=cell(value.get("result")) or None,
        reason=string(value.get("terminateReason")) or None,
    )


def _activity(item: Part) -> Activity:
    texts = (string(item.get("content")), string(item.get("description")))
    return Activity(
        kind=string(item.get("type")),
        text=" ".join(word for word in texts if word),
        status=string(item.get("status")),
    )


def _todos(items: list[object]) -> TodosDisplay | None:
    if len(todos := objects(items)) < len(items):
        return None
    return TodosDisplay(items=tuple(map(_todo, todos)))


def _todo(item: Part) -> Todo:
    return Todo(
        text=string(item.get("description")) or string(item.get("content")),
        status=string(item.get("status")),
    )


# --- screens ---------------------------------------------------------------------------------


def _screen(lines: list[object]) -> ScreenDisplay | None:
    """Convert a stored terminal screen, removing padding; None if it isn't a screen."""
    drawn: list[tuple[AnsiSpan, ...]] = []
    for line in lines:
        if not isinstance(line, list) or not all(_is_span(token) for token in line):
            return None
        drawn.append(_without_padding([_span(token) for token in line]))
    while drawn and not drawn[-1]:
        drawn.pop()
    return ScreenDisplay(lines=tuple(drawn))


def _is_span(token: object) -> bool:
    return isinstance(token, Mapping) and isinstance(token.get("text"), str)


def _span(token: Part) -> AnsiSpan:
    return AnsiSpan(
        text=string(token.get("text")),
        bold=token.get("bold") is True,
        italic=token.get("italic") is True,
        underline=token.get("underline") is True,
        dim=token.get("dim") is True,
        inverse=token.get("inverse") is True,
        fg=string(token.get("fg")),
        bg=string(token.get("bg")),
    )


def _without_padding(spans: list[AnsiSpan]) -> tuple[AnsiSpan, ...]:
    while spans:
        last = spans.pop()
        text = last.text.rstrip(" ")
        if text:
            return (*spans, replace(last, text=text))
    return ()


# --- tables ----------------------------------------------------------------------------------


def table_display(text: str) -> TableDisplay | None:
    """Return the table in a string that is a JSON list of flat objects.

    Returns None for any other string.
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        value = orjson.loads(text.encode(errors="replace"))
    except orjson.JSONDecodeError:
        return None
    return _rows(value)


def _rows(items: list[object]) -> TableDisplay | None:
    rows = [item for item in objects(items) if item]
    if not rows or len(rows) < len(items) or not all(_is_flat(row) for row in rows):
        return None
    columns = tuple(dict.fromkeys(string(key) for row in rows for key in row))
    return TableDisplay(
        columns=columns,
        rows=tuple(tuple(cell(row.get(column)) for column in columns) for row in rows),
    )


def _is_flat(row: Part) -> bool:
    return not any(isinstance(value, Mapping | list | tuple) for value in row.values())


def cell(value: object) -> str:
    """Return a value as a string: strings unchanged, null as "", others as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else pretty(value)


# --- rebuilt diffs ---------------------------------------------------------------------------


_OWN_HEAD = "--- "


def rebuilt_diff(path: str, *, old: str | None, new: str, is_new: bool) -> DiffDisplay:
    """Build a diff from the arguments of a write or replace call.

    CLIs up to version 0.20 stored no diff. `old`: the replaced text; None if a whole file was
    written, whose previous contents are unknown. In that case, `removed` is None unless the file is
    new. The replaced lines are numbered from 1, although their position in the file is unknown (see
    `has_line_numbers`).
    """
    from gemtui.transcript.diffs import hunks_of

    lines = tuple(hunks_of(old or "", new))
    name = _base_name(path)
    diff = _own_head(name) + "".join(lines)
    added, removed = count_changes(diff)
    return DiffDisplay(
        diff=diff,
        path=path,
        name=name,
        added=added,
        removed=removed if is_new or old is not None else None,
        is_new=is_new,
        new=new if old is None else None,
    )


def _own_head(name: str) -> str:
    return f"{_OWN_HEAD}{name}\tOriginal\n+++ {name}\tWritten\n"


def is_rebuilt(change: DiffDisplay) -> bool:
    """Return whether a diff was built from a call's arguments.

    The CLI's own diffs have a different header.
    """
    return change.diff.startswith(_OWN_HEAD)


def has_line_numbers(change: DiffDisplay) -> bool:
    """Return whether the line numbers of a diff are those in the file.

    They are not if the diff was built from the arguments of an edit, which don't say where in the
    file the text is.
    """
    whole = change.is_new or change.new is not None
    return whole or not change.diff.startswith(_own_head(change.name))


def content_diff(path: str, before: str, after: str, *, is_new: bool = False) -> DiffDisplay:
    """Return the diff between two versions of a whole file."""
    diff = rebuilt_diff(path, old=before, new=after, is_new=is_new)
    return replace(diff, original=before, new=after)
