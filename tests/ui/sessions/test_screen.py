"""Finding, opening and reading sessions, as a person does it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.events import Resize
from textual.geometry import Size

from gemtui.sessions.catalog.index import Index
from gemtui.transcript.model import ToolCall, Transcript
from gemtui.ui.kit.keys import acting
from gemtui.ui.kit.text_view import RawScreen
from gemtui.ui.sessions import session_loader
from gemtui.ui.sessions.session_loader import SessionLoader
from tests.agent.test_detect import script
from tests.patience import PATIENCE
from tests.ui.people import NARROW, WIDE, person


async def test_wide_shows_both_panes_and_keys_go_from_one_to_the_other(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.sees("first question", "Answer one.")
        await me.does("down", "frog leaps in")
        assert me.rows.has_focus

        await me.press("enter")
        assert me.view.has_focus
        await me.press("escape")
        assert me.rows.has_focus
        assert "frog leaps in" in me.text
        await me.press("tab")
        assert me.view.has_focus
        await me.press("tab")
        assert me.rows.has_focus

        await me.press("z")
        await me.until(lambda: me.view.size.width > 110)
        assert me.view.has_focus
        await me.press("escape")
        await me.until(lambda: me.view.size.width < 110)


async def test_narrow_shows_one_pane_at_a_time_and_a_wider_terminal_both_at_the_same_place(
    store: Path,
) -> None:
    async with person(store, NARROW) as me:
        await me.sees("Write a haiku file", "Collecting a list of fruit")
        assert not me.view.is_on_screen
        await me.press("tab")
        assert me.view.has_focus
        await me.press("tab")
        assert me.rows.has_focus

        await me.does("down enter", "frog leaps in")
        assert "Collecting a list of fruit" not in me.text
        await me.pilot.resize_terminal(*WIDE)
        await me.sees("Collecting a list of fruit", "frog leaps in")
        assert me.view.has_focus
        await me.pilot.resize_terminal(*NARROW)
        await me.lacks("Collecting a list of fruit")
        assert "frog leaps in" in me.text

        await me.does("escape", "Collecting a list of fruit")
        assert me.chosen.title == "Write a haiku file"
        await me.press("enter", "q")
        assert me.rows.has_focus
        assert me.app.is_running
        await me.press("q")
        assert me.app.return_code == 0


async def test_a_session_given_at_the_start_is_open(store: Path) -> None:
    wanted = Index(store, cache=None).find("9babadd1")
    async with person(store, NARROW, session=wanted) as me:
        await me.sees("Add a docstring to Stock", "run_shell_command")
        assert me.view.has_focus
        await me.does("i", "3, 1 prompt, 4 tool calls")
        await me.press("escape", "escape")
        await me.until(lambda: me.chosen.id == wanted.id)


async def test_the_project_of_the_folder_comes_first_and_the_lines_around_it_say_what_one_can_do(
    store: Path,
) -> None:
    async with person(store, NARROW, project=Path("/home/dev/notes")) as me:
        await me.sees("Write a haiku file")
        assert "Rename add to put" not in me.text
        lines = me.text.splitlines()
        for words in ("gemtui", "Sessions", "/home/dev/notes"):
            assert words in lines[0]
        assert "enter open" in lines[-1]
        assert lines[-1].rstrip().endswith("? keys  ^p commands")
        await me.press("enter")
        await me.until(lambda: "esc back" in me.text.splitlines()[-1])
        for words in ("/ find", "y copy", "{ } prompt", "? keys"):
            assert words in me.text.splitlines()[-1]

        await me.does("escape a", "Rename add to put")


async def test_a_folder_without_sessions_shows_all_projects(store: Path, tmp_path: Path) -> None:
    async with person(store, NARROW, project=tmp_path) as me:
        await me.sees("all projects", "Rename add to put")


async def test_ids_raw_json_and_what_the_mouse_selects_are_copied_and_words_found(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin/tmux", f'echo "$*" > {tmp_path}/asked; cat > {tmp_path}/buffer; exit 1')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    async with person(store, NARROW) as me:
        await me.press("ctrl+c")
        await me.is_told("^q to quit")
        assert me.app.is_running
        monkeypatch.setenv("TMUX", "/tmp/tmux,1,0")
        await me.press("y")
        assert me.app.clipboard == me.chosen.id
        buffer = tmp_path / "buffer"
        await me.until(lambda: buffer.exists() and buffer.read_text() == me.chosen.id)
        assert (tmp_path / "asked").read_text() == "load-buffer -w -\n"
        monkeypatch.delenv("TMUX")
        await me.until(lambda: "Copied the session id" in me.text.splitlines()[-2])
        assert not me.app._notifications

        await me.does("down enter", "frog leaps in", "write_file")
        row = next(n for n, line in enumerate(me.text.splitlines()) if "frog leaps" in line)
        column = me.text.splitlines()[row].index("frog")
        await me.pilot.mouse_down(offset=(column, row))
        await me.pilot.hover(offset=(column + 9, row))
        await me.pilot.mouse_up(offset=(column + 9, row))
        await me.press("ctrl+c")
        assert "frog leap" in me.app.clipboard
        assert any("Copied" in said and "characters" in said for said in me.said)

        await me.does("home right_square_bracket v", '"name": "write_file"', '"args"')
        await me.press("y")
        assert '"write_file"' in me.app.clipboard
        await me.is_told("Copied the tool call")
        await me.press("escape")
        assert not isinstance(me.app.screen, RawScreen)
        assert me.view.has_focus

        await me.does("g slash 'haiku", "match 1 of ")
        await me.does("escape n", "match 2 of ")
        await me.does("escape n", "no search to continue; press / to start one")


async def test_copies_can_be_reached_and_hints_name_keys_that_act_where_somebody_types(
    store: Path,
) -> None:
    async with person(store, NARROW) as me:
        await me.press("slash", "f")
        hints = {key.id for key, _ in acting(me.app.screen)}
        assert {"filter.open", "filter.done", "filter.clear"} <= hints
        assert not hints & {"sessions.delete", "list.scope", "sessions.new_run"}
        await me.does("'ruit enter i", "cc1b3512-9f81-4eb0-b0f9-e9621be330ba", "copy ")
        copy = me.chosen.copies[0]
        await me.press("enter")
        await me.until(lambda: me.home.pane.summary is copy)


async def test_a_subagent_opens_from_its_card_and_leads_back_to_it(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("slash 'investigator enter enter", "invoke_agent")
        await me.press("right_square_bracket")
        parent, card = me.home.pane.summary, me.view.page.cursor
        assert card != (0, 0)
        await me.does("enter", "deep investigation")
        await me.until(lambda: me.home.pane.summary and me.home.pane.summary.parent)
        await me.does("home escape", "invoke_agent")
        assert me.home.pane.summary is parent
        assert me.view.page.cursor == card
        assert me.view.has_focus

        await me.press("enter")
        await me.until(lambda: me.home.pane.summary is not parent)
        await me.does("i", "parent")
        await me.does("enter", "invoke_agent")


async def test_a_subagent_names_its_parent_and_leads_there(store: Path) -> None:
    (path,) = store.rglob("e28bd434*")
    subagent = Index(store, cache=None).find(str(path))
    async with person(store, NARROW, session=subagent) as me:
        await me.sees("subagent of: Use the investigator to find")
        await me.does("escape", "invoke_agent")
        await me.until(lambda: me.view.page.cursor != (0, 0))
        block = me.view.page.block
        assert isinstance(block, ToolCall)
        assert block.agent_id == subagent.id
        await me.press("escape")
        await me.until(lambda: me.rows.has_focus)


async def test_dropped_messages_can_be_shown_and_keys_do_not_wait_for_them(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, gate = SessionLoader.transcript_so_far, threading.Event()

    def slowly(self: SessionLoader, **options: Any) -> Transcript:
        gate.wait(PATIENCE)
        return read(self, **options)

    monkeypatch.setattr(SessionLoader, "transcript_so_far", slowly)
    async with person(store, NARROW) as me:
        await me.does("enter", "message 1 of 7", "3 rewound (press . to show)")
        await me.does("full_stop down", "message 2 of 7")
        await me.press("full_stop", "full_stop")
        gate.set()
        await me.sees("3 rewound (press . to hide)", "of 10")
        await me.does("full_stop", "of 7")


async def test_what_is_searched_while_a_session_is_read_stays_in_the_search(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, gate = session_loader.read_first, threading.Event()

    def slowly(loader: SessionLoader) -> Transcript:
        gate.wait(PATIENCE)
        return read(loader)

    monkeypatch.setattr(session_loader, "read_first", slowly)
    async with person(store, NARROW) as me:
        await me.press("enter", *"/fi")
        gate.set()
        await me.sees("message 1 of 7")
        await me.type("rst")
        await me.sees("/ first", "1 of 1")


async def test_a_session_with_nothing_but_a_failed_prompt_shows_that(store: Path) -> None:
    failed = Index(store, cache=None).find("71ada263")
    async with person(store, NARROW, session=failed) as me:
        await me.sees(
            "failed prompt", "This one is empty", "1 failed prompt (press . to hide)", "of 1"
        )
        await me.does("full_stop", "1 failed prompt (press . to show)")
        assert not me.view.total


async def test_the_notice_of_a_small_window_goes_with_the_small_window(store: Path) -> None:
    small, wide = Size(20, 6), Size(*WIDE)
    sizes: list[Size] = []
    async with person(store) as me:
        home = me.home

        def update_status() -> None:
            sizes.append(me.app.size)
            home.update_status()

        me.app.post_message(Resize(small, small))
        me.app.call_later(update_status)
        me.app.post_message(Resize(wide, wide))
        await me.until(lambda: sizes)
        assert sizes == [small]
        await me.pilot.pause()
        await me.lacks("small window")
        await me.press("2")
        await me.pilot.resize_terminal(*small)
        home.update_status()
        await me.pilot.resize_terminal(*wide)
        await me.press("escape", "1")
        await me.until(lambda: me.app.screen is home)
        await me.lacks("small window")
