"""How a run stands and how it ended: the one vocabulary of it, and its words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from gemtui.agent.events import DoneStatus


class RunState(StrEnum):
    """Whether a run goes on, and whether its supervisor does."""

    RUNNING = "running"
    """Its supervisor is alive: one can attach to it."""
    ENDED = "ended"
    LOST = "lost"
    """Its supervisor was killed before it could write how the run ended."""
    ORPHANED = "orphaned"
    """Processes of the run go on that its supervisor could not end, or that outlived it."""


class Status(StrEnum):
    """How a run ended, in more detail than the CLI tells."""

    OK = "ok"
    WARNING = "warning"
    """It succeeded, but something in it went wrong."""
    REFUSED = "refused"
    """It succeeded, but tools were not permitted."""
    INCOMPLETE = "incomplete"
    """It ended without a result: what is there may not be all."""
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    TURN_LIMIT = "turn_limit"
    TIMEOUT = "timeout"

    @property
    def words(self) -> str:
        """The end in a few words: `done`, `timed out`."""
        return _WORDS[self]

    @property
    def is_done(self) -> bool:
        """Whether the last turn came to its end."""
        return self in (Status.OK, Status.WARNING, Status.REFUSED)


_WORDS: Mapping[Status, str] = {
    Status.OK: "done",
    Status.WARNING: "done, with a warning",
    Status.REFUSED: "done, tools were denied",
    Status.INCOMPLETE: "incomplete",
    Status.FAILED: "failed",
    Status.INTERRUPTED: "interrupted",
    Status.TURN_LIMIT: "turn limit",
    Status.TIMEOUT: "timed out",
}
_OF_DONE: Mapping[DoneStatus, Status] = {
    DoneStatus.SUCCESS: Status.OK,
    DoneStatus.ERROR: Status.FAILED,
    DoneStatus.INTERRUPTED: Status.INTERRUPTED,
    DoneStatus.MAX_TURNS: Status.TURN_LIMIT,
}


def status_of(done: DoneStatus, *, complete: bool, timed_out: bool) -> Status:
    """Return how a run ended of which nothing but its last event is read.

    `complete`: it had a result. `timed_out`: a limit of time ended it.
    """
    if timed_out:
        return Status.TIMEOUT
    if done is DoneStatus.SUCCESS and not complete:
        return Status.INCOMPLETE
    return _OF_DONE[done]
