"""The disk usage of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.files import folder_sizes
from gemtui.jsonout import fields

PRUNE_CHECKPOINTS = "gemtui checkpoints --prune"
"""The shell command with which users remove old checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsUsage:
    """The disk usage of checkpoints.

    `folder`: the folder that contains the checkpoints of all projects. `projects`: the number of
    projects. `bytes`: their total size.
    """

    folder: Path
    projects: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as JSON values."""
        return fields(self, "folder", "projects", "bytes")


def checkpoints_usage(checkpoints: Path) -> CheckpointsUsage:
    """Return the disk usage of the checkpoints under `checkpoints`. Never raises."""
    sizes = [sum(folder_sizes(folder)) for folder in project_folders(checkpoints)]
    return CheckpointsUsage(folder=checkpoints, projects=len(sizes), bytes=sum(sizes))


def project_folders(checkpoints: Path) -> Iterator[Path]:
    """Yield the folders in `checkpoints`, each of which holds the checkpoints of one project."""
    with suppress(OSError):
        yield from sorted(folder for folder in checkpoints.iterdir() if folder.is_dir())
