"""Bodies of records, read again when they are wanted.

A session may be larger than memory, so a log keeps places, not bodies. A source stays readable
after the file has been replaced or deleted: it holds the open file (or the parsed object).
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
from gemtui.sessions.replay import Slot
from gemtui.transcript.parts import objects

Record = Mapping[str, Any]


class RecordSource(Protocol):
    """Something that gives the record of a slot back, or None when it can't be read any more."""

    def at(self, slot: Slot) -> Record | None:
        """The record that stands at this slot."""

    def close(self) -> None:
        """Let the file go; later reads give None."""


class WholeSource:
    """The records of a legacy object or a checkpoint, which are in memory anyway."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def at(self, slot: Slot) -> Record | None:
        """The record by its place in the list."""
        return self._records[slot.place] if 0 <= slot.place < len(self._records) else None

    def close(self) -> None:
        """Forget the records."""
        self._records = ()


class LineSource:
    """The lines of a log, read by offset; the message lists parsed last are kept: at most four, of
    large lines one.

    The file closes with `close`, or when the last snapshot that reads from it is gone. `keep`:
    bytes of lines that are kept as they were parsed, for who reads all bodies at once.
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
        """Bytes from `offset`; fewer than `length` at the end of the file or after `close`."""
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
        """Keep a parsed line, while there is room for more."""
        if length <= self._keep:
            self._keep -= length
            self._kept[offset] = line

    def fileno(self) -> int:
        """The open file's descriptor, for fstat."""
        return self._file.fileno()

    def at(self, slot: Slot) -> Record | None:
        """The record of a line, or one of the messages that a `$set` line restores."""
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
    """Another source, each record of it changed before it is given out."""

    def __init__(self, source: RecordSource, change: Callable[[Record], Record]) -> None:
        self._source, self._change = source, change

    def at(self, slot: Slot) -> Record | None:
        """The changed record."""
        record = self._source.at(slot)
        return None if record is None else self._change(record)

    def close(self) -> None:
        """Let the file go."""
        self._source.close()


def _messages_in(line: object) -> list[Record]:
    if not isinstance(line, dict):
        return []
    change = line.get("$set")
    return objects((change if isinstance(change, dict) else line).get("messages"))
