"""The rows of the table of keys for the policy pane and the screens around it."""

from __future__ import annotations

from gemtui.ui.key import Group, Row, Where

POLICY_TABLE: dict[Where, tuple[Row, ...]] = {
    Where.POLICY: (
        ("next_part", "tab", Group.MOVE, "Next part", "To the next part of the pane"),
        ("previous_part", "shift+tab", Group.MOVE, "Previous part", "The same, backwards"),
        ("back", "escape", Group.OPEN, "Back", "Back to the rules"),
        (
            "levels",
            "l",
            Group.VIEW,
            "Levels",
            "Simple view: levels, mode, tool lists; or the rules",
        ),
        ("try_call", "t", Group.OPEN, "Try a call", "Try a call: what would happen to it, and why"),
        ("replay", "h", Group.OPEN, "Replay", "Replay past tool calls under this policy"),
        ("suggest", "s", Group.OPEN, "Suggest", "Suggest rules from what past sessions did"),
        ("mode", "m", Group.CHANGE, "Mode", "The next approval mode to show decisions for"),
        ("preview", "v", Group.VIEW, "TOML", "The command, the file with its changes, findings"),
        ("decisions", "p", Group.VIEW, "Tools", "The decision on each tool, with and without you"),
        ("problem", "exclamation_mark", Group.MOVE, "Finding", "To the next finding"),
        ("fix", "x", Group.CHANGE, "Fix", "Take the form that does what was meant"),
        ("add", "a", Group.CHANGE, "Add", "A new rule, in a form"),
        ("duplicate", "c", Group.CHANGE, "Duplicate", "The same rule once more"),
        ("delete", "d,delete", Group.CHANGE, "Delete", "Delete this rule; u brings it back"),
        ("switch", "space", Group.CHANGE, "On or off", "Switch this rule off, or on again"),
        ("move_down", "J,shift+down", Group.CHANGE, "Reorder", "Move this rule down"),
        ("move_up", "K,shift+up", Group.CHANGE, "Move up", "Move this rule up"),
        ("filter", "slash", Group.SEARCH, "Search", "Search rules by tool, words, decision"),
        ("undo", "u", Group.CHANGE, "Undo", "Take back the last change"),
        ("redo", "U", Group.CHANGE, "Redo", "Make the change again"),
        (
            "save",
            "ctrl+s",
            Group.CHANGE,
            "Save",
            "Write the file; one not ours leaves a backup",
        ),
        ("files", "f", Group.OPEN, "Files", "Choose a policy; new, rename, delete"),
        ("open_file", "o", Group.OPEN, "Edit file", "Open the file in your editor"),
        ("run", "r", Group.OPEN, "Run with it", "To the run pane, with this policy"),
        ("copy_command", "y", Group.COPY, "Copy command", "Copy the command that will run"),
        ("copy_text", "Y", Group.COPY, "Copy TOML", "Copy the policy file"),
    ),
    Where.RULES: (
        ("cursor_up", "up,k", Group.MOVE, "Up", "Previous rule"),
        ("cursor_down", "down,j", Group.MOVE, "Move", "Next rule"),
        ("page_up", "pageup", Group.MOVE, "Page up", "One page up"),
        ("page_down", "pagedown", Group.MOVE, "Page down", "One page down"),
        ("first", "home", Group.MOVE, "First", "First rule"),
        ("last", "end,G", Group.MOVE, "Last", "Last rule"),
        ("open", "enter,e", Group.CHANGE, "Edit", "Change this rule in a form"),
    ),
    Where.LEVELS: (
        ("cursor_up", "up,k", Group.MOVE, "Up", "Previous row"),
        ("cursor_down", "down,j", Group.MOVE, "Move", "Next row"),
        ("previous", "left", Group.CHANGE, "Choose", "The choice at the left"),
        ("next", "right", Group.CHANGE, "Choose", "The choice at the right"),
        ("open", "enter", Group.CHANGE, "Change", "The next choice; or change the list of tools"),
    ),
    Where.POLICY_FILES: (
        ("new", "n", Group.CHANGE, "New", "A new policy of yours in gemtui"),
        ("rename", "r", Group.CHANGE, "Rename", "Give this policy another name"),
        ("delete", "d,delete", Group.CHANGE, "Delete", "Delete this policy, after a question"),
        ("close", "escape,q", Group.OPEN, "Close", "Back to the policy"),
    ),
    Where.RULE: (
        ("take", "ctrl+s", Group.CHANGE, "Take", "Put the rule into the policy, not saved yet"),
        ("fix", "ctrl+f", Group.CHANGE, "Fix", "Take the form that does what was meant"),
        ("close", "escape", Group.OPEN, "Close", "Change nothing"),
    ),
}

POLICY_RANKED = (
    "levels.next",
    "levels.open",
    "rules.cursor_down",
    "rules.open",
    "policy.back",
    "policy.add",
    "policy.delete",
    "policy.save",
    "policy.suggest",
    "policy.replay",
    "policy.try_call",
    "policy.run",
    "policy.undo",
    "policy.preview",
    "policy.levels",
    "policy.move_down",
    "policy.decisions",
    "policy.files",
    "policy.copy_command",
)
"""Ids of those keys that the footer shows, the most useful first."""
POLICY_FACES = {"rules.cursor_down": "↑↓", "policy.move_down": "J/K"}
