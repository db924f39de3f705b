"""Lists and transcripts are drawn by lines: their length costs no widgets."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from gemtui.ui.draw.lines import Piece, Pieces
from gemtui.ui.draw.theme import DARK, Look, Role
from gemtui.ui.kit.row_list import RowList
from tests.tools.bench.make_store import make_session, make_store
from tests.ui.people import NARROW, WIDE, person
from tests.ui.quick_pilot import drawn


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


class Numbers(App[None]):
    """A list of numbers, the even ones of two lines."""

    def compose(self) -> ComposeResult:
        yield RowList(_draw, heights=lambda numbers, _width: [2 - number % 2 for number in numbers])

    @property
    def rows(self) -> RowList[int]:
        return self.query_one(RowList)


def _draw(number: int, look: Look) -> Pieces:
    return (Piece(str(number), look[Role.TEXT]),)


@pytest.mark.parametrize(
    ("scrolled", "seen"), [(0, True), (30, False)], ids=["in sight", "left behind by the wheel"]
)
async def test_rows_keep_their_lines_when_others_come_above(scrolled: int, seen: bool) -> None:
    app = Numbers()
    app.register_theme(DARK)
    app.theme = DARK.name
    async with app.run_test(size=(40, 12)) as pilot:
        rows = app.rows
        rows.show(list(range(100)))
        rows.go(20)
        await pilot.pause()
        rows.scroll_to(y=rows.scroll_offset.y + scrolled, animate=False)
        await pilot.pause()
        top = rows.scroll_offset.y
        rows.show([1_001, 1_003, *range(100)])
        await pilot.pause()
        assert rows.chosen == 20
        assert rows.in_sight(rows.cursor) is seen
        assert rows.scroll_offset.y == top + 2


async def test_the_keys_of_a_list_are_offered_as_soon_as_it_has_rows_and_no_longer() -> None:
    app, offered = Numbers(), list[bool]()
    app.register_theme(DARK)
    app.theme = DARK.name
    async with app.run_test() as pilot:
        app.rows.focus()
        await pilot.pause()
        app.screen.bindings_updated_signal.subscribe(
            app.rows, lambda screen: offered.append("down" in screen.active_bindings)
        )
        for numbers in ([1], [2], []):
            app.rows.show(numbers)
            await pilot.pause()
    assert offered == [True, False]


async def test_only_the_rows_of_the_cursor_are_drawn_when_it_moves() -> None:
    app = Numbers()
    app.register_theme(DARK)
    app.theme = DARK.name
    async with app.run_test(size=(40, 12)) as pilot:
        rows = app.rows
        rows.show(list(range(100)))
        await pilot.pause()
        drawn(app)
        for row, others in ((1, {0, 1}), (2, {1, 2}), (99, set(range(92, 100)))):
            rows.go(row)
            await pilot.pause()
            drawn(app)
            assert rows._drawn.keys() == others
