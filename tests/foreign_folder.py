"""A folder that somebody else made to have its code run by whoever stands in it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

MODULES = (
    *(
        "click",
        "gemtui",
        "msgspec",
        "orjson",
        "platformdirs",
        "psutil",
        "pygments",
        "regress",
        "send2trash",
    ),
    *("textual", "tomlkit", "tree_sitter", "watchfiles"),
    *("asyncio", "json", "selectors", "signal", "struct", "subprocess", "token", "types", "uuid"),
)
PROGRAMS = (
    *("bash", "env", "gemini", "git", "ldconfig", "nano", "node"),
    *("python3", "sh", "tmux", "uname", "vi", "xdg-open"),
)


class ForeignFolder:
    """`path`: the folder. What runs from it leaves its name in `ran`."""

    def __init__(self, base: Path) -> None:
        self.path, self._marks = base / "foreign", base / "marks"
        self.path.mkdir()
        self._marks.mkdir()
        for name in MODULES:
            (self.path / f"{name}.py").write_text(f"open({self._mark(name)!r}, 'w').close()\n")
        package = self.path / "gemtui"
        package.mkdir()
        (self.path / "gemtui.py").rename(package / "__init__.py")
        for name in PROGRAMS:
            self.program(self.path / name)

    @property
    def ran(self) -> list[str]:
        """What has been run of it so far."""
        return sorted(path.name for path in self._marks.iterdir())

    def program(self, path: Path) -> Path:
        """Put a program there that leaves its name."""
        path.write_text(f"#!/bin/sh\n: > {shlex.quote(self._mark(path.name))}\n")
        path.chmod(0o755)
        return path

    def repository(self, **settings: str) -> None:
        """Make it a git repository with these settings, `core.` left out."""
        subprocess.run(["git", "init", "-q", str(self.path)], check=True)
        for name, value in settings.items():
            words = ["git", "-C", str(self.path), "config", f"core.{name}", value]
            subprocess.run(words, check=True)

    @property
    def path_variable(self) -> str:
        """PATH as some have it: first an empty and a relative entry, which mean this folder."""
        return os.pathsep.join(("", ".", os.environ["PATH"]))

    def _mark(self, name: str) -> str:
        return str(self._marks / name)


@pytest.fixture
def foreign(tmp_path: Path) -> ForeignFolder:
    return ForeignFolder(tmp_path)
