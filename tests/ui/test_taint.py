"""Every screen over strings that attack the terminal: the last filter has nothing left to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.segment import Segment

from gemtui.config import Config, Scope
from gemtui.policy.file.policy_files import policies_dir
from gemtui.ui.kit.clean_widgets import NoControls
from gemtui.ui.kit.keys import reachable
from tests import hostile
from tests.fake_cli import FakeCli
from tests.ui.people import Person, person

LEAVING = ("close", "quit", "back", "help_quit", "suspend_process")
"""Actions that close a screen, or the app."""
ELSEWHERE = ("sessions.new_run", "history.open", "call.session", "prompt.leave")
"""Keys that lead to another pane, from which esc does not lead back."""
MOVING = ("rows", "drawing")
"""Groups of keys that only move or scroll, but for the one that opens a row."""
PANES = ("sessions", "runs", "policies")
LEAST_SCREENS = 20
"""A walk that draws fewer kinds of screens has lost its way."""


@pytest.fixture
def leaks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What reaches the last filter before the terminal, and would act on it."""
    leaked: list[str] = []
    apply = NoControls.apply

    def watch(self: NoControls, segments: list[Segment], background: Any) -> list[Segment]:
        leaked.extend(part.text for part in segments if hostile.ACTS.search(part.text))
        return apply(self, segments, background)

    monkeypatch.setattr(NoControls, "apply", watch)
    return leaked


@pytest.fixture
def store(
    home: Path, tmp_path: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """Hostile sessions, policies and a CLI, in a hostile folder; (`.gemini`, the folder)."""
    hostile.make_store(home)
    events = tmp_path / "events"
    events.write_text("\n".join(map(json.dumps, hostile.EVENTS)) + "\n")
    fake_cli(f"err:{hostile.FILE_NAME}", f"file:{events}", "exit:1")
    policies_dir().mkdir(parents=True)
    (policies_dir() / f"{hostile.FILE_NAME}.toml").write_text(hostile.POLICY)
    folder = tmp_path / hostile.FILE_NAME
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    return home / ".gemini", folder


async def run_key(me: Person, id: str) -> None:
    """Do what a key does, as the palette would, and draw what comes of it."""
    await me.app.run_action(f"run_key({id!r})")
    await me.pilot.pause()
    assert me.text


async def walk(me: Person, seen: set[str]) -> None:
    """Do what every key of a screen does, and walk each new kind of screen that this opens."""
    base = me.app.screen
    seen.add(type(base).__name__)
    for key, _ in reachable(base):
        group, _, name = key.id.partition(".")
        if key.action in LEAVING or key.id in ELSEWHERE or name in PANES:
            continue
        if group in MOVING and name != "open":
            continue
        if group == "app" and len(seen) > len(PANES):  # the same everywhere
            continue
        await run_key(me, key.id)
        if me.app.screen is not base and type(me.app.screen).__name__ not in seen:
            await walk(me, seen)
        for _ in range(4):
            if me.app.screen is not base:
                await me.press("escape")
        if me.app.screen is not base:
            return


@pytest.mark.deep
async def test_nothing_foreign_is_left_to_the_last_filter(
    store: tuple[Path, Path], leaks: list[str]
) -> None:
    home, folder = store
    seen: set[str] = set()
    async with person(home, config=Config(scope=Scope.EVERYWHERE), project=folder) as me:
        await run_key(me, "app.runs")
        await run_key(me, "run.write")
        await me.does("x enter", "1 failed")
        for pane in PANES:
            await run_key(me, f"app.{pane}")
            await walk(me, seen)
    assert leaks == []
    assert len(seen) >= LEAST_SCREENS
