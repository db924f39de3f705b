"""The simple view of a policy: levels for three capabilities, and three tool lists, as rows.

Its rules are those that `gemtui.policy.file.levels` creates. They are recognised by their form: one
tool, no condition, headless only, and a priority from 997 to 999. A rule that denies with priority
999 may apply to interactive sessions as well, although that module doesn't create such rules. All
other rules in a file are left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from gemtui.policy.edit.document import Document, RuleEntry
from gemtui.policy.file.levels import CAPABILITIES, Level, PermissionPolicy, Permissions, rules
from gemtui.policy.model import tool_catalog
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule
from gemtui.text import visible_line
from gemtui.ui.draw.lines import Piece, Pieces, flat
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.kit.clean_widgets import Dialog, Input, Static
from gemtui.ui.kit.dialogs import FieldScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.policy.edits import EditedDocument, Make
from gemtui.ui.rules.draft import Draft
from gemtui.ui.rules.form import completes, split_names, tool_hint

_LEVEL_RULES = {
    (Decision.ALLOW, 997): Level.ALLOW,
    (Decision.ASK_USER, 997): Level.ASK,
    (Decision.DENY, 999): Level.DENY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplePolicy:
    """The contents of the simple view.

    `levels`: the level of each capability; if it isn't set, the approval mode decides. `only`: the
    only tools that may be used; None means any. `approved`: tools that need no approval.
    `disallowed`: tools that are denied. `others`: the number of rules that the view can't show.
    """

    levels: dict[str, Level]
    only: tuple[str, ...] | None = None
    approved: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    others: int = 0


def is_simple(rule: Rule) -> bool:
    """Return whether the simple view can show a rule.

    It can if the rule has the form of a capability's level or of a tool list.
    """
    plain = Rule(
        decision=rule.decision,
        priority=rule.priority,
        tools=rule.tools,
        interactive=rule.interactive if rule.decision is Decision.DENY else False,
        tier=rule.tier,
        source=rule.source,
        index=rule.index,
    )
    headless = rule.interactive is False or (rule.interactive is None and _always(rule))
    return headless and rule == plain and len(rule.tools) == 1 and _kind(rule) is not None


def _always(rule: Rule) -> bool:
    """Return whether a rule denies its tools with priority 999.

    The simple view accepts such rules even if they apply to interactive sessions.
    """
    return rule.decision is Decision.DENY and rule.priority == 999


def _kind(rule: Rule) -> tuple[Decision, int] | None:
    """Return the decision and priority that show which level or list a rule is for.

    Returns None if the rule is for none of them.
    """
    kind = rule.decision, int(rule.priority)
    if rule.tools == ("*",):
        return kind if kind == (Decision.DENY, 998) else None
    is_known = kind in _LEVEL_RULES or kind == (Decision.ALLOW, 999)
    return kind if rule.priority == kind[1] and is_known else None


def _simple_rules(entries: Sequence[RuleEntry]) -> Iterator[tuple[int, Rule]]:
    for place, entry in enumerate(entries):
        if entry.enabled and entry.rule is not None and is_simple(entry.rule):
            yield place, entry.rule


def read(document: Document) -> SimplePolicy:
    """Return the levels and lists that a document's rules define."""
    simple_rules = [rule for _, rule in _simple_rules(document.rules)]
    named: dict[tuple[Decision, int], list[str]] = {}
    for rule in simple_rules:
        named.setdefault((rule.decision, int(rule.priority)), []).append(rule.tools[0])
    levels: dict[str, Level] = {}
    for name, tools in CAPABILITIES.items():
        for kind, level in _LEVEL_RULES.items():
            if set(tools) <= set(named.get(kind, ())):
                levels[name] = level
                named[kind] = [tool for tool in named[kind] if tool not in tools]
    only = None
    if (Decision.DENY, 998) in named:
        only = tuple(named.get((Decision.ALLOW, 999), ()))
    return SimplePolicy(
        levels=levels,
        only=only,
        approved=tuple(named.get((Decision.ALLOW, 997), ())),
        disallowed=tuple(named.get((Decision.DENY, 999), ())),
        others=len(document.rules) - len(simple_rules),
    )


def level_rules(simple: SimplePolicy) -> tuple[Rule, ...]:
    """Return the rules that define these levels and lists; an unset level needs none.

    Raises OptionError for a name that no tool can have.
    """
    wanted = rules(
        Permissions(
            mode=ApprovalMode.DEFAULT,
            levels=PermissionPolicy(**simple.levels),
            only_tools=simple.only,
            approved_tools=simple.approved,
            disallowed_tools=simple.disallowed,
        )
    )
    return tuple(replace(rule, interactive=None) if _always(rule) else rule for rule in wanted)


def with_levels(document: Document, simple: SimplePolicy) -> Document:
    """Return the document with its rules changed to define these levels and lists.

    Rules that are still needed stay where they are. Among rules of equal priority, the first one
    wins; so new rules that deny or ask are added at the start, and new rules that allow at the end.
    Raises OptionError for a name that no tool can have, and PolicyError if the document is locked.
    """
    wishes = {_identity(rule): rule for rule in level_rules(simple)}
    kept = set()
    for place, rule in reversed(tuple(_simple_rules(document.rules))):
        if _identity(rule) in wishes:
            kept.add(_identity(rule))
        else:
            document = document.remove(place)
    fresh = [rule for identity, rule in wishes.items() if identity not in kept]
    for rule in reversed([rule for rule in fresh if rule.decision is not Decision.ALLOW]):
        document = document.add(rule, 0)
    for rule in fresh:
        if rule.decision is Decision.ALLOW:
            document = document.add(rule)
    return document


def _identity(rule: Rule) -> tuple[str, Decision, float, bool | None]:
    return rule.tools[0], rule.decision, rule.priority, rule.interactive


UNSET = "unset"
_CAPABILITIES = {
    "file_write": "Write files",
    "shell_execute": "Run commands",
    "network_access": "Use the network",
}
LISTS = {"only": "Only these", "approved": "Don't ask", "disallowed": "Never"}
MEANINGS = {
    "allow": "Allowed without asking. Calls that other rules deny are still denied.",
    "ask": "You are asked. Headless runs, which can't ask, deny all but safe commands.",
    "deny": "Denied in every mode. If no rule mentions it, the tool is hidden from the model.",
    UNSET: "No rule is set, so the approval mode and other files decide.",
    "default": "Headless runs may only read, unless a rule allows writes or commands.",
    "auto_edit": "Files may be written, but commands need a rule that allows them.",
    "plan": "Only reading is allowed, unless a rule allows writes or commands.",
    "yolo": "Everything is allowed unless a rule denies or asks.",
    "only": "Only these tools are available. All others are denied.",
    "approved": "Tools that need no confirmation.",
    "disallowed": "Tools that are denied, even if a rule allows them.",
}


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A row of the simple view: a heading, a choice of values, or a list of tools.

    `id`: the id of the capability level or list that the row shows, or "mode" for the approval
    mode; "" for a heading. `choices`: the possible values; () for a list. `value`: the current
    value.
    """

    label: str
    id: str = ""
    choices: tuple[str, ...] = ()
    value: str = ""


def fields(simple: SimplePolicy, mode: ApprovalMode) -> Iterator[LevelRow]:
    """Yield the rows of the simple view from top to bottom."""
    yield LevelRow("Levels")
    for name, label in _CAPABILITIES.items():
        yield LevelRow(label, name, (*Level, UNSET), simple.levels.get(name, UNSET))
    yield LevelRow("Approval mode (for the run, not saved in the file)")
    yield LevelRow("Mode", "mode", tuple(ApprovalMode), mode)
    yield LevelRow("Tools by name")
    for name, label in LISTS.items():
        tools: Sequence[str] | None = getattr(simple, name)
        value = ", ".join(tools or ())
        if not value:
            value = "no tools" if name == "only" and tools is not None else "not set"
        yield LevelRow(label, name, (), value)


def draw_level(field: LevelRow, look: Look) -> Pieces:
    """Render a heading, a choice with all its possible values, or a list."""
    if not field.id:
        return (Piece(field.label, look[Role.HEADING]),)
    label = Piece(f"  {field.label:<15}  ", look[Role.TEXT])
    if not field.choices:
        return (label, Piece(flat(field.value[:400]), look[Role.TEXT] + BOLD))
    return (label, *(piece for choice in field.choices for piece in _choice(field, choice, look)))


def _choice(field: LevelRow, choice: str, look: Look) -> Pieces:
    chosen = choice == field.value
    mark = look.glyphs.doing if chosen else " "
    style = look[Role.ACCENT] + BOLD if chosen else look[Role.MUTED]
    return (Piece(f"({mark}) {choice}", style), Piece("  ", look[Role.TEXT]))


class LevelRows(RowList[LevelRow], inherit_bindings=False):
    """The rows of the simple view.

    `ValueChosen` is posted when the user selects a different value, and `Opened` when they want to
    edit a list.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.LEVELS)

    @dataclass
    class ValueChosen(Message):
        """Posted when the user wants to set `field` to a different value."""

        field: LevelRow
        value: str

    others = 0
    """The number of the policy's rules that this view can't show."""

    def __init__(self) -> None:
        super().__init__(draw_level, stops=lambda field: bool(field.id), empty="", id="levels")

    def show_levels(self, draft: Draft) -> None:
        """Show a draft's levels and lists, keeping the cursor on the same row."""
        simple, row = read(draft.document), self.cursor
        self.others = simple.others
        self.show(tuple(fields(simple, draft.mode)))
        self.go(row)

    def meaning(self) -> str:
        """Return an explanation of the choice or list under the cursor."""
        field = self.chosen
        if field is None:
            return ""
        return MEANINGS[field.value if field.choices else field.id]

    def action_choose(self, step: int) -> None:
        """Select the value to the right (`step` 1) or to the left (`step` -1)."""
        field = self.chosen
        if field is not None and field.choices:
            at = field.choices.index(field.value) + step
            if 0 <= at < len(field.choices):
                self.post_message(self.ValueChosen(field, field.choices[at]))

    def action_open(self) -> None:
        """Edit the list under the cursor, or select the next value of a choice.

        The first value follows the last one.
        """
        field = self.chosen
        if field is not None and field.choices:
            at = (field.choices.index(field.value) + 1) % len(field.choices)
            self.post_message(self.ValueChosen(field, field.choices[at]))
        else:
            super().action_open()


def with_level(simple: SimplePolicy, name: str, value: str) -> SimplePolicy:
    """Return the policy with one capability's level set; `UNSET` removes the level."""
    levels = {key: level for key, level in simple.levels.items() if key != name}
    if value != UNSET:
        levels[name] = Level(value)
    return replace(simple, levels=levels)


def with_list(simple: SimplePolicy, name: str, tools: tuple[str, ...]) -> SimplePolicy:
    """Return the policy with one list of tools replaced; () removes the list."""
    if name == "only":
        return replace(simple, only=tools or None)
    return (
        replace(simple, approved=tools) if name == "approved" else replace(simple, disallowed=tools)
    )


def set_levels(document: Document, simple: SimplePolicy, what: str) -> EditedDocument:
    """Write a simple policy's levels and tool lists into the document's rules.

    `what`: the change in words, for undo. Raises OptionError for a name that no tool can have.
    """
    return EditedDocument(with_levels(document, simple), what, None)


def choose_level(row: LevelRow, value: str) -> Make:
    """Return an edit that sets a capability's level to `value`, or unsets it."""
    what = f"{row.label.lower()}: {value}"
    return lambda document: set_levels(document, with_level(read(document), row.id, value), what)


def choose_tools(row: LevelRow, tools: tuple[str, ...]) -> Make:
    """Return an edit that replaces a list of tools; () removes the list."""
    what = f"{row.label.lower()}: {', '.join(tools) or 'not set'}"
    return lambda document: set_levels(document, with_list(read(document), row.id, tools), what)


class ToolListScreen(FieldScreen[tuple[str, ...]]):
    """A dialog that returns the tool names for one of the policy's lists.

    It returns () if the list is to be removed, and None if the user cancels. `row`: the list's row.
    `document`: the policy that contains the list.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, row: LevelRow, document: Document) -> None:
        super().__init__(subject=row.label)
        self._row, self._tools = row, getattr(read(document), row.id) or ()

    def compose(self) -> ComposeResult:
        known_names = [tool.name for tool in tool_catalog.TOOLS]
        with Dialog(self._row.label, "enter apply   esc close"):
            yield Static(MEANINGS[self._row.id])
            yield Input(
                visible_line(", ".join(self._tools)),
                placeholder="names separated by commas; empty for no list",
                complete=completes(known_names),
                id="names",
            )
            yield Static(id="tools-hint", classes="hint")
            yield Static("  ".join(known_names), id="known")

    @on(Input.Changed)
    def _look(self, event: Input.Changed) -> None:
        self.query_one("#tools-hint", Static).update(tool_hint(event.value))

    def action_take(self) -> None:
        self.dismiss(split_names(self.query_one("#names", Input).value))
