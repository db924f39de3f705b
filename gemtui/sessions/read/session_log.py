"""Read and replay a session file: first all of it, later only the new part.

Both formats are supported in all their versions (assets/gemini-cli.md#session-files,
#older-formats). Memory use grows with the number of records, not with their size: a log keeps
positions, and a RecordSource reads bodies again when they are needed. It stays readable after the
file has been replaced or deleted, because it keeps the file open (or holds the parsed object).
"""

from __future__ import annotations

import os
import stat
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import orjson
from msgspec import Struct
from msgspec.structs import replace

from gemtui.agents import Agent
from gemtui.errors import NotASession, SessionTooLarge
from gemtui.files import open_regular
from gemtui.jsonin import loads, values_in
from gemtui.sessions.read import legacy_json
from gemtui.sessions.read.dialect import joined
from gemtui.sessions.read.envelope import EnvelopeReplay
from gemtui.sessions.read.foreign import (
    OTHER_PROGRAM,
    agent_of_file,
    dialect_of,
    foreign_program,
    translated,
)
from gemtui.sessions.read.replay import (
    RecordKind,
    Replay,
    ReplayedMessage,
    Slot,
    facts_of,
    is_message,
    left_out_note,
)
from gemtui.sessions.read.usual_records import feed_usual
from gemtui.sessions.store.store import Problem, never
from gemtui.transcript.model import Outline
from gemtui.transcript.parts import objects

Record = Mapping[str, Any]

CHUNK = 1024 * 1024
LINE_LIMIT = 128 * 1024 * 1024
"""Maximum length of a line in bytes.

A longer line is skipped and reported; the CLI doesn't write lines of that size.
"""
HELD_LIMIT = 500_000
"""Maximum number of messages, calls, and replies in one session.

This many take half a gigabyte of memory.
"""
PROBLEMS = 100
FORKED_FROM = "forkedFrom"
"""The header field in which a fork names its original; the CLI keeps the field."""
_TAIL = 64


class SessionLog:
    """One session file, and the conversation in the part that has been read.

    `refresh` reads the new part, and the properties return the current state. `keep`: cache parsed
    lines up to this many bytes, for callers that read all bodies at once. `refresh` raises
    NotASession, SessionTooLarge, or OSError; corrupt lines are only added to `problems`. Not
    thread-safe, except that bodies may be read from `source` while `refresh` is running.
    """

    def __init__(self, path: Path, *, keep: int = 0) -> None:
        self.path = path
        self._keep = keep
        self.size = 0
        """Number of bytes that have been read and applied."""
        self.complete = True
        """False if the limit `upto` stopped the last refresh before the end of the file."""
        self.torn = False
        """Whether the last line is incomplete, or a legacy file was read half-written."""
        self.format: Literal["jsonl", "json"] = "json" if path.suffix == ".json" else "jsonl"
        self.agent = Agent.GEMINI
        """The agent that wrote the file."""
        self.problem_count = 0
        self._problems: list[Problem] = []
        self._replay = Replay()
        self._envelope: EnvelopeReplay | None = None
        self._source: RecordSource | None = None
        self._rewrite: Callable[[Record], Record] | None = None
        self._line = 0
        self._tail = b""
        self._stamp: tuple[int, ...] = ()
        self._skipping = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Outlines stay available, but message bodies can't be read."""
        if self._source is not None:
            self._source.close()
        self._source = None

    # --- reading -----------------------------------------------------------------------------

    @classmethod
    def read(cls, path: Path, *, keep: int = 0, cancelled: Callable[[], bool] = never) -> Self:
        """Return the log of a session file, read to its end; use it in a `with` statement.

        Raises the same errors as `refresh`; UNREADABLE lists them, and `problem_of` words them.
        """
        log = cls(path, keep=keep)
        try:
            log.refresh(cancelled=cancelled)
        except BaseException:
            log.close()
            raise
        return log

    def refresh(self, *, upto: int | None = None, cancelled: Callable[[], bool] = never) -> bool:
        """Read the new part of the file; return True if anything changed.

        Only a log's new bytes are read, but a legacy file is always read in full. A file that
        shrank, was replaced, or was rewritten is read from the beginning
        (assets/gemini-cli.md#growth). `upto`: stop after about this many bytes. `cancelled`: called
        once per megabyte; once it returns True, reading stops.

        Raises NotASession if the file isn't a session, or isn't one yet; SessionTooLarge; or
        OSError if the file can't be read.
        """
        info = self.path.stat()
        if not stat.S_ISREG(info.st_mode):
            raise NotASession(f"{self.path} is not a regular file", path=self.path)
        stamp = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
        if stamp == self._stamp and self.complete:
            return False
        if isinstance(self._source, LineSource) and self._continues(info):
            changed = self._read_lines(self._source, info.st_size, upto, cancelled)
        else:
            changed = self._start(info.st_size, upto, cancelled)
        if not cancelled():
            self._stamp = stamp
        return changed

    def _continues(self, info: os.stat_result) -> bool:
        """Return whether the file is the one read before, possibly with bytes appended."""
        source = self._source
        if not isinstance(source, LineSource) or info.st_size < self.size:
            return False
        held = os.fstat(source.fileno())
        if (held.st_dev, held.st_ino) != (info.st_dev, info.st_ino):
            return False
        return source.read(self.size - len(self._tail), len(self._tail)) == self._tail

    def _start(self, size: int, upto: int | None, cancelled: Callable[[], bool]) -> bool:
        """Read the file from the beginning: determine its format, then replay it."""
        source = LineSource(self.path, keep=self._keep)
        head = source.read(0, min(size, CHUNK))
        first, newline, rest = head.partition(b"\n")
        source.agent = agent_of_file(head)
        if source.agent is None and _is_one_value(first, rest):
            value = self._whole_object(source, size, upto)
            if value is not None:
                source.close()
                return self._read_whole(value, size)
            if first.strip() in (b"{", b"[") or not (newline or len(head) == CHUNK):
                return self._unreadable(source)
        self._reset(source)
        self._read_lines(source, size, upto, cancelled, head=head if upto is None else b"")
        if self.complete and not self._recognised and not cancelled():
            return self._unreadable(source)
        return True

    @property
    def _recognised(self) -> bool:
        named = self._replay.metadata.get("sessionId") or self._replay.has_messages
        return bool(named or self._envelope is not None)

    def _unreadable(self, source: LineSource) -> bool:
        """Handle a file that contains no session at the moment.

        Keeps the state read earlier, if any; otherwise raises NotASession.
        """
        data = source.read(0, CHUNK).strip()
        if self._replay.entries and not isinstance(self._source, LineSource):
            source.close()
            self.torn = True
            return False
        source.close()
        if self._source is source:
            self._source = None
        if not data:
            raise NotASession(f"{self.path} is empty", path=self.path)
        program = foreign_program(data)
        if program is not None:
            why = " (no sessionId at its beginning)" if b'"sessionId"' not in data else ""
            raise NotASession(f"{self.path} {_FOREIGN.format(program)}{why}", path=self.path)
        if data[:1] == b"{" and (b'"sessionId"' in data or _is_cut(data)):
            raise NotASession(
                (
                    f"{self.path} ends before its first message; it may not be complete yet, so "
                    "try "
                    "again"
                ),
                path=self.path,
            )
        raise NotASession(
            f"{self.path} is not a Gemini session (no sessionId at its beginning)", path=self.path
        )

    def _reset(self, source: RecordSource) -> None:
        self._replay = Replay()
        self._envelope = None
        self.agent = Agent.GEMINI
        if isinstance(source, LineSource) and source.agent is not None:
            self.agent = source.agent
            self._envelope = EnvelopeReplay(dialect_of(source.agent), self._replay)
        self._source = source
        self._problems, self.problem_count = [], 0
        self.size = self._line = 0
        self._tail = b""
        self.torn = self._skipping = False
        self.format = "jsonl"

    # --- one JSON value ----------------------------------------------------------------------

    def _whole_object(self, source: LineSource, size: int, upto: int | None) -> _Whole | None:
        """Parse a file that is a single JSON object; return None if it is anything else."""
        short = upto is not None and upto < size
        for amount in (upto, size) if short and upto is not None else (size,):
            if amount > legacy_json.LIMIT:
                self._require_other_form(source, size=size, limit=legacy_json.LIMIT, of="bytes")
                return None
            data = source.read(0, amount)
            values = values_in(data)
            if values > legacy_json.VALUES:
                self._require_other_form(
                    source, size=values, limit=legacy_json.VALUES, of="JSON values"
                )
                return None
            parsed = legacy_json.parse_legacy(data)
            if parsed is not None and legacy_json.is_session(parsed[0]):
                value, cut = parsed
                is_header = isinstance(value.get("sessionId"), str) and isinstance(
                    value.get("projectHash"), str
                )
                _, _, rest = data.partition(b"\n")
                is_line = is_header and not rest.strip()
                return _Whole(value, cut=cut, complete=amount == size, is_line=is_line)
        return None

    def _require_other_form(self, source: LineSource, *, size: int, limit: int, of: str) -> None:
        """Raise SessionTooLarge if the file is a legacy session, which is one JSON object.

        Call this for a file over `limit`. A log, which has one record per line, may have any size.
        `of`: the unit of `size` and `limit`.
        """
        if legacy_json.looks_like_session(source.read(0, CHUNK)):
            raise SessionTooLarge(self.path, size=size, limit=limit, of=of)

    def _read_whole(self, whole: _Whole, size: int) -> bool:
        """Replay a legacy session; return whether anything changed.

        Messages that haven't changed keep their outlines.
        """
        before, had = self._replay, self._source
        value, cut, complete = whole.value, whole.cut, whole.complete
        records = legacy_json.records_in(value, self.path)
        if records and "projectHash" not in value and not any(map(is_message, records)):
            raise NotASession(f"{self.path} {_FOREIGN.format(OTHER_PROGRAM)}", path=self.path)
        if cut and complete and isinstance(had, WholeSource) and len(had) > len(records):
            self.torn = True
            return False
        self._reset(WholeSource(records))
        self.format, self.complete, self.torn = "json", complete, cut and complete
        self.size = size if complete else 0
        header = {key: item for key, item in value.items() if key not in ("messages", "history")}
        self._replay.feed({"$set": header}, 0, size)
        self._replay.has_messages = any(map(is_message, records))
        messages = [facts_of(record, size // len(records)) for record in records]
        self._replay.rebuild(messages, 0, size, unique=not whole.is_line)
        self._require_bounded()
        word = left_out_note(legacy_json.entries_in(value) - len(records))
        if word is not None:
            self._problem(None, word)
        if isinstance(had, WholeSource):
            self._keep_equal(before, had, records)
        if self.torn:
            self._problem(None, "cut off; shown up to that point")
        return True

    def _keep_equal(self, before: Replay, had: WholeSource, records: Sequence[Record]) -> None:
        old = {entry.id: entry for entry in before.entries}
        for entry in self._replay.entries:
            mate = old.get(entry.id)
            if mate is not None and _equal(had.at(mate.slot), records[entry.slot.place]):
                self._replay.keep(entry, mate)

    # --- lines -------------------------------------------------------------------------------

    def _read_lines(
        self,
        source: LineSource,
        end: int,
        upto: int | None,
        cancelled: Callable[[], bool],
        *,
        head: bytes = b"",
    ) -> bool:
        """Apply the lines up to `end`. `head`: the first bytes, if they have just been read."""
        before, was = self.size, self.torn
        pieces: list[bytes] = []
        held, at = 0, self.size
        while at < end and not cancelled() and (upto is None or self.size < upto):
            most = min(CHUNK if upto is None else upto, CHUNK, end - at)
            chunk, head = head or source.read(at, most), b""
            if not chunk:
                break
            at += len(chunk)
            pieces.append(chunk)
            if b"\n" in chunk:
                pieces = [self._lines(source, b"".join(pieces))]
                held = len(pieces[0])
            elif (held := held + len(chunk)) > LINE_LIMIT:
                self._skip(held)
                pieces, held = [], 0
        self.complete = at >= end
        rest = b"".join(pieces)
        self.torn = bool(rest) and self.complete and not self._last(rest)
        self._tail = source.read(max(0, self.size - _TAIL), min(self.size, _TAIL))
        return self.size != before or self.torn != was

    def _lines(self, source: LineSource, data: bytes) -> bytes:
        """Apply the complete lines of `data`; return the rest after the last line feed.

        Raises SessionTooLarge.
        """
        *lines, rest = data.split(b"\n")
        for line in lines:
            length = len(line) + 1
            if self._is_usual(length) and feed_usual(self._replay, line, self.size):
                if self._keep:
                    source.keep(self.size, line)
                self._line += 1
                self.size += length
            else:
                self._apply(line, length)
        self._require_bounded()
        return rest

    def _is_usual(self, length: int) -> bool:
        """Return whether a line of this length may have the usual form of Gemini CLI's lines."""
        return self._envelope is None and length < legacy_json.VALUES and not self._skipping

    def _apply(self, line: bytes, length: int) -> None:
        self._line += 1
        if self._skipping:
            self._skipping = False
            self._problem(self._line, f"longer than {LINE_LIMIT:,} bytes, so it was left out")
        elif line and not line.isspace() and (word := self._feed(line)) is not None:
            self._problem(self._line, word)
        self.size += length

    def _feed(self, line: bytes) -> str | None:
        """Replay one line; return a note on anything left out. Raises SessionTooLarge."""
        if self._envelope is not None and self._envelope.skips(line):
            return None
        if len(line) > legacy_json.VALUES and values_in(line) > legacy_json.VALUES:
            return f"more than {legacy_json.VALUES:,} JSON values, so it was left out"
        if self._keep and isinstance(self._source, LineSource):
            self._source.keep(self.size, line)
        try:
            value = loads(line)
        except orjson.JSONDecodeError as error:
            return f"not valid JSON ({error.msg})"
        if not isinstance(value, dict):
            return "not a JSON object"
        word = (self._envelope or self._replay).feed(value, self.size, len(line))
        self._require_bounded()
        return word

    def _require_bounded(self) -> None:
        if self._replay.held > HELD_LIMIT:
            raise SessionTooLarge(
                self.path,
                size=self._replay.held,
                limit=HELD_LIMIT,
                of="messages and tool calls",
                way_out="split it at line breaks to read it in parts",
            )

    def _last(self, line: bytes) -> bool:
        """Replay the file's last line if it has no line feed but is complete JSON.

        Returns whether the line was replayed.
        """
        if not line.isspace() and values_in(line) <= legacy_json.VALUES and not _is_object(line):
            return False
        self._apply(line, len(line))
        self._line -= 1
        return True

    def _skip(self, length: int) -> None:
        self._skipping = True
        self.size += length

    def _problem(self, line: int | None, what: str) -> None:
        self.problem_count += 1
        if len(self._problems) < PROBLEMS:
            self._problems.append(Problem(path=self.path, line=line, what=what))

    # --- current state -----------------------------------------------------------------------

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The session's header, including all changes by later `$set` lines."""
        return self._replay.metadata

    @property
    def own_cost(self) -> float | None:
        """What the session has cost by the agent's own count, in US dollars.

        None if the agent keeps none, or if the count doesn't include the last answer
        (assets/agents.md#claude-code).
        """
        cost = self.metadata.get("cost")
        counts = self.complete and self.agent is not Agent.GEMINI
        return float(cost) if counts and isinstance(cost, int | float) else None

    def is_inherited(self, time: datetime | None) -> bool:
        """Return whether a time is before this session was forked from another.

        Anything that happened then belongs to the original session.
        """
        began = self._replay.started if self.metadata.get(FORKED_FROM) else None
        return time is not None and began is not None and time < began

    @property
    def replay(self) -> Replay:
        """The replayed conversation: its entries, dropped messages, and calls by id."""
        return self._replay

    @property
    def source(self) -> RecordSource | None:
        """The source from which to read message bodies; None once the log is closed."""
        if self._source is None or self._rewrite is None:
            return self._source
        return RewrittenSource(self._source, self._rewrite)

    def rewrite(self, change: Callable[[Record], Record]) -> None:
        """Apply `change` to every record body that is read from now on.

        The replay itself is unaffected.
        """
        self._rewrite = change

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The first 100 problems found, plus a log's incomplete last line.

        `problem_count` is the number of all problems except the incomplete line.
        """
        if not self.torn or self.format == "json":
            return tuple(self._problems)
        last = Problem(path=self.path, line=self._line + 1, what="the last line is incomplete")
        return (*self._problems, last)

    @property
    def outlines(self) -> Sequence[Outline]:
        """The outlines of the conversation's messages.

        An outline holds the facts that stay in memory without a message's body. Session context and
        mere tool results are left out.
        """
        replay = self._replay
        return [
            replay.outline(entry)
            for entry in replay.entries
            if entry.facts.kind is RecordKind.MESSAGE
        ]

    @property
    def dropped(self) -> Sequence[Outline]:
        """The outlines of messages no longer in the conversation, each with the reason."""
        return [
            self._replay.intern(replace(self._replay.outline(entry), dropped=why))
            for entry, why in self._replay.dropped
        ]


class _Whole(Struct):
    """A file that is a single JSON object.

    `cut`: whether it is truncated. `complete`: whether all of the file has been read. `is_line`:
    whether the CLI reads it as the only line of a log (assets/gemini-cli.md#session-files).
    """

    value: dict[str, Any]
    cut: bool
    complete: bool
    is_line: bool


# --- bodies --------------------------------------------------------------------------------------


_FOREIGN = "has the format of {}, not of Gemini CLI"


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
        self._kept: dict[int, bytes] = {}
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self._lists: OrderedDict[int, list[Record]] = OrderedDict()
        self.agent: Agent | None = None
        """The agent besides Gemini CLI that wrote the file; its lines are translated."""

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

    def keep(self, offset: int, line: bytes) -> None:
        """Cache a line if there is still room. `offset`: its position in the file, in bytes."""
        if len(line) <= self._keep:
            self._keep -= len(line)
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
            if not isinstance(line, dict):
                return None
            return line if self.agent is None else translated(line, self.agent)
        records = self._lists.get(slot.offset)
        if records is None:
            records = _messages_in(self._parsed(slot))
            while len(self._lists) >= (self._LISTS if slot.length < self._LARGE else 1):
                self._lists.popitem(last=False)
            self._lists[slot.offset] = records
        return records[slot.place] if slot.place < len(records) else None

    def _parsed(self, slot: Slot) -> object:
        try:
            return loads(self._kept.get(slot.offset) or self.read(slot.offset, slot.length))
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


def read_record(source: RecordSource | None, entry: ReplayedMessage) -> Record | None:
    """Return an entry's stored record, with the fields it lost in a resume.

    The record of a message of several records has the content of all of them.
    """
    record = None if source is None else source.at(entry.slot)
    if record is None or source is None:
        return record
    if entry.more:
        record = joined(record, [source.at(slot) or {} for slot in entry.more])
    if not entry.borrowed:
        return record
    merged = dict(record)
    for name, slot in entry.borrowed:
        lender = source.at(slot)
        if lender is not None and name in lender:
            merged[name] = lender[name]
    return merged


def _equal(one: Record | None, other: Record) -> bool:
    """Return whether two records are equal.

    Records that are nested too deeply to compare count as different.
    """
    try:
        return one == other
    except RecursionError:
        return False


def _is_cut(data: bytes) -> bool:
    """Return whether data is truncated JSON, rather than invalid in any other way."""
    try:
        loads(data)
    except orjson.JSONDecodeError as error:
        return error.pos >= len(data.decode("utf-8", "replace"))
    return False


def _is_one_value(first: bytes, rest: bytes) -> bool:
    """Return whether a file may be one JSON value, pretty-printed or on one line.

    `first`: the file's first line. `rest`: what follows, at least its beginning.
    """
    if first.lstrip()[:1] not in (b"{", b"[", b""):
        return False
    alone = not rest or rest.isspace()
    return not _is_object(first) or (alone and legacy_json.holds_messages(first))


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(loads(line), dict)
    except orjson.JSONDecodeError:
        return False
