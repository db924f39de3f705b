"""The state of a run's checkpoints, in a file that the run's supervisor writes.

The file exists only if there is something to report: a first checkpoint that takes longer than a
second or was complete only after Gemini CLI had started, an interrupted undo that was completed, or
a failure.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import msgspec
import orjson

from gemtui.agent.run_folder import RunFolder
from gemtui.files import write_whole
from gemtui.jsonfile import read_object

_FILE = "checkpoints.json"


class CheckpointPhase(StrEnum):
    """Whether a run's first checkpoint has been taken."""

    FIRST = "first"
    """The first checkpoint is being taken, and Gemini CLI has not started yet."""
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """The state of a run's checkpoints.

    * `done`, `files`: how many files the first checkpoint has checked, and how many it will check;
      0 if not known yet.
    * `late`: whether Gemini CLI was started before the first checkpoint was complete.
    * `problem`: why a checkpoint could not be taken; "" if none failed.
    * `settled`: notes about interrupted undos that the run's supervisor completed.
    """

    phase: CheckpointPhase
    done: int = 0
    files: int = 0
    late: bool = False
    problem: str = ""
    settled: tuple[str, ...] = ()

    @property
    def progress(self) -> str:
        """The first checkpoint's progress, as text for users."""
        words = "taking the first checkpoint"
        return f"{words}: {self.done:,} of {self.files:,} files" if self.files else words

    def notes(self) -> list[str]:
        """Return what users should know about the checkpoints, one sentence each."""
        notes = [*self.settled]
        if self.problem:
            notes.append(f"a checkpoint failed, so undo may be incomplete: {self.problem}")
        if self.late:
            notes.append("the first checkpoint took too long, so undo may miss changes made in the meantime")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return asdict(self)


def checkpoint_state(folder: RunFolder) -> CheckpointState | None:
    """Return the state of a run's checkpoints; None if there is nothing to report."""
    with suppress(OSError, msgspec.ValidationError):
        return msgspec.convert(read_object(folder.path / _FILE), CheckpointState)
    return None


def write_checkpoint_state(folder: RunFolder, state: CheckpointState) -> None:
    """Write the state of a run's checkpoints. Raises OSError."""
    write_whole(folder.path / _FILE, [orjson.dumps(state)])
