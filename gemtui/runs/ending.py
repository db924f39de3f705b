"""The states and endings of runs, under the names that all of gemtui uses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from gemtui.agent.events import DoneStatus
from gemtui.agent.process_tree import is_supervised
from gemtui.agent.run_folder import Limit, RunFolder


class RunState(StrEnum):
    """Whether a run is still working, judged by its processes."""

    RUNNING = "running"
    """The run's supervisor is alive, so gemtui can attach to the run."""
    ENDED = "ended"
    LOST = "lost"
    """The run's supervisor was killed before it could record how the run ended."""
    ORPHANED = "orphaned"
    """Some of the run's processes survived the supervisor, or could not be killed."""


class Status(StrEnum):
    """The ways in which a run can end, in more detail than the CLI reports."""

    OK = "ok"
    WARNING = "warning"
    """The run succeeded, but something went wrong in it."""
    REFUSED = "refused"
    """The run succeeded, but tool calls were denied."""
    INCOMPLETE = "incomplete"
    """The run ended without reporting a result, so its output may be incomplete."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    TURN_LIMIT = "turn_limit"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    """The run was stopped because of its own or the daily budget."""

    @property
    def words(self) -> str:
        """The ending in a few words, such as `done` or `timed out`."""
        return _WORDS[self]

    @property
    def exit_code(self) -> int:
        """The exit code of `gemtui run` after this ending."""
        return _EXIT_CODES[self]

    @property
    def is_done(self) -> bool:
        """Whether the run's last turn was completed."""
        return self in (Status.OK, Status.WARNING, Status.REFUSED)


_WORDS: Mapping[Status, str] = {
    Status.OK: "done",
    Status.WARNING: "done, with a warning",
    Status.REFUSED: "done, but calls were denied",
    Status.INCOMPLETE: "incomplete",
    Status.FAILED: "failed",
    Status.INTERRUPTED: "interrupted",
    Status.TURN_LIMIT: "turn limit",
    Status.TIMEOUT: "timed out",
    Status.BUDGET: "budget used up",
}
_EXIT_CODES: Mapping[Status, int] = {
    Status.OK: 0,
    Status.WARNING: 0,
    Status.REFUSED: 0,
    Status.INCOMPLETE: 1,
    Status.FAILED: 1,
    Status.TURN_LIMIT: 53,
    Status.TIMEOUT: 124,
    Status.BUDGET: 79,
    Status.INTERRUPTED: 130,
}
_OF_DONE: Mapping[DoneStatus, Status] = {
    DoneStatus.SUCCESS: Status.OK,
    DoneStatus.ERROR: Status.FAILED,
    DoneStatus.INTERRUPTED: Status.INTERRUPTED,
    DoneStatus.MAX_TURNS: Status.TURN_LIMIT,
}
_OF_LIMIT: Mapping[Limit | None, Status] = {
    Limit.TIMEOUT: Status.TIMEOUT,
    Limit.IDLE: Status.TIMEOUT,
    Limit.BUDGET: Status.BUDGET,
}


def state_of(folder: RunFolder) -> RunState:
    """Return a run's state, judged by its supervisor only: never `ORPHANED`."""
    if is_supervised(folder):
        return RunState.RUNNING
    return RunState.ENDED if folder.exit() is not None else RunState.LOST


def status_of(done: DoneStatus, *, complete: bool, limit: Limit | None) -> Status:
    """Return how a run ended, judging only by the last event of its output.

    `complete`: whether the run reported a result. `limit`: the limit that ended the run, if any.
    """
    if (status := _OF_LIMIT.get(limit)) is not None:
        return status
    if done is DoneStatus.SUCCESS and not complete:
        return Status.INCOMPLETE
    return _OF_DONE[done]
