"""The program that supervises one run and looks after the session that it resumes.

Run as `python -m gemtui.runs.supervisor FOLDER`. What a run that resumes nothing does not need is
not imported for it.
"""

from __future__ import annotations

import sys

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.supervise import Keeper, main


def keeper_of(folder: RunFolder, request: Request) -> Keeper | None:
    """Return who looks after the session of a run; None if it resumes none."""
    if not (request.about or {}).get("resume"):
        return None
    from gemtui.runs.kept_session import kept_of
    from gemtui.runs.session_keeper import Keeper

    kept = kept_of(folder)
    return None if kept is None else Keeper(folder, kept)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], keeper_of=keeper_of))
