"""The result of a tool call as rows, from which cards, exports and both searches draw.

Only this module knows the forms that a result can have (`model.Display`). Everything else draws a
row by its role, so a new form of results needs nothing but its rows here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from itertools import groupby
from typing import Any, NamedTuple, assert_never

from gemtui.text import clean, counted
from gemtui.transcript.displays import hunks
from gemtui.transcript.model import (
    AgentDisplay,
    DiffDisplay,
    Display,
    FilesDisplay,
    JsonDisplay,
    MatchesDisplay,
    ScreenDisplay,
    TableDisplay,
    TextDisplay,
    TodosDisplay,
)
from gemtui.transcript.parts import pretty

_ESCAPE = re.compile(r'\\(["\\bfnrt]|u[0-9a-f]{4})')
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n"}


class RowRole(Enum):
    """The roles of rows, which determine how they are drawn."""

    TEXT = auto()
    """Text as it stands; may have many lines."""
    PROSE = auto()
    """Markdown."""
    JSON = auto()
    """A value to be shown as indented JSON: `source`."""
    DIFF = auto()
    """A change to one file: the `DiffDisplay` is `source`."""
    SCREEN = auto()
    """A terminal's screen: its lines of `AnsiSpan` are `source`."""
    COLUMNS = auto()
    """The names of a table's columns: `source`."""
    CELLS = auto()
    """A row of a table: its cells are `source`."""
    PATH = auto()
    """The file of the matches that follow."""
    MATCH = auto()
    """A line that a search found; `label`: its number; `source`: its file."""
    FILE = auto()
    SKIPPED = auto()
    """A file that was not read; `aside`: why."""
    TODO = auto()
    """A todo; `aside`: its state in words; `source`: its status."""
    STEP = auto()
    """A step of a subagent; `aside`: its kind; `source`: its status."""
    ANSWER = auto()
    """A subagent's answer."""
    END = auto()
    """The reason why a subagent ended."""
    SUMMARY = auto()
    """Gemini CLI's words about the result; a card says the same in another way."""
    COUNT = auto()
    """How many there are, for a card's first line: `label`."""
    NOTE = auto()
    """A card's last line: `label`, then `text`."""


class Row(NamedTuple):
    """A row of a result. All text is raw and untrusted.

    `text`: what is drawn, and found by searches. `aside`: more of it, which is drawn less brightly.
    `label`: what is drawn but not searched: gemtui's own words, and numbers. `plain`: the row in
    plain text; None if that is `text`. `source`: what the row was made of.
    """

    role: RowRole
    text: str = ""
    aside: str = ""
    label: str = ""
    plain: str | None = None
    source: Any = None


def result_rows(display: Display) -> Iterator[Row]:
    """Yield the rows of a result. The first one says how exports draw the whole."""
    match display:
        case TextDisplay():
            yield Row(RowRole.PROSE if display.markdown else RowRole.TEXT, display.text)
        case JsonDisplay():
            yield Row(RowRole.JSON, source=display.value)
        case DiffDisplay():
            yield Row(RowRole.DIFF, source=display)
        case ScreenDisplay():
            # cleaned one by one: the ends of two spans must not become a colour code together
            lines = ["".join(clean(span.text) for span in line) for line in display.lines]
            text = "\n".join(lines)
            yield Row(RowRole.SCREEN, text, source=display.lines)
        case TableDisplay():
            yield Row(RowRole.COLUMNS, "\t".join(display.columns), source=display.columns)
            for cells in display.rows:
                yield Row(RowRole.CELLS, "\t".join(cells), source=cells)
            yield Row(RowRole.COUNT, label=counted(len(display.rows), "row"))
        case MatchesDisplay():
            yield from _matches(display)
        case FilesDisplay():
            yield Row(RowRole.SUMMARY, plain=display.summary)
            for name in display.files:
                yield Row(RowRole.FILE, name)
            for path, reason in display.skipped:
                plain = f"skipped: {path} {reason}".rstrip()
                yield Row(RowRole.SKIPPED, path, f"skipped: {reason}", plain=plain)
            yield Row(RowRole.COUNT, label=counted(len(display.files), "entry", "entries"))
            yield Row(RowRole.NOTE, display.summary, plain="")
        case AgentDisplay():
            yield from _progress(display)
        case TodosDisplay():
            for todo in display.items:
                state = "" if todo.status in _DRAWN_STATES else _spaced(todo.status)
                plain = f"{todo.status}: {todo.text}"
                yield Row(RowRole.TODO, todo.text, state, plain=plain, source=todo.status)
            completed = sum(todo.status == "completed" for todo in display.items)
            yield Row(RowRole.COUNT, label=f"{completed} of {len(display.items)} done")
        case _:
            assert_never(display)


_DRAWN_STATES = ("completed", "pending")
"""The states of a todo that a card shows by a symbol alone."""


def _matches(display: MatchesDisplay) -> Iterator[Row]:
    yield Row(RowRole.SUMMARY, plain=display.summary)
    for path, matches in groupby(display.matches, key=lambda match: match.path):
        yield Row(RowRole.PATH, path, plain="")
        for match in matches:
            number = "" if match.line is None else str(match.line)
            plain = f"{path}:{number}: {match.text}" if number else f"{path}: {match.text}"
            yield Row(RowRole.MATCH, match.text, label=number, plain=plain, source=path)
    yield Row(RowRole.COUNT, label=counted(len(display.matches), "match", "matches"))
    files = len({match.path for match in display.matches})
    if files:
        yield Row(RowRole.NOTE, label=f"in {counted(files, 'file')}", plain="")
    else:
        yield Row(RowRole.NOTE, display.summary, plain="")


def _progress(display: AgentDisplay) -> Iterator[Row]:
    yield Row(RowRole.SUMMARY, plain=_joined(display.agent, display.state, display.reason or ""))
    for step in display.activities:
        kind = _spaced(step.kind)
        plain = _joined(kind, step.text, step.status)
        yield Row(RowRole.STEP, step.text, kind, plain=plain, source=step.status)
    if display.result:
        yield Row(RowRole.ANSWER, display.result)
    yield Row(RowRole.COUNT, label=counted(len(display.activities), "step"))
    if display.reason:
        yield Row(RowRole.END, display.reason, plain="")


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def plain_text(rows: Iterable[Row]) -> str:
    """Return the rows as raw plain text.

    Each match, file, todo, or table row has its own line. Table cells are separated by tabs.
    """
    return joined_lines(_plain(row) for row in rows)


def _plain(row: Row) -> str:
    if row.role is RowRole.DIFF:
        return hunks(row.source.diff)
    if row.role is RowRole.JSON:
        return pretty(row.source)
    return row.text if row.plain is None else row.plain


def searched_text(rows: Iterable[Row]) -> str:
    """Return the text of the rows as it appears on a card, raw and untrusted."""
    return joined_lines(_searched(row) for row in rows)


def _searched(row: Row) -> str:
    if row.role is RowRole.DIFF:
        return changed_lines(row.source.diff)
    if row.role is RowRole.JSON:
        return unescaped(row.source)
    if row.role is RowRole.STEP:
        return f"{row.aside}  {row.text}"
    return f"{row.text}  {row.aside}" if row.aside else row.text


def changed_lines(diff: str) -> str:
    """Return a unified diff's changed and unchanged lines as plain text.

    The signs before the lines, the file names, and the line numbers are left out.
    """
    from gemtui.transcript.diffs import GAP, diff_lines, is_diff_text  # slow to import

    lines = [line for line in diff_lines(diff.split("\n")) if line.sign != GAP]
    if not lines:
        return diff if any(map(is_diff_text, diff.split("\n"))) else ""
    return "\n".join(line.text for line in lines)


def unescaped(value: object) -> str:
    """Return a value as text: strings unchanged, others as JSON without escapes.

    The result is for display and search, and need not be valid JSON.
    """
    if isinstance(value, str):
        return value
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], " "), pretty(value))


def joined_lines(lines: Iterable[str]) -> str:
    """Return the lines that are not empty as one text."""
    return "\n".join(line for line in lines if line)
