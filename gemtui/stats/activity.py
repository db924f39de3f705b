"""Count the activity in one session file, by time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec.msgpack
from msgspec import Struct

from gemtui.sessions.catalog.cache import CachedRows
from gemtui.sessions.catalog.counted import Counted
from gemtui.sessions.catalog.read_files import read_cached
from gemtui.sessions.read.conversation import calls_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import ChatFile, Problem, never
from gemtui.transcript.model import Author, Outline, ToolStatus
from gemtui.transcript.parts import instant, string
from gemtui.transcript.tools import UNKNOWN_TOOL, call_end, written_path
from gemtui.transcript.usage import Usage, usage_sum

_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The limits of plausible times; any other time is replaced by the session's."""
UNKNOWN_TIME = -1
"""The time slot of activity without any plausible time. Its tokens count as unknown."""
SLOT = 900
"""The length of a time slot in seconds.

Slots are counted in quarters of an hour since 1970, because in every time zone days begin on a full
quarter.
"""
LONG_PROMPT = 200_000
"""The number of input tokens above which some models cost more."""
EXIT_CODE = "exit_code"
"""The result under which a command with a nonzero exit code is counted.

All other results are values of ToolStatus.
"""


class Answers(Struct, frozen=True, array_like=True, gc=False):
    """One model's answers within one time slot.

    * `long`: whether each of these answers has more than LONG_PROMPT input tokens.
    * `dropped`: whether they are no longer part of the conversation, because they were rewound,
      replaced, or part of a failed prompt.
    * `unknown`: how many of the answers don't have both their input and their output recorded,
      without which their cost is unknown.
    """

    slot: int
    model: str
    long: bool
    dropped: bool
    count: int
    unknown: int
    usage: Usage


class ToolCallCount(Struct, frozen=True, array_like=True, gc=False):
    """The number of calls to one tool that have the same result, in one time slot.

    `ended`: the result, which is a value of ToolStatus or EXIT_CODE.
    """

    tool: str
    ended: str
    count: int


class SlotActivity(Struct, frozen=True, array_like=True, gc=False):
    """The activity in one session file within one time slot.

    `prompts`: how many there are. `writes`: the paths of the files written.
    """

    slot: int
    prompts: int = 0
    answers: tuple[Answers, ...] = ()
    calls: tuple[ToolCallCount, ...] = ()
    writes: tuple[str, ...] = ()


FileActivity = tuple[SlotActivity, ...]
"""The activity in one session file, by time slot."""

ACTIVITIES: CachedRows[FileActivity] = CachedRows(
    file="activity.sqlite3",
    version=7,
    application=0x67656E00,
    decode=msgspec.msgpack.Decoder(FileActivity).decode,
)


def activities(
    sessions: Sequence[Counted],
    *,
    home: Path,
    cache: Path | None,
    places: Mapping[str, ChatFile] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[tuple[Counted, FileActivity | Problem]]:
    """Yield each session with its activity, or with a problem if it can't be read.

    Results are cached, so only files that have changed are read. `home`, `cache`, `places`,
    `progress`, `cancelled`: as in `read_cached`.
    """
    return read_cached(
        sessions,
        ACTIVITIES,
        lambda log, session: activity_of(log, session.when),
        home=home,
        cache=cache,
        places=places,
        progress=progress,
        cancelled=cancelled,
    )


def activity_of(log: SessionLog, otherwise: datetime) -> FileActivity:
    """Return the activity in a session.

    `otherwise`: the time for messages and calls that have none. The part that a fork inherited is
    excluded, because it belongs to the original session.
    """
    outlines = [line for line in log.outlines if not log.is_inherited(line.time)]
    prompts = Counter(_slot(line.time, otherwise) for line in outlines if line.prompt)
    answers: defaultdict[int, list[Answers]] = defaultdict(list)
    for answer in answers_of((*outlines, *log.dropped), otherwise):
        answers[answer.slot].append(answer)
    calls: defaultdict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    writes: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for raw in calls_of(log):
        time = instant(raw.get("timestamp"))
        if log.is_inherited(time):
            continue
        status, exit_code = call_end(raw)
        slot = _slot(time, otherwise)
        failed = status is ToolStatus.SUCCESS and exit_code
        ended = EXIT_CODE if failed else status.value
        calls[slot][string(raw.get("name")) or UNKNOWN_TOOL, ended] += 1
        path = written_path(raw, status)
        if path:
            writes[slot][path] = None
    return tuple(
        SlotActivity(
            slot=slot,
            prompts=prompts[slot],
            answers=tuple(answers[slot]),
            calls=tuple(ToolCallCount(*key, count) for key, count in calls[slot].items()),
            writes=tuple(writes[slot]),
        )
        for slot in sorted({*prompts, *answers, *calls})
    )


def answers_of(outlines: Sequence[Outline], otherwise: datetime) -> Iterator[Answers]:
    """Yield the number and tokens of a conversation's answers, by time slot and model.

    `outlines`: the conversation's messages. `otherwise`: the time for answers that have none.
    """
    by_kind: dict[tuple[int, str, bool, bool], list[Usage | None]] = {}
    for line in outlines:
        if line.author is Author.MODEL:
            long = line.usage is not None and (line.usage.input or 0) > LONG_PROMPT
            slot, dropped = _slot(line.time, otherwise), line.dropped is not None
            usage = None if slot == UNKNOWN_TIME else line.usage
            by_kind.setdefault((slot, line.model or "", long, dropped), []).append(usage)
    for key, usages in by_kind.items():
        unknown = sum(usage is None or None in (usage.input, usage.output) for usage in usages)
        yield Answers(*key, len(usages), unknown, usage_sum(usages))


def _slot(time: datetime | None, otherwise: datetime) -> int:
    for moment in (time, otherwise):
        if moment is not None and _FIRST <= moment < _LAST:
            return int(moment.timestamp() // SLOT)
    return UNKNOWN_TIME
