"""Find out from the disk whether a call without a result wrote its file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gemtui.files import changed_at, read_small
from gemtui.transcript.model import ToolCall
from gemtui.transcript.parts import string
from gemtui.transcript.tools import ToolKind, kind_of

_SLACK = 1.0
"""How many seconds a file's time may be earlier than the call that wrote it."""


def was_written(call: ToolCall, path: Path, *, ended: datetime | None = None) -> bool | None:
    """Return whether a call's write or edit is on disk; None if unknown.

    True if the file has exactly the written contents, or an edit's new text but not the old text.
    False if the file is missing, has an edit's old text but not the new text, or has not changed
    since the call. If the file has changed since the end of the run, the result may be None.
    `ended`: when the run ended; None means right now. Reads the disk.
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
    """Return whether a file's text is what the call would write; None if unclear."""
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
    """Convert CRLF to LF, because edits keep the line endings that a file has."""
    return text.replace("\r\n", "\n")
