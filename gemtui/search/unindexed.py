"""Index files in memory if their current version is not in the index on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gemtui.files import open_regular
from gemtui.search.documents import UNREADABLE, documents_of
from gemtui.search.ranking import SearchedIndex
from gemtui.search.scope import File
from gemtui.search.text_index import TextIndex
from gemtui.search.words import words
from gemtui.sessions.catalog.query import Query

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
    files: Sequence[File], cancelled: Callable[[], bool], *, only: Callable[[Path], bool] = lambda _: True
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
                with SessionLog(file.path) as log:
                    log.refresh(cancelled=cancelled)
                    text.add(number, documents_of(log))
    text.commit()
    return SearchedIndex(text.reader(), {at: file.name for at, file in enumerate(files)}, len(files))


_ESCAPE = re.compile(rb"\\u(?!00)")
"""Matches a JSON escape for a non-ASCII character, which may hide a word."""


def may_match(query: Query) -> Callable[[Path], bool]:
    """Return a test of whether the file at a path may match a query.

    The test returns False only for files that certainly don't match, so that they needn't be
    indexed.
    """
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
