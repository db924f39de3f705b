"""The policy files of a folder's last run."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import resolved
from gemtui.runs.listing import list_runs


def last_policies(place: Path, folder: Path) -> tuple[Path, ...]:
    """Return the files that the newest run in `folder` got by `--policy`; () = none.

    `place`: the folder that holds the runs' folders.
    """
    wanted = resolved(folder)
    for run in list_runs(place):
        request = run.folder.request() if resolved(Path(run.cwd)) == wanted else None
        if request is not None:
            given = (
                word.removeprefix(_OPTION) for word in request.argv if word.startswith(_OPTION)
            )
            return tuple(Path(part) for value in given for part in value.split(","))
    return ()


_OPTION = "--policy="
