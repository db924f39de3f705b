"""How the checkpoints of a run go, in a file of its folder: the supervisor writes it, others read.

It is there only where something is to be said: a first checkpoint that takes longer than a second,
one that came too late, or a failure.
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
    """What the checkpoints of a run do."""

    FIRST = "first"
    """The first one is being taken; Gemini CLI starts after it."""
    READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """How the checkpoints of a run go.

    `done`, `files`: how many files were looked at, of how many; 0 = not known yet. `late`: Gemini
    CLI was started before the first checkpoint was complete. `problem`: why one could not be taken,
    "" = none failed.
    """

    phase: CheckpointPhase
    done: int = 0
    files: int = 0
    late: bool = False
    problem: str = ""

    @property
    def progress(self) -> str:
        """Words about a first checkpoint that is being taken."""
        words = "taking the first checkpoint"
        return f"{words}: {self.done:,} of {self.files:,} files" if self.files else words

    def notes(self) -> list[str]:
        """Return what a person should know of it."""
        notes = []
        if self.problem:
            notes.append(f"a checkpoint failed, so undo may be incomplete: {self.problem}")
        if self.late:
            notes.append(
                "the first checkpoint took too long, so what was changed meanwhile may not be"
                " undone"
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def checkpoint_state(folder: RunFolder) -> CheckpointState | None:
    """Return how the checkpoints of a run go; None where there is nothing to be said."""
    with suppress(OSError, msgspec.ValidationError):
        return msgspec.convert(read_object(folder.path / _FILE), CheckpointState)
    return None


def write_checkpoint_state(folder: RunFolder, state: CheckpointState) -> None:
    """Say how the checkpoints of a run go. Raises OSError."""
    write_whole(folder.path / _FILE, [orjson.dumps(state)])
