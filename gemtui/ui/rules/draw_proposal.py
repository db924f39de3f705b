"""Drawing a proposed rule: its evidence and its further effects; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gemtui.policy.model.recorded_call import Reference
from gemtui.policy.suggest.suggest import LeftOut, Suggestion
from gemtui.policy.words import LONG, condition_words, tools_words
from gemtui.sessions.summary import Summary
from gemtui.text import Clean, command_line, counted, visible_line
from gemtui.ui.draw.lines import BLANK, Line, Piece, cut, own, prefixed, wrap
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.rules.draw import decided, rank
from gemtui.ui.rules.draw_rows import call_row

Find = Callable[[str], Summary | None]
"""Returns the summary of the session with this id, or None."""
_NAME = 11


def draw_suggestion(found: Suggestion, find: Find, look: Look) -> list[Line]:
    """Draw a proposed rule with its evidence, its further effects and examples."""
    rule = found.rule
    name = Piece(own(f"  {tools_words(rule)}"), look[Role.TEXT] + BOLD)
    lines = [*wrap((*decided(rule.decision, look), name), look.width)]
    if conditions := condition_words(rule):
        lines += _named("when", conditions, look)
    lines += _named("priority", own(f"{rule.priority:g}  ({rank(rule)})"), look)
    seen = f"{counted(found.calls, 'call')} in {counted(found.sessions, 'session')}"
    lines += _named("evidence", own(seen), look)
    if found.opens:
        lines += _named(
            "also opens", visible_line(found.opens[: LONG * 4]), look, role=Role.WARNING
        )
    return [*lines, BLANK, *_examples(found.examples, find, look)]


def draw_left_out(found: LeftOut, find: Find, look: Look) -> list[Line]:
    """Draw calls without a proposed rule: their subject, the reason, and examples."""
    first = (
        Piece(own(f"{look.glyphs.warning} {command_line(found.what[:LONG])}"), look[Role.WARNING]),
    )
    lines = [*wrap(first, look.width)]
    lines += _named("left out", visible_line(found.why[: LONG * 4]), look)
    lines += _named("evidence", own(counted(found.calls, "call")), look)
    return [*lines, BLANK, *_examples(found.examples, find, look)]


def _examples(examples: Sequence[Reference], find: Find, look: Look) -> Iterator[Line]:
    yield Line((Piece(own("Examples"), look[Role.HEADING]),))
    for each in examples:
        yield Line(cut(call_row(each, find(each.session), look), look))


def _named(name: str, value: Clean, look: Look, *, role: Role = Role.TEXT) -> Iterator[Line]:
    front = (Piece(own(f"{name:<{_NAME}} "), look[Role.MUTED]),)
    rest = (Piece(own(" " * (_NAME + 1)), look[Role.MUTED]),)
    lines = wrap((Piece(value, look[role]),), max(1, look.width - _NAME - 1))
    yield from prefixed(lines, front, rest)
