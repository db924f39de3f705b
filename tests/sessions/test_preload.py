"""The first rows, read by a process of its own while the program is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.sessions import logs
from tests.sessions.stores import session, talk, uuid

BEGIN = """
import sys
from pathlib import Path
from gemtui.sessions.catalog.preload import StorePreload

home, cache = Path(sys.argv[1]), Path(sys.argv[2])
opening = StorePreload(home, cache=cache, project=None, ahead=True)
assert "gemtui.sessions.catalog.index" not in sys.modules
"""
LOAD = """
rows = opening.first.result()
assert {each.title for each in rows.sessions} == {"Second", "First"}
whole = opening.index.load(publish=lambda _: None, cancelled=lambda: False)
assert whole.complete
assert {each.title for each in whole.sessions} == {"Second", "First"}
"""
KNOWN = """
opening.first.result()
said = []
opening.index.load(publish=lambda some: said.append(len(some.sessions)), cancelled=lambda: False)
assert min(said) == 2, said
"""
NO_PROCESS = """
import os

def fork():
    raise BlockingIOError(11, "Resource temporarily unavailable")

os.fork = fork
"""
KILLED = """
import psutil
for child in psutil.Process().children():
    child.kill()
"""


def python(code: str, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / ".gemini", tmp_path / "cache"],
        timeout=PATIENCE,
        check=True,
    )


@pytest.fixture(autouse=True)
def store(tmp_path: Path) -> None:
    long = [logs.gemini(f"long{number}", "x" * 50_000) for number in range(3)]
    session(tmp_path / ".gemini", uuid(1), [*talk(uuid(1), "First"), *long])
    session(tmp_path / ".gemini", uuid(2), talk(uuid(2), "Second"))


def test_another_process_reads_the_first_rows(tmp_path: Path) -> None:
    python(BEGIN + LOAD, tmp_path)


def test_a_process_that_is_killed_costs_nothing_but_time(tmp_path: Path) -> None:
    python(BEGIN + KILLED + LOAD, tmp_path)


def test_without_a_process_to_spare_they_are_read_here(tmp_path: Path) -> None:
    python(NO_PROCESS + BEGIN + LOAD, tmp_path)


def test_rows_that_are_shown_stay_while_all_is_read(tmp_path: Path) -> None:
    python(BEGIN + KNOWN, tmp_path)


def test_it_leaves_no_process_behind(tmp_path: Path) -> None:
    left = "opening.first.result()\nimport psutil\nassert not psutil.Process().children()\n"
    python(BEGIN + left, tmp_path)
