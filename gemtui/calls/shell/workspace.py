"""Determine, as the CLI does, whether a path in a command leaves the workspace.

This is part of the CLI's classification of commands (assets/gemini-cli.md#safe-commands).
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from gemtui.calls.paths import absolute, real_path, within

_NOWHERE: Final = "/\U0010ffff"
"""Replaces an unknown folder; no real path is inside this one."""

_LONGEST: Final = 4096
"""The longest path, in characters, that is looked up; no system has longer ones."""

_SYSTEM: Final = (
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/opt/homebrew/Cellar",
    "/usr/local/Cellar",
    "/usr/sbin",
    "/sbin",
    "/google/bin",
    "/google/src/cloud",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The absolute paths of a run's workspace and of the folder a command runs in.

    `known`: False if the disk must not be read; paths are then judged by their spelling alone.
    """

    workspace: str
    folder: str
    known: bool

    @classmethod
    def of(cls, workspace: Path | None, dir_path: str) -> Self:
        """Return the workspace with a command's folder.

        `workspace`: the run's folder; None if unknown. `dir_path`: the call's argument of that
        name; "" means the workspace.
        """
        root = _NOWHERE if workspace is None else absolute("/", str(workspace.absolute()))
        folder = absolute(root, dir_path) if dir_path else root
        return cls(workspace=root, folder=folder, known=workspace is not None)

    @property
    def outside(self) -> bool:
        """Whether the command's folder is outside the workspace; links are not followed."""
        return not within(self.workspace, self.folder)

    def real(self) -> Workspace:
        """Return the same workspace, with symbolic links resolved."""
        if not self.known:
            return self
        return Workspace(workspace=real_path(self.workspace), folder=real_path(self.folder), known=self.known)

    def escapes(self, path: str) -> bool:
        """Return whether a path, with links followed, leads out of the workspace."""
        if not path:
            return False
        if "$" in path or "`" in path:
            return True
        if path == "~" or path.startswith(("~/", "~\\")):
            target = absolute(os.path.expanduser("~"), path[2:])  # noqa: PTH111
        elif path.startswith("~"):
            return True
        else:
            target = absolute(self.folder, path)
        return not within(self.workspace, target) or (self.known and self._linked_out(target))

    def _linked_out(self, target: str) -> bool:
        if len(target) > _LONGEST:
            target = target[:_LONGEST].rpartition("/")[0]
        while within(self.workspace, target) and target != "/":
            if Path(target).is_symlink():
                with suppress(OSError):
                    if not within(self.workspace, os.path.realpath(target, strict=True)):
                        return True
            target = target.rpartition("/")[0] or "/"
        return False

    def has(self, name: str) -> bool:
        """Return whether the command's folder contains an entry with this name."""
        return self.known and os.path.lexists(absolute(self.folder, name))

    def trusts(self, program: str) -> bool:
        """Return whether a program is named by its absolute path in a system folder."""
        if not program.startswith("/"):
            return False
        real = real_path(program) if self.known else absolute("/", program)
        if self.workspace != "/" and within(self.workspace, real):
            return False
        return any(within(root, real) for root in _SYSTEM)
