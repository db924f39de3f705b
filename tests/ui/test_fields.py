"""No field of a form is hidden, be it by a style that another dialog is meant to have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.widgets import Input, Select, TextArea

from gemtui.ui.kit.clean_widgets import Tick
from tests.ui.people import NARROW, WIDE, person


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_every_field_of_every_form_can_be_seen(store: Path, size: tuple[int, int]) -> None:
    forms: Sequence[tuple[str, ...]] = [("m",), ("e",), ("3", "a"), ("3", "w"), ("2", "ctrl+o")]
    async with person(store, size) as me:
        for keys in forms:
            await me.press(*keys)
            await me.until(lambda: me.app.screen.is_modal)
            form = me.app.screen
            fields = [each for each in form.query("Input, Select, TextArea, Tick") if each.display]
            assert fields, keys
            for field in fields:
                assert isinstance(field, Input | Select | TextArea | Tick)
                field.scroll_visible(animate=False, immediate=True)
                await me.pilot.pause()
                region = form.find_widget(field).visible_region
                assert region.area, (keys, field.id)
                assert field.content_size.area, (keys, field.id)
            await me.press("escape")
            await me.until(lambda: not me.app.screen.is_modal)
            await me.press("1")
