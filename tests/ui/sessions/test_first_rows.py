"""What was read while the program was loaded is on the screen when it appears."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.preload import StorePreload
from gemtui.ui.app import GemtuiApp
from gemtui.ui.kit.app_base import Start
from gemtui.ui.sessions.store_feed import OpenStore


def begun(store: Path) -> Start:
    """A start whose first rows have been read."""
    opening = StorePreload(store, cache=None, project=None)
    opening.first.result()
    return Start(home=store, opening=opening)


async def test_rows_that_were_read_are_there_before_the_store_is_followed(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def follow_nothing(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(OpenStore, "follow", follow_nothing)
    app = GemtuiApp(begun(store))
    app.sessions.marks.read().result()
    async with app.run_test():
        assert app.sessions.sessions.rows.rows


async def test_rows_that_were_shown_are_not_shown_again_when_the_store_is_followed(
    store: Path,
) -> None:
    shown: list[tuple[Snapshot | None, Snapshot]] = []
    complete, marks = asyncio.Event(), asyncio.Event()

    def show(before: Snapshot | None, snapshot: Snapshot) -> None:
        shown.append((before, snapshot))
        if snapshot.complete:
            complete.set()

    opened = OpenStore(begun(store), show=show, changed=lambda *_: None)
    opened.show_first()
    assert len(shown) == 1
    marks.set()
    following = asyncio.create_task(opened.follow(None, marks, prepare=lambda _: None))
    await complete.wait()
    following.cancel()
    assert [before for before, _ in shown].count(None) == 1
    assert shown[1][1] is not shown[0][1]
