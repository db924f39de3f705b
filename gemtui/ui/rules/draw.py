"""Render rules, decisions and explanations of the policy engine (pure functions).

Decisions are shown as a symbol and a word. Rules are shown with their rank, the number by which the
policy engine sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.style import Style

from gemtui.policy.engine.decide import Considered, Explanation, Outcome
from gemtui.policy.model.rules import Call, Decision, Finding, Rule, Severity
from gemtui.policy.words import LONG, condition_words, decision_word, rule_source, tools_words
from gemtui.text import Clean, command_line, ellipsis
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import target
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, cut, flat, own, prefixed, width_of, wrap
from gemtui.ui.draw.theme import BOLD, Glyphs, Look, Role

_ROLES = {Decision.ALLOW: Role.SUCCESS, Decision.ASK_USER: Role.WARNING, Decision.DENY: Role.ERROR}
NOT_OFFERED = "not offered"


# --- texts -----------------------------------------------------------------------------------


def decision_symbol(decision: Decision, look: Look) -> Clean:
    """Return a decision's symbol, which is one cell wide."""
    glyphs = look.glyphs
    signs = {Decision.ALLOW: glyphs.ok, Decision.ASK_USER: glyphs.ask, Decision.DENY: glyphs.denied}
    return own(signs[decision])


def decision_pieces(decision: Decision, look: Look, *, room: int = 0) -> Pieces:
    """Return a decision's symbol and its word, padded to `room` cells."""
    style = look[_ROLES[decision]]
    return (Piece(own(f"{decision_symbol(decision, look)} {decision_word(decision):<{room}}"), style),)


def hidden(look: Look, *, room: int = 0) -> Pieces:
    """Return the words shown for a tool that isn't offered to the model.

    They replace its decision, and are padded to `room` cells.
    """
    words = own(f"{look.glyphs.interrupted} {NOT_OFFERED:<{room}}")
    return (Piece(words, look[Role.MUTED]),)


def outcome(found: Outcome, look: Look, *, room: int = 0) -> Pieces:
    """Return a call's decision, or that its tool isn't offered to the model.

    The words are padded to `room` cells.
    """
    if not found.offered:
        return hidden(look, room=room)
    return decision_pieces(found.decision, look, room=room)


def finding_sign(finding: Finding, glyphs: Glyphs) -> tuple[str, str]:
    """Return a finding's symbol, and the name of the style for its text."""
    error = finding.severity is Severity.ERROR
    return (glyphs.failed, "$text-error") if error else (glyphs.warning, "$text-warning")


def rank(rule: Rule) -> Clean:
    """Return the number by which the policy engine sorts a rule, such as "4.100"."""
    return own(f"{rule.effective:.3f}")


def summary(rule: Rule) -> Clean:
    """Return a rule on one line: its decision, its tools and its conditions."""
    conditions = condition_words(rule)
    end = f"  {conditions}" if conditions else ""
    return own(f"{decision_word(rule.decision)}  {tools_words(rule)}{end}")


def call_subject(call: Call) -> Clean:
    """Return on one line what a call is about: a command, a file or a pattern."""
    recorded = ToolCall(id="", name=call.tool, args=call.args, status=ToolStatus.RUNNING)
    return command_line(target(recorded)[:LONG])


# --- single lines ------------------------------------------------------------------------------


def column(text: Clean, width: int, style: Style, look: Look) -> Piece:
    """Return text padded or cut to exactly `width` cells."""
    shown = ellipsis(text, width, mark=look.glyphs.ellipsis)
    piece = Piece(shown, style)
    return Piece(own(shown + " " * (width - width_of((piece,)))), style)


# --- explanations ------------------------------------------------------------------------------


def draw_explanation(found: Explanation, look: Look, between: Sequence[Line] = ()) -> list[Line]:
    """Render a decision, its rule and reason, and then all rules that were considered.

    `between`: lines to show before the list of all rules.
    """
    lines = [*_answer(found, look), BLANK, *between, *_considered(found, look)]
    return [Line(cut(line.pieces, look)) for line in lines]


def _answer(found: Explanation, look: Look) -> Iterator[Line]:
    rule = found.rule
    by = "no rule applies" if rule is None else f"by {rule_source(rule)}, {rank(rule)}"
    first = Outcome(decision=found.decision, offered=found.offered, rule=rule)
    head = (*outcome(first, look), Piece(own(f"  {by}"), look[Role.TEXT]))
    yield from wrap(head, look.width)
    if rule is not None:
        yield from _under(own(summary(rule)), look, role=Role.MUTED)
    yield from _under(flat(found.because[: LONG * 4]), look)
    yield BLANK
    both = (("headless", found.headless), ("interactive", found.interactive))
    for name, decision in both:
        yield Line((Piece(own(f"{name:<13}"), look[Role.MUTED]), *decision_pieces(decision, look)))
    yield from _named("offered", _offered(found), look)
    if found.tool_refuses is not None:
        words = own(f"rejects the call: {found.tool_refuses}")
        yield from _named("the tool", words, look)
    if found.message is not None:
        yield from _named("message", flat(found.message[: LONG * 4]), look)


def _offered(found: Explanation) -> Clean:
    if found.offered:
        return own("yes, the model sees this tool")
    return own("no, the tool is hidden from the model, so calls fail as not found")


def _named(name: str, value: Clean, look: Look) -> Iterator[Line]:
    front = (Piece(own(f"{name:<13}"), look[Role.MUTED]),)
    rest = (Piece(own(" " * 13), look[Role.MUTED]),)
    lines = wrap((Piece(value, look[Role.TEXT]),), max(1, look.width - 13))
    yield from prefixed(lines, front, rest)


def _under(text: Clean, look: Look, *, role: Role = Role.TEXT, indent: int = 2) -> Iterator[Line]:
    front = (Piece(own(" " * indent), look[role]),)
    yield from prefixed(wrap((Piece(text, look[role]),), max(1, look.width - indent)), front)


def _considered(found: Explanation, look: Look) -> Iterator[Line]:
    count = len(found.considered)
    yield Line((
        Piece(own("Rules considered"), look[Role.HEADING]),
        Piece(own(f"  {count:,}, highest priority first" if count else "  none"), look[Role.MUTED]),
    ))  # fmt: skip
    for each, below in zip_longest(found.considered, found.considered[1:]):
        yield _rule_looked_at(each, found.rule, look)
        if below is None or below.why != each.why or below.matches:
            yield from _under(flat(each.why[:LONG]), look, role=Role.MUTED, indent=9)


def _rule_looked_at(each: Considered, decides: Rule | None, look: Look) -> Line:
    glyphs = look.glyphs
    here = each.matches and each.rule == decides
    mark, said = (glyphs.bar, "decides") if here else (" ", "matches" if each.matches else "no")
    style = look[Role.TEXT if each.matches else Role.MUTED]
    return Line(
        (
            Piece(own(mark), look[Role.CURSOR]),
            Piece(own(f" {rank(each.rule)}  {said:<8}"), style + BOLD if here else style),
            *decision_pieces(each.rule.decision, look, room=5),
            Piece(own(f" {tools_words(each.rule)}  {condition_words(each.rule)}"), style),
            Piece(own(f"  {rule_source(each.rule)}"), look[Role.MUTED]),
        )
    )
