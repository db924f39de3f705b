"""Lists and transcripts are drawn by lines: their length costs no widgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.make_store import make_session, make_store
from tests.ui.people import NARROW, WIDE, person


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_screen_keeps_under_300_widgets(tmp_path: Path, size: tuple[int, int]) -> None:
    make_store(tmp_path, 200)
    long = make_session(tmp_path / ".gemini" / "tmp" / "api" / "chats", size=2_000_000, seed=1_000)
    async with person(tmp_path / ".gemini", size) as me:
        assert me.rows.rows.shown == 201
        assert me.chosen.path == long
        await me.press("enter")
        await me.until(lambda: me.view.total > 300)
        await me.press("f", "end", "pageup")
        assert len(me.app.screen.walk_children(with_self=True)) < 300
