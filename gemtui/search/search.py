"""Search in the text of all sessions: the interface for screens and commands.

    search = Search(index_folder(cache_dir(), home))       # once; Search(None) has no index
    query = parse_query(text, now=datetime.now().astimezone())  # of gemtui.sessions.catalog.query
    for results in search.find(query, snapshot.sessions, limit=200, cancelled=...):
        ...                                                # each replaces the previous one
    line = search.snippet(hit, query, width=80)            # reads the file: for visible hits only

All methods are blocking and meant for worker threads; several threads may search at once. With an
index, `find` yields its first results (`gemtui.search.results`) within milliseconds, and more while
it reads files that are not indexed. `Results.groups` are sessions, best first. `SessionHits.hits`
identify a message by its id in the session's transcript, and one of the message's blocks by index.
`Hit.file` is the summary of the file to open, which may be a subagent's. Dropped messages
(`dropped=True`) are found in `transcript_of(log, dropped=True)`. To find new messages, pass a new
snapshot of the store to `find`, which reads everything that is not indexed yet from the files.

The index is written by a separate process, `gemtui.search.indexer.Indexer`, which reports its
progress and must be notified of changes. `gemtui.sessions.catalog.query.query_completions`
completes fields.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from gemtui.calls.paths import in_project
from gemtui.files import open_regular
from gemtui.marks import Mark
from gemtui.search.documents import documents_of
from gemtui.search.file_list import IndexedFile, NoIndex
from gemtui.search.index import ReadIndex, report_damage
from gemtui.search.lost import LostSessions
from gemtui.search.matching import (
    Likeness,
    Matches,
    SearchedIndex,
    SearchRequest,
    may_be_inside,
    recounted,
    required_terms,
    results_of,
)
from gemtui.search.results import WIDTH, Hit, HitTexts, Page, Results, Snippet, pattern_for, snippet
from gemtui.search.scope import File, SearchScope, SnapshotScope, StoreScope
from gemtui.search.text_index import DocumentPlace, IndexDamaged, TextIndex
from gemtui.search.words import typos, words
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.newest import Unsure
from gemtui.sessions.catalog.query import Query, Term, fields_of_sessions
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import UNREADABLE
from gemtui.text import Clean

NO_MARKS: Mapping[str, Mark] = MappingProxyType({})


class Search:
    """Searches the text of the sessions in one store.

    `folder`: the index's folder (`index_folder`); None reads everything from the files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._index: ReadIndex | None = None
        self._lock = threading.RLock()
        self._scope: SnapshotScope | None = None
        self._split: (
            tuple[SearchScope, Mapping[str, IndexedFile], SearchedIndex, Sequence[File]] | None
        ) = None
        self._fresh: tuple[Sequence[File], SearchedIndex] | None = None
        self._texts = HitTexts()
        self._reading = threading.Lock()
        self.damage: str | None = None
        """Why the last search could not use the existing index; None if it could."""

    def close(self) -> None:
        """Close all files and free all memory. Another search opens them again."""
        with self._reading:
            self._texts.close()
        with self._lock:
            self._close_index()
            self._scope = self._split = self._fresh = None

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None

    # --- searching ---------------------------------------------------------------------------

    def prepare(self, sessions: Sequence[Summary], marks: Mapping[str, Mark]) -> None:
        """Open the index, so that the first search in these sessions is as quick as others.

        `sessions`, `marks`: as in `find`.
        """
        with self._lock:
            self._sources(self._scope_of(Query(text=""), sessions, marks))

    def find(
        self,
        query: Query,
        sessions: Sequence[Summary],
        *,
        limit: int = 200,
        dropped: bool = False,
        marks: Mapping[str, Mark] = NO_MARKS,
        cancelled: Callable[[], bool] = lambda: False,
        page: Page | None = None,
        lost: LostSessions | None = None,
    ) -> Iterator[Results]:
        """Search sessions; yield the results again each time they have grown.

        The last results are complete unless cancelled or limited. `sessions`: where to search, as
        in a snapshot with subagents; copies, ghosts (empty files left by a resume) and checkpoints
        are ignored. `limit`: the maximum number of hits. `dropped`: search rewound, replaced and
        failed messages instead of current ones. `marks`: the sessions' marks, by id, for `tag:`,
        `is:pinned` and `is:archived`. `page`: which hits to return; None returns the best ones.
        `lost`: sessions whose files are gone, to be searched as well. Never raises.
        """
        with self._lock:
            scope = self._scope_of(query, sessions, marks)
        yield from self.find_in(
            query, scope, limit=limit, dropped=dropped, cancelled=cancelled, page=page, lost=lost
        )

    def find_in(
        self,
        query: Query,
        scope: SearchScope,
        *,
        limit: int = 200,
        dropped: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
        page: Page | None = None,
        lost: LostSessions | None = None,
    ) -> Iterator[Results]:
        """Search the files of a scope, as `find` does for sessions.

        If the index turns out to be corrupt, it is ignored and marked to be rebuilt.
        """
        if not query:
            yield Results(query=query)
            return
        for results in self._find_in_files(query, scope, limit, dropped, cancelled, page):
            yield (
                results
                if lost is None or dropped
                else lost.added_to(results, limit=limit, page=page)
            )

    def _find_in_files(
        self,
        query: Query,
        scope: SearchScope,
        limit: int,
        dropped: bool,
        cancelled: Callable[[], bool],
        page: Page | None,
    ) -> Iterator[Results]:
        if page is not None and page.before is not None:
            before = datetime.fromtimestamp(page.before, UTC)
            query = replace(query, before=min(before, query.before or before))
        ask = SearchRequest(query, dropped, limit, page, partial(self._text_in, scope))
        try:
            yield from self._find(ask, scope, cancelled, indexed=True)
        except IndexDamaged as error:
            with self._lock:
                self._leave_index(error)
            yield from self._find(ask, scope, cancelled, indexed=False)

    def _find(
        self,
        ask: SearchRequest,
        scope: SearchScope,
        cancelled: Callable[[], bool],
        *,
        indexed: bool,
    ) -> Iterator[Results]:
        query, limit = ask.query, ask.limit
        begun = ask.page is not None and ask.page.after is not None
        with self._lock:
            sources, unread = self._sources(scope) if indexed else ([], scope.divided({})[1])
        results = partial(results_of, ask=ask, scope=scope, unindexed=len(unread))
        if unread and sum(file.size for file in unread) <= AT_ONCE:
            if sources and not self._has_fresh(unread):
                yield results(_matches(sources, ask), complete=False, unread=len(unread))
            sources = [*sources, self._read_fresh(unread, cancelled)]
            unread = []
        matches = _matches(sources, ask) if unread else self._loosely(sources, ask)
        counted = not unread and matches.counted and not cancelled()
        best = results(matches, complete=counted, unread=len(unread))
        yield best
        if not matches.counted and not cancelled():
            matches.count_all()
            yield recounted(best, matches, scope=scope, complete=not unread and not cancelled())
        for chunk in file_groups(unread):
            if cancelled() or (len(matches.matches) >= limit and not begun):
                return
            source = words_of(chunk, cancelled, only=may_match(query))
            matches.add(source, ask)
            matches.count_all()
            unread = unread[len(chunk) :]
            sought = matches.count > 0 or not required_terms(query)
            complete = sought and not unread and not cancelled()
            yield results(matches, complete=complete, unread=len(unread))

    def scope(self, index: Index, project: Path | None) -> StoreScope:
        """Return the scope for a single search in a project; None means all projects.

        Raises Unsure if the summaries of all sessions are needed (see `StoreScope`).
        """
        with self._lock:
            words = self._current_index()
            if words is None:
                raise Unsure
            return StoreScope(index, words.rows, project)

    def _scope_of(
        self, query: Query, sessions: Sequence[Summary], marks: Mapping[str, Mark]
    ) -> SnapshotScope:
        """Return the scope for a query: the files of the sessions it may match.

        The last scope is cached, because every key press needs it.
        """
        key = sessions, marks, fields_of_sessions(query)
        if self._scope is None or not self._scope.is_of(*key):
            self._scope = SnapshotScope(*key)
        return self._scope

    def _sources(self, scope: SearchScope) -> tuple[list[SearchedIndex], Sequence[File]]:
        """Return the indexes to search, and the files of the scope that aren't indexed.

        A file whose indexed version is outdated counts as not indexed.
        """
        index = self._current_index()
        if index is None:
            return [], scope.divided({})[1]
        split = self._split
        if split is None or split[0] is not scope or split[1] is not index.rows:
            known, unread = scope.divided(index.rows)
            split = scope, index.rows, SearchedIndex(index.words, known, len(index.rows)), unread
            self._split = split
        return [split[2]], split[3]

    def _current_index(self) -> ReadIndex | None:
        if self._folder is None:
            return None
        try:
            if self._index is None:
                self._index = ReadIndex(self._folder)
            else:
                self._index.refresh()
            self.damage = None
        except NoIndex as error:
            self.damage = str(error) if error.is_there else None
            if error.damaged:
                report_damage(self._folder)
            self._close_index()
        return self._index

    def _leave_index(self, error: IndexDamaged) -> None:
        self.damage = f"it is corrupt ({error})"
        if self._folder is not None:
            report_damage(self._folder)
        self._close_index()
        self._split = None

    def _read_fresh(self, files: Sequence[File], cancelled: Callable[[], bool]) -> SearchedIndex:
        """Return a temporary text index of the files that the main index lacks.

        It is cached until one of these files changes.
        """
        fresh = self._fresh
        if fresh is None or fresh[0] != files:
            fresh = files, words_of(files, cancelled)
            if not cancelled():
                self._fresh = fresh
        return fresh[1]

    def _has_fresh(self, files: Sequence[File]) -> bool:
        return self._fresh is not None and self._fresh[0] == files

    def _loosely(self, sources: Sequence[SearchedIndex], ask: SearchRequest) -> Matches:
        """Return the matches of a search request, or else of a less strict search.

        If nothing matches, the terms that occur nowhere are searched as misspelt words and, if that
        finds nothing either, inside other words. Each of these searches is skipped if it isn't
        suitable for all of these terms, for example because a word is too short.
        """
        found = _matches(sources, ask)
        missing = [] if found.count else _missing(sources, ask)
        for likeness, some in (
            (Likeness.SIMILAR, [term for term in missing if _may_be_mistyped(term)]),
            (Likeness.INSIDE, [term for term in missing if _may_be_inside(term)]),
        ):
            if some and len(some) == len(missing):
                loose = _matches(sources, ask, likeness, some)
                if loose.count:
                    return loose
        return found

    # --- bodies ------------------------------------------------------------------------------

    def text(self, hit: Hit) -> str | None:
        """Return a hit's whole text, raw and untrusted; None if the hit no longer exists."""
        if hit.text is not None:
            return hit.text
        with self._reading:
            return self._texts.text(hit.file, hit.message, hit.block, hit.line)

    def _text_in(self, scope: SearchScope, name: str, place: DocumentPlace) -> str | None:
        with self._reading:
            return self._texts.text(scope.file(name), place.message, place.block, place.line)

    def snippet(self, hit: Hit, query: Query, *, width: int = WIDTH) -> Snippet:
        """Return the matching line of a hit, sanitized, with at most `width` characters."""
        text = self.text(hit)
        if text is None:
            return Snippet(Clean(""))
        project = hit.file.project
        return snippet(in_project(text, project), _as_shown(query, project), width=width)

    def pattern(self, hit: Hit, query: Query) -> re.Pattern[str] | None:
        """Return a pattern for the words in a hit that match a query, as a transcript shows them.

        Returns None if there are none.
        """
        text, project = self.text(hit), hit.file.project
        if text is None:
            return None
        return pattern_for(in_project(text, project), _as_shown(query, project))


def _as_shown(query: Query, project: str | None) -> Query:
    """Return a query whose paths are relative to the project, as transcripts show them."""
    terms = [replace(term, text=in_project(term.text, project)) for term in query.terms]
    return replace(query, terms=tuple(terms))


def _matches(
    sources: Iterable[SearchedIndex],
    ask: SearchRequest,
    likeness: Likeness = Likeness.SAME,
    missing: Sequence[Term] = (),
) -> Matches:
    matches = Matches(likeness, missing, None if ask.page is None else ask.page.now)
    for source in sources:
        matches.add(source, ask)
    return matches


def _missing(sources: Sequence[SearchedIndex], ask: SearchRequest) -> list[Term]:
    """Return the required terms that occur nowhere, except those in quotation marks."""

    def occurs(term: Term) -> bool:
        alone = Query(text=term.text, terms=(term,))
        return _matches(sources, ask._replace(query=alone, limit=1)).count > 0

    return [term for term in required_terms(ask.query) if not term.quoted and not occurs(term)]


def _may_be_mistyped(term: Term) -> bool:
    row = words(term.text)
    return len(row) == 1 and typos(row[0]) > 0


def _may_be_inside(term: Term) -> bool:
    row = words(term.text)
    return len(row) > 1 or (len(row) == 1 and may_be_inside(row[0]))


# --- files that are not indexed ------------------------------------------------------------------


AT_ONCE = 24 * 1024 * 1024
"""Maximum number of bytes of session files to index in memory at once."""
_AT_FIRST = 2 * 1024 * 1024
"""Number of bytes of session files in the first group."""
_HUGE = 64 * 1024 * 1024
"""Size in bytes from which a file isn't searched for the query's words beforehand."""


def file_groups(files: Iterable[File]) -> Iterator[list[File]]:
    """Divide files into groups that are small enough to be indexed in memory.

    The first group is the smallest, so that first results appear soon.
    """
    chunk: list[File] = []
    size, enough = 0, min(_AT_FIRST, AT_ONCE)
    for file in files:
        chunk.append(file)
        size += file.size
        if size >= enough:
            yield chunk
            chunk, size, enough = [], 0, min(2 * enough, AT_ONCE)
    if chunk:
        yield chunk


def words_of(
    files: Sequence[File],
    cancelled: Callable[[], bool],
    *,
    only: Callable[[Path], bool] = lambda _: True,
) -> SearchedIndex:
    """Index files in memory, and return the index.

    `only`: returns whether to include the file at a path.
    """
    from gemtui.sessions.read.session_log import SessionLog

    text = TextIndex()
    for number, file in enumerate(files):
        if cancelled():
            break
        with suppress(*UNREADABLE):
            if only(file.path):
                with SessionLog.read(file.path, cancelled=cancelled) as log:
                    text.add(number, documents_of(log))
    text.commit()
    return SearchedIndex(
        text.reader(), {at: file.name for at, file in enumerate(files)}, len(files)
    )


_HIDES = re.compile(rb"\\u(?:00[19]b|(?!00))"), re.compile(rb'\}\s*,\s*\{\s*"text"\s*:')
"""Each matches in lower-case bytes what may hide a word in a file.

The first one is a JSON escape for a character that is not ASCII or for a colour in the middle of a
word, the second a text that is stored in several parts. Two patterns that begin with fixed bytes
are ten times as fast as one with alternatives.
"""
_ADDED = frozenset({"image", "audio", "video", "file", "of", "unknown", "tool"})
"""Words, apart from numbers, of names that gemtui gives to what has none."""


def may_match(query: Query) -> Callable[[Path], bool]:
    """Return a test of whether the file at a path may match a query.

    The test returns False only for files that certainly don't match, so that they needn't be
    indexed.
    """
    wanted = [word for term in query.terms if not term.excluded for word in words(term.text)]
    plain = [
        word.encode()
        for word in wanted
        if word.isascii() and not word.isdigit() and word not in _ADDED
    ]

    def may_match(path: Path) -> bool:
        with open_regular(path) as stream:
            data = stream.read(_HUGE)
        if len(data) == _HUGE:
            return True
        folded = data.lower()
        return all(word in folded for word in plain) or any(
            hides.search(folded) for hides in _HIDES
        )

    return may_match if plain else lambda _: True
