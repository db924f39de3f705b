"""The simple view of a policy as rows: levels, approval mode and lists of tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message

from gemtui.policy.edit.document import Document
from gemtui.policy.file.levels import Level
from gemtui.policy.model import tool_catalog
from gemtui.policy.model.rules import ApprovalMode
from gemtui.text import Clean, clean_line, visible_line
from gemtui.ui.draw.lines import Piece, Pieces, flat, own
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.kit.clean_widgets import Dialog, Input, Static
from gemtui.ui.kit.dialogs import FieldScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.policy.edits import EditedDocument, Make, set_levels
from gemtui.ui.policy.levels import SimplePolicy, read
from gemtui.ui.rules.draft import Draft
from gemtui.ui.rules.form import completes, tool_hint
from gemtui.ui.rules.form_fields import split_names

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


UNSET = "unset"
_CAPABILITIES = {"file_write": "Write files", "shell_execute": "Run commands", "network_access": "Use the network"}
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
        names = getattr(simple, name)
        yield LevelRow(label, name, (), _listed(name, names))


def _listed(name: str, names: Sequence[str] | None) -> str:
    if names:
        return ", ".join(names)
    return "no tools" if name == "only" and names is not None else "not set"


def draw_level(field: LevelRow, look: Look) -> Pieces:
    """Render a heading, a choice with all its possible values, or a list."""
    if not field.id:
        return (Piece(own(field.label), look[Role.HEADING]),)
    label = Piece(own(f"  {field.label:<15}  "), look[Role.TEXT])
    if not field.choices:
        return (label, Piece(flat(field.value[:400]), look[Role.TEXT] + BOLD))
    return (label, *(piece for choice in field.choices for piece in _choice(field, choice, look)))


def _choice(field: LevelRow, choice: str, look: Look) -> Pieces:
    here = choice == field.value
    mark = look.glyphs.doing if here else " "
    style = look[Role.ACCENT] + BOLD if here else look[Role.MUTED]
    return (Piece(own(f"({mark}) {choice}"), style), Piece(own("  "), look[Role.TEXT]))


class LevelRows(RowList[LevelRow], inherit_bindings=False):
    """The rows of the simple view.

    `Chosen` is posted when the user selects a different value, and `Opened` when they want to edit
    a list.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.LEVELS)

    @dataclass
    class Chosen(Message):
        """Posted when the user wants to set `field` to a different value."""

        field: LevelRow
        value: str

    others = 0
    """The number of the policy's rules that this view can't show."""

    def __init__(self) -> None:
        super().__init__(draw_level, stops=lambda field: bool(field.id), empty=Clean(""), id="levels")

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
                self.post_message(self.Chosen(field, field.choices[at]))

    def action_open(self) -> None:
        """Edit the list under the cursor, or select the next value of a choice.

        The first value follows the last one.
        """
        field = self.chosen
        if field is not None and field.choices:
            at = (field.choices.index(field.value) + 1) % len(field.choices)
            self.post_message(self.Chosen(field, field.choices[at]))
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
    return replace(simple, approved=tools) if name == "approved" else replace(simple, disallowed=tools)


def with_choice(field: LevelRow, value: str) -> Make:
    """Return an edit that sets a capability's level to `value`, or unsets it."""
    what = f"{field.label.lower()}: {value}"
    return lambda document: set_levels(document, with_level(read(document), field.id, value), what)


async def edit_tool_list(app: AppBase, draft: Draft, field: LevelRow | None) -> Make:
    """Let the user edit a list of tools, and return an edit that replaces the list.

    `field`: the list's row. If the user cancels, or if the row isn't a list, the returned edit
    changes nothing.
    """
    if field is None or field.id not in LISTS:
        return _nothing
    before = getattr(read(draft.document), field.id) or ()
    screen = ToolListScreen(clean_line(field.label), Clean(MEANINGS[field.id]), before)
    chosen = await app.push_screen_wait(screen)
    return _nothing if chosen is None else partial(_set_list, field=field, chosen=chosen)


def _nothing(_document: Document) -> None:
    return None


def _set_list(document: Document, *, field: LevelRow, chosen: tuple[str, ...]) -> EditedDocument:
    simple: SimplePolicy = with_list(read(document), field.id, chosen)
    named = ", ".join(chosen) or "not set"
    return set_levels(document, simple, f"{field.label.lower()}: {named}")


class ToolListScreen(FieldScreen[tuple[str, ...]]):
    """A dialog that returns the tool names for one of the policy's lists.

    It returns () if the list is to be removed, and None if the user cancels.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, title: Clean, meaning: Clean, chosen: tuple[str, ...]) -> None:
        super().__init__(subject=title)
        self._heading, self._meaning, self._chosen = title, meaning, chosen

    def compose(self) -> ComposeResult:
        known_names = [tool.name for tool in tool_catalog.TOOLS]
        with Dialog(self._heading, own("enter apply   esc close")):
            yield Static(self._meaning)
            yield Input(
                visible_line(", ".join(self._chosen)),
                placeholder=own("names separated by commas; empty for no list"),
                complete=completes(known_names),
                id="names",
            )
            yield Static(id="tools-hint", classes="hint")
            yield Static(own("  ".join(known_names)), id="known")

    @on(Input.Changed)
    def _look(self, event: Input.Changed) -> None:
        self.query_one("#tools-hint", Static).update(tool_hint(event.value))

    def action_take(self) -> None:
        self.dismiss(split_names(self.query_one("#names", Input).value))
