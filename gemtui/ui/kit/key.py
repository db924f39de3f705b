"""The definition of a key: where it works and how it is shown on screen."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct
from textual.actions import parse
from textual.binding import Binding
from textual.dom import DOMNode


class Where(StrEnum):
    """A place where keys work, such as a pane; its value is its heading in the help."""

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
    UNDO_FILE = "A file that an undo changes"
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
    """The purpose of a key; the help and the command palette group keys by it."""

    MOVE = "Move"
    OPEN = "Open and close"
    SEARCH = "Search"
    VIEW = "View"
    COPY = "Copy and export"
    CHANGE = "Change"
    APP = "Program"


KeyRow = tuple[str, str, Group, str, str]
"""A row of the key table: action, keys, group, label and help.

An action such as "close" calls the method `action_close`. To call another method, the row gives the
action as "half_up = page(-0.5)": this action is named "half_up" and calls `action_page(-0.5)`.
`check_action` and the parts of a screen receive the method's name, here "page".
"""


class Key(Struct, frozen=True, kw_only=True):
    """A key binding.

    `id`: the place and the action's name, such as "rows.half_up". `action`: the action's name.
    `call`: the method that Textual calls, without its "action_" prefix and with any arguments, such
    as "page(-0.5)". `keys`: Textual key names, separated by commas. `label`: one or two words for
    the footer and the palette. `help`: a sentence for the help. `rank`: 1-based position in the
    footer from the left; 0 hides the key. `face`: the footer's name for the keys if it isn't the
    first key's, such as n/N for a pair of keys.
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
        """The key as a Textual binding."""
        return Binding(
            self.keys, self.call, self.label, show=False, priority=self.priority, tooltip=self.help, id=self.id
        )

    def works(self, node: DOMNode) -> bool:
        """Return whether the action is available now at `node`, which has this binding."""
        _, method, arguments = parse(self.call)
        return bool(node.check_action(method, arguments))

    def shown(self, *, ascii: bool = False) -> str:
        """Return all of the binding's keys under their usual names, such as "↑ k"."""
        return " ".join(dict.fromkeys(name(key, ascii=ascii) for key in self.keys.split(",")))

    def footer(self, *, ascii: bool = False, alive: Collection[str] = ()) -> str:
        """Return the keys' name in the footer: `face`, or else the first key's name.

        `alive`: the Textual keys that work now; the first of these is preferred.
        """
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
    """Return the usual name of a Textual key: "^p" for "ctrl+p", "." for "full_stop"."""
    *modifiers, last = key.split("+")
    plain = last if ascii and last in _ARROWS else _NAMES.get(last, last)
    front = "".join("^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers)
    return front + plain
