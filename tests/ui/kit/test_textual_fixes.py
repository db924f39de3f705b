"""What Textual does where it would fail without our patches."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.app import App, ComposeResult

from gemtui.text import Clean
from gemtui.ui.kit.clean_widgets import Option, OptionList
from gemtui.ui.kit.textual_fixes import apply_fixes


class Lists(App[None]):
    CSS = "OptionList { padding: 0 1; }"

    def compose(self) -> ComposeResult:
        yield OptionList(*(Option(Clean("日本 many words")) for _ in range(50)))


@pytest.mark.parametrize("size", [(1, 10), (2, 10), (3, 10), (30, 1), (1, 1)])
async def test_a_list_without_a_cell_for_its_text_ends_nothing(size: tuple[int, int]) -> None:
    apply_fixes()
    app = Lists()
    async with app.run_test(size=size) as pilot:
        await pilot.press("down", "pagedown", "pageup")
        await pilot.resize_terminal(30, 10)
        await pilot.press("end")
        assert app.query_one(OptionList).highlighted == 49
        await pilot.resize_terminal(*size)
        await pilot.press("home", "pagedown")
    assert app.return_code in (0, None)


@pytest.mark.parametrize(
    ("sequence", "key"),
    [
        ("\x1b\r", "alt+enter"),
        ("\x1b[27;3;13~", "alt+enter"),
        ("\x1b[27;2;13~", "shift+enter"),
        ("\x1b[13;3u", "alt+enter"),
        ("\r", "enter"),
    ],
)
def test_a_terminal_may_send_modified_keys_in_any_form(sequence: str, key: str) -> None:
    apply_fixes()
    parser = XTermParser()
    keys = [event.key for event in parser.feed(sequence) if isinstance(event, events.Key)]
    assert keys == [key]


async def test_a_stopped_timer_calls_nothing_even_if_its_call_already_waits() -> None:
    apply_fixes()
    app, calls = App[None](), list[str]()

    async def stop_late() -> None:
        timer = app.set_timer(0, lambda: calls.append("stopped"))
        while not app._next_callbacks:
            await asyncio.sleep(0)
        timer.stop()
        app.set_timer(0, lambda: calls.append("not stopped"))

    async with app.run_test() as pilot:
        app.call_next(stop_late)
        while not calls:
            await pilot.pause()
    assert calls == ["not stopped"]
