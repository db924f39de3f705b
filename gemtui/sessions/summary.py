"""The summary of a session that lists show, made of outlines, never of bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from gemtui.sessions.records import SessionLog
from gemtui.sessions.store import ChatFile, SessionKind
from gemtui.transcript.model import EXCERPT, Author, Dropped, Outline, Usage, usage_sum
from gemtui.transcript.parts import instant


class Flag(StrEnum):
    """A property of a session; the names are those of `gemtui sessions --json`."""

    LIVE = "live"
    """The file was written within the last minute."""
    GHOST = "ghost"
    """Empty, beside another file with this id that is not (assets/gemini-cli.md#ghosts)."""
    EMPTY = "empty"
    """Nobody said anything in it; at most the CLI noted something down."""
    FAILED_PROMPT = "failed_prompt"
    """All that was asked failed and was taken out again; the text is still in the log."""
    BURIED = "buried"
    """The log holds messages that a later `$set.messages` dropped and nothing restored."""
    TORN = "torn"
    """Its last line is cut, or a legacy object was read half-written."""
    DUPLICATE = "duplicate"
    """Another file with this id is the one in use."""


class TitleSource(StrEnum):
    """Where a title comes from."""

    NAME = "name"
    SUMMARY = "summary"
    PROMPT = "prompt"
    FAILED_PROMPT = "failed_prompt"
    NONE = "none"


NO_TITLE = "(empty)"
_NOT_ASKED = ("/", "?", "<state_snapshot>")
_FOLDED = EXCERPT * 20
_DATA = re.compile(r"""\{ ?["}]|\[ ?["{[\]]""")
"""How a JSON object or array begins, cut or whole: what a model gave in place of a title."""
_MOST_DIRECTORIES = 1000
"""Nobody works in more at once."""
UNKNOWN = Usage()
_HIDDEN = frozenset({Flag.GHOST, Flag.EMPTY, Flag.DUPLICATE})


class Summary(Struct, frozen=True, kw_only=True):
    """A session in a list.

    `title`: raw and foreign, on one line, 200 characters at most. `files`: the one in use first,
    then those of `copies`. `size` (bytes) and `modified`: of the file in use. `started`, `updated`:
    as the session says, None = it does not. `messages`: after replay, without session context and
    tool replies; `spoken`: those of them that a person or the model wrote. `tokens`: sums.
    `partial`: only the first part was read, so that counts are lower bounds. `problems`: number of
    places that could not be read. `copies`: the other files with this id. `directories`,
    `project_hash`: as in the header, to find the project by.
    """

    id: str
    title: str
    title_source: TitleSource
    project: str | None
    project_key: str
    kind: SessionKind
    parent: str | None = None
    format: Literal["jsonl", "json"]
    files: tuple[Path, ...]
    size: int
    modified: datetime
    started: datetime | None = None
    updated: datetime | None = None
    models: tuple[str, ...] = ()
    prompts: int = 0
    messages: int = 0
    spoken: int = 0
    tool_calls: int = 0
    tool_failures: int = 0
    tokens: Usage = UNKNOWN
    files_written: tuple[str, ...] = ()
    flags: frozenset[Flag] = frozenset()
    partial: bool = False
    problems: int = 0
    copies: tuple[Summary, ...] = ()
    directories: tuple[str, ...] = ()
    project_hash: str | None = None

    @property
    def path(self) -> Path:
        """The file in use."""
        return self.files[0]

    @property
    def when(self) -> datetime:
        """The time that lists sort by: the last update, else the file's time."""
        return self.updated or self.modified

    @property
    def hidden(self) -> bool:
        """Whether lists hide it: ghosts, empty starts, subagents, checkpoints and copies."""
        return self.kind is not SessionKind.MAIN or not _HIDDEN.isdisjoint(self.flags)

    def to_dict(self) -> dict[str, Any]:
        """Return SESSION of `gemtui sessions --json`; times in ISO 8601 UTC, null = unknown."""
        return {
            "id": self.id,
            "title": self.title,
            "title_source": self.title_source.value,
            "project": self.project,
            "project_key": self.project_key,
            "kind": self.kind.value,
            "parent": self.parent,
            "format": self.format,
            "files": [str(path) for path in self.files],
            "size": self.size,
            "started": iso(self.started),
            "updated": iso(self.updated),
            "models": list(self.models),
            "prompts": self.prompts,
            "messages": self.messages,
            "tool_calls": self.tool_calls,
            "tool_failures": self.tool_failures,
            "tokens": asdict(self.tokens),
            "files_written": list(self.files_written),
            "flags": [flag.value for flag in Flag if flag in self.flags],
        }


def iso(when: datetime | None) -> str | None:
    """Return a time as JSON reports write it: ISO 8601, UTC, milliseconds, Z."""
    if when is None:
        return None
    return when.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def summarise(log: SessionLog, place: ChatFile) -> Summary:
    """Return the summary of one file, as far as `log` has read it.

    `LIVE`, `GHOST` and `DUPLICATE` can't be known from one file alone, nor can the project of a
    folder named by a hash.
    """
    outlines, dropped, header = log.outlines, log.dropped, log.metadata
    title, source = _title(place, header.get("summary"), outlines, dropped)
    kind = place.kind
    if kind is SessionKind.MAIN and header.get("kind") == SessionKind.SUBAGENT:
        kind = SessionKind.SUBAGENT
    return Summary(
        id=_text(header.get("sessionId")) or _id_of(place),
        title=title,
        title_source=source,
        project=None,
        project_key=place.project_key,
        kind=kind,
        parent=place.parent,
        format=log.format,
        files=(place.path,),
        size=place.size,
        modified=place.modified,
        started=log.replay.started,
        updated=_updated(log),
        models=_distinct(line.model for line in outlines),
        prompts=sum(line.prompt for line in outlines),
        messages=len(outlines),
        spoken=sum(map(_is_spoken, outlines)),
        tool_calls=sum(line.calls for line in outlines),
        tool_failures=sum(line.failures for line in outlines),
        tokens=usage_sum(line.usage for line in outlines),
        files_written=_distinct(path for line in outlines for path in line.writes),
        flags=_flags(log, outlines, dropped),
        partial=not log.complete,
        problems=log.problem_count,
        directories=_strings(header.get("directories")),
        project_hash=_text(header.get("projectHash")),
    )


def _is_spoken(line: Outline) -> bool:
    """Whether it is part of a conversation: what the CLI itself notes down makes none."""
    return line.author is not Author.SYSTEM


def _updated(log: SessionLog) -> datetime | None:
    """The last update that the session names; a log that was read in part does not know it."""
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
    """An id for a file that names none; never the eight characters, which others may share."""
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
    """The first thing a person asked: in the conversation, else in what was buried, else in what
    was rewound or failed. Commands and the summary that a compression leaves only count where
    there is nothing else.
    """
    in_order = (*outlines, *sorted(dropped, key=lambda line: line.dropped is not Dropped.BURIED))
    prompts = [line for line in in_order if line.prompt and line.excerpt]
    asked = (line for line in prompts if not line.excerpt.startswith(_NOT_ASKED))
    return next(asked, prompts[0] if prompts else None)


def _flags(
    log: SessionLog, outlines: Sequence[Outline], dropped: Sequence[Outline]
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
    return frozenset(flags)
