"""Where the user left off: kept between starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.paths import left_off_file
from gemtui.sessions.catalog.columns import Sort
from gemtui.sessions.catalog.listing import View
from gemtui.transcript.model import Transcript
from gemtui.ui.sessions.left_off import MOST_PLACES, LeftOff
from gemtui.ui.transcript.cursor import Cursor
from tests.ui.people import NARROW, person
from tests.ui.talks import answer, prompt

TALK = Transcript.of([prompt("p", "hi"), answer("a", "one", "two")])


def test_places_are_kept_in_a_file_with_mode_0600_and_the_oldest_are_dropped(
    tmp_path: Path,
) -> None:
    path, left = tmp_path / "state" / "left-off.json", LeftOff()
    for number in range(MOST_PLACES + 1):
        left.leave(f"s{number}", TALK, Cursor(1, 1))
    left.leave_list("/p", View(everywhere=True, sort=Sort.TOKENS, reverse=True), "row")
    left.save(path)
    again = LeftOff.read(path)
    assert again.lists == left.lists
    assert len(again.blocks) == MOST_PLACES
    assert "s0" not in again.blocks
    assert again.blocks["s1"] == ("a", 1)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_session_left_at_its_start_has_no_place() -> None:
    left = LeftOff()
    left.leave("s", TALK, Cursor(1, 0))
    left.leave("s", TALK, Cursor(0, 0))
    assert left.blocks == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"blocks": {"s": 1}}', '{"lists": {"p": {}}}'])
def test_a_damaged_file_holds_no_places(tmp_path: Path, text: str) -> None:
    path = tmp_path / "left-off.json"
    path.write_text(text)
    assert LeftOff.read(path) == LeftOff()


async def test_a_new_start_shows_the_list_and_the_session_as_they_were_left(store: Path) -> None:
    project = Path("/home/dev/notes")
    async with person(store, NARROW, project=project) as me:
        await me.sees("Write a haiku file")
        await me.does("a", "Rename add to put")
        me.app.sessions.sessions.sort(Sort.TITLE)
        await me.does("home down enter", "message 1 of")
        title = me.chosen.title
        await me.does("end", "message 3 of")
    assert left_off_file().exists()
    async with person(store, NARROW, project=project) as me:
        await me.sees("by title", title[:20])
        assert me.chosen.title == title
        await me.does("enter", "message 3 of")
