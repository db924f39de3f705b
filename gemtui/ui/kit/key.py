"""The definition of a key: where it acts, and how it is named on the screen."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct
from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode


class Where(StrEnum):
    """The place in which a key acts; the value is that place's heading in the help."""

    APP = "Everywhere"
    SESSIONS = "Sessions"
    LIST = "List"
    FILTER = "Filter"
    TRANSCRIPT = "Transcript"
    FIND = "Find"
    RAW = "Raw JSON"
    INFO = "About the session"
    MARKS = "Marks"
    WAITING = "A session's question"
    VAULT = "The vault"
    STATS = "Stats"
    SEARCH = "Search in all sessions"
    FILES = "Written files"
    HISTORY = "File history"
    PATCH = "Patch"
    UNDO = "Undo"
    UNDO_FILE = "A file in an undo"
    RECOVER = "Recovered file"
    REVIEW = "Review"
    NOTICE = "Message"
    EMPTY = "No sessions"
    RUN = "Run"
    RUN_LIST = "Runs"
    WORKTREES = "Worktrees"
    QUESTION = "Approval needed"
    CHANGE_CALL = "Edit a call"
    QUEUE = "Queue"
    POLICY = "Policy"
    RULES = "Rules"
    LEVELS = "Levels and lists"
    POLICY_FILES = "Policy files"
    RULE = "Edit a rule"
    ROWS = "Rows"
    DRAWING = "Text"
    TRY = "Try a call"
    REPLAY = "Replay"
    CALLS = "Calls"
    PICK = "Recorded calls"
    CALL = "Call details"
    SUGGEST = "Suggest"
    PROMPT = "Prompt"
    WRITES = "Changed files"
    OPTIONS = "Options"
    CONFIRM = "Question"
    CONFIRM_FOR_GOOD = "Irreversible action"
    DIALOG = "Dialog"
    CHOICES = "Choices"
    HELP = "Keys"


class Group(StrEnum):
    """The purpose of a key; the help and the command palette are sorted by it."""

    MOVE = "Move"
    OPEN = "Open and close"
    SEARCH = "Search"
    VIEW = "View"
    COPY = "Copy and export"
    CHANGE = "Change"
    APP = "Program"


Row = tuple[str, str, Group, str, str]
"""One row of the key table: action, keys, group, label and help.

If the action is not the method of the same name, the call follows: "half_up = page(-0.5)". The
method's name is then the one with which `check_action` and parts are asked.
"""


class Key(Struct, frozen=True, kw_only=True):
    """One key binding.

    `action`: its name in the id. `call`: the action method as Textual writes it, without the prefix
    "action_" and with arguments, such as "page(-0.5)". `keys`: Textual key names, separated by
    commas. `label`: one or two words for the footer and the palette. `help`: a sentence for the
    help. `rank`: 1-based position in the footer from the left, 0 to leave the key out. `face`: the
    name in the footer if it is not the first key's (for pairs such as n/N).
    """

    id: str
    keys: str
    action: str
    call: str
    label: str
    help: str
    group: Group
    where: Where
    rank: int = 0
    face: str = ""
    priority: bool = False

    @property
    def binding(self) -> Binding:
        """The Textual binding of this key."""
        return Binding(
            self.keys,
            self.call,
            self.label,
            show=False,
            priority=self.priority,
            tooltip=self.help,
            id=self.id,
        )

    def works(self, node: DOMNode) -> bool:
        """Return whether the action is available at the node that binds the key."""
        _, method, arguments = parse(self.call)
        return bool(node.check_action(method, arguments))

    def shown(self, *, ascii: bool = False) -> str:
        """Return all keys under their usual names, such as "↑ k" or "space"."""
        return " ".join(dict.fromkeys(name(key, ascii=ascii) for key in self.keys.split(",")))

    def footer(self, *, ascii: bool = False, alive: Collection[str] = ()) -> str:
        """Return the key's footer name: `face`, or else the first of the `alive` keys."""
        keys = self.keys.split(",")
        first = next((key for key in keys if key in alive), keys[0])
        arrows = "j/k" if "j" in keys else "up/down"
        face = self.face.replace("↑↓", arrows) if ascii else self.face
        return face or name(first, ascii=ascii)


_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "escape": "esc",
    "question_mark": "?",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "exclamation_mark": "!",
    "underscore": "_",
    "minus": "-",
    "delete": "del",
}
_ARROWS = {"up", "down", "left", "right"}


def name(key: str, *, ascii: bool = False) -> str:
    """Return the usual name of a Textual key: "ctrl+p" -> "^p", "full_stop" -> "."."""
    *modifiers, last = key.split("+")
    plain = last if ascii and last in _ARROWS else _NAMES.get(last, last)
    front = "".join("^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers)
    return front + plain
