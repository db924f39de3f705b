"""Count the activity in one session file, by time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from gemtui.sessions.read.conversation import calls_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.stats.activity import (
    EXIT_CODE,
    LONG_PROMPT,
    SLOT,
    UNKNOWN_TIME,
    Answers,
    FileActivity,
    SlotActivity,
    ToolCallCount,
)
from gemtui.transcript.model import Author, Outline, ToolStatus
from gemtui.transcript.parts import instant, string
from gemtui.transcript.tools import UNKNOWN_TOOL, call_end, written_path
from gemtui.transcript.usage import Usage, usage_sum

_FIRST, _LAST = datetime(1970, 1, 2, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The limits of plausible times; any other time is replaced by the session's."""


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
    slots = sorted({*prompts, *answers, *calls})
    return tuple(
        SlotActivity(
            slot=slot,
            prompts=prompts[slot],
            answers=tuple(answers[slot]),
            calls=tuple(ToolCallCount(*key, count) for key, count in calls[slot].items()),
            writes=tuple(writes[slot]),
            own_cost=log.own_cost if slot == slots[-1] else None,
        )
        for slot in slots
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
