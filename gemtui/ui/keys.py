"""Every key of gemtui in one table; widgets bind from it, footer, help and palette read it.

A widget or screen takes its bindings with `BINDINGS = bindings(Where.LIST)` and has the methods
`action_<action>`. One key means one thing in one place; the same key means the same everywhere
where that makes sense: enter deeper, esc back, / search, n N next, space fold, y copy, . hidden.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType


class Where(StrEnum):
    """The place in which a key acts; the value heads its part of the help."""

    APP = "Everywhere"
    SESSIONS = "Sessions"
    LIST = "List"
    FILTER = "Filter"
    TRANSCRIPT = "Transcript"
    FIND = "Find"
    RAW = "Raw JSON"
    INFO = "About the session"
    NOTICE = "Message"
    EMPTY = "No sessions"
    RUN = "Run"
    PROMPT = "Prompt"
    WRITES = "Written files"
    OPTIONS = "Options"
    CONFIRM = "Question"
    DIALOG = "Dialog"


class Group(StrEnum):
    """What a key is for; help and palette sort by it."""

    MOVE = "Move"
    OPEN = "Open and close"
    SEARCH = "Search"
    VIEW = "View"
    COPY = "Copy and export"
    CHANGE = "Change"
    APP = "Program"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One binding.

    `keys`: Textual key names, separated by commas. `label`: a word or two for footer and palette;
    `help`: a sentence for the help. `rank`: place in the footer from the left, 0 = not there.
    `face`: how the footer names the keys where that is not the first one (pairs such as n/N).
    """

    id: str
    keys: str
    action: str
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
            self.action,
            self.label,
            show=False,
            priority=self.priority,
            tooltip=self.help,
            id=self.id,
        )

    def shown(self, *, ascii: bool = False) -> str:
        """All keys, named as people know them, such as "↑ k" or "space"."""
        return " ".join(dict.fromkeys(name(key, ascii=ascii) for key in self.keys.split(",")))

    def footer(self, *, ascii: bool = False, alive: Collection[str] = ()) -> str:
        """What the footer shows for it: `face`, else the first key, of those that are `alive`."""
        keys = self.keys.split(",")
        first = next((key for key in keys if key in alive), keys[0])
        face = self.face.replace("↑↓", "j/k") if ascii else self.face
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
    "delete": "del",
}
_ARROWS = {"up", "down", "left", "right"}


def name(key: str, *, ascii: bool = False) -> str:
    """A Textual key name as people know it: "ctrl+p" -> "^p", "full_stop" -> "."."""
    *modifiers, last = key.split("+")
    plain = last if ascii and last in _ARROWS else _NAMES.get(last, last)
    front = "".join("^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers)
    return front + plain


def _keys(where: Where, *rows: tuple[str, str, Group, str, str]) -> tuple[Key, ...]:
    """Rows (action, keys, group, label, help) of one place; ids are "<place>.<action>"."""
    place = where.name.lower()
    return tuple(
        Key(
            id=(id := f"{place}.{action}"),
            keys=keys,
            action=action,
            label=label,
            help=help,
            group=group,
            where=where,
            rank=RANKED.index(id) + 1 if id in RANKED else 0,
            face=_FACE.get(id, ""),
            priority=id in _FIRST,
        )
        for action, keys, group, label, help in rows
    )


RANKED = (
    "list.cursor_down",
    "transcript.cursor_down",
    "raw.scroll_down",
    "list.open",
    "filter.done",
    "filter.clear",
    "transcript.fold",
    "find.next",
    "find.close",
    "list.filter",
    "transcript.find",
    "transcript.next_match",
    "prompt.send",
    "run.stop",
    "prompt.new_line",
    "run.again",
    "run.follow_up",
    "writes.diff",
    "run.write",
    "run.files",
    "transcript.copy_block",
    "transcript.back",
    "sessions.export",
    "sessions.new_run",
    "list.copy_id",
    "sessions.go_on",
    "raw.copy",
    "raw.close",
    "info.copy_id",
    "empty.again",
    "empty.elsewhere",
    "empty.copy",
    "notice.again",
    "notice.copy",
    "notice.back",
    "confirm.confirm",
    "confirm.close",
    "list.scope",
    "transcript.next_prompt",
    "transcript.next_failure",
    "transcript.raw",
    "transcript.follow",
    "list.hidden",
    "list.sort",
    "list.group",
    "sessions.info",
    "sessions.delete",
    "transcript.open_file",
    "dialog.close",
    "run.options",
    "run.command",
    "run.runs",
    "run.stderr",
    "run.edit",
)
"""Ids of the keys that the footer shows, the most useful first; the last ones give way."""
_FACE = {
    "list.cursor_down": "↑↓",
    "transcript.cursor_down": "↑↓",
    "raw.scroll_down": "↑↓",
    "transcript.next_match": "n/N",
    "transcript.next_prompt": "{ }",
    "transcript.next_failure": "x/X",
}
_FIRST = {"app.quit"}

KEYS: tuple[Key, ...] = (
    *_keys(
        Where.APP,
        ("help", "question_mark,f1", Group.APP, "Keys", "Show the keys that work here"),
        ("command_palette", "ctrl+p", Group.APP, "Commands", "Search every command by name"),
        ("back", "q", Group.APP, "Back or quit", "Go back, or leave gemtui"),
        ("quit", "ctrl+q", Group.APP, "Quit", "Leave gemtui"),
        ("help_quit", "ctrl+c", Group.COPY, "Copy selection", "Copy what the mouse selected"),
        ("change_theme", "f2", Group.APP, "Theme", "Choose other colours, with a preview"),
        ("sessions", "1", Group.OPEN, "Sessions", "To the stored sessions"),
        ("runs", "2", Group.OPEN, "Run", "To the run pane: start a run, watch one, stop one"),
    ),
    *_keys(
        Where.SESSIONS,
        ("other_pane", "tab,shift+tab", Group.MOVE, "Other pane", "Go to the other pane"),
        ("zoom", "z", Group.VIEW, "Full width", "Give the transcript the whole width, or end it"),
        ("info", "i", Group.OPEN, "About", "Files, copies and subagents of this session"),
        ("new_run", "n", Group.OPEN, "New run", "Write a prompt for a run in this project"),
        ("go_on", "c", Group.OPEN, "Continue", "Go on with this session in the run pane"),
        ("export", "e", Group.COPY, "Export", "Write this session to a file"),
        ("delete", "d,delete", Group.CHANGE, "Delete", "Delete this session, after a question"),
        ("problems", "exclamation_mark", Group.OPEN, "Problems", "What could not be read"),
        ("refresh", "f5,ctrl+r", Group.APP, "Read again", "Read the whole store again"),
    ),
    *_keys(
        Where.LIST,
        ("cursor_up", "up,k", Group.MOVE, "Up", "Previous session"),
        ("cursor_down", "down,j", Group.MOVE, "Move", "Next session"),
        ("page_up", "pageup", Group.MOVE, "Page up", "One page up"),
        ("page_down", "pagedown", Group.MOVE, "Page down", "One page down"),
        ("first", "home", Group.MOVE, "First", "First session"),
        ("last", "end,G", Group.MOVE, "Last", "Last session"),
        ("open", "enter,right,l", Group.OPEN, "Open", "Read this session"),
        ("filter", "slash", Group.SEARCH, "Search", "Search by title, project, model and id"),
        ("clear_filter", "escape", Group.SEARCH, "Clear", "Clear the search"),
        ("scope", "a", Group.VIEW, "All projects", "This project or all projects"),
        ("sort", "s", Group.VIEW, "Sort", "Sort by the next property"),
        ("reverse", "S", Group.VIEW, "Reverse", "Turn the order round"),
        ("group", "g", Group.VIEW, "Group", "Group by project, or not"),
        ("fold", "space", Group.VIEW, "Fold", "Fold or unfold the project"),
        ("hidden", "full_stop", Group.VIEW, "Hidden", "Subagents, copies, empty starts: show"),
        ("copy_id", "y", Group.COPY, "Copy id", "Copy the full session id"),
    ),
    *_keys(
        Where.FILTER,
        ("done", "enter,down", Group.SEARCH, "To the list", "Keep the search, go to the list"),
        ("clear", "escape", Group.SEARCH, "Clear", "Clear the search"),
    ),
    *_keys(
        Where.TRANSCRIPT,
        ("cursor_up", "up,k", Group.MOVE, "Up", "Previous block, or one line up inside a long one"),
        ("cursor_down", "down,j", Group.MOVE, "Move", "Next block, or one line down in a long one"),
        ("page_up", "pageup,ctrl+b", Group.MOVE, "Page up", "One page up"),
        ("page_down", "pagedown,ctrl+f", Group.MOVE, "Page down", "One page down"),
        ("start", "home", Group.MOVE, "Start", "To the first message"),
        ("follow", "end,G", Group.MOVE, "Follow", "To the end, and follow what is added"),
        (
            "previous_prompt",
            "left_curly_bracket,ctrl+up",
            Group.MOVE,
            "Previous prompt",
            "To the prompt before",
        ),
        (
            "next_prompt",
            "right_curly_bracket,ctrl+down",
            Group.MOVE,
            "Prompt",
            "To the next prompt",
        ),
        (
            "previous_tool",
            "left_square_bracket",
            Group.MOVE,
            "Previous tool",
            "To the tool call before",
        ),
        ("next_tool", "right_square_bracket", Group.MOVE, "Tool", "To the next tool call"),
        ("previous_failure", "X", Group.MOVE, "Previous failed", "To the failed tool before"),
        ("next_failure", "x", Group.MOVE, "Failed", "To the next failed tool"),
        ("open", "enter", Group.OPEN, "Open", "Open the block: unfold it, or read the subagent"),
        ("fold", "space", Group.VIEW, "Fold", "Fold or unfold the block"),
        ("fold_all", "f", Group.VIEW, "Fold all", "Fold or unfold everything"),
        ("dropped", "full_stop", Group.VIEW, "Dropped", "Rewound, buried and failed ones: show"),
        ("find", "slash", Group.SEARCH, "Find", "Find in this transcript"),
        ("next_match", "n", Group.SEARCH, "Match", "Next match"),
        ("previous_match", "N", Group.SEARCH, "Previous match", "Previous match"),
        ("copy_block", "y", Group.COPY, "Copy", "Copy the block: text, code or output"),
        ("copy_message", "Y", Group.COPY, "Copy message", "Copy the whole message"),
        ("raw", "v", Group.OPEN, "Raw", "Raw JSON of what is under the cursor"),
        ("open_file", "o", Group.OPEN, "Edit file", "Open the written file in your editor"),
        ("back", "escape", Group.OPEN, "Back", "End the search, or go back to the list"),
    ),
    *_keys(
        Where.FIND,
        ("next", "down", Group.SEARCH, "Next", "Next match"),
        ("previous", "up", Group.SEARCH, "Previous", "Previous match"),
        ("close", "enter,escape", Group.SEARCH, "To the match", "Read on there; n and N step on"),
    ),
    *_keys(
        Where.RAW,
        ("scroll_down", "down,j", Group.MOVE, "Move", "One line down"),
        ("scroll_up", "up,k", Group.MOVE, "Up", "One line up"),
        ("page_down", "pagedown,space", Group.MOVE, "Page down", "One page down"),
        ("page_up", "pageup", Group.MOVE, "Page up", "One page up"),
        ("scroll_home", "home", Group.MOVE, "Start", "To the first line"),
        ("scroll_end", "end,G", Group.MOVE, "End", "To the last line"),
        ("copy", "y", Group.COPY, "Copy", "Copy all of it"),
        ("close", "escape,q,v", Group.OPEN, "Back", "Back to the transcript"),
    ),
    *_keys(
        Where.INFO,
        ("copy_id", "y", Group.COPY, "Copy id", "Copy the full session id"),
        ("close", "escape,q,i", Group.OPEN, "Close", "Back to where you were"),
    ),
    *_keys(
        Where.NOTICE,
        ("copy", "y", Group.COPY, "Copy", "Copy this message"),
        ("again", "r", Group.OPEN, "Try again", "Read the session again"),
        ("back", "escape", Group.OPEN, "Back", "Go back to the list"),
    ),
    *_keys(
        Where.EMPTY,
        ("again", "r", Group.APP, "Look again", "Look again in the same place"),
        ("elsewhere", "o", Group.OPEN, "Look elsewhere", "Look in another folder"),
        ("copy", "y", Group.COPY, "Copy", "Copy this message"),
    ),
    *_keys(
        Where.RUN,
        ("stop", "ctrl+c", Group.CHANGE, "Stop", "Stop the run (SIGTERM); again: SIGKILL"),
        ("next_part", "tab", Group.MOVE, "Next part", "To the transcript, files, prompt"),
        ("previous_part", "shift+tab", Group.MOVE, "Previous part", "The same, backwards"),
        ("write", "i", Group.OPEN, "Prompt", "To the prompt"),
        ("files", "w", Group.VIEW, "Files", "The files that this run has written"),
        ("stderr", "s", Group.OPEN, "Stderr", "All that Gemini CLI said on stderr"),
        ("again", "r", Group.CHANGE, "Run again", "Run the same prompt again"),
        ("edit", "e", Group.CHANGE, "Edit", "Edit the prompt and run again"),
        ("follow_up", "c", Group.CHANGE, "Continue", "Go on in the same session"),
        ("copy_command", "C", Group.COPY, "Copy command", "Copy the command line of this run"),
        ("options", "ctrl+o", Group.CHANGE, "Options", "Model, mode, folder, session, limits"),
        ("command", "ctrl+t", Group.OPEN, "Command", "The exact command that enter will run"),
        ("from_file", "ctrl+g", Group.OPEN, "From a file", "Take the prompt from a file"),
        ("new", "ctrl+n", Group.CHANGE, "New run", "An empty pane; what goes on goes on"),
        ("runs", "ctrl+l", Group.OPEN, "Runs", "All runs: open one that goes on, or a past one"),
    ),
    *_keys(
        Where.PROMPT,
        ("send", "enter", Group.CHANGE, "Send", "Start a run; or take the file that is offered"),
        ("new_line", "ctrl+j,shift+enter,alt+enter", Group.CHANGE, "New line", "One more line"),
        ("complete", "tab", Group.MOVE, "Complete", "Take the file that @ offers; else go on"),
        ("leave", "escape", Group.OPEN, "Leave", "Close the list of files; else to the transcript"),
    ),
    *_keys(
        Where.WRITES,
        ("diff", "d", Group.OPEN, "Diff", "What was changed, in the transcript"),
        ("open_file", "o", Group.OPEN, "Edit file", "Open the file in your editor"),
        ("back", "escape", Group.OPEN, "Back", "Back to the transcript"),
    ),
    *_keys(
        Where.OPTIONS,
        ("take", "ctrl+s", Group.CHANGE, "Take", "Use these options for the next run"),
        ("close", "escape", Group.OPEN, "Close", "Change nothing"),
    ),
    *_keys(
        Where.CONFIRM,
        ("confirm", "y", Group.CHANGE, "Yes", "Do it"),
        ("close", "n,escape,q", Group.OPEN, "No", "Leave everything as it is"),
    ),
    *_keys(
        Where.DIALOG,
        ("close", "escape", Group.OPEN, "Close", "Close this, change nothing"),
    ),
)

BY_ID = {key.id: key for key in KEYS}


def keys_of(where: Where) -> tuple[Key, ...]:
    """The keys of one place, in the order of the table."""
    return tuple(key for key in KEYS if key.where is where)


def bindings(*places: Where) -> list[BindingType]:
    """`BINDINGS` of a widget or screen that stands for these places."""
    return [key.binding for place in places for key in keys_of(place)]
