"""Every key of gemtui, by the place in which it acts, and its name in the footer."""

from __future__ import annotations

from gemtui.ui.kit.key import Group, Row, Where

MOVE, OPEN, SEARCH, VIEW = Group.MOVE, Group.OPEN, Group.SEARCH, Group.VIEW
COPY, CHANGE, APP = Group.COPY, Group.CHANGE, Group.APP


_UP, _DOWN = "cursor_up = step(-1)", "cursor_down = step(1)"
_PAGES = (
    ("page_up = page(-1)", "pageup", MOVE, "Page up", "One page up"),
    ("page_down = page(1)", "pagedown", MOVE, "Page down", "One page down"),
)
_HALF_PAGES = (
    ("half_up = page(-0.5)", "ctrl+u", MOVE, "Half up", "Half a page up"),
    ("half_down = page(0.5)", "ctrl+d", MOVE, "Half down", "Half a page down"),
)


def _moves(row: str) -> tuple[Row, ...]:
    """Return the keys that move the cursor of a list.

    `row`: the noun for a row of this list.
    """
    return (
        (_UP, "up,k", MOVE, "Up", f"Previous {row}"),
        (_DOWN, "down,j", MOVE, "Move", f"Next {row}"),
        *_PAGES,
        *_HALF_PAGES,
        ("first", "home", MOVE, "First", f"First {row}"),
        ("last", "end,G", MOVE, "Last", f"Last {row}"),
    )


def _steers(row: str) -> tuple[Row, ...]:
    """Return the keys that move the cursor of a list while the user types above it.

    `row`: the noun for a row of this list.
    """
    return (
        (_UP, "up", MOVE, "Up", f"Previous {row}"),
        (_DOWN, "down", MOVE, "Move", f"Next {row}"),
        *_PAGES,
    )


def _jumps(kind: str, keys: tuple[str, str], label: str, noun: str) -> tuple[Row, ...]:
    """Return the keys that jump to the previous and next block of a kind in a transcript."""
    above, below = f"previous_{kind} = jump('{kind}', -1)", f"next_{kind} = jump('{kind}', 1)"
    return (
        (above, keys[0], MOVE, f"Previous {label.lower()}", f"Go to the previous {noun}"),
        (below, keys[1], MOVE, label, f"Go to the next {noun}"),
    )


def _all(method: str, *rows: Row) -> tuple[Row, ...]:
    """Return keys that all call one method with the name of their action."""
    return tuple((f"{name} = {method}('{name}')", *rest) for name, *rest in rows)  # type: ignore[misc]


_ANSWERS: tuple[Row, ...] = (
    ("yes", "y", CHANGE, "Allow", "Allow this call, once all of it was shown"),
    ("all_run", "a", CHANGE, "Allow similar", "Allow this and similar calls in this run"),
    ("always", "A", CHANGE, "Always allow", "Allow this and similar calls in all runs that ask"),
    ("no", "n", CHANGE, "Deny", "Deny this call; the run continues"),
    ("no_because", "r", CHANGE, "Deny with a reason", "Deny it with a reason for the model"),
    ("change", "e", CHANGE, "Edit", "Edit the command, file or arguments first"),
    ("stop_run", "x", CHANGE, "Stop run", "Deny this call and stop the run"),
)
_QUESTION_MOVES: tuple[Row, ...] = (
    ("whole", "enter,v", OPEN, "View all", "Show the whole call in full screen"),
    ("next", "right,l,right_square_bracket", MOVE, "Next", "Next waiting question"),
    ("previous", "left,h,left_square_bracket", MOVE, "Previous", "Previous question"),
)
UNDO_KEYS = "ctrl+underscore,ctrl+slash,ctrl+shift+minus"
"""Ctrl+/ and ctrl+_, under all names that terminals give them; old ones can't tell them apart."""

TABLE: dict[Where, tuple[Row, ...]] = {
    Where.APP: (
        ("help", "question_mark,f1", APP, "Keys", "Show the keys for this screen"),
        ("command_palette", "ctrl+p", APP, "Commands", "Search all commands by name"),
        ("back", "q", APP, "Back or quit", "Go back, or quit gemtui"),
        ("quit", "ctrl+q", APP, "Quit", "Quit gemtui"),
        ("suspend_process", "ctrl+z", APP, "Suspend", "Back to the shell; fg returns"),
        ("help_quit", "ctrl+c", COPY, "Copy selection", "Copy the text selected with the mouse"),
        ("change_theme", "f2", APP, "Theme", "Choose a theme, with a preview"),
        ("trusted", "f3", APP, "Trusted folders", "Folders that you told gemtui to trust"),
        (
            "lost_sessions",
            "f4",
            APP,
            "Lost sessions",
            "Restore a session that Gemini CLI lost",
        ),
        ("worktrees", "f7", OPEN, "Worktrees", "Git worktrees of runs: compare, apply, remove"),
        (
            "extension",
            "f8",
            APP,
            "Extension",
            "Install or remove the Gemini CLI extension",
        ),
        ("sessions", "1", OPEN, "Sessions", "Go to the stored sessions"),
        ("runs", "2", OPEN, "Run", "Go to the run pane: start, watch or stop a run"),
        ("policies", "3", OPEN, "Policy", "Go to the policies: what a run may do"),
    ),
    Where.SESSIONS: (
        ("other_pane", "tab,shift+tab", MOVE, "Other pane", "Go to the other pane"),
        ("zoom", "z", VIEW, "Full width", "Toggle full width for the transcript"),
        ("info", "i", OPEN, "About", "Files, copies and subagents of this session"),
        ("search", "F", SEARCH, "Search all", "Search the text of all sessions"),
        ("stats", "t", OPEN, "Stats", "Tokens, calls, files and cost"),
        ("files", "w", OPEN, "Files", "Files that sessions wrote"),
        (
            "waiting",
            "L",
            OPEN,
            "Needs you",
            "Go to this or the next waiting question",
        ),
        ("new_run", "n", OPEN, "New run", "Start a run in this project"),
        ("go_on", "c", OPEN, "Continue", "Continue this session in the run pane"),
        ("export", "e", COPY, "Export", "Export this session to a file"),
        ("patch", "E", COPY, "Patch", "Export its changes as a patch for git apply"),
        ("review", "H", OPEN, "Review", "Review its changes hunk by hunk"),
        ("delete", "d,delete", CHANGE, "Delete", "Delete this session (asks first)"),
        ("marks", "m", CHANGE, "Marks", "Edit name, tags and note; pin or archive"),
        ("pin", "p", CHANGE, "Pin", "Pin to the top, or unpin"),
        ("archive", "A", CHANGE, "Archive", "Archive (hide from the list), or unarchive"),
        ("vault", "V", CHANGE, "Vault", "Keep sessions that Gemini CLI deletes"),
        ("restore", "b", CHANGE, "Restore", "Restore a kept session to Gemini CLI"),
        ("undo", "u", CHANGE, "Undo", "Undo the last marks or deletion"),
        (
            "undo_to",
            "U",
            CHANGE,
            "Undo to here",
            "Undo to before this prompt; a preview comes first",
        ),
        ("redo", "R", CHANGE, "Redo", "Take the last undo back; shows first what happens"),
        ("fork", "B", CHANGE, "Fork", "New chat from before this prompt"),
        ("problems", "exclamation_mark", OPEN, "Problems", "Show what could not be read"),
        ("refresh", "f5,ctrl+r", APP, "Reload", "Read all sessions again"),
    ),
    Where.LIST: (
        *_moves("session"),
        ("open", "enter,right,l", OPEN, "Open", "Read this session"),
        (
            "filter",
            "slash",
            SEARCH,
            "Search",
            "Filter by words, #tag, tool: file: after: is:",
        ),
        ("clear", "escape", SEARCH, "Clear", "Clear the selection, then the filter"),
        (
            "select",
            "space",
            CHANGE,
            "Select",
            "Select; e E d m p A act on all selected",
        ),
        ("select_to", "v", CHANGE, "Select to here", "Select from the last selected one to here"),
        ("scope", "a", VIEW, "Scope", "This project or all projects"),
        ("sort", "s", VIEW, "Sort", "Choose the order"),
        ("reverse", "S", VIEW, "Reverse", "Reverse the order"),
        ("days", "D", MOVE, "Days", "Go to a day"),
        ("group", "g", VIEW, "Group", "Toggle grouping by project"),
        ("fold", "left,h", VIEW, "Fold", "Fold or unfold this project"),
        (
            "hidden",
            "full_stop",
            VIEW,
            "Hidden",
            "Show archived, subagents, copies, empty ones",
        ),
        ("copy_id", "y", COPY, "Copy id", "Copy the full session id"),
        ("copy_resume", "Y", COPY, "Copy resume", "Copy the shell command that resumes it"),
    ),
    Where.FILTER: (
        ("open", "enter", OPEN, "Open", "Open the selected row"),
        ("done", "down", SEARCH, "To the list", "Keep the filter and go to the list"),
        ("clear", "escape", SEARCH, "Clear", "Clear the search"),
    ),
    Where.TRANSCRIPT: (
        (_UP, "up,k", MOVE, "Up", "Previous block, or one line up inside a long one"),
        (_DOWN, "down,j", MOVE, "Move", "Next block, or one line down in a long one"),
        ("page_up = page(-1)", "pageup,ctrl+b", MOVE, "Page up", "One page up"),
        ("page_down = page(1)", "pagedown,ctrl+f", MOVE, "Page down", "One page down"),
        *_HALF_PAGES,
        ("start", "home", MOVE, "Start", "Go to the first message"),
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
        ("open", "enter", OPEN, "Open", "Unfold the block, or open the subagent"),
        ("fold", "space", VIEW, "Fold", "Fold or unfold the block"),
        ("fold_all", "f", VIEW, "Fold all", "Fold or unfold everything"),
        ("dropped", "full_stop", VIEW, "Dropped", "Show or hide rewound and failed messages"),
        ("find", "slash", SEARCH, "Find", "Find in this transcript"),
        ("next_match = match(1)", "n", SEARCH, "Match", "Next match"),
        ("previous_match = match(-1)", "N", SEARCH, "Previous match", "Previous match"),
        ("copy_block", "y", COPY, "Copy", "Copy this block: text, code, output or command"),
        ("copy_message", "Y", COPY, "Copy message", "Copy the whole message"),
        ("raw", "v", OPEN, "Raw", "Show the raw JSON of this block"),
        ("open_file", "o", OPEN, "Edit file", "Open the file in your editor, images in a viewer"),
        ("history", "W", OPEN, "History", "All writes of this file, in all sessions"),
        ("back", "escape", OPEN, "Back", "Close the search, or go back to the list"),
    ),
    Where.FIND: (
        ("next = match(1)", "down", SEARCH, "Next", "Next match"),
        ("previous = match(-1)", "up", SEARCH, "Previous", "Previous match"),
        (
            "close",
            "enter,escape",
            SEARCH,
            "To the match",
            "Close the search; n and N still work",
        ),
    ),
    Where.RAW: (
        ("scroll_down", "down,j", MOVE, "Move", "One line down"),
        ("scroll_up", "up,k", MOVE, "Up", "One line up"),
        ("page_down", "pagedown,space", MOVE, "Page down", "One page down"),
        ("page_up", "pageup", MOVE, "Page up", "One page up"),
        *_HALF_PAGES,
        ("scroll_home", "home", MOVE, "Start", "Go to the first line"),
        ("scroll_end", "end,G", MOVE, "End", "Go to the last line"),
        ("copy", "y", COPY, "Copy", "Copy everything"),
        ("close", "escape,q,v", OPEN, "Back", "Back to the transcript"),
    ),
    Where.INFO: (
        ("copy_id", "y", COPY, "Copy id", "Copy the full session id"),
        ("close", "escape,q,i", OPEN, "Close", "Back to where you were"),
    ),
    Where.MARKS: (
        ("take", "ctrl+s", CHANGE, "Save", "Save these marks"),
        ("close", "escape", OPEN, "Close", "Close; what you typed is kept"),
    ),
    Where.WAITING: (("next", "L", MOVE, "Next", "Go to the next waiting session's question"),),
    Where.VAULT: (
        ("switch", "o", CHANGE, "On or off", "Turn the vault on or off"),
        ("close", "escape,q,V", OPEN, "Close", "Back to the sessions"),
    ),
    Where.STATS: (
        ("scope", "a", VIEW, "Scope", "This project or all projects"),
        ("span", "w", VIEW, "Since", "Change the period: all, 30 days, 7 days, 24 hours"),
        ("close", "escape,q,t", OPEN, "Back", "Back to the sessions"),
    ),
    Where.SEARCH: (
        ("open", "enter", OPEN, "Open", "Open the session at this match"),
        *_steers("hit"),
        ("complete", "tab", SEARCH, "Complete", "Insert the suggested field or value"),
        ("scope", "ctrl+r", VIEW, "Scope", "This project or all projects"),
        ("dropped", "ctrl+t", VIEW, "Dropped", "Search rewound and failed messages instead"),
        ("close", "escape", OPEN, "Back", "Clear the search, or go back to the sessions"),
    ),
    Where.FILES: (
        ("open", "enter", OPEN, "Open", "All writes of this file"),
        *_steers("file"),
        ("scope", "ctrl+r", VIEW, "Scope", "This project or all projects"),
        ("span", "ctrl+t", VIEW, "Since", "Change the period: all, 30 days, 7 days, 24 hours"),
        ("patch", "ctrl+s", COPY, "Patch", "Export the changes of these files as one patch"),
        ("recover", "ctrl+o", OPEN, "Recover", "Rebuild the text of this file from sessions"),
        ("close", "escape", OPEN, "Back", "Clear the search, or go back to the sessions"),
    ),
    Where.HISTORY: (
        ("open", "enter", OPEN, "Open", "Open the session at this call"),
        (
            "other_part",
            "tab,shift+tab",
            MOVE,
            "Other part",
            "Switch between the list and the change",
        ),
        ("open_file", "o", OPEN, "Edit file", "Open the file in your editor"),
        ("patch", "E", COPY, "Patch", "Export all its changes as a patch for git apply"),
        ("recover", "r", OPEN, "Recover", "Rebuild the text of this file from sessions"),
        ("close", "escape,q", OPEN, "Back", "Back to where you were"),
    ),
    Where.PATCH: (
        ("write", "enter,s", COPY, "Write", "Save the patch to a new file"),
        ("close", "escape,q", OPEN, "Back", "Back to where you were"),
    ),
    Where.UNDO: (
        ("confirm", "y", CHANGE, "Do it", "Do what is shown"),
        ("scope", "s", VIEW, "Scope", "Files and chat, files only, or chat only"),
        ("diff", "d", OPEN, "Diff", "Show the change of this file, and its texts"),
        ("go_on", "c", OPEN, "Continue", "Continue the chat in the run pane"),
        ("redo", "R", CHANGE, "Redo", "Take this undo back; shows first what happens"),
        ("close", "escape,q", OPEN, "Back", "Back to where you were"),
    ),
    Where.UNDO_FILE: (
        ("next = turn(1)", "tab,right,l", VIEW, "Next text", "Next of: change, before, left, now"),
        ("previous = turn(-1)", "shift+tab,left,h", VIEW, "Previous text", "Previous text"),
        ("close", "escape,q", OPEN, "Back", "Back to the list"),
    ),
    Where.RECOVER: (
        ("write", "enter,s", COPY, "Write", "Write the text to a new file"),
        ("close", "escape,q", OPEN, "Back", "Back to where you were"),
    ),
    Where.REVIEW: (
        ("mark", "space", CHANGE, "Revert or keep", "Mark this hunk or file to be reverted"),
        ("mark_call", "a", CHANGE, "All of the call", "The same for all that this call changed"),
        ("apply", "r", CHANGE, "Revert", "Revert what is marked, after a look"),
        ("comment", "c", CHANGE, "Comment", "Write a comment at this line"),
        ("send", "p", OPEN, "Go to the prompt", "Put the comments into the prompt of the run pane"),
        ("other_part", "tab,shift+tab", MOVE, "Other part", "Switch between the list and the diff"),
        ("copy_message", "y", COPY, "Copy message", "Copy a commit message made of the prompts"),
        ("copy_files", "Y", COPY, "Copy files", "Copy the names of the files, one a line"),
        ("git", "g", OPEN, "Git", "Open your git tool in the project"),
        ("reload", "f5,ctrl+r", APP, "Reload", "Compare the files again"),
        ("close", "escape,q", OPEN, "Back", "Back to the list, or to where you were"),
    ),
    Where.NOTICE: (
        ("copy", "y", COPY, "Copy", "Copy this message"),
        ("again", "r", OPEN, "Try again", "Read the session again"),
        ("back", "escape", OPEN, "Back", "Go back to the list"),
    ),
    Where.EMPTY: (
        ("again", "r", APP, "Try again", "Look in the same folder again"),
        ("elsewhere", "o", OPEN, "Other folder", "Look in another folder"),
        ("copy", "y", COPY, "Copy", "Copy this message"),
    ),
    Where.RUN: (
        ("stop", "ctrl+c", CHANGE, "Stop", "Stop the run (SIGTERM); again: SIGKILL"),
        ("next_part", "tab", MOVE, "Next part", "Switch between transcript, files and prompt"),
        ("previous_part", "shift+tab", MOVE, "Previous part", "Switch backwards"),
        ("write", "i", OPEN, "Prompt", "Go to the prompt"),
        ("files", "w", VIEW, "Files", "Show the files that this run wrote"),
        ("stderr", "s", OPEN, "Stderr", "Show Gemini CLI's stderr"),
        ("again", "r", CHANGE, "Run again", "Run the same prompt again"),
        ("edit", "e", CHANGE, "Edit", "Edit the prompt and run again"),
        ("carry_out", "f5", CHANGE, "Carry it out", "Continue this plan's session to carry it out"),
        ("follow_up", "c", CHANGE, "Continue", "Continue the same session"),
        ("copy_command", "C", COPY, "Copy command", "Copy the command line of this run"),
        ("allow", "p", CHANGE, "Allow it", "Create the rule that would allow the denied call"),
        (
            "differing",
            "D",
            CHANGE,
            "Differs",
            "Files that differ from what you approved",
        ),
        ("review", "H", OPEN, "Review", "Review its changes hunk by hunk"),
        ("worktree", "f6", CHANGE, "Worktree", "Next run in a new git worktree, or in the folder"),
        ("options", "ctrl+o", CHANGE, "Options", "Set approval, mode, model, tools, limits"),
        ("command", "ctrl+t", OPEN, "Command", "Show the exact command that enter will run"),
        ("from_file", "ctrl+g", OPEN, "From a file", "Load the prompt from a file"),
        ("new", "ctrl+n", CHANGE, "New run", "New empty pane; current runs continue"),
        ("take_back", "u", CHANGE, "Revoke", "Revoke the last “allow similar” or “always allow”"),
        (
            "undo_to",
            "U",
            CHANGE,
            "Undo to here",
            "Undo to before this prompt; a preview comes first",
        ),
        ("redo", "R", CHANGE, "Redo", "Take the last undo back; shows first what happens"),
        ("fork", "B", CHANGE, "Fork", "New chat from before this prompt"),
        ("queue", "ctrl+r", OPEN, "Queue", "Queued prompts: reorder, edit, send"),
        ("runs", "ctrl+l", OPEN, "Runs", "List all runs; open or stop one"),
    ),
    Where.RUN_LIST: (
        *_all(
            "act",
            ("stop", "x", CHANGE, "Stop", "Stop this run and everything that it started"),
            ("restore", "b", CHANGE, "Restore", "Restore the session of which this run has a copy"),
        ),
        ("filter", "slash", SEARCH, "Search", "Filter by prompt, result, folder and id"),
        ("close", "escape", OPEN, "Close", "Clear the filter, or close"),
    ),
    Where.WORKTREES: (
        ("mark", "space", VIEW, "Compare", "Mark this worktree, to see others beside it"),
        ("apply", "a", CHANGE, "Apply", "Apply its changes to the repository, after a look"),
        ("remove", "d,delete", CHANGE, "Remove", "Remove it (asks first)"),
        ("review", "H", OPEN, "Review", "Review its changes hunk by hunk, then apply"),
        ("each", "m", CHANGE, "Other models", "Send its prompt to other models in new worktrees"),
        (
            "each_policy",
            "p",
            CHANGE,
            "Other policies",
            "Send its prompt with other policies in new worktrees",
        ),
        ("other_part", "tab,shift+tab", MOVE, "Other part", "Switch between list and changes"),
        ("reload", "f5,ctrl+r", APP, "Reload", "Compare the files again"),
        ("close", "escape,q", OPEN, "Back", "Back to where you were"),
    ),
    Where.QUESTION: (
        *_all("answer", *_ANSWERS),
        *_all("press", *_QUESTION_MOVES),
        ("scroll_down", "down,j", MOVE, "Scroll", "One line down"),
        ("scroll_up", "up,k", MOVE, "Up", "One line up"),
        ("page_down", "pagedown,space", MOVE, "Page down", "One page down"),
        ("page_up", "pageup", MOVE, "Page up", "One page up"),
        *_HALF_PAGES,
        ("scroll_home", "home", MOVE, "Start", "Go to the first line"),
        ("scroll_end", "end,G", MOVE, "End", "Go to the last line"),
        ("leave", "escape", OPEN, "Transcript", "Go to the transcript; the question keeps waiting"),
    ),
    Where.CHANGE_CALL: (
        ("take", "ctrl+s", CHANGE, "Apply", "Use this instead"),
        ("close", "escape", OPEN, "Close", "Close; what you typed is kept"),
    ),
    Where.QUEUE: (
        *_all(
            "act",
            ("move_down", "J,shift+down", CHANGE, "Later", "Move it down: sent later"),
            ("move_up", "K,shift+up", CHANGE, "Earlier", "Move it up: sent earlier"),
            ("change", "e,enter", CHANGE, "Edit", "Edit this prompt"),
            ("drop", "d,delete", CHANGE, "Remove", "Remove it from the queue"),
            ("send", "s", CHANGE, "Send", "Send it now that the run has ended"),
        ),
        ("close", "escape,q", OPEN, "Close", "Close the queue"),
    ),
    Where.PROMPT: (
        (
            "say",
            "ctrl+s",
            CHANGE,
            "Send now",
            "Send with the next tool result (“Ask me” runs)",
        ),
        ("send", "enter", CHANGE, "Send", "Start a run, or insert the suggested file"),
        ("new_line", "ctrl+j,shift+enter,alt+enter", CHANGE, "New line", "Insert a new line"),
        ("complete", "tab", MOVE, "Complete", "Insert the suggested file, or next part"),
        (
            "undo",
            UNDO_KEYS,
            CHANGE,
            "Undo typing",
            "Undo typing; ^y redoes it",
        ),
        ("mode", "shift+tab", CHANGE, "Mode", "Next mode: ask, auto_edit, plan, yolo"),
        ("leave", "escape", OPEN, "Leave", "Close the suggestions, or go to the transcript"),
    ),
    Where.WRITES: (
        ("select", "enter", OPEN, "Open", "Go to the call that wrote it, or its change"),
        ("diff", "d", OPEN, "Diff", "Show the change since before the run"),
        ("open_file", "o", OPEN, "Edit file", "Open the file in your editor"),
        ("history", "W", OPEN, "History", "All writes of this file, in all sessions"),
        ("back", "escape", OPEN, "Back", "Back to the transcript"),
    ),
    Where.OPTIONS: (
        ("take", "ctrl+s", CHANGE, "Apply", "Use these options for the next runs"),
        ("close", "escape", OPEN, "Close", "Close; what you typed is kept"),
    ),
    Where.CONFIRM: (
        ("confirm", "y", CHANGE, "Yes", "Do it"),
        ("close", "n,escape,q", OPEN, "No", "Cancel"),
        ("scroll_about_up = scroll_about(-1)", "up,pageup", MOVE, "Up", "Scroll up"),
        ("scroll_about_down = scroll_about(1)", "down,pagedown", MOVE, "Down", "Scroll down"),
    ),
    Where.CONFIRM_FOR_GOOD: (
        ("confirm", "D", CHANGE, "Delete", "Delete permanently"),
        ("close", "n,escape,q", OPEN, "No", "Cancel"),
    ),
    Where.DIALOG: (("close", "escape", OPEN, "Close", "Close without changes"),),
    Where.CHOICES: _HALF_PAGES,
    Where.HELP: (*_PAGES, *_HALF_PAGES),
    Where.POLICY: (
        ("next_part", "tab", MOVE, "Next part", "Go to the next part of the pane"),
        ("previous_part", "shift+tab", MOVE, "Previous part", "Switch backwards"),
        ("back", "escape", OPEN, "Back", "Back to the rules"),
        ("levels", "l", VIEW, "Levels", "Switch between the simple view and the rules"),
        ("try_call", "t", OPEN, "Try a call", "See what would happen to a call, and why"),
        ("replay", "h", OPEN, "Replay", "Replay past tool calls under this policy"),
        ("suggest", "s", OPEN, "Suggest", "Suggest rules from past sessions"),
        ("mode", "m", CHANGE, "Mode", "Show the decisions of the next approval mode"),
        ("preview", "v", VIEW, "TOML", "Show the command, the file's changes and findings"),
        ("decisions", "p", VIEW, "Tools", "Show the decision for each tool"),
        ("problem", "exclamation_mark", MOVE, "Finding", "Go to the next finding"),
        ("fix", "x", CHANGE, "Fix", "Apply the suggested fix"),
        ("words", "w", CHANGE, "Words", "Add rules in words, such as deny git push"),
        ("add", "a", CHANGE, "Add", "Add a rule in a form"),
        ("duplicate", "c", CHANGE, "Duplicate", "Duplicate this rule"),
        ("delete", "d,delete", CHANGE, "Delete", "Delete this rule (u undoes it)"),
        ("switch", "space", CHANGE, "On or off", "Turn this rule on or off"),
        ("move_down = move(1)", "J,shift+down", CHANGE, "Reorder", "Move this rule down"),
        ("move_up = move(-1)", "K,shift+up", CHANGE, "Move up", "Move this rule up"),
        ("filter", "slash", SEARCH, "Search", "Filter rules by tool, words, decision"),
        ("undo", "u", CHANGE, "Undo", "Undo the last change"),
        ("redo", "U", CHANGE, "Redo", "Redo the change"),
        ("save", "ctrl+s", CHANGE, "Save", "Save the file; other programs' files get a backup"),
        ("files", "f", OPEN, "Files", "Choose, create, rename or delete a policy"),
        ("open_file", "o", OPEN, "Edit file", "Open the file in your editor"),
        ("run", "r", OPEN, "Run with it", "Start a run with this policy"),
        ("copy_command", "y", COPY, "Copy command", "Copy the command that would run"),
        ("copy_text", "Y", COPY, "Copy TOML", "Copy the policy as TOML"),
    ),
    Where.RULES: (
        *_moves("rule"),
        ("open", "enter,e", CHANGE, "Edit", "Edit this rule in a form"),
    ),
    Where.LEVELS: (
        (_UP, "up,k", MOVE, "Up", "Previous row"),
        (_DOWN, "down,j", MOVE, "Move", "Next row"),
        ("previous = choose(-1)", "left", CHANGE, "Choose", "Choose the option on the left"),
        ("next = choose(1)", "right", CHANGE, "Choose", "Choose the option on the right"),
        ("open", "enter", CHANGE, "Change", "Next option, or edit the list of tools"),
    ),
    Where.POLICY_FILES: (
        ("new", "n", CHANGE, "New", "Create a policy"),
        ("rename = ask('rename')", "r", CHANGE, "Rename", "Rename this policy"),
        ("delete = ask('delete')", "d,delete", CHANGE, "Delete", "Delete this policy (asks first)"),
        ("close", "escape,q", OPEN, "Close", "Back to the policy"),
    ),
    Where.RULE: (
        ("take", "ctrl+s", CHANGE, "Apply", "Add the rule to the policy, without saving it"),
        ("fix", "ctrl+f", CHANGE, "Fix", "Apply the suggested fix"),
        ("close", "escape", OPEN, "Close", "Close; what you typed is kept"),
    ),
    Where.ROWS: (
        *_moves("row"),
        ("open", "enter,right,l", OPEN, "Open", "Open this row"),
    ),
    Where.DRAWING: (
        ("scroll_down", "down,j", MOVE, "Scroll", "One line down"),
        ("scroll_up", "up,k", MOVE, "Up", "One line up"),
        ("page_down", "pagedown", MOVE, "Page down", "One page down"),
        ("page_up", "pageup", MOVE, "Page up", "One page up"),
        *_HALF_PAGES,
        ("scroll_home", "home", MOVE, "Start", "Go to the first line"),
        ("scroll_end", "end,G", MOVE, "End", "Go to the last line"),
        ("copy", "y", COPY, "Copy", "Copy everything"),
    ),
    Where.TRY: (
        ("recorded", "ctrl+l", OPEN, "Recorded", "Choose a tool call from a past session"),
        ("interactive", "ctrl+t", VIEW, "Headless", "Switch between headless and interactive"),
        ("mode", "ctrl+o", VIEW, "Mode", "Next approval mode"),
        ("allow", "ctrl+n", CHANGE, "Allow it", "Create the rule that would allow this call"),
        ("keep", "ctrl+g", CHANGE, "Keep", "Keep this call as an example of the policy"),
        ("close", "escape", OPEN, "Back", "Back to the policy"),
    ),
    Where.REPLAY: (
        ("stop", "ctrl+c", CHANGE, "Stop", "Stop reading; keep what was counted"),
        ("which", "w", VIEW, "Scope", "Choose the sessions and the period"),
        ("interactive", "i", VIEW, "Headless", "Switch between headless and interactive"),
        ("mode", "m", VIEW, "Mode", "Next approval mode"),
        ("again", "r", CHANGE, "Again", "Read the sessions again"),
        ("close", "escape,q", OPEN, "Back", "Back to the policy"),
    ),
    Where.CALLS: (
        ("filter", "slash", SEARCH, "Search", "Filter by tool, command, file and session"),
        ("close", "escape,q", OPEN, "Back", "Clear the filter, or go back"),
    ),
    Where.PICK: (("which", "w", VIEW, "Scope", "Choose the sessions and the period"),),
    Where.CALL: (
        ("allow", "a", CHANGE, "Allow it", "Create the rule that would allow this call"),
        ("session", "o", OPEN, "Session", "Open the session at this call"),
        ("close", "escape,q", OPEN, "Back", "Back to the calls"),
    ),
    Where.SUGGEST: (
        ("check", "space", CHANGE, "Choose", "Select or deselect this rule"),
        ("check_all", "c", CHANGE, "Choose all", "Select all rules, or none"),
        ("add", "a", CHANGE, "Add", "Add the selected rules, without saving them"),
        ("which", "w", VIEW, "Scope", "Choose the sessions and the period"),
        ("interactive", "i", VIEW, "Headless", "Switch between headless and interactive"),
        ("mode", "m", VIEW, "Mode", "Next approval mode"),
        ("again", "r", CHANGE, "Again", "Read the sessions again"),
        ("stop", "ctrl+c", CHANGE, "Stop", "Stop reading; suggest from what was read"),
        ("close", "escape,q", OPEN, "Back", "Back to the policy, adding nothing"),
    ),
}

FOOTER = (
    "levels.next", "levels.open", "rules.cursor_down", "rules.open", "policy.back", "policy.add",
    "policy.delete", "policy.save", "policy.suggest", "policy.replay", "policy.try_call",
    "policy.run", "policy.undo", "policy.preview", "policy.levels", "policy.move_down",
    "policy.decisions", "policy.files", "policy.copy_command", "replay.stop", "suggest.stop",
    "rows.cursor_down", "drawing.scroll_down", "suggest.check", "suggest.add", "rows.open",
    "try.recorded", "try.allow", "try.interactive", "try.mode", "call.allow", "call.session",
    "calls.filter", "pick.which", "replay.which", "suggest.which", "drawing.copy", "try.close",
    "replay.close", "calls.close", "call.close", "suggest.close", "replay.interactive",
    "replay.mode", "suggest.mode", "replay.again", "suggest.check_all", "list.cursor_down",
    "transcript.cursor_down", "raw.scroll_down", "list.open", "waiting.next",
    "filter.open", "filter.done", "filter.clear", "transcript.fold", "find.next", "find.close",
    "list.filter", "transcript.find",
    "transcript.next_match", "question.scroll_down", "question.whole", "question.next",
    "question.leave", "prompt.send", "prompt.say", "run.carry_out", "run.stop", "run.differing",
    "run.queue", "run.allow",
    "prompt.new_line", "prompt.mode", "run.again", "run.follow_up", "writes.diff",
    "writes.history", "run.write", "run.files",
    "transcript.copy_block", "transcript.back", "sessions.restore", "sessions.export",
    "sessions.undo", "sessions.new_run",
    "list.copy_id", "sessions.go_on", "raw.copy", "raw.close",
    "search.open", "search.scope", "search.dropped", "search.close", "search.complete",
    "search.cursor_down", "files.open", "files.scope", "files.span", "files.patch", "files.close",
    "files.cursor_down", "files.recover", "undo.confirm", "undo.go_on", "undo.redo", "undo.scope",
    "undo.diff", "undo.close", "undo_file.next", "undo_file.close", "recover.write",
    "recover.close", "patch.write", "patch.close",

    "worktrees.mark", "worktrees.apply", "worktrees.remove", "worktrees.review",
    "worktrees.each", "worktrees.close",
    "review.mark", "review.apply", "review.comment", "review.send", "review.mark_call",
    "review.close", "review.git", "review.copy_message",
    "stats.scope", "stats.span", "stats.close", "info.copy_id", "empty.again",
    "empty.elsewhere", "empty.copy", "notice.again", "notice.copy", "notice.back",
    "confirm.confirm", "confirm.close", "confirm_for_good.confirm", "confirm_for_good.close",
    "list.select", "transcript.next_prompt", "transcript.next_failure", "sessions.undo_to",
    "sessions.marks",
    "list.scope", "transcript.raw", "transcript.follow", "list.hidden", "list.sort",
    "list.group", "sessions.info", "sessions.delete", "sessions.pin", "transcript.open_file",
    "dialog.close", "transcript.history", "history.open", "history.other_part",
    "history.open_file", "history.recover", "history.patch", "history.close",
    "run.options", "run.command", "run.runs", "run.undo_to", "run.stderr", "run.edit",
    "run.review", "sessions.review",
)  # fmt: skip
"""Ids of the footer's keys, the most useful first.

If there is no room for all of them, the last ones are left out.
"""
FACES = {
    "search.cursor_down": "↑↓",
    "files.cursor_down": "↑↓",
    "rules.cursor_down": "↑↓",
    "policy.move_down": "J/K",
    "rows.cursor_down": "↑↓",
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
"""Names in the footer for bindings that aren't shown as their first key."""
