"""What is written to the store while somebody reads shows up where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.sessions import logs
from tests.sessions.stores import append, session, talk, uuid
from tests.ui.people import NARROW, WIDE, person


def said(number: int, text: str, type: str = "gemini") -> dict[str, Any]:
    return {
        "id": f"new-{number}",
        "timestamp": f"2026-11-21T00:00:{number:02}.000Z",
        "type": type,
        "content": text if type == "gemini" else [{"text": text}],
    }


def new_session(store: Path, title: str) -> Path:
    now = logs.at(86 * 60)
    head = logs.header(uuid(0xABC), startTime=now, lastUpdated=now)
    records = [head, said(1, title, type="user")]
    return session(store, uuid(0xABC), records, key="notes", minute="2026-11-21T00-30")


async def test_a_reader_at_the_end_follows(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("down enter", "frog leaps in", "following")
        append(me.chosen.path, said(1, "A third haiku, fresh."))
        await me.sees("A third haiku, fresh.", "following")


async def test_a_reader_elsewhere_stays_and_is_told(store: Path) -> None:
    async with person(store, (80, 12)) as me:
        await me.does("down enter", "Write a haiku file", "message 1 of 5")
        before = [line[:78] for line in me.text.splitlines()[2:9]]
        append(me.chosen.path, said(1, "One more."), said(2, "Two more."))
        await me.sees("2 new", "of 7")
        assert [line[:78] for line in me.text.splitlines()[2:9]] == before


async def test_a_new_session_appears_and_goes_and_the_cursor_stays(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.press("down", "down")
        before = me.chosen.id
        path = new_session(store, "Something entirely new")
        await me.sees("Something entirely new")
        assert me.chosen.id == before
        path.unlink()
        await me.lacks("Something entirely new")
        assert me.chosen.id == before


async def test_the_heading_knows_an_open_file_that_has_become_a_copy(tmp_path: Path) -> None:
    first = session(tmp_path, uuid(1))
    async with person(tmp_path, WIDE) as me:
        await me.does("enter", "Answer 0", "1 prompt")
        longer = talk(uuid(1), seconds=99, turns=9)
        session(tmp_path, uuid(1), longer, minute="2026-11-20T23-05")
        await me.until(lambda: me.chosen.path != first)
        append(first, logs.user("more", "And more", 6))
        await me.sees("And more", "2 prompts")


async def test_folds_stay_when_a_session_grows(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("slash 'rename enter", "read_file", "11 lines")
        await me.press("right_square_bracket", "space")
        await me.lacks("11 lines")
        append(me.chosen.path, said(1, "And one more thing."))
        await me.until(lambda: me.view.total == 4)
        assert "11 lines" not in me.text
