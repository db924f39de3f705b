"""How the screens around the policy pane look, wide and narrow, and without box characters.

After a change that is meant: `pytest tests/ui/test_policy_around_snapshots.py --snapshot-update`,
and look at what changed before it is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from gemtui.config import Config
from gemtui.ui.simulator.history import PolicyHistoryScreen
from gemtui.ui.simulator.simulation import SimulatorScreen
from gemtui.ui.simulator.try_call import TryScreen
from tests.ui.histories import Trier, trier
from tests.ui.people import NARROW, WIDE

Scene = Callable[[Trier], Awaitable[None]]


async def tried(me: Trier) -> None:
    await me.type("rm -rf build")
    await me.sees('"command": "rm -rf build"', "by rule 1", "Nothing is removed here.")


async def picked(me: Trier) -> None:
    await me.does("ctrl+l", "8 calls in 2 sessions", "rm -rf build")


async def counted(me: Trier) -> None:
    await me.sees("8 calls in 2 sessions", "By rule")


async def behind(me: Trier) -> None:
    await counted(me)
    await me.does("down down enter", "2 calls", "rm -rf build")


async def explained(me: Trier) -> None:
    await behind(me)
    await me.does("enter", "Call details", "Arguments of")


async def which(me: Trier) -> None:
    await counted(me)
    await me.does("w", "Choose the calls")


async def suggested(me: Trier) -> None:
    await counted(me)
    while "+ " not in me.line("▌"):
        await me.press("down")
    await me.sees("files below src/", "evidence")


SCENES: dict[str, tuple[type[SimulatorScreen], Scene]] = {
    "try": (TryScreen, tried),
    "pick": (TryScreen, picked),
    "history": (PolicyHistoryScreen, counted),
    "behind": (PolicyHistoryScreen, behind),
    "call": (PolicyHistoryScreen, explained),
    "which": (PolicyHistoryScreen, which),
    "suggest": (PolicyHistoryScreen, suggested),
}


async def compared(
    snapshot: SnapshotAssertion, folder: Path, scene: str, config: Config | None = None
) -> None:
    kind, act = SCENES[scene]
    async with trier(kind, folder, NARROW, config=config) as me:
        await act(me)
        await me.looks_as(snapshot)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the screens call `~`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("scene", SCENES)
async def test_each_screen(place: Path, snapshot: SnapshotAssertion, scene: str) -> None:
    kind, act = SCENES[scene]
    async with trier(kind, place, WIDE) as me:
        await act(me)
        await me.looks_in_both_sizes(snapshot)


@pytest.mark.parametrize("scene", ["try", "history"])
async def test_without_box_characters(place: Path, snapshot: SnapshotAssertion, scene: str) -> None:
    await compared(snapshot, place, scene, config=Config(ascii=True))


async def test_without_colours(
    place: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await compared(snapshot, place, "history")
