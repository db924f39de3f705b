"""The simple view of a policy: levels, mode and lists, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message

from gemtui.policy.levels import Level
from gemtui.policy.rules import ApprovalMode
from gemtui.text import Clean
from gemtui.ui.keys import Where, bindings
from gemtui.ui.policies import Draft
from gemtui.ui.render.lines import Piece, Pieces, flat, own
from gemtui.ui.simple import Simple, read
from gemtui.ui.theme import BOLD, Look, Role
from gemtui.ui.widgets.rows import RowList

UNSET = "unset"
_CAPABILITIES = {
    "file_write": "Write files",
    "shell_execute": "Run commands",
    "network_access": "Use the network",
}
LISTS = {"only": "Only these", "approved": "No question", "disallowed": "Never"}
MEANINGS = {
    "allow": "It is done without a question. What other rules deny stays denied.",
    "ask": "A person is asked. Headless nobody can answer: that refuses, but for safe commands.",
    "deny": "It is refused, and where nothing else is said the model is not told of the tool.",
    UNSET: "No rule: the approval mode decides, and what other files say.",
    "default": "Headless: looks, writes nothing, runs nothing but what rules allow.",
    "auto_edit": "Files may be written; commands need a rule.",
    "plan": "Looks only. An allow opens writes and commands even there.",
    "yolo": "Everything is allowed but what rules deny or ask.",
    "only": "A list of the only tools there are; everything else is denied.",
    "approved": "Tools that need no confirmation.",
    "disallowed": "Tools that are denied, whatever else allows them.",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A row: a heading, a choice or a list. `id` is "" for a heading."""

    label: str
    id: str = ""
    choices: tuple[str, ...] = ()
    value: str = ""


def fields(simple: Simple, mode: ApprovalMode) -> Iterator[Field]:
    """The rows, from top to bottom."""
    yield Field("Levels")
    for name, label in _CAPABILITIES.items():
        yield Field(label, name, (*Level, UNSET), simple.levels.get(name, UNSET))
    yield Field("Approval mode, of the run and not of the file")
    yield Field("Mode", "mode", tuple(ApprovalMode), mode)
    yield Field("Tools by name")
    for name, label in LISTS.items():
        names = getattr(simple, name)
        yield Field(label, name, (), _listed(name, names))


def _listed(name: str, names: Sequence[str] | None) -> str:
    if names:
        return ", ".join(names)
    return "no tool at all" if name == "only" and names is not None else "no such list"


def draw(field: Field, look: Look) -> Pieces:
    """A heading; a choice with all there are; a list."""
    if not field.id:
        return (Piece(own(field.label), look[Role.HEADING]),)
    label = Piece(own(f"{field.label:<15} "), look[Role.TEXT])
    if not field.choices:
        return (label, Piece(flat(field.value[:400]), look[Role.TEXT] + BOLD))
    return (label, *(piece for choice in field.choices for piece in _choice(field, choice, look)))


def _choice(field: Field, choice: str, look: Look) -> Pieces:
    here = choice == field.value
    mark = look.glyphs.doing if here else " "
    style = look[Role.ACCENT] + BOLD if here else look[Role.MUTED]
    return (Piece(own(f"({mark}) {choice}"), style), Piece(own("  "), look[Role.TEXT]))


class LevelRows(RowList[Field], inherit_bindings=False):
    """The rows; a choice that is made is told to the pane, and so is a list to be changed."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.LEVELS)

    class Chosen(Message):
        """`field` shall have another value."""

        def __init__(self, field: Field, value: str) -> None:
            super().__init__()
            self.field, self.value = field, value

    others = 0
    """How many rules say more than this view can."""

    def __init__(self) -> None:
        super().__init__(draw, stops=lambda field: bool(field.id), empty=Clean(""), id="levels")

    def show_levels(self, draft: Draft) -> None:
        """What the draft says now; the cursor stays on its row."""
        simple, row = read(draft.document), self.cursor
        self.others = simple.others
        self.show(tuple(fields(simple, draft.mode)))
        self.go(row)

    def meaning(self) -> str:
        """What the choice under the cursor means."""
        field = self.chosen
        if field is None:
            return ""
        return MEANINGS[field.value if field.choices else field.id]

    def action_previous(self) -> None:
        """The choice at the left."""
        self._choose(-1)

    def action_next(self) -> None:
        """The choice at the right."""
        self._choose(1)

    def _choose(self, step: int) -> None:
        field = self.chosen
        if field is not None and field.choices:
            at = field.choices.index(field.value) + step
            if 0 <= at < len(field.choices):
                self.post_message(self.Chosen(field, field.choices[at]))

    def action_open(self) -> None:
        """The next choice, round and round; of a list: the pane lets it be changed."""
        field = self.chosen
        if field is not None and field.choices:
            at = (field.choices.index(field.value) + 1) % len(field.choices)
            self.post_message(self.Chosen(field, field.choices[at]))
        else:
            super().action_open()


def with_value(simple: Simple, name: str, value: str) -> Simple:
    """The same with one level set, or unset."""
    levels = {key: level for key, level in simple.levels.items() if key != name}
    if value != UNSET:
        levels[name] = Level(value)
    return replace(simple, levels=levels)


def with_list(simple: Simple, name: str, tools: tuple[str, ...]) -> Simple:
    """The same with another list; without names there is no such list."""
    if name == "only":
        return replace(simple, only=tools or None)
    return (
        replace(simple, approved=tools) if name == "approved" else replace(simple, disallowed=tools)
    )
