"""The rows of the table of keys for the screens that try a policy on calls."""

from __future__ import annotations

from gemtui.ui.key import Group, Row, Where

TRIAL_TABLE: dict[Where, tuple[Row, ...]] = {
    Where.ROWS: (
        ("cursor_up", "up,k", Group.MOVE, "Up", "Previous row"),
        ("cursor_down", "down,j", Group.MOVE, "Move", "Next row"),
        ("page_up", "pageup", Group.MOVE, "Page up", "One page up"),
        ("page_down", "pagedown", Group.MOVE, "Page down", "One page down"),
        ("first", "home", Group.MOVE, "First", "First row"),
        ("last", "end,G", Group.MOVE, "Last", "Last row"),
        ("open", "enter,right,l", Group.OPEN, "Open", "What is behind this row"),
    ),
    Where.DRAWING: (
        ("scroll_down", "down,j", Group.MOVE, "Scroll", "One line down"),
        ("scroll_up", "up,k", Group.MOVE, "Up", "One line up"),
        ("page_down", "pagedown", Group.MOVE, "Page down", "One page down"),
        ("page_up", "pageup", Group.MOVE, "Page up", "One page up"),
        ("scroll_home", "home", Group.MOVE, "Start", "To the first line"),
        ("scroll_end", "end,G", Group.MOVE, "End", "To the last line"),
        ("copy", "y", Group.COPY, "Copy", "Copy all of it"),
    ),
    Where.TRY: (
        ("recorded", "ctrl+l", Group.OPEN, "Recorded call", "Take a tool call of a past session"),
        ("interactive", "ctrl+t", Group.VIEW, "Headless", "As in a headless run, or with somebody"),
        ("mode", "ctrl+o", Group.VIEW, "Mode", "The next approval mode"),
        ("allow", "ctrl+n", Group.CHANGE, "Allow it", "Make the rule that would allow this call"),
        ("close", "escape", Group.OPEN, "Back", "Back to the policy"),
    ),
    Where.REPLAY: (
        ("stop", "ctrl+c", Group.CHANGE, "Stop", "Stop reading; what was counted stays"),
        ("which", "w", Group.VIEW, "Which calls", "One session, this project or all; since when"),
        ("interactive", "i", Group.VIEW, "Headless", "As in a headless run, or with somebody"),
        ("mode", "m", Group.VIEW, "Mode", "The next approval mode"),
        ("again", "r", Group.CHANGE, "Again", "Read the sessions once more"),
        ("close", "escape,q", Group.OPEN, "Back", "Back to the policy"),
    ),
    Where.CALLS: (
        ("filter", "slash", Group.SEARCH, "Search", "Search by tool, command, file and session"),
        ("close", "escape,q", Group.OPEN, "Back", "End the search, or go back"),
    ),
    Where.PICK: (
        ("which", "w", Group.VIEW, "Which calls", "One session, this project or all; since when"),
    ),
    Where.CALL: (
        ("allow", "a", Group.CHANGE, "Allow it", "Make the rule that would allow this call"),
        ("session", "o", Group.OPEN, "Session", "Read the session at this call"),
        ("close", "escape,q", Group.OPEN, "Back", "Back to the calls"),
    ),
    Where.SUGGEST: (
        ("check", "space", Group.CHANGE, "Choose", "Choose this rule, or leave it out"),
        ("check_all", "c", Group.CHANGE, "Choose all", "Choose every rule, or none"),
        ("add", "a", Group.CHANGE, "Add", "Add the chosen rules to the policy, not saved yet"),
        ("which", "w", Group.VIEW, "Which calls", "One session, this project or all; since when"),
        ("interactive", "i", Group.VIEW, "Headless", "As in a headless run, or with somebody"),
        ("mode", "m", Group.VIEW, "Mode", "The next approval mode"),
        ("again", "r", Group.CHANGE, "Again", "Read the sessions once more"),
        ("stop", "ctrl+c", Group.CHANGE, "Stop", "Stop reading; propose from what was read"),
        ("close", "escape,q", Group.OPEN, "Back", "Back to the policy, nothing added"),
    ),
}

TRIAL_RANKED = (
    "replay.stop",
    "suggest.stop",
    "rows.cursor_down",
    "drawing.scroll_down",
    "suggest.check",
    "suggest.add",
    "rows.open",
    "try.recorded",
    "try.allow",
    "try.interactive",
    "try.mode",
    "call.allow",
    "call.session",
    "calls.filter",
    "pick.which",
    "replay.which",
    "suggest.which",
    "replay.interactive",
    "replay.mode",
    "suggest.mode",
    "replay.again",
    "suggest.check_all",
    "drawing.copy",
    "try.close",
    "replay.close",
    "calls.close",
    "call.close",
    "suggest.close",
)
"""Ids of those keys that the footer shows, the most useful first."""
TRIAL_FACES = {"rows.cursor_down": "↑↓", "drawing.scroll_down": "↑↓"}
