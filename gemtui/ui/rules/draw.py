"""Render rules, decisions, explanations, and rows about calls and tools (pure functions).

Decisions are shown as a symbol and a word. Rules are shown with their rank, the number by which the
policy engine sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from gemtui.policy.suggest.replay import POWERSHELL, ReplayCounts, ReplayDecision, RuleCount
from gemtui.policy.suggest.suggest import LeftOut, Suggestion
from gemtui.policy.words import LONG, condition_words, decision_word, rule_source, tools_words
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
    yield BLANK
    both = (
        (("headless", found.headless), ("interactive", found.interactive)) if found.possible else ()
    )
    for name, decision in both:
        yield Line((Piece(f"{name:<13}", look[Role.MUTED]), *decision_pieces(decision, look)))
    yield from _named("offered", _offered(found), look)
    if found.tool_refuses is not None:
        words = f"rejects the call: {found.tool_refuses}"
        yield from _named("the tool", words, look)
    if found.message is not None:
        yield from _named("message", flat(found.message[: LONG * 4]), look)


def _offered(found: Explanation) -> str:
    if found.offered:
        return "yes, the model sees this tool"
    return "no, the tool is hidden from the model, so calls fail as not found"


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
    here = each.matches and each.rule == decides
    mark, said = (glyphs.bar, "decides") if here else (" ", "matches" if each.matches else "no")
    style = look[Role.TEXT if each.matches else Role.MUTED]
    return Line(
        (
            Piece(mark, look[Role.CURSOR]),
            Piece(f" {rank(each.rule)}  {said:<8}", style + BOLD if here else style),
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
class RowHeading:
    """A heading between rows; the cursor skips it.

    `more`: words to show beside it.
    """

    text: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Total:
    """How many of the replayed calls got a certain decision.

    `of`: the total number of replayed calls.
    """

    decision: ReplayDecision
    calls: int
    of: int


@dataclass(frozen=True, slots=True)
class Missing:
    """How many replayed calls used a tool that the installed Gemini CLI doesn't have."""

    tool: str
    calls: int


ReplayRow = RowHeading | Total | RuleCount | Missing


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """A suggested rule, and whether the user has selected it."""

    suggestion: Suggestion
    chosen: bool


SuggestRow = RowHeading | ProposalRow | LeftOut


@dataclass(frozen=True, slots=True)
class ToolRow:
    """What is decided for a tool, in headless and in interactive runs.

    `rules`: how many rules depend on the tool's arguments, and so may decide differently for some
    calls.
    """

    tool: str
    headless: Outcome
    interactive: Outcome
    rules: int


# --- pieces ------------------------------------------------------------------------------------


def _both(left: Pieces, right: Pieces, look: Look) -> Pieces:
    """Place pieces at both ends of a row.

    The left pieces are cut to fit. The right ones are left out if they would take up more than half
    of the row.
    """
    fits = 0 < width_of(right) <= look.width // 2
    return two_ended(left, right if fits else (), look, Role.TEXT, gap=2 if fits else 0)


def _muted(text: str, look: Look) -> Piece:
    return Piece(text, look[Role.MUTED])


def draw_heading(row: RowHeading, look: Look) -> Pieces:
    """Render a heading and the words beside it."""
    return (Piece(row.text, look[Role.HEADING]), _muted(f"  {row.more}" if row.more else "", look))


def draw_decision(found: ReplayDecision, look: Look) -> Pieces:
    """Render a replayed call's decision as a symbol and a word."""
    if found is ReplayDecision.NOT_OFFERED:
        return hidden(look, room=VERDICT - 2)
    if found is ReplayDecision.TOOL_REFUSES:
        words = f"{look.glyphs.denied} {'refused':<{VERDICT - 2}}"
        return (Piece(words, look[Role.WARNING]),)
    if found is ReplayDecision.NOT_CHECKED:
        return (_muted(f"{look.glyphs.warning} {'not checked':<{VERDICT - 2}}", look),)
    return decision_pieces(Decision(found.value), look, room=VERDICT - 2)


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
    return _both(left, _session(session, look), look)


def _from_project(argument: str, session: Summary | None) -> str:
    """Remove the session's project folder from the beginning of a call's argument."""
    project = "" if session is None or session.project is None else session.project.rstrip("/")
    return argument.removeprefix(f"{project}/") if project else argument


def _session(session: Summary | None, look: Look) -> Pieces:
    if session is None:
        return ()
    age = _muted(f"  {relative(session.when, look.now):>3}", look)
    if look.width < 90:
        return (age,)
    return (*cut((_muted(flat(session.title), look),), look, 30), age)


def session_row(session: Summary, look: Look) -> Pieces:
    """Render a session: its title; at the right, its project, calls and age."""
    calls = counted(session.tool_calls, "call") if session.tool_calls else ""
    project = flat(project_name(session.project or "", "")[:40])
    right = _muted(f"{project}  {calls:>10}  {relative(session.when, look.now):>3}", look)
    return _both((Piece(flat(session.title), look[Role.TEXT]),), (right,), look)


# --- replay ------------------------------------------------------------------------------------


def replay_rows(found: ReplayCounts) -> list[ReplayRow]:
    """Return the rows that show a replay's result: totals, rules, missing tools."""
    counts = {
        ReplayDecision.ALLOW: found.allow,
        ReplayDecision.ASK_USER: found.ask_user,
        ReplayDecision.DENY: found.deny,
        ReplayDecision.NOT_OFFERED: found.not_offered,
    }
    if found.tool_refuses:
        counts[ReplayDecision.TOOL_REFUSES] = found.tool_refuses
    if found.not_checked:
        counts[ReplayDecision.NOT_CHECKED] = found.not_checked
    rows: list[ReplayRow] = [Total(each, calls, found.calls) for each, calls in counts.items()]
    if found.by_rule:
        rows += [RowHeading(""), RowHeading("By rule", "most calls first")]
        rows += found.by_rule
    if found.unknown:
        more = "unknown to this Gemini CLI, but counted above"
        rows += [RowHeading(""), RowHeading("Tools of other versions", more)]
        rows += [Missing(name, calls) for name, calls in sorted(found.unknown.items())]
    return rows


def replay_row(row: ReplayRow, look: Look) -> Pieces:
    """Render one row of a replay's result."""
    match row:
        case RowHeading():
            return draw_heading(row, look)
        case Total():
            return _total(row, look)
        case Missing():
            return (_muted(f"{row.calls:>8,}  {flat(row.tool[:LONG])}", look),)
        case _:
            return _share(row, look)


def _total(row: Total, look: Look) -> Pieces:
    share = row.calls / row.of if row.of else 0.0
    room = max(0, min(40, look.width - 40))
    cells = max(bool(row.calls), round(share * room))
    bar = ("█" if look.glyphs.name == "unicode" else "#") * (cells if room else 0)
    style = draw_decision(row.decision, look)[0].style
    return (
        *draw_decision(row.decision, look),
        Piece(f"{row.calls:>9,}", look[Role.TEXT] + BOLD if row.calls else look[Role.MUTED]),
        _muted(f"  {share:>4.0%}  ", look),
        Piece(bar, style),
    )


def _share(row: RuleCount, look: Look) -> Pieces:
    front = (Piece(f"{row.calls:>8,}  ", look[Role.TEXT]), *draw_decision(row.decision, look))
    rule = row.rule
    if row.decision is ReplayDecision.TOOL_REFUSES:
        return (*front, _muted("by the tool itself, under any policy", look))
    if row.decision is ReplayDecision.NOT_CHECKED:
        return (*front, _muted(POWERSHELL, look))
    if rule is None:
        return (*front, _muted("no rule applies, so the approval mode decides", look))
    left = (*front, Piece(f"{tools_words(rule)}  {condition_words(rule)}", look[Role.TEXT]))
    return _both(left, (_muted(_place(rule, look), look),), look)


def _place(rule: Rule, look: Look) -> str:
    """Return a rule's source and priority.

    In a narrow window, only a short form of the source is returned.
    """
    if look.width >= _ROOMY:
        return f"{rule_source(rule)}  {rank(rule)}"
    of_file = rule.index and rule.tier > Tier.BUILTIN
    return f"rule {rule.index}" if of_file else rule_source(rule)


# --- suggestions -------------------------------------------------------------------------------


def suggest_row(row: SuggestRow, look: Look) -> Pieces:
    """Render a suggested rule with its checkbox, or calls that got no suggestion."""
    match row:
        case RowHeading():
            return draw_heading(row, look)
        case ProposalRow():
            return _proposal(row, look)
        case _:
            left = (
                Piece(
                    f"{look.glyphs.warning} {command_line(row.what[:LONG])}",
                    look[Role.WARNING],
                ),
                _muted(f"  {visible_line(row.why[:LONG])}", look),
            )
            return _both(left, (_muted(counted(row.calls, "call"), look),), look)


def _proposal(row: ProposalRow, look: Look) -> Pieces:
    rule, found = row.suggestion.rule, row.suggestion
    box = "[x] " if row.chosen else "[ ] "
    words = f"{tools_words(rule)}  {condition_words(replace(rule, modes=()))}"
    left = (
        Piece(box, look[Role.ACCENT if row.chosen else Role.MUTED]),
        Piece(words, look[Role.TEXT] + BOLD if row.chosen else look[Role.TEXT]),
    )
    seen = f"{counted(found.calls, 'call')} in {counted(found.sessions, 'session')}"
    return _both(left, (_muted(seen, look),), look)


# --- tools -------------------------------------------------------------------------------------


def tool_head(look: Look) -> Pieces:
    """Render the column headings for `tool_row`."""
    name = column("tool", tool_room(look), look[Role.MUTED], look)
    return (name, _muted(f"  {'headless':<{VERDICT}}{'interactive':<{VERDICT}}rule", look))


def tool_room(look: Look) -> int:
    """Return the width, in cells, of the column with tool names."""
    return max(12, min(24, look.width - 2 * VERDICT - 12))


def tool_row(row: ToolRow, look: Look) -> Pieces:
    """Render a tool: its headless and interactive decisions, and the deciding rule."""
    return (
        column(flat(row.tool[:LONG]), tool_room(look), look[Role.TEXT], look),
        _muted("  ", look),
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
    place = _muted("no rule" if rule is None else _place(rule, look), look)
    if not row.rules:
        return (place,)
    more = "" if look.width < _ROOMY else " by arguments"
    conditional = Piece(f"+{counted(row.rules, 'rule')}{more}", look[Role.ACCENT])
    return (conditional, _muted("  ", look), place)
