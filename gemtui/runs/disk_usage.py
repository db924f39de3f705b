"""The number of runs, their disk usage, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemtui.files import is_folder, is_private
from gemtui.jsonout import fields
from gemtui.runs.limits import CLEAR, MOST_BYTES, MOST_RUNS

if TYPE_CHECKING:
    from gemtui.kept.run_copies import LastCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """The disk usage of all run folders.

    * `place`: the folder that contains them.
    * `private`: whether only the user can read them.
    * `lost`: the ids of runs whose supervisor was killed.
    * `orphaned`: the ids of those whose processes are still alive.
    * `broken`: the folders without a readable run.
    * `only_copies`: the runs that hold the only copy of a session.
    * `asking`: the ids of runs that are waiting for the user's answer.
    """

    place: Path
    runs: int
    bytes: int
    private: bool
    lost: tuple[str, ...] = ()
    orphaned: tuple[str, ...] = ()
    broken: tuple[Path, ...] = ()
    only_copies: tuple[LastCopy, ...] = ()
    asking: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as `gemtui doctor --json` prints it."""
        names = ("runs", "bytes", "private", "broken", "orphaned", "asking")
        return {
            **fields(self, *names, path="place"),
            "most_runs": MOST_RUNS,
            "most_bytes": MOST_BYTES,
            "clear": CLEAR,
            "only_copies": [
                {"run": copy.folder.id, **fields(copy, session="session_id", bytes="size")}
                for copy in self.only_copies
            ],
        }


def runs_usage(place: Path) -> DiskUsage:
    """Return the number of run folders in `place` and their disk usage."""
    if not is_folder(place):
        return DiskUsage(place=place, runs=0, bytes=0, private=is_private(place))
    from gemtui.kept.run_copies import last_copies
    from gemtui.runs.ending import RunState
    from gemtui.runs.listing import broken_runs, list_runs, run_folders, size_of_run

    folders, runs = list(run_folders(place)), list_runs(place)
    return DiskUsage(
        place=place,
        runs=len(folders),
        bytes=sum(size_of_run(folder.path) for folder in folders),
        private=is_private(place),
        lost=tuple(run.id for run in runs if run.state is RunState.LOST),
        orphaned=tuple(run.id for run in runs if run.state is RunState.ORPHANED),
        broken=broken_runs(place),
        only_copies=last_copies(place),
        asking=tuple(run.id for run in runs if run.asks),
    )
