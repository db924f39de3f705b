"""Read session files: one for its summary, many in several processes, or through a cache.

Each process runs `serve` (`readers.py`). Files that no process has read are read in the calling
process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from gemtui.sessions.catalog.cache import Cache, CachedRows
from gemtui.sessions.catalog.summary import NO_TITLE, Flag, Known, Summary, TitleSource, Unread
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.readers import Readers, answer_reads
from gemtui.sessions.store.store import UNREADABLE, ChatFile, Problem, SessionKind, never, place_of, problem_of
from gemtui.transcript.model import EXCERPT, Author, Dropped, Outline, usage_sum
from gemtui.transcript.parts import instant
from gemtui.worker import Parent

_NOT_ASKED = ("/", "?", "<state_snapshot>")
_NO_PROMPT_FOR_THE_CLI = ("/", "?")
_FOLDED = EXCERPT * 20
_DATA = re.compile(r"""\{ ?["}]|\[ ?["{[\]]""")
"""Matches the start of JSON, which a model may return in place of a title."""
_MOST_DIRECTORIES = 1000
"""Maximum number of directories to read from a session's header."""


def read_file(
    log: SessionLog, place: ChatFile, *, upto: int | None = None, cancelled: Callable[[], bool] = never
) -> Known | Problem | None:
    """Read a session file; return its summary, or why it has none.

    A Problem may be temporary, and None means that the file no longer exists. `upto`: read only
    about this many bytes. `cancelled`: called while reading; once it returns True, reading stops.
    """
    try:
        log.refresh(upto=upto, cancelled=cancelled)
        return summarise(log, place)
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        problem = problem_of(place.path, error)
        if isinstance(error, OSError | MemoryError):
            return problem
        return Unread(what=problem.what, too_large=problem.too_large)


def summarise(log: SessionLog, place: ChatFile) -> Summary:
    """Return a summary of the part of a file that `log` has read.

    The flags `LIVE`, `GHOST`, and `DUPLICATE` can't be determined from one file alone, and neither
    can the project of a folder named by a hash. So they are not set.
    """
    outlines, dropped, header = log.outlines, log.dropped, log.metadata
    title, source = _title(place, header.get("summary"), outlines, dropped)
    kind, id = kind_and_id(log, place)
    return Summary(
        id=id,
        title=title,
        title_source=source,
        project=None,
        project_key=place.project_key,
        kind=kind,
        parent=place.parent,
        format=log.format,
        names=(place.name,),
        size=place.size,
        modified=place.modified,
        started=log.replay.started,
        updated=_updated(log),
        models=_distinct(line.model for line in outlines),
        prompts=sum(line.prompt for line in outlines),
        messages=len(outlines),
        spoken=sum(map(_is_spoken, outlines)),
        tool_calls=sum(line.calls for line in outlines),
        tool_failures=sum(line.errors for line in outlines),
        failed_calls=sum(line.failures for line in outlines),
        tokens=usage_sum(line.usage for line in outlines),
        files_written=_distinct(path for line in outlines for path in line.writes),
        tools=_distinct(tool for line in outlines for tool in line.tools),
        flags=_flags(log, place, outlines, dropped),
        partial=not log.complete,
        problems=log.problem_count,
        directories=_strings(header.get("directories")),
        project_hash=_text(header.get("projectHash")),
        waits=log.complete and bool(log.replay.entries) and log.replay.entries[-1].is_silent,
        resumable=any(map(is_resumable, outlines)),
        has_header=_has_header(log),
        ended_badly=log.complete and bool(outlines) and outlines[-1].failures > 0,
    )


def kind_and_id(log: SessionLog, place: ChatFile) -> tuple[SessionKind, str]:
    """Return a file's kind, and the id of the session in it."""
    header, kind = log.metadata, place.kind
    if kind is SessionKind.MAIN and header.get("kind") == SessionKind.SUBAGENT:
        kind = SessionKind.SUBAGENT
    return kind, _text(header.get("sessionId")) or _id_of(place)


def _is_spoken(line: Outline) -> bool:
    """Return whether a message is from the user or the model, not a CLI notice."""
    return line.author is not Author.SYSTEM


def _has_header(log: SessionLog) -> bool:
    """Return whether a file's header has what the CLI requires of a session.

    That is a session id and, except in legacy files, the hash of the project's path.
    """
    header = log.metadata
    return bool(_text(header.get("sessionId")) and (_text(header.get("projectHash")) or log.format == "json"))


def is_resumable(line: Outline) -> bool:
    """Return whether a message lets the CLI resume its session.

    Answers do, and prompts that are not commands.
    """
    return line.author is Author.MODEL or (line.prompt and not line.excerpt.startswith(_NO_PROMPT_FOR_THE_CLI))


def _updated(log: SessionLog) -> datetime | None:
    """Return the session's own last update; None for a log read only in part."""
    if not log.complete and log.format == "jsonl":
        return None
    return instant(log.metadata.get("lastUpdated"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(islice((item for item in value if _text(item)), _MOST_DIRECTORIES))


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value))


def _id_of(place: ChatFile) -> str:
    """Return an id for a session that has none: the file name without its suffix.

    The eight characters of the id in the file name aren't enough, because several sessions may
    share them.
    """
    return place.path.stem


def _title(
    place: ChatFile, summary: object, outlines: Sequence[Outline], dropped: Sequence[Outline]
) -> tuple[str, TitleSource]:
    if place.kind is SessionKind.CHECKPOINT:
        return place.name_id, TitleSource.NAME
    folded = "" if not isinstance(summary, str) else " ".join(summary[:_FOLDED].split())
    if folded and not _DATA.match(folded):
        return folded[:EXCERPT], TitleSource.SUMMARY
    prompt = _first_prompt(outlines, dropped)
    if prompt is None:
        return NO_TITLE, TitleSource.NONE
    failed = prompt.dropped is Dropped.FAILED_PROMPT
    return prompt.excerpt, TitleSource.FAILED_PROMPT if failed else TitleSource.PROMPT


def _first_prompt(outlines: Sequence[Outline], dropped: Sequence[Outline]) -> Outline | None:
    """Return the session's first prompt, or None.

    Prompts still in the conversation come first, then those replaced by rewritten messages
    (`Dropped.BURIED`), then those dropped for other reasons. Commands, and the summary that a
    compression leaves behind, are returned only if there is no other prompt.
    """
    in_order = (*outlines, *sorted(dropped, key=lambda line: line.dropped is not Dropped.BURIED))
    prompts = [line for line in in_order if line.prompt and line.excerpt]
    asked = (line for line in prompts if not line.excerpt.startswith(_NOT_ASKED))
    return next(asked, prompts[0] if prompts else None)


def _flags(
    log: SessionLog, place: ChatFile, outlines: Sequence[Outline], dropped: Sequence[Outline]
) -> frozenset[Flag]:
    reasons = {line.dropped for line in dropped}
    asked = {line.dropped for line in (*outlines, *dropped) if line.prompt}
    flags = set()
    if log.torn:
        flags.add(Flag.TORN)
    if Dropped.BURIED in reasons:
        flags.add(Flag.BURIED)
    if Dropped.FAILED_PROMPT in asked and asked.isdisjoint({None, Dropped.BURIED}):
        flags.add(Flag.FAILED_PROMPT)
    if log.complete and not any(map(_is_spoken, (*outlines, *dropped))):
        flags.add(Flag.EMPTY)
    if place.kept:
        flags.add(Flag.KEPT)
    return frozenset(flags)


# --- many files ----------------------------------------------------------------------------------


ReadResult = Known | Problem | None


def read_files(
    places: Sequence[ChatFile], *, upto: int | None = None, cancelled: Callable[[], bool] = never
) -> Generator[tuple[ChatFile, ReadResult], None, None]:
    """Yield each file with the result of `read_file`, roughly in the given order.

    `upto`: read only about this many bytes of each file. `cancelled`: called regularly; once it
    returns True, the remaining files are skipped.
    """
    left = dict.fromkeys(places)
    if upto is None:
        for place, known in Readers[ReadResult](f"{__name__}:serve", places).read(cancelled):
            del left[place]
            yield place, known
    for place in left:
        if cancelled():
            return
        with SessionLog(place.path) as log:
            known = read_file(log, place, upto=upto, cancelled=cancelled)
        if cancelled():
            return
        yield place, known


def _read(place: ChatFile) -> ReadResult:
    with SessionLog(place.path) as log:
        return read_file(log, place)


def serve(parent: Parent) -> None:
    """Read files for the process that has started this one."""
    answer_reads(parent, _read)


T = TypeVar("T")
_SAVED = 200
"""Number of files after which results are written to the cache."""


def read_cached(
    sessions: Sequence[Summary],
    rows: CachedRows[T],
    read: Callable[[SessionLog, Summary], T],
    *,
    home: Path,
    cache: Path | None,
    helper: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[tuple[Summary, T | Problem]]:
    """Yield each session with the result of `read`, or the reason it can't be read.

    Cached sessions come first, then the rest, each roughly in the given order. `rows`: how results
    are stored in the cache. `home`: the CLI's folder. `cache`: gemtui's cache folder; None reads
    all files. `helper`: the function for several processes that read the same data (`readers.py`),
    used for large amounts. `progress`: called with the number of finished files. `cancelled`:
    called between files and within large ones; once it returns True, reading stops.
    """
    with closing(Cache(cache, home, rows)) as cached:
        places = {each.name: _place(each, home) for each in sessions}
        known = cached.get(place for place in places.values() if place is not None)
        unread = [each for each in sessions if each.name not in known]
        fresh: list[tuple[ChatFile, T]] = []
        found = chain(
            ((each, known[each.name]) for each in sessions if each.name in known),
            _read_sessions(unread, places, read, helper, cancelled),
        )
        for done, (session, one) in enumerate(found, 1):
            if cancelled():
                break
            place = places[session.name]
            if session.name not in known and place is not None and not isinstance(one, Problem):
                fresh.append((place, one))
            if len(fresh) == _SAVED:
                cached.put(fresh)
                fresh = []
            yield session, one
            progress(done)
        cached.put(fresh)
        if not cancelled():
            cached.remove_gone(known)


def _place(session: Summary, home: Path) -> ChatFile | None:
    """Return the store's entry for a session's file, with its current size and times.

    Returns None if the file can't be accessed or is not in the store.
    """
    with suppress(OSError):
        return place_of(session.path, home)
    return None


def _read_sessions(
    sessions: Sequence[Summary],
    places: Mapping[str, ChatFile | None],
    read: Callable[[SessionLog, Summary], T],
    helper: str | None,
    cancelled: Callable[[], bool],
) -> Iterator[tuple[Summary, T | Problem]]:
    left = {each.name: each for each in sessions}
    files = [place for name in left if (place := places[name]) is not None]
    if helper is not None:
        for place, found in Readers[T | Problem](helper, files).read(cancelled):
            yield left.pop(place.name), found
    for session in left.values():
        if cancelled():
            return
        yield session, _read_session(session, read, cancelled)


def _read_session(
    session: Summary, read: Callable[[SessionLog, Summary], T], cancelled: Callable[[], bool]
) -> T | Problem:
    return read_log(session.path, lambda log: read(log, session), cancelled)


def read_log(path: Path, read: Callable[[SessionLog], T], cancelled: Callable[[], bool] = never) -> T | Problem:
    """Open the log at `path` and return `read(log)`, or why it can't be read."""
    try:
        with SessionLog.read(path, cancelled=cancelled) as log:
            return read(log)
    except UNREADABLE as error:
        return problem_of(path, error)
