"""Load the tool calls of stored sessions, to show how a policy would decide them.

Each session is closed before the next one is opened, so only one batch of calls is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemtui.policy.model.foreign import spelled
from gemtui.policy.model.rules import CallStatus, RecordedCall
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import calls_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import UNREADABLE, Problem, SessionKind, never, problem_of
from gemtui.transcript.model import ToolStatus
from gemtui.transcript.parts import instant, string
from gemtui.transcript.tools import UNKNOWN_TOOL, call_end, stored_args

BATCH = 200
"""The most calls in one step of the scan."""
BATCH_SIZE = 4_000_000
"""A step ends as soon as its calls' arguments have this many characters."""
_UNNAMED = "subagent"
"""The name used for a subagent whose name is unknown."""

_ENDED = {
    ToolStatus.SUCCESS: CallStatus.SUCCEEDED,
    ToolStatus.ERROR: CallStatus.FAILED,
    ToolStatus.CANCELLED: CallStatus.CANCELLED,
    ToolStatus.DENIED: CallStatus.DENIED,
    ToolStatus.REFUSED: CallStatus.REFUSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanStep:
    """A batch of recorded calls, and how many sessions have been read so far.

    `done`: how many sessions have been processed. `total`: how many there are. `problem`: why a
    session, or part of it, could not be read; None if there is no problem.
    """

    calls: tuple[RecordedCall, ...]
    done: int
    total: int
    problem: Problem | None = None


def recorded_calls(
    sessions: Sequence[Summary], *, cancelled: Callable[[], bool] = never
) -> Iterator[ScanStep]:
    """Yield the tool calls in stored sessions, one batch at a time.

    Each session ends with a step that has no calls and increments `done`; an unreadable session has
    only this step. `cancelled`: returns whether to stop; it is called between steps and while large
    files are read. Invalid file contents never raise an error.
    """
    agents: dict[str, str] = {}
    for done, session in enumerate(sessions):
        for calls, problem, last in _steps(session, agents, cancelled):
            if cancelled():
                return
            yield ScanStep(calls=calls, done=done + last, total=len(sessions), problem=problem)


def _steps(
    session: Summary, agents: dict[str, str], cancelled: Callable[[], bool]
) -> Iterator[tuple[tuple[RecordedCall, ...], Problem | None, bool]]:
    """Yield one session's calls, one batch at a time.

    Each step is a tuple of the calls, a problem or None, and whether this is the session's last
    step. `agents`: as in `_recorded`. `cancelled`: returns whether to stop.
    """
    try:
        with SessionLog.read(session.path, cancelled=cancelled) as log:
            for calls in _batches(_recorded(log, session, agents)):
                yield calls, None, False
            yield (), next(iter(log.problems), None), True
    except UNREADABLE as error:
        yield (), problem_of(session.path, error), True


def _batches(calls: Iterable[tuple[RecordedCall, int]]) -> Iterator[tuple[RecordedCall, ...]]:
    batch: list[RecordedCall] = []
    held = 0
    for recorded, size in calls:
        batch.append(recorded)
        held += size
        if len(batch) == BATCH or held > BATCH_SIZE:
            yield tuple(batch)
            batch, held = [], 0
    if batch:
        yield tuple(batch)


def _recorded(
    log: SessionLog, session: Summary, agents: dict[str, str]
) -> Iterator[tuple[RecordedCall, int]]:
    """Yield each call in a session, with the size of its arguments.

    `agents`: maps subagents' ids to their names. If `session` is a subagent's, its name is taken
    from this mapping; the subagents that the session starts are added to it.
    """
    project = session.folder
    subagent = None
    if session.kind is SessionKind.SUBAGENT:
        subagent = agents.pop(session.id, _UNNAMED)
    for raw in calls_of(log):
        name, args = string(raw.get("name")) or UNKNOWN_TOOL, stored_args(raw.get("args"))
        call = spelled(session.agent, name, args, subagent)
        if agent := string(raw.get("agentId")):
            agents[agent] = string(call.args.get("agent_name")) or name
        recorded = RecordedCall(
            call=call,
            session=session.id,
            id=string(raw.get("id")),
            ended=_ended(raw),
            project=project,
            time=instant(raw.get("timestamp")),
        )
        yield recorded, _size(args)


def _ended(raw: Mapping[str, Any]) -> CallStatus:
    """Return how a stored call ended; a non-zero exit code counts as a failure."""
    status, exit_code = call_end(raw)
    ended = _ENDED.get(status, CallStatus.UNKNOWN)
    return CallStatus.FAILED if ended is CallStatus.SUCCEEDED and exit_code else ended


def _size(args: Mapping[str, Any]) -> int:
    """Return the number of characters in all strings, plus one for each other value.

    Nested values are included.
    """
    size, left = 0, list[Any](args.values())
    while left:
        value = left.pop()
        size += len(value) if isinstance(value, str) else 1
        if isinstance(value, list):
            left += value
        elif isinstance(value, dict):
            left += (*value, *value.values())
    return size
