"""Find the newest sessions of a store without reading all summaries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gemtui.jsonout import encode
from gemtui.sessions.catalog.cache import Head, SessionLine
from gemtui.sessions.catalog.catalog import age_order
from gemtui.sessions.catalog.file_in_use import LIVE_FOR, Identity, identity
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import ChatFile, SessionKind

_AT_FIRST = 32
"""Number of sessions to read in the first batch; each later batch is larger."""
_FEW = 100
"""If at most this many sessions lack cached JSON, the cache isn't updated.

The JSON of all sessions is cached in one row, which grows to megabytes, so reading a few sessions
again each time is faster than writing it.
"""


class Unsure(Exception):
    """Raised if the result can't be determined without the summaries of all sessions."""


class NewestSessions:
    """The sessions of an index, newest first, without reading all summaries.

    `ids`: the ids of all sessions. `unreadable`: how many files and folders are unreadable.
    Creating an instance may raise Unsure or StoreUnreadable.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        known = index.heads()
        if not known or _is_busy(index.files()):
            raise Unsure
        index.learn_projects(known)
        self.unreadable = index.unreadable(known)
        heads = [each for each in known if each[1].kind]
        self.ids = {head.id for _, head in heads}
        self._single, self._several = _grouped(heads)

    def listed(self, *, project: Path | None, hidden: bool) -> Iterator[Summary]:
        """Yield the sessions to list, newest first; summaries are read when needed.

        The sessions are those of `gemtui.sessions.catalog.selection.listed_sessions`, which
        explains the arguments.
        """
        folders = None if project is None else ProjectFolders(project)
        wanted = self._wanted(project, hidden=hidden)
        wanted.sort(reverse=True)
        for session in self._in_order(wanted):
            if folders is not None and session.project not in folders:
                continue
            if hidden or not session.hidden:
                yield session
                yield from session.copies if hidden else ()

    def lines(self, *, project: Path | None, hidden: bool) -> Iterator[Summary | SessionLine]:
        """Yield the same sessions as `listed`, as ready JSON (`SessionLine`) if possible.

        Sessions without valid cached JSON are read. A session that is live or has several files is
        yielded as a summary.
        """
        folders = None if project is None else ProjectFolders(project)
        lines, since = self._index.lines(), _live_since()
        found: list[tuple[float, str, str, Summary | SessionLine]] = []
        unread: list[ChatFile] = []
        for when, id, files in self._wanted(project, hidden=hidden):
            first = files[0]
            alone = len(files) == 1 and first.mtime_ns <= since
            line = lines.get(first.name) if alone else None
            if line is None or line.project != self._index.project_of(first, line.project_hash):
                unread += files
            elif folders is None or line.project in folders:
                found.append((when, id, first.name, line))
        new: dict[str, SessionLine] = {}
        for session in self._index.sessions_in(unread):
            if folders is not None and session.project not in folders:
                continue
            if hidden or not session.hidden:
                line = _line_of(session)
                if line is not None:
                    new[session.name] = line
                found.append((*age_order(session), line or session))
        if len(new) > _FEW:
            self._index.put_lines(lines | new)
        found.sort(reverse=True)
        for *_, each in found:
            yield each
            if hidden and isinstance(each, Summary):
                yield from each.copies

    def _wanted(
        self, project: Path | None, *, hidden: bool
    ) -> list[tuple[float, str, list[ChatFile]]]:
        """Return the sessions to list as (time, id, files), unsorted.

        Some of the sessions may turn out to be hidden or to belong to a different project.
        """
        inside = None if project is None else {each.name for each in self._index.files(project)}
        main = SessionKind.MAIN.value
        wanted = [
            (head.when, head.id, [file])
            for file, head in self._single
            if (hidden or not (head.hidden or head.kind != main))
            and (inside is None or file.name in inside)
        ]
        wanted += [
            (*max((head.when, head.id) for _, head in group), [file for file, _ in group])
            for group in self._several
            if hidden or group[0][1].kind == main
        ]
        return wanted

    def _in_order(self, wanted: Sequence[tuple[float, str, list[ChatFile]]]) -> Iterator[Summary]:
        """Yield the sessions in these groups of files, newest first.

        `wanted`: the sorted result of `_wanted`.
        """
        read: list[Summary] = []
        start, count = 0, _AT_FIRST
        while start < len(wanted) or read:
            some, start, count = wanted[start : start + count], start + count, 2 * count
            read += self._index.sessions_in([file for *_, group in some for file in group])
            read.sort(key=age_order)
            while read and (start >= len(wanted) or age_order(read[-1])[:2] > wanted[start][:2]):
                yield read.pop()


def _line_of(session: Summary) -> SessionLine | None:
    """Return the JSON to cache for a session; None if it must not be cached.

    It must not be cached if it may change although the session's file doesn't.
    """
    if len(session.names) > 1 or session.partial or Flag.LIVE in session.flags:
        return None
    text = encode(session.to_dict(files=False))
    when, id, _ = age_order(session)
    return SessionLine(when, id, session.project, session.project_hash, text)


def _live_since() -> float:
    """Return the earliest time at which a live session's file can have been written.

    A file last written before that can't belong to a live session. The time is in nanoseconds, as
    in `stat`.
    """
    return (time.time() - LIVE_FOR.total_seconds()) * 1e9


def _is_busy(files: Iterable[ChatFile]) -> bool:
    """Return whether one of the files may belong to a live subagent.

    If so, the subagent's parent session is live as well, which can't be seen from the parent's
    file.
    """
    since = _live_since()
    return any(file.mtime_ns > since and file.kind is SessionKind.SUBAGENT for file in files)


def _grouped(
    heads: Sequence[tuple[ChatFile, Head]],
) -> tuple[list[tuple[ChatFile, Head]], list[list[tuple[ChatFile, Head]]]]:
    """Separate the sessions that have one file from those that have several.

    Returns the single files, and a list of files for each other session.
    """
    count = Counter([head.id for _, head in heads])
    single: list[tuple[ChatFile, Head]] = []
    groups: dict[Identity, list[tuple[ChatFile, Head]]] = {}
    for each in heads:
        file, head = each
        if count[head.id] == 1:
            single.append(each)
        else:
            groups.setdefault(
                identity(SessionKind(head.kind), head.id, file.project_key), []
            ).append(each)
    single += [group[0] for group in groups.values() if len(group) == 1]
    return single, [group for group in groups.values() if len(group) > 1]
