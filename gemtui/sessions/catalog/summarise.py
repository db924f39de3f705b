"""Summarise a session file for the list: its title, kind, flags, and times."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from urllib.parse import unquote

from gemtui.agents import Agent
from gemtui.sessions.catalog.summary import NO_TITLE, CallFields, Flag, Summary, TitleSource
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import ChatFile, SessionKind
from gemtui.transcript.model import EXCERPT, Author, Dropped, Outline
from gemtui.transcript.parts import instant
from gemtui.transcript.usage import usage_sum

_NOT_ASKED = ("/", "?", "<state_snapshot>")
_FOLDED = EXCERPT * 20
_DATA = re.compile(r"""\{ ?["}]|\[ ?["{[\]]""")
"""Matches the start of JSON, which a model may return in place of a title."""
_MOST_DIRECTORIES = 1000
"""Maximum number of directories to read from a session's header."""


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
        calls=_calls(log),
        agent=log.agent,
        cost=log.own_cost,
        flags=_flags(log, place, outlines, dropped),
        partial=not log.complete,
        problems=log.problem_count,
        directories=_strings(header.get("directories")),
        project_hash=_text(header.get("projectHash")),
        waits=log.complete and log.replay.waits,
        resumable=log.replay.resumable,
        has_header=_has_header(log),
        ended_badly=log.complete and bool(outlines) and outlines[-1].failures > 0,
    )


def kind_and_id(log: SessionLog, place: ChatFile) -> tuple[SessionKind, str]:
    """Return a file's kind, and the id of the session in it."""
    header, kind = log.metadata, place.kind
    if kind is SessionKind.MAIN and header.get("kind") == SessionKind.SUBAGENT:
        kind = SessionKind.SUBAGENT
    return kind, _text(header.get("sessionId")) or _id_of(place)


def _calls(log: SessionLog) -> tuple[CallFields, ...]:
    calls = [(call.tool, call.failed, call.paths) for call in log.replay.shown_calls()]
    attached = [("", False, (name,)) for name in log.replay.attached()]
    return tuple([CallFields(*fields) for fields in dict.fromkeys([*calls, *attached])])


def _is_spoken(line: Outline) -> bool:
    """Return whether a message is from the user or the model, not a CLI notice."""
    return line.author is not Author.SYSTEM


def _has_header(log: SessionLog) -> bool:
    """Return whether a file's header has what the CLI requires of a session.

    That is a session id and, except in legacy files, the hash of the project's path. The CLI finds
    them in no file of another agent.
    """
    header = log.metadata
    return bool(
        log.agent is Agent.GEMINI
        and _text(header.get("sessionId"))
        and (_text(header.get("projectHash")) or log.format == "json")
    )


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
        return _typed_tag(place.name_id), TitleSource.NAME
    folded = "" if not isinstance(summary, str) else " ".join(summary[:_FOLDED].split())
    if folded and not _DATA.match(folded):
        return folded[:EXCERPT], TitleSource.SUMMARY
    prompt = _first_prompt(outlines, dropped)
    if prompt is None:
        return NO_TITLE, TitleSource.NONE
    failed = prompt.dropped is Dropped.FAILED_PROMPT
    return prompt.excerpt, TitleSource.FAILED_PROMPT if failed else TitleSource.PROMPT


def _typed_tag(name: str) -> str:
    """Return the tag that was typed for `/chat save`, which the CLI percent-encodes in the name."""
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return unquote(name, encoding="latin-1")


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
    spoken = any(map(_is_spoken, outlines))
    if log.complete and not spoken and not any(map(_is_spoken, dropped)):
        flags.add(Flag.EMPTY)
    if log.complete and spoken and place.kind is SessionKind.MAIN and not log.replay.resumable:
        flags.add(Flag.NOT_RESUMABLE)
    if place.kept:
        flags.add(Flag.KEPT)
    return frozenset(flags)
