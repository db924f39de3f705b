"""Loading the open session in threads, a first part before the rest."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock

from gemtui.sessions.load import dropped_counts, transcript_of
from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import Problem
from gemtui.transcript.model import Dropped, Transcript

FIRST = 512 * 1024
"""Number of bytes to read before anything is shown."""


class SessionLoader:
    """Loads one session file.

    Call the methods from worker threads, except `stop` and `toggle_dropped`. They raise
    NotASession, SessionTooLarge and OSError. `dropped`: whether the messages that were rewound,
    replaced or failed are included; initially only if there are no other messages. `lost`: the
    number of such messages, by reason, as of the last read. `gone`: whether the file has been
    removed; what was read of it remains available.
    """

    def __init__(self, path: Path) -> None:
        self.dropped = False
        self.lost: Mapping[Dropped, int] = {}
        self.gone = False
        self._wanted: bool | None = None
        self._log = SessionLog(path)
        self._lock = Lock()
        self._stopped = Event()

    def read_first(self) -> Transcript:
        """Read the first part of the file and return its transcript."""
        with self._lock:
            self._refresh(upto=FIRST)
            return self._transcript()

    def rest(self) -> Transcript | None:
        """Read the rest; return the transcript, or None if there is nothing new."""
        with self._lock:
            try:
                changed, self.gone = self._refresh(), False
            except FileNotFoundError:
                changed, self.gone = False, True
            return self._transcript() if changed else None

    def transcript_so_far(self) -> Transcript:
        """Return the transcript of what has been read so far."""
        with self._lock:
            return self._transcript()

    def toggle_dropped(self) -> None:
        """Toggle whether the next transcript includes dropped messages."""
        self._wanted = not (self.dropped if self._wanted is None else self._wanted)

    def _refresh(self, *, upto: int | None = None) -> bool:
        changed = self._log.refresh(upto=upto, cancelled=self._stopped.is_set)
        self.lost = dropped_counts(self._log)
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
        """Whether everything that was in the file at the last read has been read."""
        return self._log.complete

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The lines of the file that could not be read."""
        return self._log.problems

    @property
    def has_partial_line(self) -> bool:
        """Whether the last line is incomplete, so that more of it may follow."""
        return self._log.torn

    def stop(self) -> None:
        """Make a read that is in progress end soon."""
        self._stopped.set()

    def close(self) -> None:
        """Close the file after any read in progress; bodies can't be read afterwards."""
        self.stop()
        with self._lock:
            self._log.close()
