"""The cursor of a field stands still: drawing it twice a second would wake an app at rest."""

from __future__ import annotations

from textual.app import App, ComposeResult

from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.text_area import TextArea


class Fields(App[None]):
    AUTO_FOCUS = None

    def compose(self) -> ComposeResult:
        yield Input()
        yield TextArea(longest=100)


async def test_the_field_with_the_focus_shows_a_cursor_that_does_not_blink() -> None:
    app = Fields()
    async with app.run_test() as pilot:
        line, area = app.query_one(Input), app.query_one(TextArea)
        for field in (line, area):
            field.focus()
            await pilot.press("a")
            timers = line._blink_timer, area.blink_timer
            assert not any(timer is not None and timer._active.is_set() for timer in timers)
            assert [line._cursor_visible, area._cursor_visible] == [field is line, field is area]
