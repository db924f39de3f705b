"""Keep the index of a store up to date: in a process of its own, newest sessions first.

    indexer = Indexer(home, index_folder(cache_dir(), home), told)   # `told` gets each Progress
    indexer.look()                                                   # the store has changed
    indexer.stop()

The process runs this module as a program and ends when its input ends, that is, with its parent.
Of several gemtui one writes, and what it commits all of them see; the others wait for their turn.
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
from gemtui.sessions.store import ChatFile, SessionKind
from gemtui.sessions.vault_files import store_with_kept

_FIRST, _LONGEST = 0.5, 8.0
"""Seconds between commits: few at first, so that the newest sessions are found soon."""
_TOLD = 0.1
"""Seconds between two words about progress."""
_REST = 0.6
"""Seconds after a look at the store, at most, before the next: three times what it took."""
_TURN = 1.0
"""Seconds after which one that waits tries again to be the one who writes."""
_AGAIN = 30.0
"""Seconds after which one that failed tries again."""
_PATIENCE = 5.0
"""Seconds that a process gets to end by itself."""


class IndexerState(StrEnum):
    """What an indexer does."""

    INDEXING = "indexing"
    DONE = "done"
    """All of the store is in the index; it waits for changes."""
    WAITING = "waiting"
    """Another gemtui keeps the index up to date."""
    FAILED = "failed"
    """The index can't be written; `IndexProgress.note` says why. It tries again."""
    ENDED = "ended"
    """The process is gone."""


class IndexProgress(Struct, frozen=True, kw_only=True):
    """How far an index is.

    `done`, `total`: files of the store. `note`: why it failed, or was made anew; None = nothing.
    """

    state: IndexerState
    done: int = 0
    total: int = 0
    note: str | None = None


# --- the one who writes --------------------------------------------------------------------------


def update(
    index: WriteIndex,
    home: Path,
    *,
    following: Following | None = None,
    told: Callable[[int, int], None] = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> None:
    """Read what changed in a store since it was indexed, newest first, and forget what is gone.

    `following`: the logs that grow, of which only what is new is read; None = all are read whole.
    `told` is called with the number of files that are in the index, and of all. When `cancelled`,
    what was read is kept. Raises OSError, ValueError or sqlite3.Error where the index can't be
    written.
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
    index: WriteIndex,
    stale: Sequence[ChatFile],
    following: Following | None,
    cancelled: Callable[[], bool],
) -> Iterator[ChatFile]:
    """Add files, and yield each that was."""
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
    """Errors of writing, unless they are because somebody has removed the index meanwhile."""
    try:
        yield
    except (OSError, ValueError, sqlite3.Error):
        if index.is_there:
            raise


class _Program:
    """What the process does, until it is told to end."""

    def __init__(self, home: Path, folder: Path, out: BinaryIO) -> None:
        self._home = home
        self._folder = folder
        self._out = out
        self._ended = Event()
        self._changed = Event()
        self._said = 0.0

    def listen(self, asked: BinaryIO) -> None:
        """Take what the parent says: one line each time that the store has changed."""
        while asked.readline():
            self._changed.set()
        self._ended.set()
        self._changed.set()
        time.sleep(_PATIENCE)
        os._exit(1)

    def run(self) -> None:
        """Keep the index up to date whenever no other gemtui does."""
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
        """Bring the index up to date, unless another gemtui does."""
        with suppress(OSError, ValueError, sqlite3.Error), only_writer(self._folder) as mine:
            if mine:
                with closing(WriteIndex(self._folder)) as index:
                    remove_gone(self._folder, self._home)
                    update(index, self._home)

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
                told = partial(self._indexing, index.renewed)
                ended = self._ended.is_set
                update(index, self._home, following=following, told=told, cancelled=ended)
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


# --- its parent ----------------------------------------------------------------------------------


class Indexer:
    """The process that keeps the index of the store in `home` up to date, from now on.

    `folder`: where the index is. `told` is called with each Progress, in a thread of its own. Where
    the process can't be started, it is told that it has ended, as when it ends.
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

    def look(self) -> None:
        """Say that the store has changed: what is new is searchable within a second."""
        self._say(b"\n")

    def stop(self) -> None:
        """End the process quietly: what it has read so far is kept. May be called twice."""
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
                with suppress(msgspec.MsgspecError):  # other code may print
                    self._told(msgspec.json.decode(line, type=IndexProgress))
        self._told(IndexProgress(state=IndexerState.ENDED))


if __name__ == "__main__":
    _main()


def begin_index(home: Path, folder: Path) -> None:
    """Start to bring the index in `folder` of the store in `home` up to date; return at once.

    Where the process can't be started, there is no index; nothing is raised.
    """
    with suppress(OSError):
        process = helper("-m", "gemtui.search.indexer", stdin=subprocess.PIPE)
        assert process.stdin is not None
        with process.stdin as asked:
            asked.write(pickle.dumps((home, folder, True)))
        process.returncode = 0  # it outlives this program, so nobody waits for it
