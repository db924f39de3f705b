"""The sessions that statistics count, and whose work each of them is."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from gemtui.sessions.catalog.summary import Summary, project_group
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import SessionKind


class Counted(NamedTuple):
    """A session that statistics count.

    `name`: the path of its file. `id`: that of the session that a person opened; a subagent belongs
    to its caller. `is_subagent`: whether its prompts are those of that caller. `project`: the
    session's folder; None if unknown. `group`: as `project_group` returns it.
    `seconds`: `Summary.when`, in seconds since 1970.
    """

    name: str
    id: str
    is_subagent: bool
    project: str | None
    group: str
    seconds: float

    @property
    def path(self) -> Path:
        """The path of the session's file."""
        return Path(self.name)

    @property
    def when(self) -> datetime:
        """When the session was last updated."""
        return datetime.fromtimestamp(self.seconds, UTC)


def counted_sessions(sessions: Iterable[Summary], project: Path | None) -> list[Counted]:
    """Return the sessions that statistics count, including subagents.

    Ghosts, copies and checkpoints are left out, so that each session counts once. `project`: count
    only sessions in this folder and its git worktrees; None means all.
    """
    folders = None if project is None else ProjectFolders(project)
    return [
        Counted(
            name=session.name,
            id=session.owner,
            is_subagent=session.owner != session.id,
            project=session.project,
            group=project_group(session),
            seconds=session.when.timestamp(),
        )
        for session in filter(_counts, sessions)
        if folders is None or session.project in folders
    ]


def _counts(session: Summary) -> bool:
    return not (session.is_copy if session.kind is SessionKind.SUBAGENT else session.hidden)
