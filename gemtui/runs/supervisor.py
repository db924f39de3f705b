"""The program that supervises one run, looks after the session that it resumes and asks for it.

Run as `python -m gemtui.runs.supervisor FOLDER`. What a run that resumes nothing, or asks nobody,
does not need is not imported for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.supervise import AfterRun, Gate, Keeper, main


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


def after_of(folder: RunFolder) -> AfterRun:
    """Return what tells the user's own program that a run has ended.

    Which one that is, is read now: before the run can change the file.
    """
    from gemtui.runs.user_commands import ON_END, UserCommands, start

    program = UserCommands.of(folder).on_end
    return lambda run: start(run, ON_END, program) if program else None


if __name__ == "__main__":
    words = sys.argv[1:]
    after = after_of(RunFolder(Path(words[0])))
    sys.exit(main(words, keeper_of=keeper_of, gate_of=gate_of, after=after))
