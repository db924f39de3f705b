"""Search in all that was said in sessions: the one face of this package for screens and commands.

    search = Search(index_folder(cache_dir(), home))       # once; Search(None): without an index
    query = parse(text, now=datetime.now().astimezone())   # gemtui.search.query; `query.note`
    for results in search.find(query, snapshot.sessions, limit=200, cancelled=...):
        ...                                                # each replaces the one before
    line = search.snippet(hit, query, width=80)            # reads the file: for hits in sight

All methods are for worker threads, of which several may search at once. `find` gives its first
results after some milliseconds where there is an index, and goes on as long as files are not in it
and must be read. `Results.groups` are sessions, the best first; `Group.hits` lead to a message by
its id in the session's transcript and to a block of it by its number: `Hit.file` is the summary of
the file to open, that of a sub-agent where it said so. Dropped messages (`dropped=True`) are in
`transcript_of(log, dropped=True)`. A new snapshot of the store is all that `find` needs to see
changes: what the index does not hold yet is read from the files.

The index is made by a process of its own: `gemtui.search.indexer.Indexer`, which tells of its
progress and wants to know of changes. `gemtui.search.query.completions` completes fields.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from heapq import nlargest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from gemtui.errors import NotASession, SessionTooLarge
from gemtui.files import open_regular
from gemtui.marks import Mark
from gemtui.search.documents import Kind, documents_of
from gemtui.search.file_list import NoIndex, Row
from gemtui.search.index import ReadIndex, report_damage
from gemtui.search.matching import Likeness, engine_query, has_words, is_too_much
from gemtui.search.query import Query
from gemtui.search.scope import OF_SESSIONS, File, Scope, SnapshotScope, StoreScope, Unsure
from gemtui.search.snippets import WIDTH, Snippet, pattern_for, snippet
from gemtui.search.text_index import Found, TextIndex, TextReader
from gemtui.search.words import words
from gemtui.sessions.index import Index
from gemtui.sessions.messages import message_on_line
from gemtui.sessions.summary import Summary
from gemtui.text import Clean
from gemtui.transcript.model import Message, Transcript
from gemtui.transcript.search import block_text

if TYPE_CHECKING:
    from gemtui.sessions.records import SessionLog

FEW = 5
"""Hits; where there are fewer, words that are alike count as well."""
_RANKED = 2000
"""Hits that are ordered by all that counts; the text engine alone chooses among more."""
_AT_ONCE = 24 * 1024 * 1024
"""Bytes of session files that are read and held as words at once."""
_AT_FIRST = 2 * 1024 * 1024
"""Bytes of those that are read first."""
_HUGE = 64 * 1024 * 1024
"""Bytes of files that are not looked through before they are read."""
_MONTH = 30 * 24 * 3600
_WEIGHTS = {Kind.USER: 1.5, Kind.MODEL: 1.2, Kind.THOUGHT: 0.9, Kind.TOOL: 0.8, Kind.NOTICE: 0.8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A block of a message that matches.

    `session`: the one it counts for; `file`: the one to open, another only for a sub-agent's.
    `message`, `block`: id and index of the block in its transcript. `kind`: who says it. `tool`:
    the tool's name, "" = none. `time`: None = unknown. `score`: greater is better, in one search.
    """

    session: Summary
    file: Summary
    message: str
    block: int
    kind: Kind
    tool: str
    time: datetime | None
    score: float
    line: tuple[int, int] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The hits of one session, the best first; `count`: of all there are, those left out too."""

    session: Summary
    hits: tuple[Hit, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What was found.

    `total_sessions`, `total_hits`: with those that `limit` leaves out. `complete`: False while
    files are still to be read: both are lower bounds. `unindexed`: number of files that the index
    does not hold yet. `note`: what a person should know of it; None = nothing.
    """

    query: Query
    groups: tuple[Group, ...] = ()
    total_sessions: int = 0
    total_hits: int = 0
    complete: bool = True
    unindexed: int = 0
    note: str | None = None

    @property
    def hits(self) -> list[Hit]:
        """The hits of all groups, the best first."""
        hits = (hit for group in self.groups for hit in group.hits)
        return sorted(hits, key=lambda hit: -hit.score)


NO_MARKS: Mapping[str, Mark] = MappingProxyType({})


class _Source(NamedTuple):
    """Words to search in, the name of the file of each number, and how many there are in all."""

    words: TextReader
    files: Mapping[int, str]
    total: int


class Search:
    """Searches in the sessions of one store.

    `folder`: where its index is (`index_folder`); None = there is none, all is read from the files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._index: ReadIndex | None = None
        self._lock = threading.RLock()
        self._scope: SnapshotScope | None = None
        self._split: tuple[Scope, Mapping[str, Row], _Source, Sequence[File]] | None = None
        self._fresh: tuple[Sequence[File], _Source] | None = None
        self._bodies = _Bodies()
        self._reading = threading.Lock()
        self.damage: str | None = None
        """Why the last search did without an index that is there; None = it did not."""

    def close(self) -> None:
        """Close all files, and hold nothing any more; a further search opens them again."""
        with self._reading:
            self._bodies.close()
        with self._lock:
            self._close_index()
            self._scope = self._split = self._fresh = None

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None

    # --- searching ---------------------------------------------------------------------------

    def find(
        self,
        query: Query,
        sessions: Sequence[Summary],
        *,
        limit: int = 200,
        dropped: bool = False,
        marks: Mapping[str, Mark] = NO_MARKS,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[Results]:
        """Yield what is found so far; the last is all, unless `cancelled` or cut by `limit`.

        `sessions`: where to look, sub-agents included, as a snapshot has them; copies, ghosts and
        checkpoints are left out. `limit`: hits at most. `dropped`: search what was rewound,
        replaced or failed instead of what stands. `marks`: those of sessions by id, which `tag:`,
        `is:pinned` and `is:archived` ask for. Never raises.
        """
        with self._lock:
            scope = self._scope_of(query, sessions, marks)
        yield from self.find_in(query, scope, limit=limit, dropped=dropped, cancelled=cancelled)

    def find_in(
        self,
        query: Query,
        scope: Scope,
        *,
        limit: int = 200,
        dropped: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[Results]:
        """Yield what is found in the files of a scope; else as `find`."""
        if not query:
            yield Results(query=query)
            return
        with self._lock:
            sources, unread = self._sources(scope)
        ask = _Asked(query, dropped, limit)
        results = partial(_results, scope=scope, query=query, limit=limit, unindexed=len(unread))
        if unread and sum(file.size for file in unread) <= _AT_ONCE:
            if sources and not self._has_fresh(unread):
                yield results(self._matches(sources, ask), complete=False)
            sources = [*sources, self._read_fresh(unread, cancelled)]
            unread = []
        found = self._alike(sources, ask) if not unread else self._matches(sources, ask)
        yield results(found, complete=not unread and not cancelled())
        for chunk in _chunks(unread):
            if cancelled() or len(found.matches) >= limit:
                return
            source = _read(chunk, cancelled, only=_may_match(query))
            found.add(source, ask)
            unread = unread[len(chunk) :]
            yield results(found, complete=not unread and not cancelled())

    def scope(self, index: Index, project: Path | None) -> StoreScope:
        """Return where to look for who searches once: see `StoreScope`. Raises Unsure."""
        with self._lock:
            words = self._current_index()
            if words is None:
                raise Unsure
            return StoreScope(index, words.rows, project)

    def _scope_of(
        self, query: Query, sessions: Sequence[Summary], marks: Mapping[str, Mark]
    ) -> SnapshotScope:
        """The files to look in; the last answer is kept, as it is asked with every key."""
        key = sessions, marks, tuple(each for each in query.fields if each.field in OF_SESSIONS)
        if self._scope is None or not self._scope.is_of(*key):
            self._scope = SnapshotScope(*key)
        return self._scope

    def _sources(self, scope: Scope) -> tuple[list[_Source], Sequence[File]]:
        """What the index holds of the files as they are, and those of which it holds nothing."""
        index = self._current_index()
        if index is None:
            return [], scope.divided({})[1]
        split = self._split
        if split is None or split[0] is not scope or split[1] is not index.rows:
            known, unread = scope.divided(index.rows)
            split = scope, index.rows, _Source(index.words, known, len(index.rows)), unread
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

    def _read_fresh(self, files: Sequence[File], cancelled: Callable[[], bool]) -> _Source:
        """Words of a few files that the index lacks, kept as long as they are the same ones."""
        fresh = self._fresh
        if fresh is None or fresh[0] != files:
            fresh = files, _read(files, cancelled)
            if not cancelled():
                self._fresh = fresh
        return fresh[1]

    def _has_fresh(self, files: Sequence[File]) -> bool:
        return self._fresh is not None and self._fresh[0] == files

    def _alike(self, sources: Sequence[_Source], ask: _Asked) -> _Found:
        """What matches; where that is little, with words that are alike, at last parts of words."""
        found = self._matches(sources, ask)
        if found.count >= FEW or not has_words(ask.query):
            return found
        alike = self._matches(sources, ask, Likeness.ALIKE)
        if alike.count > found.count:
            return alike
        return found if found.count else self._matches(sources, ask, Likeness.INSIDE)

    def _matches(
        self, sources: Iterable[_Source], ask: _Asked, likeness: Likeness = Likeness.SAME
    ) -> _Found:
        found = _Found(likeness)
        for source in sources:
            try:
                found.add(source, ask)
            except BaseException as error:
                self._damaged(error)
        return found

    def _damaged(self, error: BaseException) -> None:
        """The engine stumbled over what is on the disk: have it made anew, and say so."""
        if not isinstance(error, ValueError | OSError) and type(error).__name__ != "PanicException":
            raise error
        if isinstance(error, ValueError) and is_too_much(error):
            return
        self.damage = f"it is damaged ({error})"
        if self._folder is not None:
            report_damage(self._folder)

    # --- bodies ------------------------------------------------------------------------------

    def text(self, hit: Hit) -> str | None:
        """Return the whole text of a hit, raw and foreign; None if it is there no more."""
        with self._reading:
            return self._bodies.text(hit)

    def snippet(self, hit: Hit, query: Query, *, width: int = WIDTH) -> Snippet:
        """Return the line of a hit that matches, of `width` characters at most, clean."""
        text = self.text(hit)
        return Snippet(Clean("")) if text is None else snippet(text, query, width=width)

    def pattern(self, hit: Hit, query: Query) -> re.Pattern[str] | None:
        """Return a pattern for the words by which a hit matches; None if it has none."""
        text = self.text(hit)
        return None if text is None else pattern_for(text, query)


# --- reading what the index lacks ----------------------------------------------------------------


def _chunks(files: Iterable[File]) -> Iterator[list[File]]:
    """Files together that are not too large to be held as words; the first are soon read."""
    chunk: list[File] = []
    size, enough = 0, min(_AT_FIRST, _AT_ONCE)
    for file in files:
        chunk.append(file)
        size += file.size
        if size >= enough:
            yield chunk
            chunk, size, enough = [], 0, min(2 * enough, _AT_ONCE)
    if chunk:
        yield chunk


def _read(
    files: Sequence[File],
    cancelled: Callable[[], bool],
    *,
    only: Callable[[Path], bool] = lambda _: True,
) -> _Source:
    """The words of files; of `only` those that may match."""
    from gemtui.sessions.records import SessionLog

    text = TextIndex()
    for number, file in enumerate(files):
        if cancelled():
            break
        with suppress(NotASession, SessionTooLarge, OSError, RecursionError, MemoryError):
            if only(file.path):
                with SessionLog(file.path) as log:
                    log.refresh(cancelled=cancelled)
                    text.add(number, documents_of(log))
    text.commit()
    return _Source(text.reader(), {at: file.name for at, file in enumerate(files)}, len(files))


_ESCAPE = re.compile(rb"\\u(?!00)")
"""A letter that JSON may have written as its number."""


def _may_match(query: Query) -> Callable[[Path], bool]:
    """Whether a file holds all words of a query, as bytes; files that can't tell may."""
    wanted = [word for term in query.terms if not term.excluded for word in words(term.text)]
    plain = [word.encode() for word in wanted if word.isascii()]

    def may_match(path: Path) -> bool:
        with open_regular(path) as stream:
            data = stream.read(_HUGE)
        if len(data) == _HUGE:
            return True
        folded = data.lower()
        return all(word in folded for word in plain) or _ESCAPE.search(data) is not None

    return may_match if plain else lambda _: True


# --- what was found ------------------------------------------------------------------------------


class _Asked(NamedTuple):
    query: Query
    dropped: bool
    limit: int

    @property
    def most(self) -> int:
        """Matches that are fetched."""
        return max(2 * self.limit, _RANKED)


class _Match(NamedTuple):
    score: float
    found: Found
    source: _Source


_NEARLY = 0.9
"""Where so much of an index is asked, the rest is left out afterwards: that is quicker."""


class _Found:
    """Matches of several sources, and how many each file has, by the file's path."""

    def __init__(self, likeness: Likeness) -> None:
        self.likeness = likeness
        self.matches: list[_Match] = []
        self.counts: dict[str, int] = {}
        self.count = 0
        """The number of matches, with those that were not fetched."""

    def add(self, source: _Source, ask: _Asked) -> None:
        """Search in one more source."""
        whole = len(source.files) >= _NEARLY * source.total
        if not (whole and self._add(source, ask, None)):
            self._add(source, ask, source.files)

    def _add(self, source: _Source, ask: _Asked, files: Iterable[int] | None) -> bool:
        """The matches in these files; False if so many others match that some may be missing."""
        known = source.files
        ask_engine = partial(
            engine_query, ask.query, files=files, likeness=self.likeness, dropped=ask.dropped
        )
        wanted = ask_engine()
        try:
            matches = source.words.search(wanted, ask.most)
        except ValueError as error:
            if not is_too_much(error):
                raise
            wanted = ask_engine(in_a_row=False)
            matches = source.words.search(wanted, ask.most)
        found = [each for each in matches if each.file in known]
        cut = len(matches) == ask.most
        if cut and files is None and len(found) < ask.limit:
            return False
        counts = source.words.files(wanted) if cut else Counter([each.file for each in found])
        for number, count in counts.items():
            if (name := known.get(number)) is not None:
                self.counts[name] = self.counts.get(name, 0) + count
                self.count += count
        now = time.time()
        self.matches += [_Match(_score(each, now), each, source) for each in found]
        return True


def _score(found: Found, now: float) -> float:
    """How well it fits, who says it, and how long ago: half of it fades within months."""
    age = max(0.0, now - found.time) / _MONTH if found.time else 12.0
    return (0.05 + found.score) * _WEIGHTS[found.kind] * (0.5 + 0.5 / (1.0 + age))


def _results(
    found: _Found, *, scope: Scope, query: Query, limit: int, complete: bool, unindexed: int
) -> Results:
    best = nlargest(limit, found.matches, key=lambda match: match.score)
    hits: dict[str, list[Hit]] = {}
    for match in best:
        hit = _hit(match, scope)
        hits.setdefault(hit.session.name, []).append(hit)
    counts = Counter(found.counts)
    for name in scope.askers.keys() & counts.keys():
        counts[scope.askers[name]] += counts.pop(name)
    return Results(
        query=query,
        groups=tuple(
            Group(session=group[0].session, hits=tuple(group), count=counts[name])
            for name, group in hits.items()
        ),
        total_sessions=len(counts),
        total_hits=found.count,
        complete=complete,
        unindexed=unindexed,
        note=_note(found, query),
    )


def _hit(match: _Match, scope: Scope) -> Hit:
    place = match.source.words.place(match.found)
    name = match.source.files[match.found.file]
    said = match.found.time
    return Hit(
        session=scope.session(name),
        file=scope.file(name),
        message=place.message,
        block=place.block,
        kind=match.found.kind,
        tool=place.tool,
        time=datetime.fromtimestamp(said, UTC) if said else None,
        score=match.score,
        line=place.line,
    )


_NOTES = {
    Likeness.ALIKE: "few hits: words that are alike count as well",
    Likeness.INSIDE: "no hits: the words were looked for inside of other words",
}


def _note(found: _Found, query: Query) -> str | None:
    alike = _NOTES.get(found.likeness) if found.count else None
    return "; ".join(filter(None, (query.note, alike))) or None


# --- bodies --------------------------------------------------------------------------------------


class _Bodies:
    """Texts of hits, read from their files; the last few files that had to be read whole are kept.

    Not thread-safe.
    """

    _KEPT = 4

    def __init__(self) -> None:
        self._logs: OrderedDict[tuple[str, int, datetime], tuple[SessionLog, Transcript]]
        self._logs = OrderedDict()

    def close(self) -> None:
        """Close all files."""
        for log, _ in self._logs.values():
            log.close()
        self._logs.clear()

    def text(self, hit: Hit) -> str | None:
        """The text of a hit; None if it is there no more."""
        message = self._on_line(hit) or self._in_transcript(hit)
        if message is None or hit.block >= len(message.blocks):
            return None
        return block_text(message.blocks[hit.block])

    def _on_line(self, hit: Hit) -> Message | None:
        if hit.line is None:
            return None
        offset, length = hit.line
        with suppress(OSError), open_regular(hit.file.path) as stream:
            stream.seek(offset)
            return message_on_line(stream.read(length), hit.message)
        return None

    def _in_transcript(self, hit: Hit) -> Message | None:
        with suppress(NotASession, SessionTooLarge, OSError, RecursionError, MemoryError):
            transcript = self._transcript(hit.file)
            for number, outline in enumerate(transcript.outlines):
                if outline.id == hit.message:
                    return transcript.read(number)
        return None

    def _transcript(self, file: Summary) -> Transcript:
        key = file.name, file.size, file.modified
        if (kept := self._logs.get(key)) is not None:
            return kept[1]
        from gemtui.sessions.load import transcript_of
        from gemtui.sessions.records import SessionLog

        log = SessionLog(file.path)
        log.refresh()
        transcript = transcript_of(log, dropped=True, in_flight=False)
        self._logs[key] = log, transcript
        if len(self._logs) > self._KEPT:
            self._logs.popitem(last=False)[1][0].close()
        return transcript
