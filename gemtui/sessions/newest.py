"""Find the newest sessions of a store without reading all summaries."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gemtui.sessions.cache import Head
from gemtui.sessions.index import Index
from gemtui.sessions.merge import LIVE_FOR
from gemtui.sessions.repositories import ProjectFolders
from gemtui.sessions.store import ChatFile, SessionKind
from gemtui.sessions.summary import Summary

_AT_FIRST = 32
"""Number of sessions to read in the first batch; each later batch is larger."""


class Unsure(Exception):
    """Raised if the result can't be determined without the summaries of all sessions."""


class NewestSessions:
    """The sessions of `index` in the sort order of lists; summaries are read when needed.

    `ids`: the ids of all sessions. `unreadable`: the number of unreadable files and folders.
    Creating an instance raises Unsure or StoreUnreadable.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        files = index.files()
        heads = index.heads()
        if not heads or _is_busy(files):
            raise Unsure
        self._groups: dict[tuple[str, ...], list[tuple[ChatFile, Head]]] = {}
        for file in files:
            if (head := heads.get(file.name)) is not None and head.kind:
                checkpoint = head.kind == SessionKind.CHECKPOINT
                key = head.kind, head.id, file.project_key if checkpoint else ""
                self._groups.setdefault(key, []).append((file, head))
        self.ids = {head.id for head in heads.values() if head.kind}
        self.unreadable = index.unreadable(heads)

    def listed(self, *, project: Path | None, hidden: bool) -> Iterator[Summary]:
        """Yield the same sessions as `gemtui.sessions.scope.listed`. Raises Unsure."""
        folders = None if project is None else ProjectFolders(project)
        inside = None if project is None else {each.name for each in self._index.files(project)}
        wanted = [
            (max((head.when, head.id) for _, head in group), [file for file, _ in group])
            for group in self._groups.values()
            if (hidden or _may_be_shown(group))
            and (inside is None or len(group) > 1 or group[0][0].name in inside)
        ]
        wanted.sort(key=lambda each: each[0], reverse=True)
        for session in self._in_order(wanted):
            if folders is not None and session.project not in folders:
                continue
            if hidden or not session.hidden:
                yield session
                yield from session.copies if hidden else ()

    def _in_order(
        self, wanted: Sequence[tuple[tuple[float, str], list[ChatFile]]]
    ) -> Iterator[Summary]:
        """Yield the sessions in these groups of files, newest first. Raises Unsure."""
        read: list[Summary] = []
        start, count = 0, _AT_FIRST
        while start < len(wanted) or read:
            some, start, count = wanted[start : start + count], start + count, 2 * count
            read += self._index.sessions_in([file for _, group in some for file in group])
            read.sort(key=_order)
            while read and (start >= len(wanted) or _order(read[-1]) > wanted[start][0]):
                session = read.pop()
                if session.project is None:  # another session may name its project
                    raise Unsure
                yield session


def _order(session: Summary) -> tuple[float, str]:
    return session.when.timestamp(), session.id


def _is_busy(files: Iterable[ChatFile]) -> bool:
    """Return whether any file may be a working subagent, which makes its parent live."""
    since = (time.time() - LIVE_FOR.total_seconds()) * 1e9
    return any(file.mtime_ns > since and file.kind is SessionKind.SUBAGENT for file in files)


def _may_be_shown(group: Sequence[tuple[ChatFile, Head]]) -> bool:
    head = group[0][1]
    return head.kind == SessionKind.MAIN and (len(group) > 1 or not head.hidden)
