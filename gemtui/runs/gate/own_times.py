"""The time that a run's tool calls themselves took.

Gemini CLI announces all calls of a turn before it makes the first one, and reports the results when
the last one has ended (assets/gemini-cli.md#events). The time between them includes the other calls
and the time in which the user thinks about a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from gemtui.runs.gate.questions import Question
from gemtui.transcript.model import Block, ToolCall, ToolStatus

Waits = tuple[tuple[datetime, datetime], ...]
"""Periods without overlap, in order: when each began and ended."""
_NOT_MADE = (ToolStatus.DENIED, ToolStatus.REFUSED)


def waits_of(questions: Iterable[Question]) -> Waits:
    """Return when a run waited for the user, judging by its settled questions."""
    asked = (
        (question.request.asked, question.settled.at)
        for question in questions
        if question.settled is not None
    )
    merged: list[tuple[int, int]] = []
    for start, end in sorted(asked):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return tuple((_time(start), _time(end)) for start, end in merged)


def with_own_times(blocks: Sequence[Block], waits: Waits) -> tuple[Block, ...]:
    """Return the blocks of one turn, each call with the time that it took itself.

    It is None for a call that was not made. If several calls were made, it is None for all of them,
    because only the time that they took together is known. `waits`: when the run waited for the
    user.
    """
    timed = [
        block for block in blocks if isinstance(block, ToolCall) and block.status not in _NOT_MADE
    ]
    alone = len(timed) == 1
    return tuple(
        replace(block, duration=_own_time(block, waits) if alone and block is timed[0] else None)
        if isinstance(block, ToolCall)
        else block
        for block in blocks
    )


def _own_time(call: ToolCall, waits: Waits) -> timedelta | None:
    if call.duration is None or call.time is None:
        return call.duration
    ended, began = call.time, call.time - call.duration
    inside = ((max(start, began), min(end, ended)) for start, end in waits)
    waited = sum((end - start for start, end in inside if start < end), timedelta())
    return call.duration - waited


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
