"""Read the bodies of records again when they are needed.

A session may be larger than memory, so a log keeps positions instead of bodies. A source stays
readable after the file has been replaced or deleted, because it keeps the file open (or holds the
parsed object).
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import orjson

from gemtui.files import open_regular
from gemtui.jsonin import loads
from gemtui.sessions.read.replay import Slot
from gemtui.transcript.parts import objects

Record = Mapping[str, Any]


class RecordSource(Protocol):
    """Reads stored records by their position in a session file."""

    def at(self, slot: Slot) -> Record | None:
        """Return the record at this position, or None if it can't be read any more."""

    def close(self) -> None:
        """Release the file; later reads return None."""


class WholeSource:
    """The records of a legacy session or a checkpoint, all held in memory."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def at(self, slot: Slot) -> Record | None:
        """Return the record at a position, which is an index in the list of records."""
        return self._records[slot.place] if 0 <= slot.place < len(self._records) else None

    def close(self) -> None:
        """Release the records."""
        self._records = ()


class LineSource:
    """The lines of a log, read by offset.

    The most recently parsed lines that contain message lists are cached: at most four, or one if
    lines are large. The file is closed by `close`, or when nothing refers to this object any more.
    `keep`: also cache parsed lines up to this many bytes, for callers that read all bodies at once.
    """

    _LISTS = 4
    _LARGE = 8 * 1024 * 1024

    def __init__(self, path: Path, *, keep: int = 0) -> None:
        self._file = open_regular(path)
        self._keep = keep
        self._kept: dict[int, object] = {}
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._lists: OrderedDict[int, list[Record]] = OrderedDict()

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, or fewer at the end.

        After `close`, no bytes are returned.
        """
        with self._lock:
            if self._file.closed:
                return b""
            self._file.seek(offset)
            pieces = []
            while length > 0 and (piece := self._file.read(length)):
                pieces.append(piece)
                length -= len(piece)
            return b"".join(pieces)

    def keep(self, offset: int, length: int, line: object) -> None:
        """Cache a parsed line if there is still room.

        `offset`, `length`: the line's position in the file, in bytes.
        """
        if length <= self._keep:
            self._keep -= length
            self._kept[offset] = line

    def fileno(self) -> int:
        """Return the file's descriptor, for fstat."""
        return self._file.fileno()

    def at(self, slot: Slot) -> Record | None:
        """Return the record at a position.

        If the line contains a list of messages, this is one of them; otherwise, it is the whole
        line.
        """
        if slot.place < 0:
            line = self._parsed(slot)
            return line if isinstance(line, dict) else None
        records = self._lists.get(slot.offset)
        if records is None:
            records = _messages_in(self._parsed(slot))
            while len(self._lists) >= (self._LISTS if slot.length < self._LARGE else 1):
                self._lists.popitem(last=False)
            self._lists[slot.offset] = records
        return records[slot.place] if slot.place < len(records) else None

    def _parsed(self, slot: Slot) -> object:
        if slot.offset in self._kept:
            return self._kept[slot.offset]
        try:
            return loads(self.read(slot.offset, slot.length))
        except (orjson.JSONDecodeError, OSError):
            return None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


class RewrittenSource:
    """A source that applies a change to each record of another source."""

    def __init__(self, source: RecordSource, change: Callable[[Record], Record]) -> None:
        self._source, self._change = source, change

    def at(self, slot: Slot) -> Record | None:
        """Return the record at a position, with the change applied."""
        record = self._source.at(slot)
        return None if record is None else self._change(record)

    def close(self) -> None:
        """Close the source whose records are changed."""
        self._source.close()


def _messages_in(line: object) -> list[Record]:
    if not isinstance(line, dict):
        return []
    change = line.get("$set")
    return objects((change if isinstance(change, dict) else line).get("messages"))
