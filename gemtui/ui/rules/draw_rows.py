"""Render rows about calls, counts, suggestions and tools (pure functions)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemtui.policy.engine.decide import Outcome
from gemtui.policy.model.rules import CallStatus, Decision, Reference, Rule, Tier
from gemtui.policy.suggest.replay import ReplayCounts, ReplayDecision, RuleCount
from gemtui.policy.suggest.suggest import LeftOut, Suggestion
from gemtui.policy.words import LONG, condition_words, rule_source, tools_words
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, command_line, counted, relative, visible_line
from gemtui.ui.draw.lines import EMPTY, Piece, Pieces, cut, flat, own, spread, width_of
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.rules.draw import column, decision_pieces, hidden, outcome, rank

_ROOMY = 100
"""The width, in cells, from which a row shows a rule's source in full."""
VERDICT = 14
"""The width, in cells, of the column with a decision's symbol and word."""


@dataclass(frozen=True, slots=True)
class RowHeading:
    """A heading between rows; the cursor skips it.

    `more`: words to show beside it.
    """

    text: Clean
    more: Clean = EMPTY


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
    if width_of(right) > look.width // 2:
        right = ()
    room = max(0, look.width - width_of(right) - (2 if right else 0))
    left = cut(left, look, room)
    return spread(left, right, look.width, Piece(own(" "), look[Role.TEXT]))


def _muted(text: str, look: Look) -> Piece:
    return Piece(own(text), look[Role.MUTED])


def draw_heading(row: RowHeading, look: Look) -> Pieces:
    """Render a heading and the words beside it."""
    return (Piece(row.text, look[Role.HEADING]), _muted(f"  {row.more}" if row.more else "", look))


def draw_decision(found: ReplayDecision, look: Look) -> Pieces:
    """Render a replayed call's decision as a symbol and a word."""
    if found is ReplayDecision.NOT_OFFERED:
        return hidden(look, room=VERDICT - 2)
    if found is ReplayDecision.TOOL_REFUSES:
        words = own(f"{look.glyphs.denied} {'refused':<{VERDICT - 2}}")
        return (Piece(words, look[Role.WARNING]),)
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
        Piece(own(f"{sign} "), look[role]),
        column(name, max(17, min(len(name), look.width // 4)), look[Role.TEXT] + BOLD, look),
        Piece(own(f"  {command_line(_from_project(call.argument, session))}"), look[Role.TEXT]),
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
    project = flat((session.project or "").rpartition("/")[2][:40])
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
    rows: list[ReplayRow] = [Total(each, calls, found.calls) for each, calls in counts.items()]
    if found.by_rule:
        rows += [RowHeading(Clean("")), RowHeading(Clean("By rule"), Clean("most calls first"))]
        rows += found.by_rule
    if found.unknown:
        more = Clean("unknown to this Gemini CLI, but counted above")
        rows += [RowHeading(Clean("")), RowHeading(Clean("Tools of other versions"), more)]
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
    bar = own(("█" if look.glyphs.name == "unicode" else "#") * (cells if room else 0))
    style = draw_decision(row.decision, look)[0].style
    return (
        *draw_decision(row.decision, look),
        Piece(own(f"{row.calls:>9,}"), look[Role.TEXT] + BOLD if row.calls else look[Role.MUTED]),
        _muted(f"  {share:>4.0%}  ", look),
        Piece(bar, style),
    )


def _share(row: RuleCount, look: Look) -> Pieces:
    front = (Piece(own(f"{row.calls:>8,}  "), look[Role.TEXT]), *draw_decision(row.decision, look))
    rule = row.rule
    if row.decision is ReplayDecision.TOOL_REFUSES:
        return (*front, _muted("by the tool itself, under any policy", look))
    if rule is None:
        return (*front, _muted("no rule applies, so the approval mode decides", look))
    left = (*front, Piece(own(f"{tools_words(rule)}  {condition_words(rule)}"), look[Role.TEXT]))
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
                Piece(own(f"{look.glyphs.warning} {command_line(row.what[:LONG])}"), look[Role.WARNING]),
                _muted(f"  {visible_line(row.why[:LONG])}", look),
            )
            return _both(left, (_muted(counted(row.calls, "call"), look),), look)


def _proposal(row: ProposalRow, look: Look) -> Pieces:
    rule, found = row.suggestion.rule, row.suggestion
    box = own("[x] " if row.chosen else "[ ] ")
    words = own(f"{tools_words(rule)}  {condition_words(replace(rule, modes=()))}")
    left = (
        Piece(box, look[Role.ACCENT if row.chosen else Role.MUTED]),
        Piece(words, look[Role.TEXT] + BOLD if row.chosen else look[Role.TEXT]),
    )
    seen = f"{counted(found.calls, 'call')} in {counted(found.sessions, 'session')}"
    return _both(left, (_muted(seen, look),), look)


# --- tools -------------------------------------------------------------------------------------


def tool_head(look: Look) -> Pieces:
    """Render the column headings for `tool_row`."""
    name = column(own("tool"), tool_room(look), look[Role.MUTED], look)
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
    conditional = Piece(own(f"+{counted(row.rules, 'rule')}{more}"), look[Role.ACCENT])
    return (conditional, _muted("  ", look), place)
