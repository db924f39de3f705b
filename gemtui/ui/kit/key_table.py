"""The table of all keys, grouped by the place where they work, with footer names."""

from __future__ import annotations

from enum import StrEnum


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
    MARKS = "Name, tags, note"
    WAITING = "A session's question"
    VAULT = "The vault"
    STATS = "Stats"
    SEARCH = "Search in all sessions"
    FILES = "Written files"
    HISTORY = "File history"
    PATCH = "Patch"
    UNDO = "Undo"
    UNDO_FILE = "A file that an undo changes"
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
    POLICY_HISTORY = "History against this policy"
    CALLS = "Calls"
    PICK = "Recorded calls"
    CALL = "Call details"
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
`check_action` and the parts of a screen receive the method's name, here "page". A row without keys
is a command that only the palette offers.
"""


MOVE, OPEN, SEARCH, VIEW = Group.MOVE, Group.OPEN, Group.SEARCH, Group.VIEW
COPY, CHANGE, APP = Group.COPY, Group.CHANGE, Group.APP


_UP, _DOWN = "cursor_up = step(-1)", "cursor_down = step(1)"
_PAGES = (
    ("page_up = page(-1)", "pageup", MOVE, "Page up", "Move up one page"),
    ("page_down = page(1)", "pagedown", MOVE, "Page down", "Move down one page"),
)
_HALF_PAGES = (
    ("half_up = page(-0.5)", "ctrl+u", MOVE, "Half up", "Move up half a page"),
    ("half_down = page(0.5)", "ctrl+d", MOVE, "Half down", "Move down half a page"),
)


def _moves(row: str) -> tuple[KeyRow, ...]:
    """Return the table rows of the keys that move a list's cursor.

    `row`: the word for a list's row in the help, such as "session".
    """
    return (
        (_UP, "up,k", MOVE, "Up", f"Go to the previous {row}"),
        (_DOWN, "down,j", MOVE, "Move", f"Go to the next {row}"),
        *_PAGES,
        *_HALF_PAGES,
        ("first", "home", MOVE, "First", f"Go to the first {row}"),
        ("last", "end,G", MOVE, "Last", f"Go to the last {row}"),
    )


def _scrolls(label: str, page_down: str) -> tuple[KeyRow, ...]:
    """Return the table rows of the keys that scroll text.

    `label`: the footer's label for scrolling. `page_down`: the keys for one page down.
    """
    return (
        ("scroll_down", "down,j", MOVE, label, "Scroll down one line"),
        ("scroll_up", "up,k", MOVE, "Up", "Scroll up one line"),
        ("page_down", page_down, MOVE, "Page down", "Move down one page"),
        ("page_up", "pageup", MOVE, "Page up", "Move up one page"),
        *_HALF_PAGES,
        ("scroll_home", "home", MOVE, "Start", "Go to the first line"),
        ("scroll_end", "end,G", MOVE, "End", "Go to the last line"),
    )


def _steers(row: str) -> tuple[KeyRow, ...]:
    """Return the table rows of the keys that move a list's cursor from a text field.

    The field is above the list and keeps the focus. `row`: the word for a list's row in the help,
    such as "session".
    """
    return (
        (_UP, "up", MOVE, "Up", f"Go to the previous {row}"),
        (_DOWN, "down", MOVE, "Move", f"Go to the next {row}"),
        *_PAGES,
    )


def _jumps(kind: str, keys: tuple[str, str], label: str, noun: str) -> tuple[KeyRow, ...]:
    """Return the table rows of the keys that jump to the previous or next block.

    `kind`: which blocks to jump to, as named in the actions. `keys`: the keys for previous and
    next. `label`: their label in the footer. `noun`: the word for such a block in the help.
    """
    above, below = f"previous_{kind} = jump('{kind}', -1)", f"next_{kind} = jump('{kind}', 1)"
    return (
        (above, keys[0], MOVE, f"Previous {label.lower()}", f"Go to the previous {noun}"),
        (below, keys[1], MOVE, label, f"Go to the next {noun}"),
    )


def _all(method: str, *rows: KeyRow) -> tuple[KeyRow, ...]:
    """Return table rows whose keys all call `method`, each with its action's name.

    `rows`: the rows, each starting with the action's name.
    """
    return tuple((f"{name} = {method}('{name}')", *rest) for name, *rest in rows)  # type: ignore[misc]


_BACK = ("close", "escape,q", OPEN, "Back", "Return to the previous screen")
_CLOSE_FORM = ("close", "escape", OPEN, "Close", "Close, and keep what you typed")
_PREVIOUS_PART = (
    "previous_part",
    "shift+tab",
    MOVE,
    "Previous part",
    "Go to the previous part of the pane",
)
_OPEN_FILE = ("open_file", "o", OPEN, "Edit file", "Open the file in your editor")
_HISTORY = ("history", "W", OPEN, "History", "List every write to this file in all sessions")
_WHICH = ("which", "w", VIEW, "Scope", "Choose the sessions and the period")
_BEFORE_PROMPT = (
    ("undo_to", "U", CHANGE, "Undo to here", "Undo to just before this prompt (preview first)"),
    ("redo", "R", CHANGE, "Redo", "Reverse the last undo (preview first)"),
    ("fork", "B", CHANGE, "Fork", "Start a new chat from just before this prompt"),
)
_ANSWERS: tuple[KeyRow, ...] = (
    ("yes", "y", CHANGE, "Allow", "Allow this call, once you have seen all of it"),
    ("all_run", "a", CHANGE, "Allow similar", "Allow this and similar calls in this run"),
    ("always", "A", CHANGE, "Always allow", "Allow this and the like in all “Ask me” runs"),
    ("no", "n", CHANGE, "Deny", "Deny this call; the run continues"),
    ("no_because", "r", CHANGE, "Deny, say why", "Deny this call, with a reason for the model"),
    ("change", "e", CHANGE, "Edit", "Edit the command, file or arguments first"),
    ("stop_run", "x", CHANGE, "Stop run", "Deny this call and stop the run"),
)
_QUESTION_MOVES: tuple[KeyRow, ...] = (
    ("whole", "enter,v", OPEN, "View all", "Show the whole call on the full screen"),
    ("next", "right,l,right_square_bracket", MOVE, "Next", "Go to the next question"),
    ("previous", "left,h,left_square_bracket", MOVE, "Previous", "Go to the previous question"),
)
UNDO_KEYS = "ctrl+underscore,ctrl+slash,ctrl+shift+minus"
"""All Textual names of ctrl+/ and ctrl+_, which old terminals can't tell apart."""

TABLE: dict[Where, tuple[KeyRow, ...]] = {
    Where.APP: (
        ("help", "question_mark,f1", APP, "Keys", "Show the keys for this screen"),
        ("command_palette", "ctrl+p,colon", APP, "Commands", "Find a command by name"),
        ("back", "q", APP, "Back or quit", "Go back, or quit gemtui"),
        ("quit", "ctrl+q", APP, "Quit", "Quit gemtui"),
        ("suspend_process", "ctrl+z", APP, "Suspend", "Suspend gemtui; type fg to return"),
        ("help_quit", "ctrl+c", COPY, "Copy selection", "Copy the text selected with the mouse"),
        ("change_theme", "f2", APP, "Theme", "Preview and choose a theme"),
        ("trusted", "", APP, "Trusted folders", "List trusted folders, or revoke trust"),
        ("lost_sessions", "", APP, "Lost sessions", "Restore a session that Gemini CLI lost"),
        ("worktrees", "", OPEN, "Worktrees", "List worktrees; review or apply their changes"),
        ("extension", "", APP, "Extension", "Install or remove the Gemini CLI extension"),
        ("settings", "", APP, "Settings", "Edit gemtui's settings, for its next start"),
        ("doctor", "", APP, "Doctor", "Show versions, folders and problems"),
        ("sessions", "1", OPEN, "Sessions", "Go to the stored sessions"),
        ("runs", "2", OPEN, "Run", "Go to the run pane to start, watch or stop runs"),
        ("policies", "3", OPEN, "Policy", "Go to the policies, which limit what runs may do"),
    ),
    Where.SESSIONS: (
        ("other_pane", "tab,shift+tab", MOVE, "Other pane", "Go to the other pane"),
        ("search", "F", SEARCH, "Search", "Search the text of all sessions"),
        ("info", "i", OPEN, "Details", "Show this session's files, copies and subagents"),
        ("compare", "", VIEW, "Compare", "Compare two selected sessions: files, cost"),
        ("stats", "t", OPEN, "Stats", "Show tokens, calls, files and cost"),
        ("files", "w", OPEN, "Changed files", "List the files that sessions wrote"),
        ("zoom", "z", VIEW, "Full width", "Toggle full width for the transcript"),
        ("waiting", "L", OPEN, "Needs you", "Go to a question that waits for your answer"),
        ("new_run", "n", OPEN, "New run", "Start a run in this project"),
        ("go_on", "c", OPEN, "Continue", "Continue this session in the run pane"),
        ("export", "e", COPY, "Export", "Export this session to a file"),
        ("patch", "E", COPY, "Patch", "Export this session's changes for git apply"),
        ("review", "H", OPEN, "Review", "Review this session's changes hunk by hunk"),
        ("delete", "d,delete", CHANGE, "Delete", "Delete this session (asks first)"),
        ("marks", "m", CHANGE, "Name, tags, note", "Rename or tag this session, or write a note"),
        ("pin", "p", CHANGE, "Pin", "Pin this session to the top, or unpin it"),
        ("archive", "A", CHANGE, "Archive", "Archive this session (hide it), or unarchive it"),
        ("vault", "V", CHANGE, "Vault", "Keep sessions even if Gemini CLI deletes them"),
        ("restore", "b", CHANGE, "Restore", "Restore a kept session to Gemini CLI"),
        ("undo", "u", CHANGE, "Undo", "Undo the last deletion, or last edit of marks"),
        *_BEFORE_PROMPT,
        ("problems", "exclamation_mark", OPEN, "Problems", "List the files that could not be read"),
        ("refresh", "ctrl+r", APP, "Reload", "Reload all sessions"),
    ),
    Where.LIST: (
        *_moves("session"),
        ("open", "enter,right,l", OPEN, "Open", "Open this session"),
        ("filter", "slash", SEARCH, "Filter", "Filter by words, #tag, tool: file: after: is:"),
        ("clear", "escape", SEARCH, "Clear", "Clear the selection, then the filter"),
        ("select", "space", CHANGE, "Select", "Select this session for e, E, d, m, p or A"),
        ("select_to", "v", CHANGE, "Select to here", "Extend the selection to this session"),
        ("scope", "a", VIEW, "All projects", "Switch between this project and all projects"),
        ("projects", "", VIEW, "Projects", "Choose the project whose sessions to list"),
        ("sort", "s", VIEW, "Sort", "Choose the sort order"),
        ("reverse", "S", VIEW, "Reverse", "Reverse the sort order"),
        ("days", "D", MOVE, "Days", "Go to a day"),
        ("group", "g", VIEW, "Group", "Toggle grouping by project"),
        ("fold", "left,h", VIEW, "Fold", "Fold or unfold this project"),
        (
            "hidden",
            "full_stop",
            VIEW,
            "Show hidden",
            "Archived and empty sessions, subagents, copies",
        ),
        ("copy_id", "y", COPY, "Copy id", "Copy the full session id"),
        ("copy_resume", "Y", COPY, "Copy command", "Copy the command that resumes this session"),
    ),
    Where.FILTER: (
        ("open", "enter", OPEN, "Open", "Open the selected row"),
        ("done", "down", SEARCH, "To the list", "Keep the filter and go to the list"),
        ("search", "ctrl+f", SEARCH, "Full search", "Search all sessions for these words"),
        ("clear", "escape", SEARCH, "Close", "Close the search; / brings its words back"),
    ),
    Where.TRANSCRIPT: (
        (_UP, "up,k", MOVE, "Up", "Go to the previous block, or scroll a long one"),
        (_DOWN, "down,j", MOVE, "Move", "Go to the next block, or scroll a long one"),
        ("page_up = page(-1)", "pageup,ctrl+b", MOVE, "Page up", "Move up one page"),
        ("page_down = page(1)", "pagedown,ctrl+f", MOVE, "Page down", "Move down one page"),
        *_HALF_PAGES,
        ("start", "home,g", MOVE, "Start", "Go to the first message"),
        ("follow", "end,G", MOVE, "Follow", "Go to the end and follow new messages"),
        *_jumps(
            "prompt",
            ("left_curly_bracket,ctrl+up", "right_curly_bracket,ctrl+down"),
            "Prompt",
            "prompt",
        ),
        ("prompts", "P", MOVE, "Prompts", "List the prompts and jump to one"),
        *_jumps("tool", ("left_square_bracket", "right_square_bracket"), "Tool", "tool call"),
        *_jumps("failure", ("X", "x"), "Failed", "failed call"),
        ("open", "enter", OPEN, "Open", "Open a subagent or image, or unfold this"),
        ("fold", "space", VIEW, "Fold", "Fold or unfold this block"),
        ("fold_all", "f", VIEW, "Fold all", "Fold or unfold everything"),
        ("thoughts = fold_kind('thoughts')", "T", VIEW, "Thoughts", "Unfold or fold all thoughts"),
        ("outputs = fold_kind('outputs')", "O", VIEW, "Outputs", "Unfold or fold all tool calls"),
        ("dropped", "full_stop", VIEW, "Rewound", "Show or hide rewound and failed messages"),
        ("find", "slash", SEARCH, "Find", "Find in this transcript"),
        ("next_match = match(1)", "n", SEARCH, "Match", "Go to the next match"),
        ("previous_match = match(-1)", "N", SEARCH, "Previous match", "Go to the previous match"),
        ("copy_block", "y", COPY, "Copy", "Copy this block: text, code, output or command"),
        ("copy_message", "Y", COPY, "Copy message", "Copy the whole message"),
        ("raw", "v", OPEN, "Raw", "Show the raw JSON of this block"),
        ("open_file", "o", OPEN, "Edit file", "Open the file in your editor or image viewer"),
        _HISTORY,
        ("back", "escape", OPEN, "Back", "Close the search, or go back to the list"),
    ),
    Where.FIND: (
        ("next = match(1)", "down", SEARCH, "Next", "Go to the next match"),
        ("previous = match(-1)", "up", SEARCH, "Previous", "Go to the previous match"),
        ("close", "enter,escape", SEARCH, "To the match", "Go to the match; n and N find more"),
    ),
    Where.RAW: (
        *_scrolls("Move", "pagedown,space"),
        ("copy", "y", COPY, "Copy", "Copy everything"),
        ("close", "escape,q,v", OPEN, "Back", "Return to the transcript"),
    ),
    Where.INFO: (
        ("copy_id", "y", COPY, "Copy id", "Copy the full session id"),
        ("close", "escape,q,i", OPEN, "Close", "Return to the previous screen"),
    ),
    Where.MARKS: (("take", "ctrl+s", CHANGE, "Save", "Save these marks"), _CLOSE_FORM),
    Where.WAITING: (("next", "L", MOVE, "Next", "Go to the next session's question"),),
    Where.VAULT: (
        ("switch", "o", CHANGE, "On or off", "Turn the vault on or off"),
        ("close", "escape,q,V", OPEN, "Close", "Return to the sessions"),
    ),
    Where.STATS: (
        ("scope", "a", VIEW, "All projects", "Switch between this project and all projects"),
        ("span", "w", VIEW, "Period", "Choose the period: all, 30 or 7 days, 24 hours"),
        ("close", "escape,q,t", OPEN, "Back", "Return to the sessions"),
    ),
    Where.SEARCH: (
        ("open", "enter", OPEN, "Open", "Open the session at this match"),
        *_steers("match"),
        ("complete", "tab", SEARCH, "Complete", "Insert the suggested field or value"),
        ("scope", "ctrl+r", VIEW, "All projects", "Switch between this project and all projects"),
        ("dropped", "ctrl+t", VIEW, "Rewound", "Search rewound or replaced messages instead"),
        ("close", "escape", OPEN, "Back", "Go back to the sessions; the words are kept"),
    ),
    Where.FILES: (
        ("open", "enter", OPEN, "Open", "List every write to this file"),
        *_steers("file"),
        ("scope", "ctrl+r", VIEW, "All projects", "Switch between this project and all projects"),
        ("span", "ctrl+t", VIEW, "Period", "Choose the period: all, 30 or 7 days, 24 hours"),
        ("patch", "ctrl+s", COPY, "Patch", "Export changes to these files as one patch"),
        ("recover", "ctrl+o", OPEN, "Recover", "Show this file's text, rebuilt from sessions"),
        ("close", "escape", OPEN, "Back", "Go back to the sessions; the words are kept"),
    ),
    Where.HISTORY: (
        ("open", "enter", OPEN, "Open", "Open the session here, or save the text"),
        (
            "other_part",
            "tab,shift+tab",
            MOVE,
            "Show change",
            "Go to the change, or back to the list",
        ),
        _OPEN_FILE,
        ("patch", "E", COPY, "Patch", "Export all changes to this file as a patch"),
        ("recover", "r", MOVE, "Recover", "Go to the text rebuilt from sessions"),
        ("save", "s", COPY, "Save", "Save the rebuilt text to a new file"),
        _BACK,
    ),
    Where.PATCH: (("write", "enter,s", COPY, "Save", "Save the patch to a new file"), _BACK),
    Where.UNDO: (
        ("confirm", "y", CHANGE, "Confirm", "Apply the changes shown"),
        ("scope", "s", VIEW, "Scope", "Choose files and chat, files only, or chat only"),
        ("diff", "d", OPEN, "Diff", "Show this file's diff and its versions"),
        ("go_on", "c", OPEN, "Continue", "Continue the chat in the run pane"),
        ("redo", "R", CHANGE, "Redo", "Reverse this undo (preview first)"),
        _BACK,
    ),
    Where.UNDO_FILE: (
        (
            "next = turn(1)",
            "tab,right,l",
            VIEW,
            "Next version",
            "Show the next version of the file",
        ),
        (
            "previous = turn(-1)",
            "shift+tab,left,h",
            VIEW,
            "Previous version",
            "Show the previous version",
        ),
        ("close", "escape,q", OPEN, "Back", "Return to the list"),
    ),
    Where.REVIEW: (
        (
            "mark",
            "space",
            CHANGE,
            "Revert or keep",
            "Mark this hunk or file to revert, or not",
        ),
        ("mark_call", "a", CHANGE, "Mark call", "Mark everything that this call changed"),
        ("apply", "r", CHANGE, "Revert", "Revert what is marked (preview first)"),
        ("comment", "c", CHANGE, "Comment", "Comment on this line"),
        ("send", "p", OPEN, "To the prompt", "Put the comments into the run pane's prompt"),
        ("other_part", "tab,shift+tab", MOVE, "Other part", "Switch between the list and the diff"),
        ("copy_message", "y", COPY, "Copy message", "Copy a commit message made from the prompts"),
        ("copy_files", "Y", COPY, "Copy files", "Copy the file names, one per line"),
        ("git", "g", OPEN, "Git", "Open your git tool in the project"),
        ("reload", "ctrl+r", APP, "Reload", "Compare the files again"),
        ("close", "escape,q", OPEN, "Back", "Return to the list, or to the previous screen"),
    ),
    Where.NOTICE: (
        ("copy", "y", COPY, "Copy", "Copy this message"),
        ("again", "r", OPEN, "Try again", "Reload the session"),
        ("back", "escape", OPEN, "Back", "Go back to the list"),
    ),
    Where.EMPTY: (
        ("again", "r", APP, "Try again", "Check the same folder again"),
        ("elsewhere", "o", OPEN, "Other folder", "Choose another folder"),
        ("copy", "y", COPY, "Copy", "Copy this message"),
    ),
    Where.RUN: (
        ("stop", "ctrl+c", CHANGE, "Stop", "Press twice to stop the run, again to kill it"),
        ("next_part", "tab", MOVE, "Next part", "Switch between transcript, files and prompt"),
        _PREVIOUS_PART,
        ("write", "i", OPEN, "Prompt", "Go to the prompt"),
        ("files", "w", VIEW, "Files", "Show this run's files and, at its end, commands"),
        ("stderr", "s", OPEN, "Stderr", "Show the agent's stderr"),
        ("again", "r", CHANGE, "Run again", "Run this prompt again"),
        ("edit", "e", CHANGE, "Edit", "Edit this prompt, then run it again"),
        ("carry_out", "ctrl+s", CHANGE, "Carry it out", "Carry out the plan in the same session"),
        ("comment", "c", CHANGE, "Comment", "Comment on this file or call in the prompt"),
        ("revert", "space", CHANGE, "Revert", "Revert the run's changes to it (asks first)"),
        ("copy_command", "C", COPY, "Copy command", "Copy this run's command line"),
        ("allow", "p", CHANGE, "Allow it", "Create a rule that allows the denied call"),
        ("differing", "D", CHANGE, "Differences", "Show files that differ from what you approved"),
        ("review", "H", OPEN, "Review", "Review this run's changes hunk by hunk"),
        ("worktree", "", CHANGE, "Worktree", "Toggle a new git worktree for the next run"),
        ("options", "ctrl+o", CHANGE, "Options", "Set the agent, model, permissions and limits"),
        ("command", "ctrl+t", OPEN, "Command", "Show the exact command that enter will run"),
        ("from_file", "ctrl+g", OPEN, "From a file", "Load the prompt from a file"),
        ("new", "ctrl+n", CHANGE, "New run", "Open an empty pane; current runs continue"),
        ("take_back", "u", CHANGE, "Revoke", "Revoke the last “similar” or “always allow”"),
        *_BEFORE_PROMPT,
        ("queue", "ctrl+r", OPEN, "Queue", "Reorder, edit or send queued prompts"),
        ("runs", "ctrl+l", OPEN, "Runs", "List all runs, to open or stop one"),
    ),
    Where.RUN_LIST: (
        *_all(
            "act",
            ("stop", "x", CHANGE, "Stop", "Stop this run and every process that it started"),
            ("restore", "b", CHANGE, "Restore", "Restore the session that this run has a copy of"),
        ),
        ("filter", "slash", SEARCH, "Search", "Filter by prompt, result, folder or id"),
        ("close", "escape", OPEN, "Close", "Clear the filter, or close"),
    ),
    Where.WORKTREES: (
        ("apply", "a", CHANGE, "Apply", "Apply its changes to the repository (asks first)"),
        ("remove", "d,delete", CHANGE, "Remove", "Remove this worktree (asks first)"),
        ("review", "H", OPEN, "Review", "Review its changes hunk by hunk before applying"),
        ("each", "m", CHANGE, "Other models", "Run this worktree's prompt with other models"),
        (
            "each_policy",
            "p",
            CHANGE,
            "Other policies",
            "Run this worktree's prompt with other policies",
        ),
        ("other_part", "tab,shift+tab", MOVE, "Other part", "Switch between list and changes"),
        ("reload", "ctrl+r", APP, "Reload", "Compare the files again"),
        _BACK,
    ),
    Where.QUESTION: (
        *_all("answer", *_ANSWERS),
        *_all("press", *_QUESTION_MOVES),
        *_scrolls("Scroll", "pagedown,space"),
        ("leave", "escape", OPEN, "Transcript", "Go to the transcript; the question waits"),
    ),
    Where.CHANGE_CALL: (("take", "ctrl+s", CHANGE, "Apply", "Use the edited call"), _CLOSE_FORM),
    Where.QUEUE: (
        *_all(
            "act",
            (
                "move_down",
                "J,shift+down",
                CHANGE,
                "Later",
                "Move this prompt down, to be sent later",
            ),
            ("move_up", "K,shift+up", CHANGE, "Earlier", "Move this prompt up, to be sent earlier"),
            ("change", "e,enter", CHANGE, "Edit", "Edit this prompt"),
            ("drop", "d,delete", CHANGE, "Remove", "Remove this prompt from the queue"),
            ("send", "s", CHANGE, "Send", "Send this prompt now (the run has ended)"),
        ),
        ("close", "escape,q", OPEN, "Close", "Close the queue"),
    ),
    Where.PROMPT: (
        ("say", "ctrl+s", CHANGE, "Send now", "Send with the next tool result (“Ask me” runs)"),
        ("send", "enter", CHANGE, "Send", "Send the prompt, or insert the suggestion"),
        ("new_line", "ctrl+j,shift+enter,alt+enter", CHANGE, "New line", "Insert a new line"),
        ("complete", "tab", MOVE, "Complete", "Insert the suggestion, or go to the next part"),
        ("undo", UNDO_KEYS, CHANGE, "Undo typing", "Undo typing (^y redoes it)"),
        ("mode", "shift+tab", CHANGE, "Mode", "Change mode: ask, auto_edit, plan, yolo"),
        ("leave", "escape", OPEN, "Leave", "Close the suggestions, or go to the transcript"),
    ),
    Where.WRITES: (
        ("select", "enter", OPEN, "Open", "Go to the call, or review the file's changes"),
        ("diff", "d", OPEN, "Diff", "Show how the run changed this file"),
        _OPEN_FILE,
        _HISTORY,
        ("back", "escape", OPEN, "Back", "Return to the transcript"),
    ),
    Where.OPTIONS: (
        ("take", "ctrl+s", CHANGE, "Apply", "Use these options for the next runs"),
        _CLOSE_FORM,
    ),
    Where.CONFIRM: (
        ("confirm", "y", CHANGE, "Yes", "Confirm the action"),
        ("close", "n,escape,q", OPEN, "No", "Cancel"),
        ("scroll_about_up = scroll_about(-1)", "up,pageup", MOVE, "Up", "Scroll up"),
        ("scroll_about_down = scroll_about(1)", "down,pagedown", MOVE, "Down", "Scroll down"),
    ),
    Where.CONFIRM_FOR_GOOD: (
        ("confirm", "D", CHANGE, "Delete", "Delete permanently"),
        ("close", "n,escape,q", OPEN, "No", "Cancel"),
    ),
    Where.DIALOG: (("close", "escape", OPEN, "Close", "Close without changes"),),
    Where.CHOICES: (
        ("cursor_up", "up,k", MOVE, "Up", "Go to the previous row"),
        ("cursor_down", "down,j", MOVE, "Move", "Go to the next row"),
        *_HALF_PAGES,
        ("first", "home", MOVE, "First", "Go to the first row"),
        ("last", "end,G", MOVE, "Last", "Go to the last row"),
    ),
    Where.HELP: (*_PAGES, *_HALF_PAGES),
    Where.POLICY: (
        ("next_part", "tab", MOVE, "Next part", "Go to the next part of the pane"),
        _PREVIOUS_PART,
        ("back", "escape", OPEN, "Back", "Return to the rules"),
        ("levels", "l", VIEW, "Levels", "Switch between the simple view and the rules"),
        ("try_call", "t", OPEN, "Try a call", "See what would happen to a call, and why"),
        ("history", "h", OPEN, "History", "Replay past calls: what each would get, and why"),
        ("suggest", "s", OPEN, "Suggest", "Suggest rules that past calls would have needed"),
        ("mode", "m", CHANGE, "Mode", "Show decisions for the next approval mode"),
        ("preview", "v", VIEW, "TOML", "Show the command, changes and findings"),
        ("decisions", "p", VIEW, "Tools", "Show the decision for each tool"),
        ("problem", "exclamation_mark", MOVE, "Finding", "Go to the next finding"),
        ("fix", "x", CHANGE, "Fix", "Apply the suggested fix"),
        ("words", "w", CHANGE, "Words", "Write rules as sentences: edit only src"),
        ("add", "a", CHANGE, "Add", "Add a rule in a form"),
        ("duplicate", "c", CHANGE, "Duplicate", "Duplicate this rule"),
        ("delete", "d,delete", CHANGE, "Delete", "Delete this rule (u undoes it)"),
        ("switch", "space", CHANGE, "On or off", "Turn this rule on or off"),
        ("move_down = move(1)", "J,shift+down", CHANGE, "Reorder", "Move this rule down"),
        ("move_up = move(-1)", "K,shift+up", CHANGE, "Move up", "Move this rule up"),
        ("filter", "slash", SEARCH, "Search", "Filter rules by tool, words or decision"),
        ("undo", "u", CHANGE, "Undo", "Undo the last change"),
        ("redo", "U", CHANGE, "Redo", "Redo the last undone change"),
        ("save", "ctrl+s", CHANGE, "Save", "Save; files from elsewhere are backed up first"),
        ("files", "f", OPEN, "Files", "Choose, create, rename or delete a policy"),
        _OPEN_FILE,
        ("run", "r", OPEN, "Run", "Start a run with this policy"),
        ("copy_command", "y", COPY, "Copy command", "Copy the command of a run with this policy"),
        ("copy_text", "Y", COPY, "Copy TOML", "Copy the policy as TOML"),
    ),
    Where.RULES: (*_moves("rule"), ("open", "enter,e", CHANGE, "Edit", "Edit this rule in a form")),
    Where.LEVELS: (
        (_UP, "up,k", MOVE, "Up", "Go to the previous row"),
        (_DOWN, "down,j", MOVE, "Move", "Go to the next row"),
        ("previous = choose(-1)", "left", CHANGE, "Choose", "Choose the option on the left"),
        ("next = choose(1)", "right", CHANGE, "Choose", "Choose the option on the right"),
        ("open", "enter", CHANGE, "Change", "Choose the next option, or edit the tool list"),
    ),
    Where.POLICY_FILES: (
        ("new", "n", CHANGE, "New", "Create a policy"),
        ("rename = ask('rename')", "r", CHANGE, "Rename", "Rename this policy"),
        ("delete = ask('delete')", "d,delete", CHANGE, "Delete", "Delete this policy (asks first)"),
        ("close", "escape,q", OPEN, "Close", "Return to the policy"),
    ),
    Where.RULE: (
        ("take", "ctrl+s", CHANGE, "Apply", "Add the rule without saving the file"),
        ("fix", "ctrl+f", CHANGE, "Fix", "Apply the suggested fix"),
        _CLOSE_FORM,
    ),
    Where.ROWS: (*_moves("row"), ("open", "enter,right,l", OPEN, "Open", "Open this row")),
    Where.DRAWING: (
        *_scrolls("Scroll", "pagedown"),
        ("copy", "y", COPY, "Copy", "Copy everything"),
    ),
    Where.TRY: (
        ("recorded", "ctrl+l", OPEN, "Recorded", "Choose a tool call from a past session"),
        ("interactive", "ctrl+t", VIEW, "Headless", "Switch between headless and interactive"),
        ("mode", "ctrl+o", VIEW, "Mode", "Switch to the next approval mode"),
        ("allow", "ctrl+n", CHANGE, "Allow it", "Create a rule that allows this call"),
        ("keep", "ctrl+g", CHANGE, "Keep", "Add this call to the policy as an example"),
        ("close", "escape", OPEN, "Back", "Return to the policy"),
    ),
    Where.POLICY_HISTORY: (
        ("add", "a", CHANGE, "Add rule", "Add this rule to the policy, not saved"),
        ("stop", "ctrl+c", CHANGE, "Stop", "Stop reading, and use the calls read so far"),
        _WHICH,
        ("interactive", "i", VIEW, "Headless", "Switch between headless and interactive"),
        ("mode", "m", VIEW, "Mode", "Switch to the next approval mode"),
        ("again", "r", CHANGE, "Again", "Read the sessions again"),
        ("close", "escape,q", OPEN, "Back", "Return to the policy"),
    ),
    Where.CALLS: (
        ("filter", "slash", SEARCH, "Search", "Filter by tool, command, file or session"),
        ("close", "escape,q", OPEN, "Back", "Clear the filter, or go back"),
    ),
    Where.PICK: (_WHICH,),
    Where.CALL: (
        ("allow", "a", CHANGE, "Allow it", "Create a rule that allows this call"),
        ("session", "o", OPEN, "Session", "Open the session at this call"),
        ("close", "escape,q", OPEN, "Back", "Return to the calls"),
    ),
}

FOOTER = (
    "review.send", "review.apply",
    "levels.next", "levels.open", "rules.cursor_down", "rules.open", "policy.back", "policy.words",
    "policy.add",
    "policy.delete", "policy.save", "policy.run", "policy.suggest", "policy.history",
    "policy.try_call", "policy.undo", "policy.preview", "policy.levels", "policy.move_down",
    "policy.decisions", "policy.files", "policy.copy_command", "policy_history.stop",
    "rows.cursor_down", "drawing.scroll_down", "policy_history.add", "rows.open",
    "try.recorded", "try.allow", "try.interactive", "try.mode", "call.allow", "call.session",
    "calls.filter", "pick.which", "policy_history.which", "drawing.copy", "try.close",
    "policy_history.close", "calls.close", "call.close", "policy_history.interactive",
    "policy_history.mode", "policy_history.again",
    "transcript.cursor_down", "raw.scroll_down", "list.open", "waiting.next",
    "filter.open", "filter.done", "filter.search", "filter.clear", "transcript.fold",
    "transcript.open", "find.next", "find.close",
    "list.filter", "transcript.find",
    "transcript.next_match", "question.scroll_down", "question.whole", "question.next",
    "question.leave", "prompt.send", "prompt.say", "run.carry_out", "run.stop",
    "run.queue",
    "prompt.new_line", "prompt.mode", "writes.diff",
    "writes.history", "run.write", "run.files",
    "transcript.copy_block", "transcript.back", "transcript.next_prompt",
    "transcript.next_failure", "sessions.restore", "sessions.undo", "sessions.search",
    "list.scope", "list.days", "sessions.files", "sessions.stats", "sessions.export",
    "sessions.delete", "sessions.pin", "sessions.marks", "list.select", "list.sort",
    "sessions.new_run", "sessions.go_on", "raw.copy", "raw.close",
    "search.open", "search.scope", "search.dropped", "search.close", "search.complete",
    "search.cursor_down", "files.open", "files.scope", "files.span", "files.close", "files.patch",
    "files.cursor_down", "files.recover", "undo.confirm", "undo.go_on", "undo.redo", "undo.scope",
    "undo.diff", "undo.close", "undo_file.next", "undo_file.close",
    "patch.write", "patch.close",

    "worktrees.apply", "worktrees.remove", "worktrees.review",
    "worktrees.each", "worktrees.close",
    "review.mark", "review.comment", "review.mark_call",
    "review.close", "review.git", "review.copy_message",
    "stats.scope", "stats.span", "stats.close", "info.copy_id", "empty.again",
    "empty.elsewhere", "empty.copy", "notice.again", "notice.copy", "notice.back",
    "confirm.confirm", "confirm.close", "confirm_for_good.confirm", "confirm_for_good.close",
    "sessions.undo_to",

    "transcript.raw", "transcript.follow", "list.hidden",
    "list.group", "sessions.info", "transcript.open_file",
    "dialog.close", "transcript.history", "history.open", "history.other_part",
    "history.open_file", "history.save", "history.recover", "history.patch", "history.close",
    "run.options", "run.command", "run.runs", "sessions.review",
)  # fmt: skip
"""Ids of the keys shown in the footer, most useful first.

If they don't all fit, the last ones are left out.
"""
MATTER_MOST = (
    "app.help", "app.command_palette", "app.back", "app.quit", "app.sessions", "app.runs",
    "app.policies", "list.open", "list.filter", "sessions.search", "list.scope", "list.select",
    "sessions.export", "sessions.delete", "sessions.pin", "sessions.stats", "sessions.files",
    "sessions.go_on", "sessions.review", "sessions.undo_to", "transcript.next_prompt",
    "transcript.next_failure", "transcript.fold", "transcript.find", "transcript.copy_block",
    "prompt.send", "prompt.mode", "run.stop", "question.yes", "question.no",
)  # fmt: skip
"""Ids of the thirty keys to learn first, by pane."""
FACES = {
    "search.cursor_down": "↑↓",
    "files.cursor_down": "↑↓",
    "rules.cursor_down": "↑↓",
    "policy.move_down": "J/K",
    "rows.cursor_down": "↑↓",
    "choices.cursor_down": "↑↓",
    "question.scroll_down": "↑↓",
    "question.next": "h/l",
    "drawing.scroll_down": "↑↓",
    "list.cursor_down": "↑↓",
    "transcript.cursor_down": "↑↓",
    "raw.scroll_down": "↑↓",
    "transcript.next_match": "n/N",
    "transcript.next_prompt": "{ }",
    "transcript.next_failure": "x/X",
}
"""Footer names, by key id, for bindings not shown under their first key's name."""
SYNONYMS = {
    "app.help": "help shortcuts bindings keybindings hotkeys cheatsheet manual docs menu options",
    "app.back": "exit leave close cancel",
    "app.quit": "exit leave close bye",
    "app.suspend_process": "shell terminal background bash command",
    "app.help_quit": "mouse clipboard",
    "app.change_theme": "color colors colour colours dark light appearance look skin",
    "app.trusted": "trust permissions security",
    "app.lost_sessions": "recover undelete missing trash",
    "app.worktrees": "branch git checkout isolated merge",
    "app.extension": "hooks plugins mcp uninstall checkpoint",
    "app.settings": "config configuration preferences options editor mouse wrap vim theme",
    "app.doctor": "about version update upgrade status diagnose bug debug path check",
    "app.sessions": "archive chats conversations home list",
    "app.runs": "prompt ask chat execute model yolo stop cancel abort interrupt tasks jobs plan",
    "app.policies": "permissions allow deny yolo approve reject always tools rules never mcp",
    "sessions.other_pane": "focus switch panel window split",
    "sessions.zoom": "fullscreen maximize wide width wrap sidebar screen mode layout verbose",
    "sessions.info": (
        "about info inspector metadata path subagents agents timestamps context child changed"
    ),
    "sessions.search": "find grep fulltext content messages history",
    "sessions.stats": (
        "usage cost tokens price money budget spent statistics quota billing context month"
    ),
    "sessions.files": "edits modified history written status",
    "sessions.waiting": "approve approval pending notification waiting",
    "sessions.new_run": "new chat start prompt ask execute init model clear",
    "sessions.go_on": "resume reopen reply follow-up",
    "sessions.export": "share markdown html json raw save download print",
    "sessions.patch": "diff git apply",
    "sessions.review": "diff changes hunks edits compare commit message discard stage revert",
    "sessions.delete": "remove trash rm erase clear drop discard",
    "sessions.marks": "name title label edit annotate favorite",
    "sessions.pin": "favorite favourite star bookmark keep",
    "sessions.archive": "hide hidden unarchive",
    "sessions.vault": "backup protect save retention expire clean-up",
    "sessions.restore": "recover undelete",
    "sessions.undo": "restore trash undelete recover",
    "sessions.undo_to": "rewind revert checkpoint restore rollback reset",
    "sessions.fork": "branch duplicate clone rewind",
    "sessions.problems": "errors broken corrupt unreadable warnings",
    "sessions.refresh": "refresh update sync rescan fetch",
    "list.first": "top beginning",
    "list.last": "bottom",
    "list.open": "read view transcript",
    "list.filter": "find grep search tags model date failed errors directory claude qwen command",
    "list.clear": "reset cancel deselect unselect",
    "list.select": "multiple choose check all",
    "list.select_to": "range",
    "list.scope": "directory cwd everywhere global filter mode",
    "list.projects": "switch project folder cd recent repos repository workspace namespace",
    "list.sort": "order newest oldest duration",
    "list.reverse": "order oldest ascending descending",
    "list.days": "date calendar today yesterday week month time history",
    "list.group": "tree folder",
    "list.fold": "collapse expand",
    "list.hidden": "subagents agents",
    "list.copy_id": "yank clipboard uuid",
    "list.copy_resume": "resume yank command cli",
    "transcript.start": "top beginning",
    "transcript.follow": "bottom live tail latest last",
    "transcript.next_prompt": "message turn user",
    "transcript.prompts": "outline contents timeline messages turns",
    "transcript.next_tool": "call",
    "transcript.next_failure": "errors failures exceptions",
    "transcript.previous_failure": "errors failures exceptions",
    "transcript.open": "expand subagent",
    "transcript.fold": "collapse expand details thoughts output",
    "transcript.fold_all": "collapse expand thoughts thinking reasoning details",
    "transcript.dropped": "hidden removed deleted",
    "transcript.find": "search grep",
    "transcript.copy_block": "yank clipboard",
    "transcript.raw": "source debug record",
    "transcript.open_file": "editor vim images picture",
    "transcript.history": "blame log versions",
    "prompt.mode": "ask me approve approval deny permissions",
    "run.stop": "cancel abort interrupt end",
    "run.write": "ask chat message",
    "run.files": "changes changed",
    "run.stderr": "errors log debug output console",
    "run.again": "retry repeat rerun",
    "run.comment": "resume reply continue feedback annotate",
    "run.revert": "discard restore checkout reject keep",
    "run.allow": "permissions approve",
    "run.review": "diff commit",
    "run.worktree": "branch isolated",
    "run.options": "settings config approval mode yolo tools sandbox budget flags claude",
    "run.from_file": "attach images",
    "run.queue": "pending next",
    "run.runs": "history background jobs tasks",
    "policy.words": "english sentence",
    "policy.try_call": "test simulate check",
    "policy.files": "open",
}
"""Other words for commands, by key id: what people call them who come from other programs."""
