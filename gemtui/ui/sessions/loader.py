"""The session that is open on the screen: its file is read in threads, first the first screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock

from gemtui.sessions.load import transcript_of
from gemtui.sessions.records import Problem, SessionLog
from gemtui.transcript.model import Dropped, Transcript

FIRST = 512 * 1024
"""Bytes that are read before anything is shown."""


class SessionLoader:
    """One file; every method may wait for the disk and is called in a thread, but for `stop`.

    They raise NotASession, SessionTooLarge, OSError. `dropped`: with the messages that were
    rewound, buried or failed; at first only where there are no others. `lost`: how many these are,
    by what became of them, as of the last reading. `gone`: the file was removed meanwhile; what was
    read of it stays.
    """

    def __init__(self, path: Path) -> None:
        self.dropped = False
        self.lost: Mapping[Dropped, int] = {}
        self.gone = False
        self._wanted: bool | None = None
        self._log = SessionLog(path)
        self._lock = Lock()
        self._stopped = Event()

    def first(self) -> Transcript:
        """What the first bytes give."""
        with self._lock:
            self._refresh(upto=FIRST)
            return self._transcript()

    def rest(self) -> Transcript | None:
        """Everything that is there now; None if that is nothing new."""
        with self._lock:
            try:
                changed, self.gone = self._refresh(), False
            except FileNotFoundError:
                changed, self.gone = False, True
            return self._transcript() if changed else None

    def again(self, *, dropped: bool) -> Transcript:
        """What has been read, with the dropped messages or without."""
        self._wanted = dropped
        with self._lock:
            return self._transcript()

    def _refresh(self, *, upto: int | None = None) -> bool:
        changed = self._log.refresh(upto=upto, cancelled=self._stopped.is_set)
        self.lost = Counter(why for _, why in self._log.replay.dropped)
        return changed

    def _transcript(self) -> Transcript:
        if self._wanted is not None:
            self.dropped = self._wanted
            return transcript_of(self._log, dropped=self._wanted)
        kept = transcript_of(self._log)
        self.dropped = bool(self.lost) and self._log.complete and not len(kept)
        return transcript_of(self._log, dropped=True) if self.dropped else kept

    @property
    def complete(self) -> bool:
        """Whether all bytes have been read that were there at the last reading."""
        return self._log.complete

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Places in the file that could not be read."""
        return self._log.problems

    @property
    def torn(self) -> bool:
        """The last line is cut: the rest may come."""
        return self._log.torn

    def stop(self) -> None:
        """Let a reading that is under way come to its end soon."""
        self._stopped.set()

    def close(self) -> None:
        """Let the file go, as soon as nobody reads it; bodies can't be read any more."""
        self.stop()
        with self._lock:
            self._log.close()
