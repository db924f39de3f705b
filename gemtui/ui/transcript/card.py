"""Render a tool call as a card that shows its request, status and result, by its type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, islice, takewhile
from typing import Any

from msgspec.structs import replace
from rich.cells import cell_len

from gemtui.agents import WORDS
from gemtui.calls.paths import asked_path
from gemtui.text import HOLDS_CONTROLS, clean, counted, duration, visible, visible_line
from gemtui.transcript.call_text import (
    call_rows,
    difference_from_original,
    file_lines,
    lines_asked,
    omitted_arguments,
    only_reason,
    original_command,
    shown_reason,
    shown_rule,
)
from gemtui.transcript.media import image_words
from gemtui.transcript.model import (
    AnsiSpan,
    Answer,
    Beyond,
    Consent,
    DiffDisplay,
    Image,
    ToolCall,
    ToolStatus,
)
from gemtui.transcript.parts import string
from gemtui.transcript.result_rows import Row, RowRole
from gemtui.transcript.seal import changed_by_hook
from gemtui.transcript.tools import ToolKind, args_hold_controls, kind_of, target, target_argument
from gemtui.ui.draw.code import highlight, language_of
from gemtui.ui.draw.formats import time_of_day
from gemtui.ui.draw.lines import (
    BLANK,
    Line,
    Piece,
    Pieces,
    cut,
    fit_end,
    fit_start,
    flat,
    prefixed,
    spread,
    stripped,
    tabless,
    width_of,
    wrap,
)
from gemtui.ui.draw.markdown import draw_markdown
from gemtui.ui.draw.table import draw_table
from gemtui.ui.draw.text_rows import (
    LINES,
    LONG_LINE,
    Body,
    GutterRow,
    as_json,
    bounded,
    bounded_excerpt,
    cut_lines,
    draw_prose,
    fold_lines,
    left_out_line,
    line_count,
    note_line,
    preview,
    styled,
    text_rows,
    wrapped_rows,
)
from gemtui.ui.draw.theme import BOLD, Look, Role, span_style
from gemtui.ui.transcript.diff import draw_diff

HOOKED = "changed before it ran, by a hook in your settings or another extension"
_FILE_TEXTS = ("content", "old_string", "new_string")
"""Arguments that contain text of the file named in the request."""
_ENOUGH = 24
"""Number of cells that the first line of a card keeps free for the request.

Duration and counts are left out to make room for it.
"""
_PURPOSE = frozenset({"description", "instruction"})
"""Arguments in which the model says what a command or an edit is for."""
_SHORT = 200
"""Maximum number of characters of an argument that a folded card shows."""
_LONG_NAME, _LONG_TARGET = 200, 1_000
"""Maximum number of characters of a tool's name and a request on the first line."""
_PATHS = (ToolKind.READ, ToolKind.WRITE, ToolKind.EDIT, ToolKind.LIST)


def draw_card(call: ToolCall, look: Look, *, folded: bool) -> tuple[list[Line], bool]:
    """Return the lines of a tool call's card, and whether it can be folded.

    `look`: the colours, the symbols, and the width. `folded`: whether to render it folded.
    """
    inner = look.narrowed(2)
    body = draw_body(call, inner, folded=folded)
    caution = [*_caution(call, inner), *draw_asked(call, inner, folded=folded)]
    command, keys = _unsaid(call, body.facts, look)
    lines = list(body.lines)
    if not folded and (command or keys):
        details = _bounded(_details(call, command, keys, inner), inner)
        gap = [BLANK] if lines else []
        lines = [*lines, *gap, *details] if call.status.failed else [*details, *gap, *lines]
    if folded:
        foldable = body.more or bool(command or keys)
    else:
        foldable = len(draw_body(call, inner, folded=True).lines) < len(lines)
    for image in call.images:
        lines += wrap(draw_image(image, inner), inner.width)
    left, end = _title(call, body.facts, look)
    room = look.width - width_of((*left, *end))
    words = _argument_words(call, keys) if folded else ""
    if words and (cell_len(words) + 2 > room or not _PURPOSE.isdisjoint(keys)):
        lines.insert(0, _dim(words, inner))
        words = ""
    closing = _closing(call, body, look, folded=folded)
    if closing and (lines or caution or cell_len(words) + cell_len(closing) + 4 > room):
        lines.append(_dim(closing, inner))
        closing = ""
    beside = "".join(f"  {text}" for text in (words, closing) if text)
    left = (*left, Piece(beside, look[Role.MUTED])) if beside else left
    title = spread(left, end, look.width, Piece(" ", look[Role.MUTED])) if end else stripped(left)
    side = (Piece(f"{look.glyphs.side} ", look[Role.BORDER]),)
    return [Line(title), *prefixed([*caution, *lines], side)], foldable


def _dim(text: str, look: Look) -> Line:
    return Line(cut((Piece(text, look[Role.MUTED]),), look))


def _argument_words(call: ToolCall, keys: Sequence[str]) -> str:
    """Return the beginning of each of these arguments, on one line."""
    texts = []
    for key in keys:
        value = call.args[key]
        text = value if isinstance(value, str) else as_json(value, _SHORT)
        text = visible_line(" ".join(text[:_SHORT].split()))
        texts.append(text if key in _PURPOSE else f"{visible_line(key[:100])}: {text}")
    return "  ".join(texts)


def _caution(call: ToolCall, look: Look) -> Iterator[Line]:
    if args_hold_controls(call.args):
        yield _warning(HOLDS_CONTROLS, look)
    if call.hooked or changed_by_hook(call.output or call.error or ""):
        yield _warning(HOOKED, look)


def _warning(text: str, look: Look) -> Line:
    pieces = cut((Piece(f"{look.glyphs.warning} {text}", look[Role.WARNING]),), look)
    return Line(pieces, width_of(pieces))


def _bounded(lines: Iterator[Line], look: Look) -> list[Line]:
    kept = list(islice(lines, LINES))
    if next(lines, None) is not None:
        kept.append(note_line("more arguments are not shown", look))
    return kept


def draw_image(image: Image, look: Look) -> Pieces:
    """Return a description of an image or other binary content."""
    return (Piece(f"[{image_words(image)}]", look[Role.TEXT]),)


# --- first line ----------------------------------------------------------------------------------


def call_state(call: ToolCall, look: Look) -> tuple[str, str, Role]:
    """Return the symbol, word and colour role for a call's state.

    The word is "" if the card shows the state elsewhere.
    """
    answer = call.answer
    if answer is not None and (answer.consent is Consent.WAITS or answer.subagent):
        return _of_answer(answer, look)
    if call.status is ToolStatus.SUCCESS and call.exit_code:
        return look.glyphs.failed, "", Role.ERROR
    return state_of(call.status, look)


def state_of(status: ToolStatus, look: Look) -> tuple[str, str, Role]:
    """Return the symbol, word and colour role for a status."""
    glyphs = look.glyphs
    match status:
        case ToolStatus.SUCCESS:
            return glyphs.ok, "", Role.SUCCESS
        case ToolStatus.ERROR:
            return glyphs.failed, "failed", Role.ERROR
        case ToolStatus.QUEUED:
            return glyphs.running, "queued", Role.MUTED
        case ToolStatus.RUNNING:
            return glyphs.running, "", Role.ACCENT
        case ToolStatus.DENIED:
            return glyphs.denied, "denied", Role.WARNING
        case ToolStatus.REFUSED:
            return glyphs.denied, "refused", Role.WARNING
        case ToolStatus.CANCELLED:
            return glyphs.denied, "cancelled", Role.WARNING
        case ToolStatus.INTERRUPTED:
            return glyphs.interrupted, "interrupted", Role.WARNING
        case ToolStatus.UNCONFIRMED:
            return glyphs.interrupted, "unconfirmed", Role.WARNING


def _of_answer(answer: Answer, look: Look) -> tuple[str, str, Role]:
    """Return the symbol, word and colour role for the user's answer to a call.

    They represent the call's state while the user hasn't answered, and for a subagent's call,
    because nothing else is known about that.
    """
    glyphs = look.glyphs
    match answer.consent:
        case Consent.WAITS:
            return glyphs.ask, "ask", Role.WARNING
        case Consent.ALLOWED | Consent.CHANGED:
            return glyphs.ok, answer.consent.value, Role.SUCCESS
        case Consent.DENIED | Consent.STOPPED:
            return glyphs.denied, "denied", Role.WARNING
        case Consent.ABANDONED:
            return glyphs.interrupted, "not answered", Role.WARNING


def _title(call: ToolCall, facts: Pieces, look: Look) -> tuple[Pieces, Pieces]:
    """Return both ends of a card's first line: symbol, name, request; and counts, duration.

    If there isn't enough room, the last parts are left out first. `facts`: the counts.
    """
    front, asked, end = _title_parts(call, facts, look)
    left = (*front, Piece(f"  {asked}", look[Role.TEXT])) if asked else front
    if _has_room(call, (*left, *end), look) and asked:
        left = (*left, Piece(f"  {lines_asked(call)}", look[Role.MUTED]))
    return cut(left, look), end


def _has_room(call: ToolCall, beside: Pieces, look: Look) -> bool:
    """Return whether a card's first line has room for the line range that was read.

    This is for calls that read a file. `beside`: what else is on the card's first line.
    """
    lines = lines_asked(call)
    return bool(lines) and width_of(beside) + len(lines) + 2 <= look.width


def _title_parts(call: ToolCall, facts: Pieces, look: Look) -> tuple[Pieces, str, Pieces]:
    """Return the parts of a card's first line.

    These are the symbol and name, as much of the request as fits, and how the call ended. `facts`:
    the counts to show.
    """
    sign, word, role = call_state(call, look)
    name = Piece(visible_line(call.name[:_LONG_NAME]), look[Role.TEXT] + BOLD)
    front = (Piece(f"{sign} ", look[role]), name)
    room = look.width - width_of(front)
    asked = _on_one_line(target(call)[:_LONG_TARGET], look)
    end = _end(call, (Piece(word, look[role]),) if word else (), facts, asked, room, look)
    return front, _fitted(asked, room - width_of(end) - 2, call, look), end


def _on_one_line(asked: str, look: Look) -> str:
    return visible_line(asked.strip().replace("\n", look.glyphs.line_end))


def _end(call: ToolCall, word: Pieces, facts: Pieces, asked: str, room: int, look: Look) -> Pieces:
    """Return a call's state, counts and duration, as far as there is room for them.

    `word`: the state. `facts`: the counts. `asked`: the request. `room`: the number of cells for
    all of these.
    """
    lasted = duration(call.duration) if call.duration is not None else ""
    last = (Piece(f"{lasted:>7}", look[Role.MUTED]),) if lasted else ()
    wanted = min(_ENOUGH, cell_len(asked)) + 2
    for end in (_apart(word, facts, last), _apart(word, facts), _apart(word)):
        if room - width_of(end) >= wanted:
            return end
    return _apart(word) if room >= width_of(_apart(word)) else ()


def _apart(*groups: Pieces) -> Pieces:
    """Return the pieces of all non-empty groups, with two spaces before each group."""
    pieces: list[Piece] = []
    for group in filter(None, groups):
        pieces += [Piece("  ", group[0].style), *group]
    return tuple(pieces)


def _fitted(asked: str, room: int, call: ToolCall, look: Look) -> str:
    if room < 4:
        return asked if cell_len(asked) <= room else ""
    mark = look.glyphs.ellipsis
    if kind_of(call.name) in _PATHS:
        return fit_end(asked, room, mark)
    return fit_start(asked, room, mark)


# --- last line -----------------------------------------------------------------------------------


def _closing(call: ToolCall, body: Body, look: Look, *, folded: bool) -> str:
    """Return what a card's last line says about what is hidden and how the call ended."""
    repeats = folded and f'"{flat(target(call)[:_LONG_TARGET])}"' in body.note
    note = "" if repeats else body.note
    parts = [part for part in (approval_words(call), _unwritten(call), _rest(body) or note) if part]
    if not parts and not folded and not call.status.failed and call.time is not None:
        parts.append(time_of_day(call.time, look))
    if call.checkpoint:
        parts.append(f"{look.glyphs.undo} checkpoint")
    return f" {look.glyphs.dot} ".join(parts)


def _unwritten(call: ToolCall) -> str:
    if call.answer is not None and (call.answer.consent is Consent.WAITS or call.answer.subagent):
        return ""
    if call.status is ToolStatus.RUNNING:
        return "running"
    if call.status is ToolStatus.UNCONFIRMED:
        return "result unknown"
    if call.status is ToolStatus.CANCELLED and isinstance(call.display, DiffDisplay):
        return "not written"
    return ""


def _rest(body: Body) -> str:
    if not body.hidden or (body.note and not body.lines):
        return ""
    if not body.lines:
        return counted(body.hidden, "line")
    return f"+{counted(body.hidden, 'line')}"


# --- unfolded request ----------------------------------------------------------------------------


def _unsaid(call: ToolCall, facts: Pieces, look: Look) -> tuple[str, tuple[str, ...]]:
    """Return the command and the names of the arguments that a folded card leaves out.

    The command is "" if the card's first line shows it in full.
    """
    asked = target(call)
    command = call.args.get("command")
    short = len(asked) <= _LONG_TARGET and "\n" not in asked.strip()
    front, fitting, end = _title_parts(call, facts, look)
    whole = short and fitting == _on_one_line(asked, look)
    shown = set(omitted_arguments(call))
    if lines_asked(call):
        title = (*front, Piece(f"  {fitting}", look[Role.TEXT]), *end)
        if not (whole and asked and _has_room(call, title, look)):
            shown = set()
    if asked and whole:
        said = target_argument(call)
        shown |= {key for key, value in call.args.items() if value == said}
    shell = kind_of(call.name) is ToolKind.SHELL and isinstance(command, str)
    if shell:
        shown.add("command")
    keys = tuple(key for key in call.args if key not in shown)
    return str(command) if shell and not whole else "", keys


def _details(call: ToolCall, command: str, keys: Sequence[str], look: Look) -> Iterator[Line]:
    if command:
        yield from _command(command, look)
    for key in keys:
        yield from _argument(key, call.args[key], _language(key, call), look)


def _language(key: str, call: ToolCall) -> str:
    """Return an argument's language for syntax highlighting; "" if it has none."""
    if not isinstance(call.args[key], str):
        return "json"
    if key == "command":
        return "bash"
    return language_of(flat(target(call)[-200:])) if key in _FILE_TEXTS else ""


def _command(command: str, look: Look) -> Iterator[Line]:
    text = "\n".join(bounded_excerpt(command, cleaned=visible).head)
    for index, pieces in enumerate(highlight(text, "bash", look)):
        gutter = styled("  " if index else "$ ", look[Role.MUTED])
        yield from wrapped_rows([GutterRow(gutter, pieces)], look)


def _argument(key: str, value: Any, language: str, look: Look) -> Iterator[Line]:
    name = Piece(f"{visible_line(key[:100])}: ", look[Role.MUTED])
    text = value if isinstance(value, str) else as_json(value)
    some = bounded_excerpt(text, head=LINES, tail=0, cleaned=visible)
    rows = list(highlight("\n".join(some.head), language, look))
    if len(rows) <= 1:
        yield from wrap((name, *(piece for row in rows for piece in row)), look.width)
        return
    yield from wrap((name,), look.width)
    gutter = styled("  ", look[Role.TEXT])
    yield from wrapped_rows((GutterRow(gutter, row) for row in rows), look)
    if some.left_out:
        yield Line(styled(f"  {counted(some.left_out, 'more line')}", look[Role.MUTED]))


_WORDS = {
    Consent.WAITS: "waiting for your answer",
    Consent.ALLOWED: "allowed by you",
    Consent.CHANGED: "changed by you",
    Consent.DENIED: "denied by you",
    Consent.STOPPED: "denied by you, and the run was stopped",
    Consent.ABANDONED: "not run",
}
_BEYOND = {
    None: "",
    Beyond.RUN: ", and similar calls in this run",
    Beyond.ALWAYS: ", and similar calls from now on",
    Beyond.TAKEN_BACK: "; similar calls need approval again",
}
_LONG = 300
"""Maximum number of characters of a command that a folded card shows as the original one."""


def approval_words(call: ToolCall) -> str:
    """Return words for the user's answer to a call, or the rule that answered instead.

    If the call was denied, they include the reason. Returns "" if there is neither an answer nor a
    rule.
    """
    answer = call.answer
    rule = shown_rule(call)
    if rule:
        return visible_line(f"allowed without asking, by {rule}")
    if answer is None:
        return ""
    whose = "a subagent's call, " if answer.subagent else ""
    reason = f": {shown_reason(call)}" if answer.reason else ""
    return visible_line(f"{whose}{_WORDS[answer.consent]}{_BEYOND[answer.beyond]}{reason}")


def draw_asked(call: ToolCall, look: Look, *, folded: bool) -> Iterator[Line]:
    """Yield lines that show the model's original request if the user changed it.

    They show the original command or, for a file, the diff from the model's version to the user's.
    """
    answer = call.answer
    if answer is None or answer.asked is None:
        return
    asked = original_command(call)
    if asked is not None:
        for word, command in (("asked", asked), ("ran  ", string(call.args["command"]))):
            text = visible_line(command[:_LONG] if folded else command)
            gutter = (Piece(f"{word} ", look[Role.MUTED]),)
            role = Role.MUTED if word == "asked" else Role.TEXT
            yield from wrapped_rows([GutterRow(gutter, (Piece(text, look[role]),))], look)
        return
    difference = difference_from_original(call)
    what = (
        f"{WORDS[answer.agent].speaker}'s call (−) and your edited call (+)"
        if difference
        else "ran with different arguments"
    )
    yield from wrap((Piece(what, look[Role.MUTED]),), look.width)
    if difference is not None and not folded:
        yield from draw_diff(difference, look, folded=False).lines


# --- result -------------------------------------------------------------------------------------

_OUTPUT_LINES = 4
_FAILED_OUTPUT_LINES = 8
_ERROR_LINES = 12
_TODO_LINES = 12
_ANSWER_LINES = 3
_OTHER_LINES = 3
"""The maximum number of lines in a folded card, by the kind of result."""
_SPAN = 16
"""Number of characters that a change of style counts as in the size of a line.

Very long lines are cut by this size, because rendering them takes too long.
"""
TABLE = 300
"""Maximum number of rows of a table to render; they cost more than lines of text."""
_QUIET = (
    ToolKind.READ,
    ToolKind.LIST,
    ToolKind.GLOB,
    ToolKind.SEARCH,
    ToolKind.WEB,
    ToolKind.MEMORY,
    ToolKind.TOPIC,
)
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
    reason = only_reason(call)
    if reason and folded and is_denied_by_user(call):
        return Body(hidden=line_count(reason), more=True)
    if reason:
        return text_rows(reason, look, folded=folded, head=_ERROR_LINES, prose=True)
    rows = call_rows(call)
    counts = [row.label for row in rows if row.role is RowRole.COUNT]
    notes = [f"{row.label} {row.text}" for row in rows if row.role is RowRole.NOTE]
    facts = [Piece(count, look[Role.MUTED]) for count in counts]
    if call.exit_code:
        gap = "  " if facts else ""
        facts.append(Piece(f"{gap}exit {call.exit_code}", look[Role.ERROR]))
    content = [row for row in rows if row.role not in _BESIDE]
    body = _result(call, content, look, folded=folded) if content else Body()
    return replace(
        body,
        facts=body.facts or tuple(facts),
        note=body.note or flat(" ".join(notes)),
    )


def is_denied_by_user(call: ToolCall) -> bool:
    """Return whether the user's answer, or its absence, is why a call was not made.

    The card words that itself; Gemini CLI's error only repeats it for the model.
    """
    refusals = (Consent.DENIED, Consent.STOPPED, Consent.ABANDONED)
    return call.answer is not None and call.answer.consent in refusals


_BESIDE = (RowRole.SUMMARY, RowRole.COUNT, RowRole.NOTE)
"""Rows that are drawn in a card's first or last line, or not at all."""


def _result(call: ToolCall, rows: Sequence[Row], look: Look, *, folded: bool) -> Body:
    first = rows[0]
    match first.role:
        case RowRole.TEXT | RowRole.PROSE:
            return _text(call, first.text, look, folded=folded)
        case RowRole.JSON:
            text = as_json(first.source)
            return text_rows(text, look, folded=folded, head=_OTHER_LINES, language="json")
        case RowRole.DIFF:
            return draw_diff(first.source, look, folded=folded)
        case RowRole.SCREEN:
            return _screen(call, first.source, look, folded=folded)
        case RowRole.COLUMNS:
            return _table(first.source, rows[1:], look, folded=folded)
        case RowRole.STEP | RowRole.ANSWER | RowRole.END:
            return _progress(rows, look, folded=folded)
        case _:
            return _listed(rows, look, folded=folded)


# --- text ----------------------------------------------------------------------------------------


def _text(call: ToolCall, text: str, look: Look, *, folded: bool) -> Body:
    """Render a result's text, either as displayed by the CLI or as sent to the model."""
    kind = kind_of(call.name)
    if kind is ToolKind.SHELL:
        tail = _last_lines(call)
        language = _output_language(text)
        return text_rows(text, look, folded=folded, tail=tail, language=language)
    lines = file_lines(call)
    if lines is not None and text == lines.text:
        language = language_of(flat(asked_path(call.args)[-200:]))
        return text_rows(text, look, folded=folded, language=language, first=lines.first)
    keep = 0 if kind in _QUIET else _OTHER_LINES
    if kind not in _PROSE:
        path = flat(target(call)[-200:]) if kind is ToolKind.READ else ""
        return text_rows(text, look, folded=folded, head=keep, language=language_of(path))
    return _prose_or_data(text, look, folded=folded, keep=keep)


def _output_language(text: str) -> str:
    """Guess the language of a command's output from its start and end."""
    text = text.strip()
    if text.startswith(("diff --git ", "--- a/")):
        return "diff"
    return "json" if text[:1] + text[-1:] in ("{}", "[]") else ""


def _prose_or_data(text: str, look: Look, *, folded: bool, keep: int) -> Body:
    """Render Markdown, or data as it stands; if folded, only the first `keep` non-empty lines."""
    if text.lstrip()[:1] in ("{", "[", "<"):
        return text_rows(text, look, folded=folded, head=keep, language="json")
    if folded and not keep:
        hidden = line_count(text)
        return Body(hidden=hidden, more=hidden > 0)
    lines = list(draw_prose(text, look, draw_markdown))
    return fold_lines(lines, folded=folded, keep=keep)


def _last_lines(call: ToolCall) -> int:
    return _FAILED_OUTPUT_LINES if call.exit_code else _OUTPUT_LINES


def _screen(
    call: ToolCall, lines: Sequence[Sequence[AnsiSpan]], look: Look, *, folded: bool
) -> Body:
    keep = _last_lines(call) if folded else LINES
    if folded:
        head = 0
    elif len(lines) <= LINES:
        head = len(lines)
    else:
        head = LINES // 2
    first = bounded(lines[:head], size=_size)
    last = bounded(reversed(lines[max(head, len(lines) - keep + head) :]), size=_size)[::-1]
    missing = len(lines) - len(first) - len(last)
    before, after = ([GutterRow((), _spans(line, look)) for line in some] for some in (first, last))
    if folded:
        return preview(after, look, total=len(lines))
    gap = (left_out_line(missing, look),) if missing else ()
    cut = (cut_lines(look),) if any(_size(line) > LONG_LINE for line in (*first, *last)) else ()
    return Body(lines=(*wrapped_rows(before, look), *gap, *wrapped_rows(after, look), *cut))


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
        Piece(tabless(flat_spaces(span.text[: LONG_LINE - start])), span_style(span, look))
        for start, span in shown
    )


def flat_spaces(text: str) -> str:
    """Sanitize text and put it on one line, keeping its spaces."""
    return clean(text).replace("\n", " ")


# --- lists, steps, tables ------------------------------------------------------------------------


def _listed(rows: Sequence[Row], look: Look, *, folded: bool) -> Body:
    """Render matches, files or todos; a folded card shows only todos."""
    if folded and rows[0].role is not RowRole.TODO:
        return Body(more=True)
    kept = rows[: _TODO_LINES if folded else LINES]
    drawn = [
        line
        for role, group in groupby(kept, key=lambda row: row.role)
        for line in _rows(role, list(group), look)
    ]
    if folded:
        return preview(drawn, look, total=len(rows))
    lines = list(wrapped_rows(drawn, look))
    if len(rows) > LINES:
        lines.append(left_out_line(len(rows) - LINES, look))
    return Body(lines=tuple(lines))


def _rows(role: RowRole, rows: Sequence[Row], look: Look) -> Iterator[GutterRow]:
    match role:
        case RowRole.MATCH:
            texts = [flat_spaces(row.text.rstrip()) for row in rows]
            language = language_of(flat(rows[0].source[-200:]))
            lines = list(highlight("\n".join(texts), language, look))
            if len(lines) != len(texts):  # empty lines at the end
                lines = [styled(text, look[Role.TEXT]) for text in texts]
            for row, pieces in zip(rows, lines, strict=True):
                yield GutterRow(styled(f"{row.label:>5}  ", look[Role.MUTED]), pieces)
        case RowRole.PATH:
            for row in rows:
                yield GutterRow((), styled(flat(row.text), look[Role.HEADING]))
        case RowRole.SKIPPED:
            for row in rows:
                reason = flat(row.aside).removeprefix("skipped:") or " no reason given"
                text = f"{flat(row.text)}  skipped:{reason}"
                yield GutterRow((), styled(text, look[Role.WARNING]))
        case RowRole.TODO:
            for row in rows:
                yield _todo(row, look)
        case _:
            for row in rows:
                yield GutterRow((), styled(flat(row.text), look[Role.TEXT]))


def _todo(row: Row, look: Look) -> GutterRow:
    glyphs = look.glyphs
    sign, role = {
        "completed": (glyphs.done, Role.SUCCESS),
        "in_progress": (glyphs.doing, Role.ACCENT),
        "cancelled": (glyphs.denied, Role.MUTED),
    }.get(row.source, (glyphs.pending, Role.MUTED))
    mark = f"[{sign}] " if glyphs.ascii else f"{sign} "
    over = row.source in ("completed", "cancelled")
    text = Piece(tabless(flat(row.text)), look[Role.MUTED if over else Role.TEXT])
    state = (Piece(f"  {flat(row.aside)}", look[Role.MUTED]),) if row.aside else ()
    return GutterRow((Piece(mark, look[role]),), (text, *state))


def _progress(rows: Sequence[Row], look: Look, *, folded: bool) -> Body:
    """Render a subagent's steps, and its answer; a folded card shows only the answer."""
    steps = [row for row in rows if row.role is RowRole.STEP]
    answer = "".join(row.text for row in rows if row.role is RowRole.ANSWER)
    body = _prose_or_data(answer, look, folded=folded, keep=_ANSWER_LINES)
    if folded:
        return replace(body, more=body.more or bool(steps))
    lines = [line for step in steps[:LINES] for line in _step(step, look)]
    gap = [BLANK] if lines and body.lines else []
    reasons = [flat(f"ended: {row.text}") for row in rows if row.role is RowRole.END]
    return Body(lines=(*lines, *gap, *body.lines), note="".join(reasons))


def _step(step: Row, look: Look) -> list[Line]:
    glyphs = look.glyphs
    sign, role = {
        "completed": (glyphs.ok, Role.SUCCESS),
        "running": (glyphs.running, Role.ACCENT),
        "error": (glyphs.failed, Role.ERROR),
        "cancelled": (glyphs.denied, Role.WARNING),
    }.get(step.source, (glyphs.bullet, Role.MUTED))
    pieces = (
        Piece(f"{sign} ", look[role]),
        Piece(f"{flat(step.aside)}  ", look[Role.MUTED]),
        Piece(flat(step.text[:1000]), look[Role.TEXT]),
    )
    return wrap(pieces, look.width)


def _table(names: Sequence[str], rows: Sequence[Row], look: Look, *, folded: bool) -> Body:
    shown = rows[: _OTHER_LINES if folded else TABLE]
    head = [styled(flat(name), look[Role.TEXT]) for name in names]
    cells = [[styled(flat(cell[:1000]), look[Role.TEXT]) for cell in row.source] for row in shown]
    hidden = len(rows) - len(shown)
    lines = tuple(draw_table(head, cells, look))
    if folded:
        return Body(lines=lines, hidden=hidden, more=hidden > 0)
    return Body(lines=(*lines, left_out_line(hidden, look)) if hidden else lines)
