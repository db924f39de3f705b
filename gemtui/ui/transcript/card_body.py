"""The inside of a card: a tool's result, rendered according to its type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, takewhile
from typing import assert_never

from msgspec.structs import replace

from gemtui.calls.paths import asked_path
from gemtui.text import Clean, clean, counted, visible
from gemtui.transcript.call_text import file_lines, only_reason, replaced_line, shown_display
from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    AnsiSpan,
    DiffDisplay,
    FilesDisplay,
    JsonDisplay,
    MatchesDisplay,
    ScreenDisplay,
    TableDisplay,
    TextDisplay,
    TodosDisplay,
    ToolCall,
)
from gemtui.transcript.tools import ToolKind, kind_of, target
from gemtui.ui.draw.bounds import LINES, LONG_LINE, bounded, bounded_excerpt, line_count
from gemtui.ui.draw.code import highlight, language_of
from gemtui.ui.draw.gutter_rows import (
    Body,
    GutterRow,
    as_json,
    cut_lines,
    fold_lines,
    left_out_line,
    preview,
    some_rows,
    styled,
    text_rows,
    wrapped_rows,
)
from gemtui.ui.draw.lines import BLANK, EMPTY, Line, Piece, Pieces, cut, flat, own, tabless
from gemtui.ui.draw.markdown import draw_markdown
from gemtui.ui.draw.prose import draw_prose
from gemtui.ui.draw.table import draw_table
from gemtui.ui.draw.theme import Look, Role, span_style
from gemtui.ui.transcript.diff import draw_changes, first_changes, read_diff

EDIT, OUTPUT, FAILED_OUTPUT, ERROR, OTHER, TODOS, RESULT = 6, 4, 8, 12, 3, 12, 3
"""Maximum number of lines in a folded card, by the kind of result."""
_SPAN = 16
"""Number of characters that a change of style counts as in the size of a line.

Very long lines are cut by this size, because rendering them takes too long.
"""
TABLE = 300
"""Maximum number of rows of a table to render; they cost more than lines of text."""
_QUIET = (ToolKind.READ, ToolKind.LIST, ToolKind.GLOB, ToolKind.SEARCH, ToolKind.WEB, ToolKind.MEMORY, ToolKind.TOPIC)
_PROSE = (
    ToolKind.WEB,
    ToolKind.AGENT,
    ToolKind.TOPIC,
    ToolKind.PLAN,
    ToolKind.ASK,
    ToolKind.MEMORY,
    ToolKind.MCP,
    ToolKind.OTHER,
)


def draw_body(call: ToolCall, look: Look, *, folded: bool) -> Body:
    """Render a tool's result, or the reason it failed, as the body of its card."""
    if reason := only_reason(call):
        return text_rows(reason, look, folded=folded, head=ERROR, prose=True)
    match call.display:
        case DiffDisplay():
            return draw_diff(call.display, look, folded=folded)
        case MatchesDisplay():
            return _matches(call.display, look, folded=folded)
        case FilesDisplay():
            return _files(call.display, look, folded=folded)
        case AgentDisplay():
            return _agent(call.display, look, folded=folded)
        case TodosDisplay():
            return _todos(call.display, look, folded=folded)
        case ScreenDisplay():
            return _screen(call, call.display, look, folded=folded)
        case TableDisplay():
            return _table(call.display, look, folded=folded)
        case JsonDisplay():
            text = as_json(call.display.value)
            return text_rows(text, look, folded=folded, head=OTHER, language=own("json"))
        case TextDisplay() | None:
            return _text(call, look, folded=folded)
        case _:
            assert_never(call.display)


# --- text ----------------------------------------------------------------------------------------


def _text(call: ToolCall, look: Look, *, folded: bool) -> Body:
    """Render a result's text, either as displayed by the CLI or as sent to the model.

    The model often receives more than the CLI displays; `shown_display` decides which is shown.
    """
    kind, display = kind_of(call.name), shown_display(call)
    text = display.text if isinstance(display, TextDisplay) else ""
    if kind is ToolKind.SHELL:
        body = text_rows(text, look, folded=folded, tail=_last_lines(call), language=_output_language(text))
        return replace(body, facts=_exit(call, look))
    note = flat(replaced_line(call, display))
    lines = file_lines(call)
    if lines is not None and text == lines.text:
        language = language_of(flat(asked_path(call.args)[-200:]))
        body = text_rows(lines.text, look, folded=folded, language=language, first=lines.first)
        return replace(body, note=note)
    if kind in _PROSE and not _is_data(text):
        return replace(_prose(text, look, folded=folded, keep=_kept(kind)), note=note)
    path = flat(target(call)[-200:]) if kind is ToolKind.READ else EMPTY
    language = own("json") if kind in _PROSE else language_of(path)
    body = text_rows(text, look, folded=folded, head=_kept(kind), language=language)
    return replace(body, note=note)


def _kept(kind: ToolKind) -> int:
    return 0 if kind in _QUIET else OTHER


def _is_data(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[", "<")


def _output_language(text: str) -> Clean:
    """Guess the language of a command's output from its start and end."""
    text = text.strip()
    if text.startswith(("diff --git ", "--- a/")):
        return own("diff")
    return own("json") if text[:1] + text[-1:] in ("{}", "[]") else EMPTY


def _prose(text: str, look: Look, *, folded: bool, keep: int) -> Body:
    """Render Markdown or, if folded, only its first `keep` non-empty lines."""
    if folded and not keep:
        hidden = line_count(text)
        return Body(hidden=hidden, more=hidden > 0)
    lines = list(draw_prose(text, look, draw_markdown))
    return fold_lines(lines, folded=folded, keep=keep)


def _last_lines(call: ToolCall) -> int:
    return FAILED_OUTPUT if call.exit_code else OUTPUT


def _exit(call: ToolCall, look: Look) -> tuple[Piece, ...]:
    if not call.exit_code:
        return ()
    return (Piece(own(f"exit {call.exit_code}"), look[Role.ERROR]),)


def _screen(call: ToolCall, display: ScreenDisplay, look: Look, *, folded: bool) -> Body:
    lines, keep = display.lines, _last_lines(call) if folded else LINES
    head = 0 if folded else len(lines) if len(lines) <= LINES else LINES // 2
    first = bounded(lines[:head], size=_size)
    last = bounded(reversed(lines[max(head, len(lines) - keep + head) :]), size=_size)[::-1]
    missing = len(lines) - len(first) - len(last)
    before, after = ([GutterRow((), _spans(line, look)) for line in some] for some in (first, last))
    facts = _exit(call, look)
    if folded:
        return replace(preview(after, look, total=len(lines)), facts=facts)
    gap = (left_out_line(missing, look),) if missing else ()
    cut = (cut_lines(look),) if any(_size(line) > LONG_LINE for line in (*first, *last)) else ()
    return Body(lines=(*wrapped_rows(before, look), *gap, *wrapped_rows(after, look), *cut), facts=facts)


def _size(line: Sequence[AnsiSpan]) -> int:
    """Return the size of a line of terminal output, in characters.

    Changes of style also count, because they take time to render.
    """
    return sum(len(span.text) + _SPAN for span in line)


def _spans(line: Sequence[AnsiSpan], look: Look) -> Pieces:
    """Return a line of terminal output as pieces, truncated if it is very long."""
    starts = accumulate((len(span.text) + _SPAN for span in line), initial=0)
    shown = takewhile(lambda pair: pair[0] < LONG_LINE, zip(starts, line, strict=False))
    return tuple(
        Piece(tabless(flat_spaces(span.text[: LONG_LINE - start])), span_style(span, look)) for start, span in shown
    )


def flat_spaces(text: str) -> Clean:
    """Sanitize text and put it on one line, keeping its spaces."""
    return Clean(clean(text).replace("\n", " "))


# --- changes, searches, lists ---------------------------------------------------------------------


def draw_diff(display: DiffDisplay, look: Look, *, folded: bool) -> Body:
    """Render a file's changed lines with their context, or a few of them if folded."""
    facts = change_counts(display, look)
    some = bounded_excerpt(display.diff, head=LINES, tail=0, cleaned=visible)
    changes = read_diff(some.head)
    if not changes and not any(map(_says, some.head)):
        empty = not display.new and (display.is_new or not display.original)
        return Body(facts=facts, note=own("empty file" if empty else "no changes"))
    if not changes:
        return replace(text_rows(display.diff, look, folded=folded, head=EDIT), facts=facts)
    language = language_of(flat((display.name or display.path)[-200:]))
    if folded:
        shown = first_changes(changes, EDIT)
        lines = tuple(draw_changes(shown, look, language=language, whole=False))
        hidden = len(changes) + some.left_out - len(shown)
        cut = sum(line.pieces[-1].text.endswith(look.glyphs.ellipsis) for line in lines)
        return Body(lines=lines, hidden=hidden, cut=cut, more=hidden + cut > 0, facts=facts)
    lines = tuple(draw_changes(changes, look, language=language))
    if some.left_out:
        lines = (*lines, left_out_line(some.left_out, look))
    return Body(lines=lines, facts=facts)


def _says(line: str) -> bool:
    """Return whether a line of a diff has content, and isn't part of a header."""
    return bool(line.strip()) and not line.startswith(("Index: ", "=====", "--- ", "+++ "))


def change_counts(display: DiffDisplay, look: Look) -> tuple[Piece, ...]:
    """Return the numbers of added and removed lines, such as `+6 −2`, if known."""
    pieces = []
    if display.added is not None:
        pieces.append(Piece(own(f"{look.glyphs.added}{display.added}"), look[Role.ADDED]))
    if display.removed:
        pieces.append(Piece(own(f" {look.glyphs.removed}{display.removed}"), look[Role.REMOVED]))
    return tuple(pieces)


def _matches(display: MatchesDisplay, look: Look, *, folded: bool) -> Body:
    number = len(display.matches)
    facts = (Piece(own(counted(number, "match", "matches")), look[Role.MUTED]),)
    files = len({match.path for match in display.matches})
    note = own(f"in {counted(files, 'file')}") if files else flat(display.summary)
    rows = list(_match_rows(display, look)) if not folded else []
    body = some_rows(rows, look, folded=folded, keep=0)
    return Body(lines=body.lines, more=folded and number > 0, facts=facts, note=note)


def _match_rows(display: MatchesDisplay, look: Look) -> Iterator[GutterRow]:
    for path, group in groupby(display.matches[:LINES], key=lambda match: match.path):
        yield GutterRow((), styled(flat(path), look[Role.HEADING]))
        matches = list(group)
        code = Clean("\n".join(flat_spaces(match.text.rstrip()) for match in matches))
        lines = highlight(code, language_of(flat(path[-200:])), look)
        for match, pieces in zip(matches, lines, strict=True):
            number = "" if match.line is None else str(match.line)
            yield GutterRow(styled(own(f"{number:>5}  "), look[Role.MUTED]), pieces)


def _files(display: FilesDisplay, look: Look, *, folded: bool) -> Body:
    facts = (Piece(own(counted(len(display.files), "entry", "entries")), look[Role.MUTED]),)
    rows = [GutterRow((), styled(flat(name), look[Role.TEXT])) for name in display.files[: LINES + 1]]
    for name, reason in display.skipped[:LINES]:
        text = own(f"{flat(name)}  skipped: {flat(reason) or 'no reason given'}")
        rows.append(GutterRow((), styled(text, look[Role.WARNING])))
    body = some_rows([] if folded else rows, look, folded=folded, keep=0)
    note = flat(display.summary)
    return Body(lines=body.lines, more=folded and bool(rows), facts=facts, note=note)


def _todos(display: TodosDisplay, look: Look, *, folded: bool) -> Body:
    done = sum(item.status == "completed" for item in display.items)
    facts = (Piece(own(f"{done} of {len(display.items)} done"), look[Role.MUTED]),)
    rows = [_todo(flat(item.text), item.status, look) for item in display.items]
    return replace(some_rows(rows, look, folded=folded, keep=TODOS), facts=facts)


def _todo(text: Clean, status: str, look: Look) -> GutterRow:
    glyphs = look.glyphs
    sign, role, word = {
        "completed": (glyphs.done, Role.SUCCESS, ""),
        "in_progress": (glyphs.doing, Role.ACCENT, "in progress"),
        "pending": (glyphs.pending, Role.MUTED, ""),
        "cancelled": (glyphs.denied, Role.MUTED, "cancelled"),
    }.get(status, (glyphs.pending, Role.MUTED, flat(status)))
    mark = f"[{sign}] " if glyphs.ascii else f"{sign} "
    faded = look[Role.MUTED] if status in ("completed", "cancelled") else look[Role.TEXT]
    after = (Piece(own(f"  {word}"), look[Role.MUTED]),) if word else ()
    return GutterRow((Piece(own(mark), look[role]),), (Piece(tabless(text), faded), *after))


# --- agents, tables ------------------------------------------------------------------------------


def _agent(display: AgentDisplay, look: Look, *, folded: bool) -> Body:
    facts = (Piece(own(counted(len(display.activities), "step")), look[Role.MUTED]),)
    result = _result(display.result or "", look, folded=folded)
    if folded:
        more = result.more or bool(display.activities)
        return replace(result, more=more, facts=facts)
    steps = [_step(step, look) for step in display.activities[:LINES]]
    gap = [BLANK] if steps and result.lines else []
    note = flat(f"ended: {display.reason}") if display.reason else EMPTY
    return Body(lines=(*steps, *gap, *result.lines), facts=facts, note=note)


def _step(step: Activity, look: Look) -> Line:
    glyphs = look.glyphs
    sign, role = {
        "completed": (glyphs.ok, Role.SUCCESS),
        "running": (glyphs.running, Role.ACCENT),
        "error": (glyphs.failed, Role.ERROR),
        "cancelled": (glyphs.denied, Role.WARNING),
    }.get(step.status, (glyphs.bullet, Role.MUTED))
    words = flat(step.kind.replace("_", " "))
    pieces = (
        Piece(own(f"{sign} "), look[role]),
        Piece(own(f"{words}  "), look[Role.MUTED]),
        Piece(flat(step.text[:1000]), look[Role.TEXT]),
    )
    return Line(cut(pieces, look))


def _result(text: str, look: Look, *, folded: bool) -> Body:
    if _is_data(text):
        return text_rows(text, look, folded=folded, head=RESULT, language=own("json"))
    return _prose(text, look, folded=folded, keep=RESULT)


def _table(display: TableDisplay, look: Look, *, folded: bool) -> Body:
    facts = (Piece(own(counted(len(display.rows), "row")), look[Role.MUTED]),)
    shown = display.rows[: OTHER if folded else TABLE]
    head = [styled(flat(name), look[Role.TEXT]) for name in display.columns]
    rows = [[styled(flat(cell[:1000]), look[Role.TEXT]) for cell in row] for row in shown]
    hidden = len(display.rows) - len(shown)
    lines = tuple(draw_table(head, rows, look))
    if folded:
        return Body(lines=lines, hidden=hidden, more=hidden > 0, facts=facts)
    return Body(lines=(*lines, left_out_line(hidden, look)) if hidden else lines, facts=facts)
