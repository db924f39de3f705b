"""Compare two versions of a session file: which of them contains the other.

Gemini CLI only appends to a log (assets/gemini-cli.md#growth). So a log that does not begin with an
earlier version of itself was changed by something else, or was created anew.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import orjson

from gemtui.errors import GemtuiError, NotASession
from gemtui.files import open_regular
from gemtui.jsonin import loads
from gemtui.transcript.parts import objects

_PIECE = 1 << 20
_SAMPLE = 4096
"""How many bytes `begins_with` compares at each end if `sampled` is true."""


def same_version(kept: os.stat_result, facts: os.stat_result) -> bool:
    """Return whether a copy has the same size and modification time as its file."""
    return (kept.st_size, kept.st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)


def begins_with(path: Path, kept: Path, *, sampled: bool = False) -> bool:
    """Return whether a file starts with the complete contents of the file `kept`.

    `sampled`: compare only both ends of those contents. That is enough for lists, but must never
    decide whether something is removed. Raises OSError.
    """
    with open_regular(path) as file, open_regular(kept) as beginning:
        size = os.fstat(beginning.fileno()).st_size
        if size > os.fstat(file.fileno()).st_size:
            return False
        if sampled and size > 2 * _SAMPLE:
            if beginning.read(_SAMPLE) != file.read(_SAMPLE):
                return False
            beginning.seek(size - _SAMPLE)
            file.seek(size - _SAMPLE)
        while piece := beginning.read(_PIECE):
            if file.read(len(piece)) != piece:
                return False
    return True


def holds_all(path: Path, kept: Path) -> bool:
    """Return whether a file contains everything in another version of it.

    A legacy file, which the CLI overwrites, does so if it has all messages. Raises OSError.
    """
    if begins_with(path, kept):
        return True
    if kept.suffix != ".json":
        return False
    before, now = legacy_message_ids(kept), legacy_message_ids(path)
    return before is not None and now is not None and before <= now


def is_superseded(
    kept: Path, kept_stamp: tuple[int, int], path: Path, stamp: tuple[int, int]
) -> bool:
    """Return whether the file at `path` has everything in its copy `kept`.

    The contents are compared only if the file has changed since it was copied. `stamp`,
    `kept_stamp`: size and modification time in nanoseconds. Returns False if either can't be read.
    """
    if kept_stamp == stamp:
        return True
    with suppress(OSError):
        return holds_all(path, kept)
    return False


def legacy_message_ids(path: Path) -> set[str] | None:
    """Return the ids of the messages in a legacy file; None if it is incomplete.

    Raises OSError.
    """
    with open_regular(path) as file, suppress(orjson.JSONDecodeError):
        stored = loads(file.read())
        if isinstance(stored, dict):
            return {str(message.get("id")) for message in objects(stored.get("messages"))}
    return None


def adds_to(path: Path, kept: Path) -> bool:
    """Return whether a session file has messages that another version of it lacks.

    A message is the same if it has the same id or time, because either may be damaged. A file that
    is no session has no messages. Returns True if either file can't be read.
    """
    try:
        messages = _messages(kept)
        ids, times = {id for id, _ in messages}, {time for _, time in messages} - {None}
        return any(id not in ids and time not in times for id, time in _messages(path))
    except (GemtuiError, OSError):
        return True


def _messages(path: Path) -> list[tuple[str, datetime | None]]:
    """Return id and time of all messages that a session file has or had.

    Raises SessionTooLarge or OSError.
    """
    from gemtui.sessions.read.session_log import SessionLog  # the reader, which lists don't need

    with SessionLog(path) as log, suppress(NotASession):
        log.refresh()
        return [(outline.id, outline.time) for outline in (*log.outlines, *log.dropped)]
    return []
