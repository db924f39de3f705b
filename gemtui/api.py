"""Stored sessions for programs: `list_sessions` and `load_session`, re-exported by `gemtui`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.errors import StoreUnreadable
from gemtui.files import is_folder
from gemtui.paths import cache_dir, gemini_home, typed_path
from gemtui.sessions.index import Index, Snapshot
from gemtui.sessions.load import dropped_of
from gemtui.sessions.projects import folder_names
from gemtui.sessions.record_facts import RecordKind
from gemtui.sessions.records import Problem, SessionLog, read_record
from gemtui.sessions.store import State
from gemtui.sessions.summary import Summary
from gemtui.transcript.model import Dropped
from gemtui.transcript.unified import UnifiedMessage, parse_message


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRecord:
    """A stored record that is no longer part of the conversation, and why."""

    why: Dropped
    record: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """`{"why", "record"}` of `gemtui show --format json`."""
        return {"why": self.why.value, "record": self.record}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stored session, read whole.

    `session` says what it is; `records` are the stored records after replay, uncleaned;
    `messages` is their Claude-compatible projection without session context and tool replies;
    `dropped` holds what was rewound, buried or failed; `problems` what could not be read.
    """

    session: Summary
    records: tuple[Mapping[str, Any], ...]
    messages: tuple[UnifiedMessage, ...]
    dropped: tuple[DroppedRecord, ...] = ()
    problems: tuple[Problem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The value that `gemtui show --format json` prints."""
        return {
            "version": 1,
            "session": self.session.to_dict(),
            "messages": list(self.records),
            "dropped": [each.to_dict() for each in self.dropped],
            "problems": [problem_dict(each) for each in self.problems],
        }


def list_sessions(
    *,
    project: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    hidden: bool = False,
) -> list[Summary]:
    """The stored sessions, newest first; an empty list where there are none.

    `project`: only those of this folder; None = of all projects. `home`: the CLI's folder, or the
    one that holds `.gemini`; None = as the CLI finds it. `hidden` adds ghosts, empty starts,
    subagents, checkpoints, and the other files of a session as sessions of their own. Summaries
    are kept in our cache folder. Raises StoreUnreadable.
    """
    folder = _folder(project)
    with closing(_index(home)) as index:
        snapshot = read_store(index, project=folder)
    return list(listed(snapshot, project=folder, hidden=hidden))


def load_session(
    session_id: str | None = None,
    *,
    project: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Session:
    """One session, read whole into memory.

    `session_id`: a full id, a unique prefix, "latest", or the path of a session, subagent or
    checkpoint file; None = the newest one. `project` narrows ids and the newest one down to a
    folder's sessions; `home` as for `list_sessions`. Raises SessionNotFound (`.searched`),
    SessionAmbiguous (`.candidates`), NotASession, SessionTooLarge, StoreUnreadable, OSError.
    """
    with closing(_index(home)) as index:
        summary = index.find(
            "latest" if session_id is None else session_id, project=_folder(project)
        )
    with SessionLog(summary.path) as log:
        log.refresh()
        return _session(log, summary)


# --- what the commands share -------------------------------------------------------------------


def read_store(index: Index, *, project: Path | None = None) -> Snapshot:
    """Every session of the store; `project`: whose are wanted.

    Raises StoreUnreadable where none of it may be read.
    """
    if project is not None:
        index.expect(project)
    snapshot = index.load(publish=lambda _: None, cancelled=lambda: False)
    if snapshot.state is State.UNREADABLE:
        raise StoreUnreadable(
            f"{index.home} can't be read: give yourself permission to read that folder",
            path=index.home,
        )
    if snapshot.state is State.NO_FOLDER:
        place = snapshot.unreadable[0].path
        raise StoreUnreadable(
            f"{place} is not a folder: move it away, Gemini CLI keeps sessions there", path=place
        )
    return snapshot


def listed(snapshot: Snapshot, *, project: Path | None, hidden: bool) -> Iterator[Summary]:
    """The sessions of the folder `project` (None = of all), newest first; copies follow theirs."""
    names = frozenset[str]() if project is None else folder_names(project)
    for summary in snapshot.sessions:
        if (project is None or summary.project in names) and (hidden or not summary.hidden):
            yield summary
            yield from summary.copies if hidden else ()


def problem_dict(problem: Problem) -> dict[str, Any]:
    """`{"file", "line", "what"}` of `gemtui show --format json`; line null = the whole file."""
    return {"file": str(problem.path), "line": problem.line, "what": problem.what}


def _folder(project: str | os.PathLike[str] | None) -> Path | None:
    return None if project is None else typed_path(project)


def _index(home: str | os.PathLike[str] | None) -> Index:
    if home is None:
        return Index(gemini_home(), cache=cache_dir())
    folder = typed_path(home).absolute()
    inner = folder / ".gemini"
    return Index(inner if is_folder(inner) else folder, cache=cache_dir())


def _session(log: SessionLog, summary: Summary) -> Session:
    records: list[Mapping[str, Any]] = []
    messages: list[UnifiedMessage] = []
    for entry in log.replay.entries:
        record = read_record(log.source, entry)
        if record is not None:
            records.append(record)
            if entry.facts.kind is RecordKind.MESSAGE:
                messages.append(parse_message(record))
    return Session(
        session=summary,
        records=tuple(records),
        messages=tuple(messages),
        dropped=tuple(DroppedRecord(why=why, record=record) for why, record in dropped_of(log)),
        problems=log.problems,
    )
