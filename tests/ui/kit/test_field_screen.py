"""What is typed into a dialog survives esc; enter takes it from every field."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Checkbox, Select, TextArea

from gemtui.ui.kit.dialogs import BACK, DISCARDED, KEPT, FieldScreen
from tests.ui.people import Person, person


def dialog(me: Person) -> FieldScreen[object]:
    screen = me.app.screen
    assert isinstance(screen, FieldScreen)
    return screen


async def open_dialog(me: Person, key: str) -> None:
    await me.press(key)
    await me.until(lambda: isinstance(me.app.screen, FieldScreen) and me.app.screen.takes_keys)


async def close(me: Person, key: str) -> None:
    await me.press(key)
    await me.until(lambda: not isinstance(me.app.screen, FieldScreen))


async def test_esc_keeps_what_is_typed_once_and_then_discards_it(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dialogs = (
        ("1", "m", ("tab", "tab")),
        ("1", "e", ("tab",)),
        ("2", "ctrl+o", ()),
        ("3", "w", ()),
    )
    async with person(store) as me:
        for pane, key, moves in dialogs:
            await me.press("escape", pane)
            await open_dialog(me, key)
            await me.press(*moves)
            before = dialog(me)._field_values()
            await me.type("heron")
            await close(me, "escape")
            assert len(me.app.drafts) == 1, key
            await me.is_told(KEPT)
            await open_dialog(me, key)
            assert "heron" in " ".join(map(str, dialog(me)._field_values())), key
            await me.is_told(BACK)
            await close(me, "escape")
            await me.is_told(DISCARDED)
            await open_dialog(me, key)
            assert dialog(me)._field_values() == before, key
            await close(me, "escape")


async def test_what_was_typed_is_kept_for_its_session_alone_and_not_if_nothing_was(
    store: Path,
) -> None:
    async with person(store) as me:
        await open_dialog(me, "e")
        await me.press("down")
        await close(me, "escape")
        assert not me.app.drafts
        assert KEPT not in me.said

        await open_dialog(me, "m")
        await me.type("heron")
        await close(me, "escape")
        await me.press("down")
        await open_dialog(me, "m")
        assert "heron" not in dialog(me)._field_values()


async def test_enter_takes_the_dialog_from_every_field_and_ctrl_j_is_a_new_line_in_a_note(
    store: Path,
) -> None:
    async with person(store) as me:
        for pane, key, kind in (
            ("1", "m", TextArea),
            ("1", "m", Checkbox),
            ("2", "ctrl+o", Select),
        ):
            await me.press("escape", pane)
            await open_dialog(me, key)
            await me.until(lambda: me.app.focused is not None)
            while not isinstance(me.app.focused, kind):
                await me.press("tab")
            if kind is TextArea:
                await me.press("a", "ctrl+j", "b")
                assert me.app.screen.query_one(TextArea).text == "a\nb"
            await close(me, "enter")
            assert KEPT not in me.said
