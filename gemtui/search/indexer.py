"""Keep a store's index up to date in a separate process.

    indexer = Indexer(home, index_folder(cache_dir(), home), told)  # `told` gets each IndexProgress
    indexer.notify_changed()                                        # the store has changed
    indexer.stop()

The process runs this module as a program. It exits when its input is closed, which also happens
when its parent exits. If several instances of gemtui are running, one writes the index, and all see
what it commits; the others wait to take over.
"""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import BinaryIO

import msgspec.json
from msgspec import Struct

from gemtui.processes import helper
from gemtui.search.following import Following
from gemtui.search.index import WriteIndex, only_writer, remove_gone
from gemtui.search.read_documents import read_documents
from gemtui.sessions.catalog.vault_files import store_with_kept
from gemtui.sessions.store.store import ChatFile, SessionKind

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
"""Seconds that a process is given to exit by itself."""


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
    done = len(places) - len(stale)
    index.commit(gone=index.rows.keys() - {place.name for place in places})
    wait, last = _FIRST, time.monotonic()
    told(done, len(places))
    for _ in _added(index, stale, following, cancelled):
        done += 1
        if time.monotonic() - last > wait:
            index.commit()
            wait, last = min(2 * wait, _LONGEST), time.monotonic()
        told(done, len(places))
    index.commit()


def _added(
    index: WriteIndex, stale: Sequence[ChatFile], following: Following | None, cancelled: Callable[[], bool]
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
    """The program of the indexing process; it runs until its input is closed."""

    def __init__(self, home: Path, folder: Path, out: BinaryIO) -> None:
        self._home = home
        self._folder = folder
        self._out = out
        self._ended = Event()
        self._changed = Event()
        self._said = 0.0

    def listen(self, asked: BinaryIO) -> None:
        """Read what the parent process sends: one line for each change to the store."""
        while asked.readline():
            self._changed.set()
        self._ended.set()
        self._changed.set()
        time.sleep(_PATIENCE)
        os._exit(1)

    def run(self) -> None:
        """Update the index until the input is closed.

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
                words = getattr(error, "strerror", None) or str(error)
                self._tell(IndexProgress(state=IndexerState.FAILED, note=words))
                self._ended.wait(_AGAIN)

    def run_once(self) -> None:
        """Update the index once, unless another gemtui process is writing to it."""
        with suppress(OSError, ValueError, sqlite3.Error), only_writer(self._folder) as mine:
            if mine:
                with closing(WriteIndex(self._folder)) as index:
                    remove_gone(self._folder, self._home)
                    update(index, self._home)

    def _write(self) -> None:
        with closing(WriteIndex(self._folder)) as index, closing(Following(index)) as following, _unless_gone(index):
            remove_gone(self._folder, self._home)
            while not self._ended.is_set() and index.is_there:
                self._changed.clear()
                began = time.monotonic()
                told = partial(self._indexing, index.renewed)
                ended = self._ended.is_set
                update(index, self._home, following=following, told=told, cancelled=ended)
                count = len(index.rows)
                note = index.renewed
                self._tell(IndexProgress(state=IndexerState.DONE, done=count, total=count, note=note))
                self._ended.wait(min(_REST, 3 * (time.monotonic() - began)))
                while not self._changed.wait(_TURN) and index.is_there:
                    pass

    def _indexing(self, note: str | None, done: int, total: int) -> None:
        if done < total and time.monotonic() - self._said > _TOLD:
            self._said = time.monotonic()
            self._tell(IndexProgress(state=IndexerState.INDEXING, done=done, total=total, note=note))

    def _tell(self, progress: IndexProgress) -> None:
        with suppress(OSError):
            self._out.write(msgspec.json.encode(progress) + b"\n")
            self._out.flush()


def _main() -> None:
    asked = sys.stdin.buffer
    home, folder, once = pickle.load(asked)
    with suppress(OSError):
        os.nice(5)
    program = _Program(home, folder, sys.stdout.buffer)
    if once:
        program.run_once()
        os._exit(0)
    Thread(target=program.listen, args=(asked,), daemon=True).start()
    program.run()
    os._exit(0)


# --- parent process ------------------------------------------------------------------------------


class Indexer:
    """The process that keeps the search index of the store in `home` up to date.

    `folder`: the index's folder. `told`: called with each IndexProgress, on a background thread.
    When the process exits, or if it can't be started, `told` is called with the state ENDED.
    """

    def __init__(self, home: Path, folder: Path, told: Callable[[IndexProgress], None]) -> None:
        self._told = told
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = helper("-m", __name__, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            told(IndexProgress(state=IndexerState.ENDED, note=error.strerror))
            return
        self._say(pickle.dumps((home, folder, False)))
        Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def notify_changed(self) -> None:
        """Tell the process that the store has changed.

        New text can be found within a second.
        """
        self._say(b"\n")

    def stop(self) -> None:
        """End the process, keeping what has been indexed so far. May be called twice."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError), process:
            assert process.stdin is not None
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(2 * _PATIENCE)
            process.kill()

    def _say(self, words: bytes) -> None:
        with self._lock, suppress(OSError, ValueError):
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(words)
                self._process.stdin.flush()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with suppress(OSError, ValueError):
            for line in process.stdout:
                with suppress(msgspec.MsgspecError):  # printed by other code
                    self._told(msgspec.json.decode(line, type=IndexProgress))
        self._told(IndexProgress(state=IndexerState.ENDED))


if __name__ == "__main__":
    _main()


def begin_index(home: Path, folder: Path) -> None:
    """Update a store's index once, in a process that may outlive this one.

    `home`: the folder that contains the store. `folder`: the index's folder. If the process can't
    be started, the index isn't updated; no error is raised.
    """
    with suppress(OSError):
        process = helper("-m", "gemtui.search.indexer", stdin=subprocess.PIPE)
        assert process.stdin is not None
        with process.stdin as asked:
            asked.write(pickle.dumps((home, folder, True)))
        process.returncode = 0  # prevents a warning that the process is still running
