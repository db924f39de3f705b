"""Render a tool call as a card that shows its request, status and result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from rich.cells import cell_len

from gemtui.text import HOLDS_CONTROLS, Clean, counted, duration, visible, visible_line
from gemtui.transcript.call_text import (
    difference_from_original,
    lines_asked,
    original_command,
    repeated_arguments,
    shown_reason,
    shown_rule,
)
from gemtui.transcript.model import Answer, Beyond, Consent, DiffDisplay, ToolCall, ToolStatus
from gemtui.transcript.parts import string
from gemtui.transcript.seal import changed_by_hook
from gemtui.transcript.tools import ToolKind, args_hold_controls, kind_of, target
from gemtui.ui.draw.bounds import LINES, bounded_excerpt
from gemtui.ui.draw.code import highlight, language_of
from gemtui.ui.draw.formats import time_of_day
from gemtui.ui.draw.gutter_rows import Body, GutterRow, as_json, note_line, styled, wrapped_rows
from gemtui.ui.draw.lines import (
    BLANK,
    EMPTY,
    Line,
    Piece,
    Pieces,
    cut,
    fit_end,
    fit_start,
    flat,
    own,
    prefixed,
    spread,
    width_of,
    wrap,
)
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.transcript.card_body import draw_body, draw_diff
from gemtui.ui.transcript.head import draw_image

HOOKED = "changed before it ran, by a hook in your settings or another extension"
_FILE_TEXTS = ("content", "old_string", "new_string")
"""Arguments that contain text of the file named in the request."""
_ENOUGH = 24
"""Number of cells that the first line of a card keeps free for the request.

Duration and counts are left out to make room for it.
"""
_LONG_NAME, _LONG_TARGET = 200, 1_000
"""Maximum number of characters of a tool's name and a request on the first line."""
_PATHS = (ToolKind.READ, ToolKind.WRITE, ToolKind.EDIT, ToolKind.LIST)


def draw_card(call: ToolCall, look: Look, *, folded: bool) -> tuple[list[Line], bool]:
    """Return the lines of a tool call's card, and whether it can be folded.

    `look`: the colours, the symbols, and the width. `folded`: whether to render it folded.
    """
    inner = look.narrowed(4)
    body = draw_body(call, inner, folded=folded)
    caution = [*_caution(call, inner), *draw_asked(call, inner, folded=folded)]
    command, keys = _unsaid(call, body.facts, look)
    lines = list(body.lines)
    if not folded and (command or keys):
        details = _bounded(_details(call, command, keys, inner), inner)
        gap = [BLANK] if lines else []
        lines = [*lines, *gap, *details] if call.status.failed else [*details, *gap, *lines]
    foldable = body.more or bool(command or keys) if folded else _shrinks(call, inner, lines)
    lines += [Line(pieces) for pieces in _images(call, inner)]
    side = (Piece(own(f"{look.glyphs.side} "), look[Role.BORDER]),)
    return [
        Line(_title(call, body.facts, look), 2),
        *prefixed([*caution, *lines], side),
        _bottom(call, body, look, foldable=foldable, folded=folded),
    ], foldable


def _caution(call: ToolCall, look: Look) -> Iterator[Line]:
    if args_hold_controls(call.args):
        yield _warning(HOLDS_CONTROLS, look)
    if call.hooked or changed_by_hook(call.output or call.error or ""):
        yield _warning(HOOKED, look)


def _warning(text: str, look: Look) -> Line:
    words = own(f"{look.glyphs.warning} {text}")
    pieces = cut((Piece(words, look[Role.WARNING]),), look)
    return Line(pieces, width_of(pieces))


def _bounded(lines: Iterator[Line], look: Look) -> list[Line]:
    kept = list(islice(lines, LINES))
    if next(lines, None) is not None:
        kept.append(note_line("more arguments are not shown", look))
    return kept


def _shrinks(call: ToolCall, inner: Look, lines: list[Line]) -> bool:
    return len(draw_body(call, inner, folded=True).lines) < len(lines)


def _images(call: ToolCall, look: Look) -> Iterator[Pieces]:
    for image in call.images:
        yield cut(draw_image(image, look), look)


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


def _title(call: ToolCall, facts: Pieces, look: Look) -> Pieces:
    """Return a card's first line: symbol, name, request, counts and duration.

    If there isn't enough room, the last parts are left out first. `facts`: the counts.
    """
    front, asked, end = _title_parts(call, facts, look)
    left = (*front, Piece(own(f"  {asked}"), look[Role.TEXT])) if asked else front
    if _has_room(call, (*left, *end), look) and asked:
        left = (*left, Piece(own(f"  {lines_asked(call)}"), look[Role.MUTED]))
    return _boxed(cut(left, look, look.width - 4), end, look)


def _has_room(call: ToolCall, beside: Pieces, look: Look) -> bool:
    """Return whether a card's first line has room for the line range that was read.

    This is for calls that read a file. `beside`: what else is on the card's first line.
    """
    lines = lines_asked(call)
    return bool(lines) and width_of(beside) + len(lines) + 2 <= look.width - 4


def _title_parts(call: ToolCall, facts: Pieces, look: Look) -> tuple[Pieces, Clean, Pieces]:
    """Return the parts of a card's first line.

    These are the symbol and name, as much of the request as fits, and how the call ended. `facts`:
    the counts to show.
    """
    sign, word, role = call_state(call, look)
    name = Piece(visible_line(call.name[:_LONG_NAME]), look[Role.TEXT] + BOLD)
    front = (Piece(own(f"{sign} "), look[role]), name)
    room = look.width - 4 - width_of(front)
    asked = _on_one_line(target(call)[:_LONG_TARGET], look)
    end = _end(call, (Piece(own(word), look[role]),) if word else (), facts, asked, room, look)
    return front, _fitted(asked, room - width_of(end) - 2, call, look), end


def _on_one_line(asked: str, look: Look) -> Clean:
    return visible_line(asked.strip().replace("\n", look.glyphs.line_end))


def _end(call: ToolCall, word: Pieces, facts: Pieces, asked: Clean, room: int, look: Look) -> Pieces:
    """Return a call's state, counts and duration, as far as there is room for them.

    `word`: the state. `facts`: the counts. `asked`: the request. `room`: the number of cells for
    all of these.
    """
    lasted = own(duration(call.duration)) if call.duration is not None else EMPTY
    last = (Piece(own(f"{lasted:>7}"), look[Role.MUTED]),) if lasted else ()
    wanted = min(_ENOUGH, cell_len(asked)) + 2
    for end in (_apart(word, facts, last), _apart(word, facts), _apart(word)):
        if room - width_of(end) >= wanted:
            return end
    return _apart(word) if room >= width_of(_apart(word)) else ()


def _apart(*groups: Pieces) -> Pieces:
    """Return the pieces of all non-empty groups, with two spaces before each group."""
    pieces: list[Piece] = []
    for group in filter(None, groups):
        pieces += [Piece(own("  "), group[0].style), *group]
    return tuple(pieces)


def _fitted(asked: Clean, room: int, call: ToolCall, look: Look) -> Clean:
    if room < 4:
        return asked if cell_len(asked) <= room else own("")
    mark = own(look.glyphs.ellipsis)
    if kind_of(call.name) in _PATHS:
        return fit_end(asked, room, mark)
    return fit_start(asked, room, mark)


def _boxed(left: Pieces, right: Pieces, look: Look) -> Pieces:
    glyphs, border = look.glyphs, look[Role.BORDER]
    middle = spread(left, right, look.width - 4, Piece(own(" "), border))
    first, last = own(f"{glyphs.top_left} "), own(f" {glyphs.top_right}")
    return (Piece(first, border), *middle, Piece(last, border))


# --- last line -----------------------------------------------------------------------------------


def _bottom(call: ToolCall, body: Body, look: Look, *, foldable: bool, folded: bool) -> Line:
    """Return a card's last line, which says what is hidden or how the call ended."""
    glyphs, border = look.glyphs, look[Role.BORDER]
    closing = _closing(call, body, look, foldable=foldable, folded=folded)
    words = cut(closing, look, look.width - 4)
    left: Pieces = (Piece(own(f"{glyphs.bottom_left}{glyphs.rule}"), border),)
    if words:
        left = (Piece(own(f"{glyphs.bottom_left} "), border), *words, Piece(own(" "), border))
    right: Pieces = (Piece(own(glyphs.bottom_right), border),)
    pieces = spread(left, right, look.width, Piece(own(glyphs.rule), border))
    return Line(pieces, look.width)


def _closing(call: ToolCall, body: Body, look: Look, *, foldable: bool, folded: bool) -> Pieces:
    said = [approval_words(call), _unwritten(call), _rest(body) or body.note]
    if folded and foldable and not said[2]:
        said[2] = _withheld(*_unsaid(call, body.facts, look), body.cut)
    words = own(f" {look.glyphs.dot} ".join(filter(None, said)))
    if not words and not folded and call.time is not None:
        words = own(time_of_day(call.time, look))
    if call.checkpoint:
        mark = own(f"{look.glyphs.undo} checkpoint")
        words = own(f" {look.glyphs.dot} ".join(filter(None, (words, mark))))
    return (Piece(words, look[Role.MUTED]),) if words else ()


def _withheld(command: str, keys: Sequence[str], cut: int) -> str:
    """Return words for what a folded card hides although it shows all of the result.

    `command`: the command, if it isn't shown in full. `keys`: the names of hidden arguments. `cut`:
    how many long lines are cut.
    """
    arguments = counted(len(keys), "argument") if keys else ""
    words = " and ".join(filter(None, ("the whole command" if command else "", arguments)))
    return words or (counted(cut, "long line") if cut else "")


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
    return counted(body.hidden, "more line")


# --- unfolded request ----------------------------------------------------------------------------


def _unsaid(call: ToolCall, facts: Pieces, look: Look) -> tuple[str, tuple[str, ...]]:
    """Return the command and the names of the arguments that a folded card leaves out.

    The command is "" if the card's first line shows it in full.
    """
    asked, command = target(call), call.args.get("command")
    short = len(asked) <= _LONG_TARGET and "\n" not in asked.strip()
    front, fitting, end = _title_parts(call, facts, look)
    whole = short and fitting == _on_one_line(asked, look)
    known = set(repeated_arguments(call))
    if lines_asked(call):
        title = (*front, Piece(own(f"  {fitting}"), look[Role.TEXT]), *end)
        known = known if whole and asked and _has_room(call, title, look) else set()
    if asked and whole:
        known |= {key for key, value in call.args.items() if value == asked}
    shell = kind_of(call.name) is ToolKind.SHELL and isinstance(command, str)
    if shell:
        known.add("command")
    keys = tuple(key for key in call.args if key not in known)
    return str(command) if shell and not whole else "", keys


def _details(call: ToolCall, command: str, keys: Sequence[str], look: Look) -> Iterator[Line]:
    if command:
        yield from _command(command, look)
    for key in keys:
        yield from _argument(key, call.args[key], _language(key, call), look)


def _language(key: str, call: ToolCall) -> Clean:
    """Return an argument's language for syntax highlighting; "" if it has none."""
    if not isinstance(call.args[key], str):
        return own("json")
    if key == "command":
        return own("bash")
    return language_of(flat(target(call)[-200:])) if key in _FILE_TEXTS else EMPTY


def _command(command: str, look: Look) -> Iterator[Line]:
    text = Clean("\n".join(bounded_excerpt(command, cleaned=visible).head))
    for index, pieces in enumerate(highlight(text, own("bash"), look)):
        gutter = styled(own("  " if index else "$ "), look[Role.MUTED])
        yield from wrapped_rows([GutterRow(gutter, pieces)], look)


def _argument(key: str, value: Any, language: Clean, look: Look) -> Iterator[Line]:
    name = Piece(own(f"{visible_line(key[:100])}: "), look[Role.MUTED])
    text = value if isinstance(value, str) else as_json(value)
    some = bounded_excerpt(text, head=LINES, tail=0, cleaned=visible)
    rows = list(highlight(Clean("\n".join(some.head)), language, look))
    if len(rows) <= 1:
        yield from wrap((name, *(piece for row in rows for piece in row)), look.width)
        return
    yield from wrap((name,), look.width)
    gutter = styled(own("  "), look[Role.TEXT])
    yield from wrapped_rows((GutterRow(gutter, row) for row in rows), look)
    if some.left_out:
        yield Line(styled(own(f"  {counted(some.left_out, 'more line')}"), look[Role.MUTED]))


_WORDS = {
    Consent.WAITS: "waiting for your answer",
    Consent.ALLOWED: "allowed by you",
    Consent.CHANGED: "changed by you",
    Consent.DENIED: "denied by you",
    Consent.STOPPED: "denied by you, and the run was stopped",
    Consent.ABANDONED: "denied, because nobody answered",
}
_BEYOND = {
    None: "",
    Beyond.RUN: ", and similar calls in this run",
    Beyond.ALWAYS: ", and similar calls from now on",
    Beyond.TAKEN_BACK: "; similar calls need approval again",
}
_LONG = 300
"""Maximum number of characters of a command that a folded card shows as the original one."""


def approval_words(call: ToolCall) -> Clean:
    """Return words for the user's answer to a call, or the rule that answered instead.

    If the call was denied, they include the reason. Returns "" if there is neither an answer nor a
    rule.
    """
    answer = call.answer
    if rule := shown_rule(call):
        return visible_line(f"allowed without asking, by {rule}")
    if answer is None:
        return own("")
    whose = "a subagent's call, " if answer.subagent else ""
    reason = f": {shown_reason(call)}" if answer.reason else ""
    words = f"{_WORDS[answer.consent]}{_BEYOND[answer.beyond]}"
    return visible_line(f"{whose}{words}{reason}")


def draw_asked(call: ToolCall, look: Look, *, folded: bool) -> Iterator[Line]:
    """Yield lines that show Gemini's original request if the user changed it.

    They show the original command or, for a file, the diff from Gemini's version to the user's.
    """
    answer = call.answer
    if answer is None or answer.asked is None:
        return
    if (asked := original_command(call)) is not None:
        for word, command in (("asked", asked), ("ran  ", string(call.args["command"]))):
            text = visible_line(command[:_LONG] if folded else command)
            gutter = (Piece(own(f"{word} "), look[Role.MUTED]),)
            role = Role.MUTED if word == "asked" else Role.TEXT
            yield from wrapped_rows([GutterRow(gutter, (Piece(text, look[role]),))], look)
        return
    difference = difference_from_original(call)
    what = "Gemini's call (−) and your edited call (+)" if difference else "ran with different arguments"
    yield from wrap((Piece(own(what), look[Role.MUTED]),), look.width)
    if difference is not None and not folded:
        yield from draw_diff(difference, look, folded=False).lines
