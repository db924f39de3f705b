"""How undo, its files and a recovered file look, wide and narrow.

After a change that is meant: `pytest tests/ui/undo --snapshot-update`, and look at what changed
before it is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from gemtui.paths import gemini_home
from tests.ui.people import WIDE, Person, person
from tests.ui.undo.conftest import to_second_prompt


async def planned(me: Person) -> None:
    await to_second_prompt(me)
    await me.does("U", "nothing has changed yet", "rm -rf build")


async def left_alone(me: Person) -> None:
    await planned(me)
    await me.does("down", "Not undone:", "B, mine")


async def texts(me: Person) -> None:
    await left_alone(me)
    await me.does("enter", "before the prompt", "1 of 5")
    await me.does("tab", "as the session left it")


async def done(me: Person) -> None:
    await planned(me)
    await me.does("y", "continue", "redo")


async def recovered(me: Person) -> None:
    await me.sees("Look around.")
    await me.does("w", "notes.md")
    await me.does("'notes ctrl+o", "3 lines known")


SCENES: dict[str, Callable[[Person], Awaitable[None]]] = {
    scene.__name__: scene for scene in (planned, left_alone, texts, done, recovered)
}


@pytest.mark.parametrize("scene", SCENES)
async def test_each_screen(
    project: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion, scene: str
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    async with person(gemini_home(), WIDE, project=project) as me:
        await SCENES[scene](me)
        await me.looks_in_both_sizes(snapshot)
