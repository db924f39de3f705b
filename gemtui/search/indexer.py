"""Keep a store's index up to date in a separate process.

    indexer = Indexer(home, index_folder(cache_dir(), home), told)  # `told` gets each IndexProgress
    indexer.notify_changed()                                        # the store has changed
    indexer.stop()

The process runs `serve` (`gemtui.worker`). If several instances of gemtui are running, one writes
the index, and all see what it commits; the others wait to take over.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from functools import partial
from math import inf
from pathlib import Path
from threading import Event, Thread

from msgspec import Struct

from gemtui.errors import reason_of
from gemtui.search.documents import FileDocuments
from gemtui.search.file_list import session_of
from gemtui.search.index import WriteIndex, only_writer, remove_gone
from gemtui.search.read_documents import read_documents, readable_documents
from gemtui.sessions.catalog.summarise import kind_and_id
from gemtui.sessions.catalog.vault_files import store_with_kept
from gemtui.sessions.read.conversation import message_fingerprints
from gemtui.sessions.read.replay import Replay
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import UNREADABLE, ChatFile, SessionKind
from gemtui.worker import Parent, Worker

_FIRST, _LONGEST = 0.5, 8.0
"""Minimum and maximum seconds between commits.

The first interval is short, so that new sessions are found soon.
"""
_TOLD = 0.1
"""Seconds between two progress reports."""
_REST = 0.6
"""Maximum seconds to pause between scans.

The pause is three times as long as the last scan, so that scanning takes little of the time.
"""
_TURN = 1.0
"""Seconds after which a waiting indexer tries again to get the lock."""
_AGAIN = 30.0
"""Seconds after which an indexer tries again following an error."""
_PATIENCE = 5.0
"""Seconds that a process is given to keep what it has read, and to exit."""


class IndexerState(StrEnum):
    """The state of an indexer."""

    INDEXING = "indexing"
    DONE = "done"
    """The whole store is indexed, and the indexer is waiting for changes."""
    WAITING = "waiting"
    """Another gemtui process is keeping the index up to date."""
    FAILED = "failed"
    """The index can't be written; indexing will be retried.

    `IndexProgress.note` explains why.
    """
    ENDED = "ended"
    """The process has exited."""


class IndexProgress(Struct, frozen=True, kw_only=True):
    """The progress of indexing.

    `done`: how many of the store's `total` files are indexed. `note`: why indexing failed or the
    index was rebuilt; otherwise None.
    """

    state: IndexerState
    done: int = 0
    total: int = 0
    note: str | None = None


# --- growing logs --------------------------------------------------------------------------------


# A log's last messages may still change, because calls get their results later; earlier messages
# rarely change. So the documents of a growing log are stored under several document numbers (see
# `file_list.py`), and only those under the last number are replaced each time. If earlier messages
# do change (by a rewind, or because the CLI replaced all messages), the whole log is indexed again.
_LOGS = 4
"""Maximum number of logs kept open."""
_LIVE = 600.0
"""A log counts as growing for this many seconds after its last change."""
_OPEN = 16
"""Number of messages at the end of a log that may still change."""
_MANY = 64
"""If more new messages than this have settled, they get a document number of their own.

Otherwise, they stay with the messages that may still change.
"""


class Following:
    """Follows growing logs, and adds their new parts to `index`."""

    def __init__(self, index: WriteIndex) -> None:
        self._index = index
        self._logs: OrderedDict[str, _Growing] = OrderedDict()

    def close(self) -> None:
        """Close all open logs."""
        while self._logs:
            self._logs.popitem()[1].log.close()

    def growing(self, places: Sequence[ChatFile]) -> Collection[ChatFile]:
        """Return those of the files that are growing logs, to be indexed with `add`.

        `places` must be sorted newest first.
        """
        now = time.time()
        recent = {
            place
            for place in places[:_LOGS]
            if place.name.endswith(".jsonl") and abs(now - place.mtime_ns / 1e9) < _LIVE
        }
        return recent | {place for place in places if place.name in self._logs}

    def add(self, place: ChatFile) -> None:
        """Index the new part of a log.

        A log that can't be read is added without documents.
        """
        growing = self._logs.pop(place.name, None) or _Growing(place)
        try:
            growing.log.refresh()
        except UNREADABLE:
            growing.log.close()
            self._index.add(place, FileDocuments())
            return
        growing.add(self._index, place)
        self._logs[place.name] = growing
        if len(self._logs) > _LOGS:
            self._logs.popitem(last=False)[1].log.close()


class _Growing:
    """A growing log, with its messages that are already indexed and won't change."""

    def __init__(self, place: ChatFile) -> None:
        self.log = SessionLog(place.path)
        self._replay: Replay | None = None
        self._messages: list[tuple[object, ...]] = []
        self._settled: tuple[int, ...] = ()

    def add(self, index: WriteIndex, place: ChatFile) -> None:
        """Index the messages that have been added to the log since the last call."""
        messages = message_fingerprints(self.log)
        start = len(self._messages)
        if self._replay is not self.log.replay or messages[:start] != self._messages:
            start, self._settled = 0, ()
        stop = len(messages) - _OPEN
        if stop - start > (_MANY if start else 0):
            self._settled += (self._add(index, place, start, stop),)
            start = stop
        self._add(index, place, start, None)
        self._messages, self._replay = messages[:start], self.log.replay

    def _add(self, index: WriteIndex, place: ChatFile, start: int, stop: int | None) -> int:
        session = session_of(*kind_and_id(self.log, place))
        documents = readable_documents(self.log, start=start, stop=stop)
        return index.add(place, FileDocuments(session, documents), keep=self._settled)


# --- writer --------------------------------------------------------------------------------------


def update(
    index: WriteIndex,
    home: Path,
    *,
    following: Following | None = None,
    told: Callable[[int, int], None] = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Index the changed files of a store, newest first, and remove deleted ones.

    `following`: the growing logs; only their new parts are read. None reads every file in full.
    `told`: called with the number of indexed files and the total. `cancelled`: once it returns
    True, indexing stops, but everything read so far is kept. Raises OSError, ValueError, or
    sqlite3.Error if the index can't be written.
    """
    files = store_with_kept(home).files()
    places = [place for place in files if place.kind is not SessionKind.CHECKPOINT]
    stale = sorted(index.stale(places), key=lambda place: place.mtime_ns, reverse=True)
    count = len(places) - len(stale)
    index.commit(gone=index.rows.keys() - {place.name for place in places})
    wait, last = _FIRST, time.monotonic()
    told(count, len(places))
    for _ in _added(index, stale, following, cancelled):
        count += 1
        if time.monotonic() - last > wait:
            index.commit()
            wait, last = min(2 * wait, _LONGEST), time.monotonic()
        told(count, len(places))
    index.commit()


def _added(
    index: WriteIndex,
    stale: Sequence[ChatFile],
    following: Following | None,
    cancelled: Callable[[], bool],
) -> Iterator[ChatFile]:
    """Index the files in `stale`, and yield each file once it is indexed.

    `following`, `cancelled`: as in `update`.
    """
    growing = () if following is None else following.growing(stale)
    for place in growing:
        if following is not None and not cancelled():
            following.add(place)
            yield place
    rest = [place for place in stale if place not in growing]
    for place, contents in read_documents(rest, cancelled=cancelled):
        index.add(place, contents)
        yield place


@contextmanager
def _unless_gone(index: WriteIndex) -> Iterator[None]:
    """Suppress write errors if the index has since been deleted or replaced."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error):
        if index.is_there:
            raise


class _Program:
    """The program of the indexing process; it runs until its parent is done."""

    def __init__(self, parent: Parent, home: Path, folder: Path) -> None:
        self._parent = parent
        self._home = home
        self._folder = folder
        self._ended = Event()
        self._changed = Event()
        self._said = 0.0

    def listen(self) -> None:
        """Receive the parent's messages, one for each change to the store."""
        with suppress(OSError):
            while True:
                self._parent.receive()
                self._changed.set()
        self._ended.set()
        self._changed.set()

    def run(self) -> None:
        """Update the index until the parent is done.

        While another gemtui process updates it, this one waits to take over.
        """
        while not self._ended.is_set():
            try:
                with only_writer(self._folder) as mine:
                    if mine:
                        self._write()
                    else:
                        self._tell(IndexProgress(state=IndexerState.WAITING))
                        self._ended.wait(_TURN)
            except (OSError, ValueError, sqlite3.Error) as error:
                self._tell(IndexProgress(state=IndexerState.FAILED, note=reason_of(error)))
                self._ended.wait(_AGAIN)

    def _write(self) -> None:
        with (
            closing(WriteIndex(self._folder)) as index,
            closing(Following(index)) as following,
            _unless_gone(index),
        ):
            remove_gone(self._folder, self._home)
            while not self._ended.is_set() and index.is_there:
                self._changed.clear()
                began = time.monotonic()
                tell_progress = partial(self._indexing, index.renewed)
                ended = self._ended.is_set
                update(index, self._home, following=following, told=tell_progress, cancelled=ended)
                count = len(index.rows)
                note = index.renewed
                self._tell(
                    IndexProgress(state=IndexerState.DONE, done=count, total=count, note=note)
                )
                self._ended.wait(min(_REST, 3 * (time.monotonic() - began)))
                while not self._changed.wait(_TURN) and index.is_there:
                    pass

    def _indexing(self, note: str | None, done: int, total: int) -> None:
        if done < total and time.monotonic() - self._said > _TOLD:
            self._said = time.monotonic()
            self._tell(
                IndexProgress(state=IndexerState.INDEXING, done=done, total=total, note=note)
            )

    def _tell(self, progress: IndexProgress) -> None:
        with suppress(OSError):
            self._parent.send(progress)


def serve(parent: Parent) -> None:
    """Keep an index up to date for the process that has started this one."""
    program = _Program(parent, *_asked(parent))
    Thread(target=program.listen, daemon=True).start()
    program.run()


def serve_once(parent: Parent) -> None:
    """Update an index once, unless another gemtui process is writing to it."""
    home, folder = _asked(parent)
    with suppress(OSError, ValueError, sqlite3.Error), only_writer(folder) as mine:
        if mine:
            with closing(WriteIndex(folder)) as index:
                remove_gone(folder, home)
                update(index, home)


def _asked(parent: Parent) -> tuple[Path, Path]:
    """Return the store's and the index's folder that the parent sends; be nice to other
    programs.
    """
    home, folder = parent.receive()
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(5)
    return home, folder


# --- parent process ------------------------------------------------------------------------------


class Indexer:
    """The process that keeps the search index of the store in `home` up to date.

    `folder`: the index's folder. `told`: called with each IndexProgress, on a background thread.
    When the process exits, or if it can't be started, `told` is called with the state ENDED.
    """

    def __init__(self, home: Path, folder: Path, told: Callable[[IndexProgress], None]) -> None:
        self._told = told
        self._worker: Worker | None = None
        try:
            self._worker = Worker(f"{__name__}:serve", grace=_PATIENCE)
        except OSError as error:
            told(IndexProgress(state=IndexerState.ENDED, note=reason_of(error)))
            return
        self._send((home, folder))
        self._listener = Thread(target=self._listen, args=(self._worker,), daemon=True)
        self._listener.start()

    def notify_changed(self) -> None:
        """Tell the process that the store has changed.

        New text can be found within a second.
        """
        self._send("changed")

    def stop(self) -> None:
        """End the process, keeping what has been indexed so far. May be called twice."""
        if self._worker is not None:
            self._worker.finish()
            self._listener.join(2 * _PATIENCE)
            self._worker.kill()
            self._listener.join()

    def _send(self, message: object) -> None:
        with suppress(OSError):
            if self._worker is not None:
                self._worker.send(message)

    def _listen(self, worker: Worker) -> None:
        with suppress(OSError):
            while True:
                self._told(worker.receive())
        worker.end()
        self._told(IndexProgress(state=IndexerState.ENDED))


def begin_index(home: Path, folder: Path) -> None:
    """Update a store's index once, in a process that may outlive this one.

    `home`: the folder that contains the store. `folder`: the index's folder. If the process can't
    be started, the index isn't updated; no error is raised.
    """
    with suppress(OSError):
        worker = Worker(f"{__name__}:serve_once", grace=inf)
        worker.send((home, folder))
        worker.leave()
