"""The public API for reading stored sessions: `list_sessions` and `load_session`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.files import is_folder
from gemtui.paths import cache_dir, current_folder, gemini_home, typed_path
from gemtui.sessions.catalog.index import Index, find_session, read_store
from gemtui.sessions.catalog.selection import LATEST, listed_sessions
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import dropped_of, records_and_unified
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.transcript.model import Dropped
from gemtui.transcript.unified import UnifiedMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedRecord:
    """A record in a session file that is no longer part of the conversation.

    `why`: the reason for that. `record`: as it appears in the file.
    """

    why: Dropped
    record: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return `{"why", "record"}`, as `gemtui show --format json` prints it."""
        return {"why": self.why.value, "record": self.record}


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A stored session, loaded completely into memory.

    `session`: its summary. `records`: the records that are left after rewinds and updates in the
    file have been applied, otherwise exactly as in the file. `messages`: the conversation as
    Claude-compatible messages, without the session context and the replies to tool calls.
    `dropped`: records that were rewound or replaced, or that failed. `problems`: the parts of the
    file that could not be read.
    """

    session: Summary
    records: tuple[Mapping[str, Any], ...]
    messages: tuple[UnifiedMessage, ...]
    dropped: tuple[DroppedRecord, ...] = ()
    problems: tuple[Problem, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the value that `gemtui show --format json` prints."""
        return {
            "version": 1,
            "session": self.session.to_dict(),
            "messages": list(self.records),
            "dropped": [record.to_dict() for record in self.dropped],
            "problems": [problem.to_dict() for problem in self.problems],
        }


def list_sessions(
    *,
    project: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    hidden: bool = False,
) -> list[Summary]:
    """Return the stored sessions, newest first; an empty list if there are none.

    `project`: return only this folder's sessions; None returns all. `home`: the CLI's folder, or
    the folder that contains `.gemini`; None finds it the way the CLI does. `hidden`: include empty
    sessions, ghosts (empty files with another session's id), subagents and checkpoints, and list
    each additional file of a session separately. Summaries are cached in gemtui's cache folder.
    Raises StoreUnreadable.
    """
    folder = _folder(project)
    with closing(_index(home)) as index:
        snapshot = read_store(index, project=folder)
    return list(listed_sessions(snapshot, project=folder, hidden=hidden))


def load_session(
    session_id: str | None = None,
    *,
    project: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
) -> Session:
    """Return one session, loaded completely into memory.

    `session_id`: a full id, a unique prefix, "latest", or the path of a session, subagent or
    checkpoint file; None means "latest". `project`: search only this folder's sessions for the id
    or "latest". If None, all sessions are searched, but "latest" means the current folder's newest
    session if the folder has any. `home`: see `list_sessions`. Raises SessionNotFound
    (`.searched`), SessionAmbiguous (`.candidates`), NotASession, SessionTooLarge, StoreUnreadable,
    OSError.
    """
    wanted = LATEST if session_id is None else session_id
    with closing(_index(home)) as index:
        summary = find_session(index, wanted, project=_folder(project), here=current_folder())
    with SessionLog.read(summary.path) as log:
        return _session(log, summary)


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
    for record, message in records_and_unified(log):
        records.append(record)
        if message is not None:
            messages.append(message)
    return Session(
        session=summary,
        records=tuple(records),
        messages=tuple(messages),
        dropped=tuple(DroppedRecord(why=why, record=record) for why, record in dropped_of(log)),
        problems=log.problems,
    )
