"""Whether a write of which no result came was made: the disk is asked."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gemtui.files import changed_at, read_small
from gemtui.transcript.model import ToolCall
from gemtui.transcript.parts import string
from gemtui.transcript.tools import ToolKind, kind_of

_SLACK = 1.0
"""Seconds by which a file's time may lie before that of the call which wrote it."""


def landed(call: ToolCall, path: Path, *, ended: datetime | None = None) -> bool | None:
    """Return whether a file holds what a write or an edit was to put there; None = can't be told.

    It does if it has the whole content, or an edit's new text and not the old one. It does not if
    it is not there, has an edit's old text and not the new one, or has not changed since the call.
    `ended`: when the run did, None = just now; what has changed since tells nothing. Reads the
    disk.
    """
    changed = changed_at(path)
    late = ended is not None and changed > ended.timestamp() + _SLACK
    try:
        text = _plain(read_small(path).decode())
    except FileNotFoundError:
        return None if late else False
    except (OSError, ValueError):
        return None
    found = _holds(call, text)
    if found is None and call.time is not None and changed < call.time.timestamp() - _SLACK:
        return False
    return None if late and not found else found


def _holds(call: ToolCall, text: str) -> bool | None:
    """Whether a text is what the call was to leave; None where it may be or not."""
    content = call.args.get("content")
    if kind_of(call.name) is ToolKind.WRITE:
        return True if isinstance(content, str) and text == _plain(content) else None
    old, new = (_plain(string(call.args.get(name))) for name in ("old_string", "new_string"))
    if not old:
        return True if text == new else None
    was = old in (text.replace(new, "\0") if new and old in new else text)
    now = bool(new) and new in (text.replace(old, "\0") if new in old else text)
    return None if was == now else now


def _plain(text: str) -> str:
    """Without what the ends of its lines are: an edit keeps those of the file."""
    return text.replace("\r\n", "\n")
