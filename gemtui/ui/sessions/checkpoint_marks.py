"""Which sessions have checkpoints, and how a session's changes can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from gemtui.paths import checkpoints_dir
from gemtui.runs.undo.undo import sessions_with_checkpoints
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import counted, relative
from gemtui.ui.undo.checkpointed import read_checkpoints

_FILES = (".sqlite3", ".sqlite3-wal")


class CheckpointedSessions:
    """The ids of sessions with checkpoints, read again only if the files have changed."""

    def __init__(self) -> None:
        self._seen: Mapping[Path, int] | None = None

    def read(self) -> frozenset[str] | None:
        """Return the ids, or None if they are the same as before or can't be read.

        Blocking: call this on a background thread.
        """
        try:
            files = (each for each in checkpoints_dir().glob("*/*") if not each.is_dir())
            seen = {each: each.stat().st_mtime_ns for each in files if each.suffix in _FILES}
            if seen == self._seen:
                return None
            self._seen = seen
            return sessions_with_checkpoints()
        except OSError:
            return None


def undo_words(session: Summary, now: datetime) -> str:
    """Return words that say how a session's changes can be undone.

    They are shown among the facts about the session. Blocking: call this on a background thread.
    """
    found = read_checkpoints(session)
    if found.newest is not None:
        words = f"{counted(found.total, 'checkpoint')}, the newest {relative(found.newest, now)}"
        return f"files and chat; {words}"
    if session.files_written:
        return "chat, and files written by file tools (not by shell commands)"
    return "chat only; no written files are known"
