"""What a command must not load: the screen. A static graph can't see what a call imports."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gemtui as package
from gemtui.cli import main
from tests.patience import PATIENCE
from tests.rows import table

TABLES = table("cli/imports.json")

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
    assert "gemtui.sessions.read.session_log" in names
    assert "gemtui.commands.show" in names
    loaded = modules_after("".join(f"import {name}\n" for name in names))
    assert not loaded & SCREEN


def test_no_command_loads_the_screen(store: Path) -> None:
    commands = TABLES["no_command_loads_the_screen"]
    lines = (f"assert main({words!r}) == 0\n" for words in commands)
    loaded = modules_after("from gemtui.cli import main\n" + "".join(lines))
    assert not loaded & SCREEN


def test_help_loads_nothing_of_the_core() -> None:
    loaded = modules_after("from gemtui.cli import main\nassert main(['--help']) == 0")
    ours = {name for name in loaded if name.startswith("gemtui.")}
    assert ours == {
        "gemtui.cli",
        "gemtui.commands",
        "gemtui.commands.shared_options",
        "gemtui.errors",
        "gemtui.files",
        "gemtui.system",
    }
    assert not loaded & {"orjson", "platformdirs", "sqlite3", "watchfiles", "psutil", "asyncio"}


LATER = set(TABLES["later"])
"""What the first rows do without: whoever imports it for them makes every start slower."""
FIRST_ROWS = """
import asyncio, sys
from gemtui.commands import app as command
from gemtui.ui import app as ui
from gemtui.ui.sessions.read_pane import ReadPane

ReadPane._add_view = lambda pane: None  # follows the first rows

def run_app(start, config):
    app = ui.GemtuiApp(start, config)

    async def look():
        async with app.run_test(size=(120, 36)):
            while not app.sessions.sessions.rows.rows:
                await asyncio.sleep(0.01)
            loaded.update(sys.modules)

    asyncio.run(look())
    return 0

ui.run_app, loaded = run_app, set()
assert command.open_app(None, session=None, demo=False, ascii=False) == 0
for name in set(sys.modules) - loaded:
    del sys.modules[name]
"""


def test_the_first_rows_do_without_what_comes_later(store: Path) -> None:
    loaded = modules_after(FIRST_ROWS)
    assert "gemtui.ui.sessions.list" in loaded
    assert not loaded & LATER
    assert len([name for name in loaded if name.startswith("gemtui.")]) <= TABLES["first_rows"]


@pytest.mark.parametrize("row", TABLES["commands"], ids=lambda row: " ".join(row["line"]))
def test_a_command_loads_only_what_it_needs(row: dict[str, Any], store: Path) -> None:
    """What is in the cache is answered without what would fill the cache."""
    assert main(row["line"]) == 0
    loaded = modules_after(f"from gemtui.cli import main\nassert main({row['line']!r}) == 0")
    assert not loaded & {*row["without"], *TABLES["never"]}
    assert len([name for name in loaded if name.startswith("gemtui.")]) <= row["most"]


def test_importing_the_package_loads_nothing() -> None:
    assert {name for name in modules_after("import gemtui") if name.startswith("gemtui.")} == set()
