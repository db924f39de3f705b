"""Loading a session's file, first a part and then the rest.

The first picture has no session yet, so this module and all that reads and draws conversations is
imported after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock

from gemtui.sessions.read.conversation import dropped_counts, transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.transcript.model import Dropped, Transcript, with_project
from gemtui.ui.draw.code import load_highlighter
from gemtui.ui.draw.markdown import load_parser

FIRST = 512 * 1024
"""How many bytes of the file are read before anything is shown."""


class SessionLoader:
    """Loads a session file, first a part and then the rest.

    Except for `stop` and `toggle_dropped`, call the methods on background threads; they raise
    NotASession, SessionTooLarge and OSError. `project`: the session's folder. `dropped`: whether to
    include messages that failed or that were rewound or replaced; until the user toggles this, it
    is True only if there are no other messages. `lost`: the number of these messages by reason, as
    of the last read. `gone`: whether the file has been deleted; what has been read of it stays
    available.
    """

    def __init__(self, path: Path, project: str | None = None) -> None:
        self.dropped = False
        self.path = path
        self.lost: Mapping[Dropped, int] = {}
        self.gone = False
        self._wanted: bool | None = None
        self._log = SessionLog(path)
        self._project = project
        self._lock = Lock()
        self._stopped = Event()

    def read_first(self) -> Transcript:
        """Read the first part of the file and return its transcript."""
        with self._lock:
            self._refresh(upto=FIRST)
            return self._transcript()

    def rest(self) -> Transcript | None:
        """Read the rest of the file, or what has been added since; None if nothing is new.

        Returns the transcript of everything read so far.
        """
        with self._lock:
            try:
                changed, self.gone = self._refresh(), False
            except FileNotFoundError:
                changed, self.gone = False, True
            return self._transcript() if changed else None

    def transcript_so_far(self) -> Transcript:
        """Return the transcript of everything read so far."""
        with self._lock:
            return self._transcript()

    def toggle_dropped(self) -> None:
        """Include dropped messages in transcripts from now on, or leave them out again."""
        self._wanted = not (self.dropped if self._wanted is None else self._wanted)

    def _refresh(self, *, upto: int | None = None) -> bool:
        changed = self._log.refresh(upto=upto, cancelled=self._stopped.is_set)
        self.lost = dropped_counts(self._log)
        return changed

    def _transcript(self) -> Transcript:
        if self._wanted is not None:
            self.dropped = self._wanted
        else:
            kept = transcript_of(self._log)
            self.dropped = bool(self.lost) and self._log.complete and not len(kept)
        return with_project(transcript_of(self._log, dropped=self.dropped), self._project)

    @property
    def complete(self) -> bool:
        """Whether the whole file, as it was at the last read, has been read."""
        return self._log.complete

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems with lines of the file that couldn't be read."""
        return self._log.problems

    @property
    def has_partial_line(self) -> bool:
        """Whether the file's last line is incomplete, because it is still being written."""
        return self._log.torn

    def stop(self) -> None:
        """Make any read in progress end soon."""
        self._stopped.set()

    def close(self) -> None:
        """Close the file once any read in progress has ended.

        The bodies of messages can't be read from then on.
        """
        self.stop()
        with self._lock:
            self._log.close()


def read_first(reader: SessionLoader) -> Transcript:
    """Read a session's first part; import what draws all of them, which takes 20 ms once."""
    load_parser()
    return reader.read_first()


def read_rest(reader: SessionLoader) -> Transcript | None:
    """Read the rest of a session; import what draws code, which takes 40 ms once."""
    load_highlighter()
    return reader.rest()
