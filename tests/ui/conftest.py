"""What holds for all tests of the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from gemtui.ui.kit import bars
from gemtui.ui.kit.bars import BarLine
from tests.patience import PATIENCE
from tests.ui.people import copy_store
from tests.ui.quick_pilot import quick_pilots
from tests.ui.quick_styles import quick_styles


@pytest.fixture(scope="session", autouse=True)
def styled_once() -> Iterator[None]:
    """Style sheets are parsed and matched once, not by each app: a third of an app's time."""
    with quick_styles():
        yield


@pytest.fixture(scope="session", autouse=True)
def patient_pilot() -> Iterator[None]:
    """A pilot waits as long as all tests do until what was pressed has acted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pilot._wait_for_screen, "__defaults__", (PATIENCE,))
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_pilot() -> Iterator[None]:
    """A pilot waits for the app instead of the clock."""
    with quick_pilots():
        yield


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the recorded store; the current folder is an empty one beside it."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return copy_store(tmp_path)


@pytest.fixture(autouse=True)
def messages_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine the next key, or the clock, would end a message before a test has looked at
    it.
    """
    show = BarLine.show_message
    monkeypatch.setattr(bars, "_READ", PATIENCE)
    monkeypatch.setattr(
        BarLine, "show_message", lambda self, text, seconds: show(self, text, PATIENCE)
    )
