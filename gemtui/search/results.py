"""The results of a search: sessions with their hits, and the texts and snippets of hits.

The index doesn't store any text, so the text of a hit is read from its file again.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from gemtui.files import open_regular
from gemtui.search.documents import DocumentKind
from gemtui.search.words import needed_symbols, similar_in, words
from gemtui.sessions.catalog.query import Query, Term, phrase_pattern
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import UNREADABLE
from gemtui.text import Clean, clean_line, either_form
from gemtui.transcript.model import Message, Transcript
from gemtui.transcript.search import block_text

if TYPE_CHECKING:
    from gemtui.sessions.read.session_log import SessionLog


class Hit(Struct, frozen=True, kw_only=True):
    """A matching block of a message.

    * `session`: the session under which the hit is listed.
    * `file`: the session to open, which differs from `session` only for subagents.
    * `message`, `block`: the message's id, and the block's index, in its transcript.
    * `kind`: who or what wrote the block.
    * `tool`: the tool's name, or "".
    * `time`: None if unknown.
    * `score`: higher is better; comparable within one search only.
    * `rank`: 0 for the best hit in the search.
    * `line`: where the message is in its file, as in `SearchDocument`.
    * `text`: the whole text, if the session's file is gone; otherwise None.
    """

    session: Summary
    file: Summary
    message: str
    block: int
    kind: DocumentKind
    tool: str
    time: datetime | None
    score: float
    rank: int
    line: tuple[int, int] | None = None
    text: str | None = None

    def __hash__(self) -> int:
        """Return a hash of the hit's place, because hashing the sessions takes far longer."""
        return hash((self.file.name, self.message, self.block))


class SessionHits(Struct, frozen=True, kw_only=True):
    """One session's hits, best first; `count` includes hits beyond the limit."""

    session: Summary
    hits: tuple[Hit, ...]
    count: int


Rank = tuple[float, int, str, int]
"""A match's sort key, smallest first.

With the same `now`, the keys are the same in every index.
"""


class Page(Struct, frozen=True, kw_only=True):
    """A page's position in a search, chosen so that each hit is on exactly one page.

    Hits are divided by age into sections. Newer sections come first; within a section, hits with
    higher scores come first. All times are in seconds since 1970. `now`: the time from which ages
    are measured. `before`: the page's section contains only hits older than this; None for the
    first section. `since`: the section contains no hits older than this. `after`: the sort key of
    the last hit on the previous page; None if the page starts the section.
    """

    now: float
    before: int | None = None
    since: int = 0
    after: Rank | None = None


class Results(Struct, frozen=True, kw_only=True):
    """The results of a search.

    `total_sessions`, `total_hits`: the totals, including results beyond `limit`. `complete`: False
    while files remain to be read or hits to be counted; until then, all numbers are lower bounds.
    `unindexed`: how many files are not in the index yet. `unread`: how many of these have still to
    be read. `next`: the next page; None if there is
    none. `note`: a note for the user; None if there is none.
    """

    query: Query
    groups: tuple[SessionHits, ...] = ()
    total_sessions: int = 0
    total_hits: int = 0
    complete: bool = True
    unindexed: int = 0
    unread: int = 0
    next: Page | None = None
    note: str | None = None

    @property
    def hits(self) -> list[Hit]:
        """The hits in all groups, best first."""
        hits = (hit for group in self.groups for hit in group.hits)
        return sorted(hits, key=lambda hit: hit.rank)


# --- snippets ------------------------------------------------------------------------------------


WIDTH = 200
"""Default maximum length of a snippet in characters."""
_LOOKS = 200
"""Maximum number of lines that are compared to find the best one."""
_MOST_WORDS = 50_000
"""Maximum number of words that are searched for similar ones."""
_CUT = "…"


class Snippet(NamedTuple):
    """One line of a document, sanitized.

    `spans`: the start and end index of each matching word.
    """

    text: Clean
    spans: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: Query, *, width: int = WIDTH) -> Snippet:
    """Return the line of `text` with the most query words, cut to `width` characters.

    If the query has no words, or none of them is found, the first non-empty line is returned.
    """
    patterns = _patterns(text, query)
    if (line := _best_line(text, patterns)) is not None:
        return _marked(line, patterns, width)
    first = next((line for line in text.splitlines() if line.strip()), "")
    return Snippet(Clean(clean_line(first[: 4 * width])[:width]))


def pattern_for(text: str, query: Query) -> re.Pattern[str] | None:
    """Return a pattern for the words by which `text` matches a query.

    Returns None if no word matches.
    """
    patterns = [pattern.pattern for pattern in _patterns(text, query)]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


# --- patterns ------------------------------------------------------------------------------------


def _patterns(text: str, query: Query) -> list[re.Pattern[str]]:
    """Return a pattern for each term of a query that `text` contains.

    A pattern matches whole words, or else parts of words, or else similar words.
    """
    patterns = []
    for term, ways in _ways(query):
        exact = [pattern for pattern in ways if pattern.search(text)]
        pattern = exact[0] if exact else _similar(text, term)
        if pattern is not None:
            patterns.append(pattern)
    return patterns


@lru_cache(maxsize=16)
def _ways(query: Query) -> Sequence[tuple[Term, Sequence[re.Pattern[str]]]]:
    """Return each required term with its patterns, the most exact first."""
    return [(term, list(_patterns_of(term))) for term in query.terms if not term.excluded]


def _patterns_of(term: Term) -> Iterator[re.Pattern[str]]:
    """Yield a term's patterns: with its symbols, for whole words, and inside words."""
    if needed_symbols(term.text):
        yield re.compile(r"\s+".join(map(either_form, term.text.split())), re.IGNORECASE)
    if row := words(term.text):
        yield phrase_pattern(row, prefix=term.prefix)
        yield phrase_pattern(row, inside=True)


def _similar(text: str, term: Term) -> re.Pattern[str] | None:
    """Return a pattern for the words in `text` that are similar to a one-word term."""
    row = words(term.text)
    if term.quoted or len(row) != 1:
        return None
    similar_words = similar_in(text, row[0], prefix=term.prefix, most=_MOST_WORDS)
    if not similar_words:
        return None
    return re.compile("|".join(map(re.escape, similar_words)), re.IGNORECASE)


# --- lines ---------------------------------------------------------------------------------------


def _best_line(text: str, patterns: Sequence[re.Pattern[str]]) -> str | None:
    """Return the line that matches the most patterns; None if no line matches any.

    If several lines match as many, the first of them is returned.
    """
    best, most = None, 0
    for start, end in islice(_lines_with(text, patterns), _LOOKS):
        line = text[start:end]
        count = sum(pattern.search(line) is not None for pattern in patterns)
        if count > most:
            best, most = line, count
        if most == len(patterns):
            break
    return best


def _lines_with(text: str, patterns: Iterable[re.Pattern[str]]) -> Iterator[tuple[int, int]]:
    """Yield the start and end index of each line with a match.

    A span may cover several lines, because a phrase may continue on the next line.
    """
    for pattern in patterns:
        at = 0
        while (match := pattern.search(text, at)) is not None:
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            at = end = len(text) if end < 0 else end
            yield start, end


def _marked(line: str, patterns: Sequence[re.Pattern[str]], width: int) -> Snippet:
    """Return the part of a line around its first match, at most `width` characters."""
    first = min((match.start() for p in patterns if (match := p.search(line))), default=0)
    near = max(0, first - 4 * width)
    shown = clean_line(line[near : first + 4 * width])
    first = min((match.start() for p in patterns if (match := p.search(shown))), default=0)
    start = 0 if len(shown) <= width or first < width // 2 else first - width // 3
    piece = shown[start : start + width]
    if start or near:
        piece = _CUT + piece[1:]
    if start + width < len(shown):
        piece = piece[:-1] + _CUT
    return Snippet(Clean(piece), _spans(piece, patterns))


def _spans(line: str, patterns: Iterable[re.Pattern[str]]) -> tuple[tuple[int, int], ...]:
    """Return the matching spans in order, joining those that overlap."""
    spans = sorted(match.span() for pattern in patterns for match in pattern.finditer(line))
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        elif end > start:
            joined.append((start, end))
    return tuple(joined)


# --- texts ---------------------------------------------------------------------------------------


class HitTexts:
    """Reads the text of hits, and keeps the most recently opened files in memory.

    Not thread-safe.
    """

    _KEPT = 4

    def __init__(self) -> None:
        self._logs: OrderedDict[tuple[str, int, datetime], tuple[SessionLog, Transcript]]
        self._logs = OrderedDict()

    def close(self) -> None:
        """Close all open logs."""
        for log, _ in self._logs.values():
            log.close()
        self._logs.clear()

    def text(
        self, file: Summary, message: str, block: int, line: tuple[int, int] | None
    ) -> str | None:
        """Return the text of a block, or None if it no longer exists.

        `message`, `block`, `line`: where it is in `file`, as in `Hit`.
        """
        found = (line and _message_on(file, line, message)) or self._in_transcript(file, message)
        return (
            None if found is None or block >= len(found.blocks) else block_text(found.blocks[block])
        )

    def _in_transcript(self, file: Summary, message: str) -> Message | None:
        with suppress(*UNREADABLE):
            transcript = self._transcript(file)
            for number, outline in enumerate(transcript.outlines):
                if outline.id == message:
                    return transcript.read(number)
        return None

    def _transcript(self, file: Summary) -> Transcript:
        key = file.name, file.size, file.modified
        if (kept := self._logs.get(key)) is not None:
            return kept[1]
        from gemtui.sessions.read.conversation import transcript_of
        from gemtui.sessions.read.session_log import SessionLog

        log = SessionLog(file.path)
        log.refresh()
        transcript = transcript_of(log, dropped=True, in_flight=False)
        self._logs[key] = log, transcript
        if len(self._logs) > self._KEPT:
            self._logs.popitem(last=False)[1][0].close()
        return transcript


def _message_on(file: Summary, line: tuple[int, int], id: str) -> Message | None:
    from gemtui.sessions.read.conversation import message_on_line

    offset, length = line
    with suppress(OSError), open_regular(file.path) as stream:
        stream.seek(offset)
        return message_on_line(stream.read(length), id, file.agent)
    return None
