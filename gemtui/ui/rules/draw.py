"""Render rules, decisions, explanations, and rows about calls and tools (pure functions).

Decisions are shown as a symbol and a word. Rules are shown with their rank, the number by which the
policy engine sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.style import Style

from gemtui.policy.engine.decide import Considered, Explanation, Outcome
from gemtui.policy.model.rules import (
    Call,
    CallStatus,
    Decision,
    Finding,
    Reference,
    Rule,
    Severity,
    Tier,
)
from gemtui.policy.words import (
    LONG,
    condition_words,
    decision_word,
    rule_source,
    tools_words,
    translated_words,
)
from gemtui.sessions.catalog.summary import Summary, project_name
from gemtui.text import command_line, counted, ellipsis, relative, visible_line
from gemtui.transcript.model import ToolCall, ToolStatus
from gemtui.transcript.tools import target
from gemtui.ui.draw.lines import (
    BLANK,
    Line,
    Piece,
    Pieces,
    cut,
    flat,
    prefixed,
    two_ended,
    width_of,
    wrap,
)
from gemtui.ui.draw.theme import BOLD, Glyphs, Look, Role

_ROLES = {Decision.ALLOW: Role.SUCCESS, Decision.ASK_USER: Role.WARNING, Decision.DENY: Role.ERROR}
NOT_OFFERED = "not offered"


# --- texts -----------------------------------------------------------------------------------


def decision_symbol(decision: Decision, glyphs: Glyphs) -> str:
    """Return a decision's symbol, which is one cell wide."""
    signs = {Decision.ALLOW: glyphs.ok, Decision.ASK_USER: glyphs.ask, Decision.DENY: glyphs.denied}
    return signs[decision]


def decision_pieces(decision: Decision, look: Look, *, room: int = 0) -> Pieces:
    """Return a decision's symbol and its word, padded to `room` cells."""
    style = look[_ROLES[decision]]
    return (
        Piece(
            f"{decision_symbol(decision, look.glyphs)} {decision_word(decision):<{room}}",
            style,
        ),
    )


def hidden(look: Look, *, room: int = 0) -> Pieces:
    """Return the words shown for a tool that isn't offered to the model.

    They replace its decision, and are padded to `room` cells.
    """
    words = f"{look.glyphs.interrupted} {NOT_OFFERED:<{room}}"
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


def rank(rule: Rule) -> str:
    """Return the number by which the policy engine sorts a rule, such as "4.100"."""
    return f"{rule.effective:.3f}"


def summary(rule: Rule) -> str:
    """Return a rule on one line: its decision, its tools and its conditions."""
    conditions = condition_words(rule)
    end = f"  {conditions}" if conditions else ""
    return f"{decision_word(rule.decision)}  {tools_words(rule)}{end}"


def call_subject(call: Call) -> str:
    """Return on one line what a call is about: a command, a file or a pattern."""
    recorded = ToolCall(id="", name=call.tool, args=call.args, status=ToolStatus.RUNNING)
    return command_line(target(recorded)[:LONG])


# --- single lines ------------------------------------------------------------------------------


def column(text: str, width: int, style: Style, look: Look) -> Piece:
    """Return text padded or cut to exactly `width` cells."""
    shown = ellipsis(text, width, mark=look.glyphs.ellipsis)
    piece = Piece(shown, style)
    return Piece(shown + " " * (width - width_of((piece,))), style)


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
    head = (*outcome(first, look), Piece(f"  {by}", look[Role.TEXT]))
    yield from wrap(head, look.width)
    if rule is not None:
        yield from _under(summary(rule), look, role=Role.MUTED)
    yield from _under(flat(found.because[: LONG * 4]), look)
    call = found.call
    if call.is_foreign:
        words = translated_words(call.agent, call.own, call.tool)
        yield from _under(f"Translated for the rules: {words}", look, role=Role.MUTED)
    yield BLANK
    if found.possible:
        for name, decision in (("headless", found.headless), ("interactive", found.interactive)):
            yield Line((Piece(f"{name:<13}", look[Role.MUTED]), *decision_pieces(decision, look)))
    offered = "yes, the model sees this tool"
    if not found.offered:
        offered = "no, the tool is hidden from the model, so calls fail as not found"
    yield from _named("offered", offered, look)
    if found.tool_refuses is not None:
        words = f"rejects the call: {found.tool_refuses}"
        yield from _named("the tool", words, look)
    if found.message is not None:
        yield from _named("message", flat(found.message[: LONG * 4]), look)


def _named(name: str, value: str, look: Look) -> Iterator[Line]:
    front = (Piece(f"{name:<13}", look[Role.MUTED]),)
    rest = (Piece(" " * 13, look[Role.MUTED]),)
    lines = wrap((Piece(value, look[Role.TEXT]),), max(1, look.width - 13))
    yield from prefixed(lines, front, rest)


def _under(text: str, look: Look, *, role: Role = Role.TEXT, indent: int = 2) -> Iterator[Line]:
    front = (Piece(" " * indent, look[role]),)
    yield from prefixed(wrap((Piece(text, look[role]),), max(1, look.width - indent)), front)


def _considered(found: Explanation, look: Look) -> Iterator[Line]:
    count = len(found.considered)
    yield Line(
        (
            Piece("Rules considered", look[Role.HEADING]),
            Piece(f"  {count:,}, highest priority first" if count else "  none", look[Role.MUTED]),
        )
    )
    for each, below in zip_longest(found.considered, found.considered[1:]):
        yield _rule_looked_at(each, found.rule, look)
        if below is None or below.why != each.why or below.matches:
            yield from _under(flat(each.why[:LONG]), look, role=Role.MUTED, indent=9)


def _rule_looked_at(each: Considered, decides: Rule | None, look: Look) -> Line:
    glyphs = look.glyphs
    is_decisive = each.matches and each.rule == decides
    mark = glyphs.bar if is_decisive else " "
    result = "matches" if each.matches else "no"
    if is_decisive:
        result = "decides"
    style = look[Role.TEXT if each.matches else Role.MUTED]
    return Line(
        (
            Piece(mark, look[Role.CURSOR]),
            Piece(f" {rank(each.rule)}  {result:<8}", style + BOLD if is_decisive else style),
            *decision_pieces(each.rule.decision, look, room=5),
            Piece(f" {tools_words(each.rule)}  {condition_words(each.rule)}", style),
            Piece(f"  {rule_source(each.rule)}", look[Role.MUTED]),
        )
    )


_ROOMY = 100
"""The width, in cells, from which a row shows a rule's source in full."""
VERDICT = 14
"""The width, in cells, of the column with a decision's symbol and word."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """The decisions for a tool, in headless and in interactive runs.

    `rules`: how many rules depend on the tool's arguments, and so may decide differently for some
    calls.
    """

    tool: str
    headless: Outcome
    interactive: Outcome
    rules: int


# --- pieces ------------------------------------------------------------------------------------


def both_ends(left: Pieces, right: Pieces, look: Look) -> Pieces:
    """Place pieces at both ends of a row.

    The left pieces are cut to fit. The right ones are left out if they would take up more than half
    of the row.
    """
    fits = 0 < width_of(right) <= look.width // 2
    return two_ended(left, right if fits else (), look, Role.TEXT, gap=2 if fits else 0)


def muted(text: str, look: Look) -> Piece:
    """Return dim text."""
    return Piece(text, look[Role.MUTED])


# --- recorded calls ----------------------------------------------------------------------------


def call_search_text(call: Reference, session: Summary | None) -> str:
    """Return the text of a call that a search looks through.

    `session`: the call's session; None if unknown.
    """
    title = "" if session is None else session.title
    return f"{call.tool} {call.argument} {call.ended} {title} {call.session}"


def call_row(call: Reference, session: Summary | None, look: Look) -> Pieces:
    """Render a call: how it ended, its tool and subject; at the right, its session."""
    glyphs = look.glyphs
    sign, role = {
        CallStatus.SUCCEEDED: (glyphs.ok, Role.SUCCESS),
        CallStatus.FAILED: (glyphs.failed, Role.ERROR),
        CallStatus.CANCELLED: (glyphs.denied, Role.WARNING),
        CallStatus.DENIED: (glyphs.denied, Role.WARNING),
        CallStatus.REFUSED: (glyphs.denied, Role.WARNING),
        CallStatus.UNKNOWN: (glyphs.interrupted, Role.MUTED),
    }[call.ended]
    name = visible_line(call.tool[:LONG])
    left = (
        Piece(f"{sign} ", look[role]),
        column(name, max(17, min(len(name), look.width // 4)), look[Role.TEXT] + BOLD, look),
        Piece(f"  {command_line(_from_project(call.argument, session))}", look[Role.TEXT]),
    )
    return both_ends(left, _session(session, look), look)


def _from_project(argument: str, session: Summary | None) -> str:
    """Remove the session's project folder from the beginning of a call's argument."""
    project = "" if session is None or session.project is None else session.project.rstrip("/")
    return argument.removeprefix(f"{project}/") if project else argument


def _session(session: Summary | None, look: Look) -> Pieces:
    if session is None:
        return ()
    age = muted(f"  {relative(session.when, look.now):>3}", look)
    if look.width < 90:
        return (age,)
    return (*cut((muted(flat(session.title), look),), look, 30), age)


def session_row(session: Summary, look: Look) -> Pieces:
    """Render a session: its title; at the right, its project, calls and age."""
    calls = counted(session.tool_calls, "call") if session.tool_calls else ""
    project = flat(project_name(session.project or "", "")[:40])
    right = muted(f"{project}  {calls:>10}  {relative(session.when, look.now):>3}", look)
    return both_ends((Piece(flat(session.title), look[Role.TEXT]),), (right,), look)


def rule_place(rule: Rule, look: Look) -> str:
    """Return a rule's source and priority.

    In a narrow window, only a short form of the source is returned.
    """
    if look.width >= _ROOMY:
        return f"{rule_source(rule)}  {rank(rule)}"
    of_file = rule.index and rule.tier > Tier.BUILTIN
    return f"rule {rule.index}" if of_file else rule_source(rule)


# --- tools -------------------------------------------------------------------------------------


def tool_head(look: Look) -> Pieces:
    """Render the column headings for `tool_row`."""
    name = column("tool", tool_room(look), look[Role.MUTED], look)
    return (name, muted(f"  {'headless':<{VERDICT}}{'interactive':<{VERDICT}}rule", look))


def tool_room(look: Look) -> int:
    """Return the width, in cells, of the column with tool names."""
    return max(12, min(24, look.width - 2 * VERDICT - 12))


def tool_row(row: ToolRow, look: Look) -> Pieces:
    """Render a tool: its headless and interactive decisions, and the deciding rule."""
    return (
        column(flat(row.tool[:LONG]), tool_room(look), look[Role.TEXT], look),
        muted("  ", look),
        *outcome(row.headless, look, room=VERDICT - 2),
        *outcome(row.interactive, look, room=VERDICT - 2),
        *_deciding(row, look),
    )


def _deciding(row: ToolRow, look: Look) -> Pieces:
    """Render which rule decides a tool's headless calls.

    If any rules depend on the tool's arguments, their number comes first, because one of them may
    decide instead.
    """
    rule = row.headless.rule
    place = muted("no rule" if rule is None else rule_place(rule, look), look)
    if not row.rules:
        return (place,)
    more = "" if look.width < _ROOMY else " by arguments"
    conditional = Piece(f"+{counted(row.rules, 'rule')}{more}", look[Role.ACCENT])
    return (conditional, muted("  ", look), place)
