"""How the policy pane looks in its states, wide and narrow.

After a change that is meant: `pytest tests/ui/test_policy_snapshots.py --snapshot-update`, and
look at what changed before it is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.fake_cli import FakeCli
from tests.ui.planners import Planner, planner, policy

Scene = Callable[[Planner], Awaitable[None]]


async def rules(me: Planner) -> None:
    """A policy as it is opened."""


async def changed(me: Planner) -> None:
    """A rule that was switched off, one that moved, one that is gone; the file with its changes."""
    await me.does("space down K end d home v", "unsaved changes")


async def form(me: Planner) -> None:
    """A rule with a finding in the form."""
    await me.press("down", "enter")
    await me.form()
    await me.does("end", "arguments: command")


async def levels(me: Planner) -> None:
    """The simple view."""
    await me.does("l right", "Write files")


async def tools(me: Planner) -> None:
    """What becomes of each tool."""
    await me.press("p")


async def empty(me: Planner) -> None:
    """Somebody who never wrote a policy."""
    await me.sees("No policy yet.")


SCENES: dict[str, Scene] = {
    "rules": rules,
    "changed": changed,
    "form": form,
    "levels": levels,
    "tools": tools,
    "empty": empty,
}


@pytest.mark.parametrize("scene", SCENES)
async def test_each_state_of_the_policy_pane(
    home: Path,
    fake_cli: FakeCli,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
    scene: str,
) -> None:
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("GEMTUI_CONFIG", str(home.parent / ".config/gemtui/config.toml"))
    fake_cli()
    if scene != "empty":
        policy("work")
    async with planner(home) as me:
        await SCENES[scene](me)
        await me.settled()
        await me.looks_in_both_sizes(snapshot)
