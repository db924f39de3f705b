"""The lines round a screen say what is true now."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.content import Content

from gemtui.text import Clean
from gemtui.ui.kit import bars
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.run.prompt import PromptBox
from tests.ui.people import NARROW, person


async def test_undo_without_a_change_says_so_and_is_not_offered(store: Path) -> None:
    async with person(store) as me:
        for pane, words in (("1", "There is nothing to undo"), ("3", "Nothing to undo.")):
            await me.press(pane, "u")
            await me.sees(words)
            assert "u undo" not in me.text


async def test_esc_in_a_transcript_is_called_end_search_after_a_find(store: Path) -> None:
    async with person(store) as me:
        await me.press("enter", "slash")
        await me.type("e")
        await me.does("enter", "esc end search")
        await me.does("escape", "esc back")


async def test_a_message_ends_with_the_next_key_once_it_could_be_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person(store) as me:
        status = me.app.screen.query_one("#status", BarLine)
        monkeypatch.setattr(bars, "_READ", 60.0)
        me.app.show_message("It was so.")
        await me.press("down")
        assert status.told == "It was so."
        monkeypatch.setattr(bars, "_READ", 0.0)
        await me.press("down")
        assert status.told is None


async def test_the_prompts_frame_always_shows_the_folder_and_leaves_out_other_facts(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.agent.detect.usual_paths", lambda _: iter(()))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    deep = f"/srv/{'deep/' * 20}project"
    async with person(store, NARROW) as me:
        await me.does("2", "enter starts a run", "no Gemini CLI")
        box = me.app.screen.query_one(PromptBox)
        show_hint = box.show_hint
        monkeypatch.setattr(box, "show_hint", lambda *_: None)  # only we draw the frame
        for lengths, folder, shown in (
            ((20, 20, 10), "/srv/project", f"─ {'a' * 20}  {'b' * 20}  {'c' * 10}  /srv/project ─"),
            ((20, 20, 20), "/srv/project", f"─ {'a' * 20}  {'b' * 20}  /srv/project ─"),
            ((20, 20, 10), deep, f"─ {'a' * 20}  {'b' * 20}  …{deep[-29:]} ─"),
            ((20, 50, 10), deep, f"─ {'a' * 20}  …{deep[-51:]} ─"),
            ((60, 20, 10), deep, f"─ {'a' * 60}  …{deep[-11:]} ─"),
            ((70, 20, 10), deep, f"─ {'a' * 63}…  …{deep[-7:]} ─"),
        ):
            needed, unusual, spent = (
                Content(letter * length) for letter, length in zip("abc", lengths, strict=True)
            )
            show_hint(Clean("what"), Path(folder), [needed], [unusual], [spent])
            await me.sees(shown)
