"""The table of the policy's rules, highest priority first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content
from textual.widget import Widget

from gemtui.policy.edit.document import RuleEntry
from gemtui.policy.model.rules import Finding, Rule, Severity
from gemtui.policy.words import LONG, condition_words, decision_word, tools_words
from gemtui.ui.draw.lines import Piece, Pieces, flat
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.filtering import matcher
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import GUTTER, RowList
from gemtui.ui.rules.draft import Draft, priority_order
from gemtui.ui.rules.draw import column, decision_pieces, summary

_DECISION = 5
"""Width in cells of a decision's name."""
_NARROW, _WIDE = 16, 22
"""Widths of the tools column in cells: in a table below 60 cells, and otherwise."""


_BESIDE = GUTTER + 1
"""How many cells of the table's width the cursor and the scroll bar take up."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as a row of the table.

    `place`: the rule's index in the file. `worst`: the severity of its worst finding; None if it
    has no finding.
    """

    place: int
    entry: RuleEntry
    worst: Severity | None


def rows(draft: Draft, words: str = "") -> tuple[RuleRow, ...]:
    """Return the rows for the rules that match a search, highest priority first.

    `words`: a rule matches if its text contains all of these words; "" matches all rules.
    """
    matches = matcher(words)
    matching: list[RuleRow] = []
    for place in priority_order(draft.entries):
        entry = draft.entries[place]
        rule = "" if entry.rule is None else summary(entry.rule)
        if matches(f"{rule} {entry.text}{'' if entry.enabled else ' off'}"):
            matching.append(_row(place, entry, draft.document.problems[place]))
    return tuple(matching)


def _row(place: int, entry: RuleEntry, problems: Sequence[Finding]) -> RuleRow:
    severities = {finding.severity for finding in problems}
    if entry.rule is None and entry.enabled:
        severities.add(Severity.ERROR)
    return RuleRow(place, entry, min(severities, default=None))


class Headings(Widget):
    """The column headings above the table of rules."""

    DEFAULT_CSS = "Headings { height: 1; }"

    def render(self) -> Content:
        room = _room(self.size.width - _BESIDE)
        return Content.styled(f"{'':{GUTTER}} {'pri':>4}  decision {'tool':<{room}} when", "dim")


def _room(width: int) -> int:
    return _NARROW if width < 60 else _WIDE


def draw_rule(row: RuleRow, look: Look) -> Pieces:
    """Render a rule: its worst finding, priority, decision, tools and conditions."""
    rule = row.entry.rule
    if rule is None:
        return _unreadable(row, look)
    style = look[Role.TEXT if row.entry.enabled else Role.MUTED]
    conditions: str = condition_words(rule)
    if not row.entry.enabled:
        conditions = f"off, {conditions}" if conditions else "off"
    return (
        _sign(row, look),
        Piece(f"{rule.priority:>4g}  ", style),
        *_decision(row.entry, rule, look),
        Piece("  ", style),
        column(tools_words(rule), _room(look.width) - 1, style, look),
        Piece("  ", style),
        Piece(conditions, style),
    )


def _sign(row: RuleRow, look: Look) -> Piece:
    if row.worst is Severity.ERROR:
        return Piece(look.glyphs.failed, look[Role.ERROR])
    if row.worst is Severity.WARNING:
        return Piece(look.glyphs.warning, look[Role.WARNING])
    return Piece(" ", look[Role.TEXT])


def _decision(entry: RuleEntry, rule: Rule, look: Look) -> Pieces:
    if entry.enabled:
        return decision_pieces(rule.decision, look, room=_DECISION)
    decision = f"{look.glyphs.interrupted} {decision_word(rule.decision):<{_DECISION}}"
    return (Piece(decision, look[Role.MUTED]),)


def _unreadable(row: RuleRow, look: Look) -> Pieces:
    lines = (line.strip() for line in row.entry.text[:LONG].split("\n"))
    first = next((line for line in lines if line and not line.startswith(("#", "["))), "")
    state = "can't be read" if row.entry.enabled else "off, can't be read"
    return (
        _sign(row, look),
        Piece(f"   -  {state}  ", look[Role.ERROR if row.entry.enabled else Role.MUTED]),
        Piece(flat(first), look[Role.MUTED]),
    )


class RuleTable(RowList[RuleRow], inherit_bindings=False):
    """The table of rules; messages tell the pane what the user does."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.RULES)

    def __init__(self) -> None:
        super().__init__(draw_rule, key=lambda row: row.place, empty="No rule matches.", id="rules")

    @property
    def place(self) -> int | None:
        """The index in the file of the rule under the cursor; None if there are no rows."""
        return None if self.chosen is None else self.chosen.place

    def show_rules(self, draft: Draft, words: str, place: int | None = None) -> None:
        """Show the draft's rules that match a search.

        `words`: the words of the search (see `rows`). `place`: the index of the rule to move the
        cursor to; None leaves the cursor where it is.
        """
        row = self.cursor
        self.show(rows(draft, words))
        for number, item in enumerate(self.items):
            if item.place == place:
                row = number
        if self.items:
            self.go(min(row, len(self.items) - 1))

    def neighbour(self, step: int) -> int | None:
        """Return the index in the file of the rule `step` rows below the cursor, or None.

        A negative `step` means above.
        """
        at = self.cursor + step
        return self.items[at].place if 0 <= at < len(self.items) else None

    def next_problem(self) -> bool:
        """Move the cursor to the next rule with a finding, wrapping around at the end.

        Returns False if no rule has a finding.
        """
        count = len(self.items)
        for step in range(1, count + 1):
            row = (self.cursor + step) % count
            if self.items[row].worst is not None:
                self.go(row)
                return True
        return False
