"""Waiting for changes in folders."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from gemtui.folder_events import FolderEvents, watching
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports these events")


async def test_what_changes_between_and_during_two_waits_ends_the_next(tmp_path: Path) -> None:
    later = tmp_path / "later"
    async with asyncio.timeout(PATIENCE):
        with watching(tmp_path, later) as stirs:
            await stirs.next(0, None)
            (tmp_path / "between").touch()
            await stirs.next(0, None)
            wait = asyncio.create_task(stirs.next(0, None))
            await asyncio.sleep(0)
            later.mkdir()
            await wait
            await stirs.next(0, None)
            (later / "inside").touch()
            await stirs.next(0, None)


async def test_without_a_change_the_longest_time_ends_a_wait(tmp_path: Path) -> None:
    with watching(tmp_path) as stirs:
        await stirs.next(0, None)
        await stirs.next(0, 0.01)


async def test_names_are_those_of_the_disk(tmp_path: Path) -> None:
    events = FolderEvents()
    assert events.add(tmp_path)
    assert not events.add(tmp_path)
    names = {tmp_path / "a", tmp_path / "b\udcff"}
    for name in names:
        name.touch()
    assert events.read() == names
    assert events.read() == set()
    events.close()
