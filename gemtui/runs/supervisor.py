"""The program that supervises one run: its session, its checkpoints, its questions.

Run as `python -m gemtui.runs.supervisor FOLDER`. What a run that resumes nothing, or asks nobody,
does not need is not imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.supervise import Gate, Keeper, main


def keeper_of(folder: RunFolder, request: Request) -> Keeper | None:
    """Return who looks after a run's session, if it resumes one, and takes its checkpoints."""
    from gemtui.runs.checkpointing import checkpoints_of

    keepers = (_session_keeper(folder, request), checkpoints_of(folder, request))
    found = [keeper for keeper in keepers if keeper is not None]
    return Keepers(found) if len(found) > 1 else next(iter(found), None)


def _session_keeper(folder: RunFolder, request: Request) -> Keeper | None:
    if not (request.about or {}).get("resume"):
        return None
    from gemtui.runs.kept_session import kept_of
    from gemtui.runs.session_keeper import Keeper

    kept = kept_of(folder)
    return None if kept is None else Keeper(folder, kept)


class Keepers:
    """Several keepers as one; what one of them raises is raised once all have looked."""

    def __init__(self, keepers: Sequence[Keeper]) -> None:
        self._keepers = keepers

    def look(self) -> float:
        """Let each look; return the seconds until the next look of the one in most haste."""
        waits = list[float]()

        def let_look(keeper: Keeper) -> None:
            waits.append(keeper.look())

        with ExitStack() as stack:
            for keeper in reversed(self._keepers):
                stack.callback(let_look, keeper)
        return min(waits)

    def close(self) -> None:
        """Let each look a last time."""
        with ExitStack() as stack:
            for keeper in reversed(self._keepers):
                stack.callback(keeper.close)


def gate_of(folder: RunFolder, request: Request) -> Gate | None:
    """Return the gate of a run; None if it asks nobody."""
    if not (request.about or {}).get("ask"):
        return None
    from gemtui.runs.gate import Gate

    return Gate(folder, request)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], keeper_of=keeper_of, gate_of=gate_of))
