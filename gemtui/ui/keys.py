"""Every key of gemtui in one table; widgets bind from it, footer, help and palette read it.

A widget or screen takes its bindings with `BINDINGS = bindings(Where.LIST)` and has the methods
`action_<action>`. One key means one thing in one place; the same key means the same everywhere
where that makes sense: enter deeper, esc back, / search, n N next, space fold, y copy, . hidden.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import BindingType

from gemtui.ui.key import Group, Key, Row, Where, name
from gemtui.ui.key_table import TABLE
from gemtui.ui.key_table_policy import POLICY_FACES, POLICY_RANKED, POLICY_TABLE
from gemtui.ui.key_table_trial import TRIAL_FACES, TRIAL_RANKED, TRIAL_TABLE

__all__ = ["BY_ID", "KEYS", "RANKED", "Group", "Key", "Where", "bindings", "keys_of", "name"]

RANKED = (
    *POLICY_RANKED,
    *TRIAL_RANKED,
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
    "run.allow",
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
    **POLICY_FACES,
    **TRIAL_FACES,
    "list.cursor_down": "↑↓",
    "transcript.cursor_down": "↑↓",
    "raw.scroll_down": "↑↓",
    "transcript.next_match": "n/N",
    "transcript.next_prompt": "{ }",
    "transcript.next_failure": "x/X",
}
_FIRST = {"app.quit"}


def _keys(where: Where, rows: Iterable[Row]) -> tuple[Key, ...]:
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


KEYS: tuple[Key, ...] = tuple(
    key
    for where, rows in {**TABLE, **POLICY_TABLE, **TRIAL_TABLE}.items()
    for key in _keys(where, rows)
)

BY_ID = {key.id: key for key in KEYS}


def keys_of(where: Where) -> tuple[Key, ...]:
    """The keys of one place, in the order of the table."""
    return tuple(key for key in KEYS if key.where is where)


def bindings(*places: Where) -> list[BindingType]:
    """`BINDINGS` of a widget or screen that stands for these places."""
    return [key.binding for place in places for key in keys_of(place)]
