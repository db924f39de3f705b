"""Find the newest sessions of a store without reading all summaries."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
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
    """The sessions of `index` in the order of lists; summaries are read when needed.

    `ids`: the ids of all sessions. `unreadable`: how many files and folders are unreadable.
    Creating an instance raises Unsure or StoreUnreadable.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        known = index.heads()
        if not known or _is_busy(index.files()):
            raise Unsure
        self.unreadable = index.unreadable(known)
        heads = [each for each in known if each[1].kind]
        self.ids = {head.id for _, head in heads}
        self._single, self._several = _grouped(heads, several=len(self.ids) < len(heads))

    def listed(self, *, project: Path | None, hidden: bool) -> Iterator[Summary]:
        """Yield the same sessions as `gemtui.sessions.scope.listed`. Raises Unsure."""
        folders = None if project is None else ProjectFolders(project)
        inside = None if project is None else {each.name for each in self._index.files(project)}
        wanted = [
            (head.when, head.id, [file])
            for file, head in self._single
            if (hidden or not (head.hidden or head.kind != SessionKind.MAIN))
            and (inside is None or file.name in inside)
        ]
        wanted += [
            (*max((head.when, head.id) for _, head in group), [file for file, _ in group])
            for group in self._several
            if hidden or group[0][1].kind == SessionKind.MAIN
        ]
        wanted.sort(key=itemgetter(0, 1), reverse=True)
        for session in self._in_order(wanted):
            if folders is not None and session.project not in folders:
                continue
            if hidden or not session.hidden:
                yield session
                yield from session.copies if hidden else ()

    def _in_order(self, wanted: Sequence[tuple[float, str, list[ChatFile]]]) -> Iterator[Summary]:
        """Yield the sessions in these groups of files, newest first. Raises Unsure."""
        read: list[Summary] = []
        start, count = 0, _AT_FIRST
        while start < len(wanted) or read:
            some, start, count = wanted[start : start + count], start + count, 2 * count
            read += self._index.sessions_in([file for *_, group in some for file in group])
            read.sort(key=_order)
            while read and (start >= len(wanted) or _order(read[-1]) > wanted[start][:2]):
                session = read.pop()
                if session.project is None:  # another session may name its project
                    raise Unsure
                yield session


def _order(session: Summary) -> tuple[float, str]:
    return session.when.timestamp(), session.id


def _is_busy(files: Iterable[ChatFile]) -> bool:
    """Return whether any file may be a working subagent, whose parent is live as well."""
    since = (time.time() - LIVE_FOR.total_seconds()) * 1e9
    return any(file.mtime_ns > since and file.kind is SessionKind.SUBAGENT for file in files)


def _grouped(
    heads: Sequence[tuple[ChatFile, Head]], *, several: bool
) -> tuple[Sequence[tuple[ChatFile, Head]], list[list[tuple[ChatFile, Head]]]]:
    """Split groups of files: sessions with one file, and sessions with several.

    Returns the only files of their sessions, and the files of each other session. `several`:
    whether any two files have the same id.
    """
    if not several:
        return heads, []
    groups: dict[tuple[str, str, str], list[tuple[ChatFile, Head]]] = {}
    for file, head in heads:
        key = file.project_key if head.kind == SessionKind.CHECKPOINT else ""
        groups.setdefault((head.kind, head.id, key), []).append((file, head))
    single = [group[0] for group in groups.values() if len(group) == 1]
    return single, [group for group in groups.values() if len(group) > 1]
