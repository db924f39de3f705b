"""What a command must not load: the screen. A static graph can't see what a call imports."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import gemtui as package
from tests.patience import PATIENCE

SCREEN = {"textual", "rich"}
REPORT = "import sys, json; json.dump(sorted(sys.modules), sys.stderr)"


def core_modules() -> list[str]:
    """Every module of the package but those of the app."""
    found = pkgutil.walk_packages(
        package.__path__, "gemtui.", onerror=lambda name: pytest.fail(f"{name} can't be imported")
    )
    outside = ("gemtui.ui", "gemtui.__main__")
    return [each.name for each in found if not each.name.startswith(outside)]


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{REPORT}"],
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr)} | set(
        json.loads(done.stderr)
    )


def test_no_core_module_loads_the_screen() -> None:
    names = core_modules()
    assert "gemtui.sessions.records" in names
    assert "gemtui.commands.show" in names
    loaded = modules_after("".join(f"import {name}\n" for name in names))
    assert not loaded & SCREEN


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["sessions"],
        ["sessions", "--json"],
        ["show", "latest"],
        ["show", "latest", "--format", "html"],
        ["doctor"],
    ],
)
def test_no_command_loads_the_screen(store: Path, words: list[str]) -> None:
    loaded = modules_after(f"from gemtui.cli import main\nassert main({words!r}) == 0")
    assert not loaded & SCREEN


def test_help_loads_nothing_of_the_core() -> None:
    loaded = modules_after("from gemtui.cli import main\nassert main(['--help']) == 0")
    ours = {name for name in loaded if name.startswith("gemtui.")}
    names = ("policy_cli", "run_cli", "runs_cli", "trust_cli")
    words = {f"gemtui.commands.{name}" for name in names}
    assert ours == {"gemtui.cli", "gemtui.commands", "gemtui.errors", "gemtui.files", *words}
    assert not loaded & {"orjson", "platformdirs", "sqlite3", "watchfiles", "psutil", "asyncio"}


def test_importing_the_package_loads_nothing() -> None:
    assert {name for name in modules_after("import gemtui") if name.startswith("gemtui.")} == set()
