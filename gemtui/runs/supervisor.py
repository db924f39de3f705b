"""The program that supervises one run, looks after the session that it resumes and asks for it.

Run as `python -m gemtui.runs.supervisor FOLDER`. What a run that resumes nothing, or asks nobody,
does not need is not imported for it.
"""

from __future__ import annotations

import sys

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.supervise import Gate, Keeper, main


def keeper_of(folder: RunFolder, request: Request) -> Keeper | None:
    """Return who looks after the session of a run; None if it resumes none."""
    if not (request.about or {}).get("resume"):
        return None
    from gemtui.kept.resume_guard import SessionKeeper
    from gemtui.kept.run_copies import kept_of

    kept = kept_of(folder)
    return None if kept is None else SessionKeeper(folder, kept)


def gate_of(folder: RunFolder, request: Request) -> Gate | None:
    """Return the gate of a run; None if it asks nobody."""
    if not (request.about or {}).get("ask"):
        return None
    from gemtui.runs.gate import Gate

    return Gate(folder, request)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], keeper_of=keeper_of, gate_of=gate_of))
