"""The rows of the history against a policy, and the lines about each (pure functions)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gemtui.policy.model.rules import Decision, Reference
from gemtui.policy.suggest.replay import POWERSHELL, ReplayCounts, ReplayDecision, RuleCount
from gemtui.policy.suggest.suggest import LeftOut, Suggestion, Suggestions
from gemtui.policy.words import LONG, condition_words, rule_source, tools_words, translated_words
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import command_line, counted, visible_line
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, cut, flat, prefixed, wrap
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.rules import draw


@dataclass(frozen=True, slots=True)
class RowHeading:
    """A heading between rows; the cursor skips it.

    `more`: words to show beside it.
    """

    text: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class Total:
    """The number of recorded calls that get a certain decision.

    `of`: the number of all calls.
    """

    decision: ReplayDecision
    calls: int
    of: int


@dataclass(frozen=True, slots=True)
class Missing:
    """The number of recorded calls to a tool that the installed Gemini CLI doesn't have."""

    tool: str
    calls: int


HistoryRow = RowHeading | Total | RuleCount | Suggestion | LeftOut | Missing
_GAP = RowHeading("")


def history_rows(counts: ReplayCounts, suggestions: Suggestions | None) -> list[HistoryRow]:
    """Return the rows for a history: totals, rules to add, rules that decide, and the rest.

    * `suggestions`: None if not all calls have been read.
    """
    totals = {
        ReplayDecision.ALLOW: counts.allow,
        ReplayDecision.ASK_USER: counts.ask_user,
        ReplayDecision.DENY: counts.deny,
        ReplayDecision.NOT_OFFERED: counts.not_offered,
    }
    if counts.tool_refuses:
        totals[ReplayDecision.TOOL_REFUSES] = counts.tool_refuses
    if counts.not_checked:
        totals[ReplayDecision.NOT_CHECKED] = counts.not_checked
    rows: list[HistoryRow] = []
    for decision, calls in totals.items():
        rows.append(Total(decision, calls, counts.calls))
    rows += [_GAP, RowHeading("Rules that would allow more", _more(suggestions))]
    if suggestions is not None:
        rows += suggestions.suggestions
    if counts.by_rule:
        rows += [_GAP, RowHeading("By rule", "most calls first"), *counts.by_rule]
    if suggestions is not None and suggestions.left_out:
        more = "no rule is suggested for these"
        rows += [_GAP, RowHeading("Left out", more), *suggestions.left_out]
    if counts.unknown:
        more = "unknown to this Gemini CLI, but counted above"
        rows += [_GAP, RowHeading("Tools of other versions", more)]
        rows += [Missing(name, calls) for name, calls in sorted(counts.unknown.items())]
    if counts.translated:
        rows += [_GAP, RowHeading("Calls of other agents", "as rules see them; counted above")]
        rows += [
            Missing(translated_words(*each), calls) for each, calls in counts.translated.items()
        ]
    return rows


def _more(suggestions: Suggestions | None) -> str:
    if suggestions is None:
        return "reading"
    succeeded = counted(suggestions.succeeded, "successful call")
    words = f"{suggestions.allowed:,} of {succeeded} need no rule"
    if suggestions.suggestions:
        return f"a adds one; {words}"
    return f"none ({words}); press w to choose other calls"


def stops(row: HistoryRow) -> bool:
    """Return whether the cursor can be on a row."""
    return not isinstance(row, RowHeading)


def row_key(row: HistoryRow) -> object:
    """Return a key by which a row is recognised while its numbers change."""
    match row:
        case Total():
            return row.decision
        case RuleCount():
            return row.rule, row.decision
        case Suggestion():
            return row.about
        case _:
            return row


_TITLES = {
    ReplayDecision.ALLOW: "that would be allowed",
    ReplayDecision.ASK_USER: "that would need approval",
    ReplayDecision.DENY: "that would be denied",
    ReplayDecision.NOT_OFFERED: "of tools that would not be offered",
    ReplayDecision.TOOL_REFUSES: "that the tools themselves would reject",
    ReplayDecision.NOT_CHECKED: "that gemtui can't check",
}


def calls_behind(
    row: HistoryRow, counts: ReplayCounts
) -> tuple[str, tuple[Reference, ...], int] | None:
    """Return what the calls behind a row have in common, references to them, and their number.

    There may be fewer references than calls. Returns None for a row without calls.
    """
    match row:
        case Total(decision=decision) if row.calls:
            shares = [share for share in counts.by_rule if share.decision is decision]
            references = tuple(call for share in shares for call in share.references)
            return _TITLES[decision], references, row.calls
        case RuleCount(decision=decision, rule=rule):
            by = "by no rule" if rule is None else f"by {rule_source(rule)}"
            return f"{_TITLES[decision]} {by}", row.references, row.calls
        case Suggestion():
            title = "examples of calls that this rule would allow"
            return title, row.examples, row.calls
        case LeftOut():
            return "examples of calls that get no rule", row.examples, row.calls
        case _:
            return None


# --- rows --------------------------------------------------------------------------------------


def draw_row(row: HistoryRow, look: Look) -> Pieces:
    """Render a row of the history."""
    match row:
        case RowHeading():
            more = f"  {row.more}" if row.more else ""
            return (Piece(row.text, look[Role.HEADING]), draw.muted(more, look))
        case Total():
            return _total(row, look)
        case RuleCount():
            return _rule_count(row, look)
        case Suggestion():
            words = f"+ {tools_words(row.rule)}  {_conditions(row)}"
            right = draw.muted(_evidence(row), look)
            return draw.both_ends((Piece(words, look[Role.TEXT]),), (right,), look)
        case LeftOut():
            what = f"{look.glyphs.warning} {command_line(row.what[:LONG])}"
            why = draw.muted(f"  {visible_line(row.why[:LONG])}", look)
            right = draw.muted(counted(row.calls, "call"), look)
            return draw.both_ends((Piece(what, look[Role.WARNING]), why), (right,), look)
        case Missing():
            return (draw.muted(f"{row.calls:>8,}  {flat(row.tool[:LONG])}", look),)


def _conditions(row: Suggestion) -> str:
    """Return a rule's conditions without the mode, which is the one on the screen."""
    return condition_words(replace(row.rule, modes=()))


def _evidence(row: Suggestion) -> str:
    return f"{counted(row.calls, 'call')} in {counted(row.sessions, 'session')}"


def draw_decision(found: ReplayDecision, look: Look) -> Pieces:
    """Render a recorded call's decision as a symbol and a word."""
    room = draw.VERDICT - 2
    if found is ReplayDecision.NOT_OFFERED:
        return draw.hidden(look, room=room)
    if found is ReplayDecision.TOOL_REFUSES:
        words = f"{look.glyphs.denied} {'refused':<{room}}"
        return (Piece(words, look[Role.WARNING]),)
    if found is ReplayDecision.NOT_CHECKED:
        return (draw.muted(f"{look.glyphs.warning} {'not checked':<{room}}", look),)
    return draw.decision_pieces(Decision(found.value), look, room=room)


def _total(row: Total, look: Look) -> Pieces:
    share = row.calls / row.of if row.of else 0.0
    room = max(0, min(40, look.width - 40))
    cells = max(bool(row.calls), round(share * room))
    bar = ("█" if look.glyphs.name == "unicode" else "#") * (cells if room else 0)
    style = draw_decision(row.decision, look)[0].style
    return (
        *draw_decision(row.decision, look),
        Piece(f"{row.calls:>9,}", look[Role.TEXT] + BOLD if row.calls else look[Role.MUTED]),
        draw.muted(f"  {share:>4.0%}  ", look),
        Piece(bar, style),
    )


def _rule_count(row: RuleCount, look: Look) -> Pieces:
    front = (Piece(f"{row.calls:>8,}  ", look[Role.TEXT]), *draw_decision(row.decision, look))
    rule = row.rule
    if row.decision is ReplayDecision.TOOL_REFUSES:
        return (*front, draw.muted("by the tool itself, under any policy", look))
    if row.decision is ReplayDecision.NOT_CHECKED:
        return (*front, draw.muted(POWERSHELL, look))
    if rule is None:
        return (*front, draw.muted("no rule applies, so the approval mode decides", look))
    words = f"{tools_words(rule)}  {condition_words(rule)}"
    right = draw.muted(draw.rule_place(rule, look), look)
    return draw.both_ends((*front, Piece(words, look[Role.TEXT])), (right,), look)


# --- the lines about a row ---------------------------------------------------------------------

Find = Callable[[str], Summary | None]
"""A function that returns the session with this id; None if there is none."""
_NAME = 11
_MOST_LISTED = 100
"""The most calls to list beside a row; enter lists all of them."""


def draw_detail(row: HistoryRow, counts: ReplayCounts, find: Find, look: Look) -> list[Line]:
    """Return the lines about the row under the cursor: a suggested rule, and calls behind the row.

    * `find`: returns the session of a call, by id.
    """
    behind = calls_behind(row, counts)
    if behind is None:
        return []
    title, references, calls = behind
    lines: list[Line] = []
    match row:
        case Suggestion():
            lines = [*_suggestion(row, look), BLANK]
        case LeftOut():
            lines = [*_left_out(row, look), BLANK]
    shown = references[:_MOST_LISTED]
    heading = f"{counted(calls, 'call')} {title}" if not lines else "Examples"
    lines.append(Line(cut((Piece(heading, look[Role.HEADING]),), look)))
    for reference in shown:
        lines.append(Line(cut(draw.call_row(reference, find(reference.session), look), look)))
    if not isinstance(row, Suggestion | LeftOut) and len(shown) < calls:
        lines.append(Line((draw.muted(f"{calls - len(shown):,} more: press enter", look),)))
    return lines


def _suggestion(row: Suggestion, look: Look) -> Iterator[Line]:
    """Yield what a suggested rule is, what speaks for it, and what else it would allow."""
    rule = row.rule
    name = Piece(f"  {tools_words(rule)}", look[Role.TEXT] + BOLD)
    yield from wrap((*draw.decision_pieces(rule.decision, look), name), look.width)
    if conditions := condition_words(rule):
        yield from _named("when", conditions, look)
    yield from _named("priority", f"{rule.priority:g}  ({draw.rank(rule)})", look)
    yield from _named("evidence", _evidence(row), look)
    if row.opens:
        opens = visible_line(row.opens[: LONG * 4])
        yield from _named("also allows", opens, look, role=Role.WARNING)


def _left_out(row: LeftOut, look: Look) -> Iterator[Line]:
    """Yield why no rule is suggested for some calls."""
    what = f"{look.glyphs.warning} {command_line(row.what[:LONG])}"
    yield from wrap((Piece(what, look[Role.WARNING]),), look.width)
    yield from _named("left out", visible_line(row.why[: LONG * 4]), look)
    yield from _named("evidence", counted(row.calls, "call"), look)


def _named(name: str, value: str, look: Look, *, role: Role = Role.TEXT) -> Iterator[Line]:
    front = (Piece(f"{name:<{_NAME}} ", look[Role.MUTED]),)
    rest = (Piece(" " * (_NAME + 1), look[Role.MUTED]),)
    lines = wrap((Piece(value, look[role]),), max(1, look.width - _NAME - 1))
    yield from prefixed(lines, front, rest)
