"""The transcript in an app: keys, mouse, search, selection, and what it says to its screen."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace as message_with
from typing import Any

import pytest
from msgspec.structs import replace
from rich.style import Style
from textual import on
from textual.app import App, ComposeResult
from textual.events import MouseEvent, MouseScrollUp
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from gemtui.jsonout import indented
from gemtui.transcript.model import DiffDisplay, Transcript
from gemtui.ui.draw.theme import ASCII, THEMES, UNICODE, Glyphs
from gemtui.ui.kit.key_table import Where
from gemtui.ui.kit.keys import keys_of
from gemtui.ui.kit.messages import (
    BackRequested,
    CopyRequested,
    DroppedRequested,
    FileRequested,
    SubagentRequested,
)
from gemtui.ui.transcript.search import FindBar
from gemtui.ui.transcript.view import TranscriptView
from tests.ui.talks import NOW, Talk, answer, long_talk, paragraphs, prompt, thought, tool


class Reading(App[None]):
    """Just a transcript; keeps what it says."""

    def __init__(self, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.clock = lambda: NOW
        self.said: list[Message] = []
        self.shown: list[tuple[str, str]] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "gemtui-dark"

    def compose(self) -> ComposeResult:
        yield TranscriptView()

    @property
    def view(self) -> TranscriptView:
        return self.screen_stack[0].query_one(TranscriptView)

    @on(CopyRequested)
    @on(FileRequested)
    @on(SubagentRequested)
    @on(BackRequested)
    @on(DroppedRequested)
    def keep(self, message: Message) -> None:
        self.said.append(message)

    def show_message(self, text: str) -> None:
        self.shown.append((text, ""))

    def lines(self) -> list[str]:
        """The transcript's rows, without the scroll bar."""
        view = self.view
        width, height = view.scrollable_size
        return [view.render_line(y).crop(0, width).text.rstrip() for y in range(height)]


@asynccontextmanager
async def reading(
    talk: Talk, *, size: tuple[int, int] = (62, 12), end: bool = False, app: Reading | None = None
) -> AsyncIterator[tuple[Reading, Pilot[None]]]:
    app = app or Reading()
    async with app.run_test(size=size) as pilot:
        app.view.show(talk.now(), fresh=True, end=end)
        app.view.focus()
        await pilot.pause()
        yield app, pilot


def _ground(style: Style | None) -> object:
    return None if style is None else style.bgcolor


async def until(pilot: Pilot[None], done: Callable[[], bool]) -> None:
    while not done():
        await pilot.pause()


# --- drawing -----------------------------------------------------------------------------------


async def test_messages_are_drawn_with_the_cursor_beside_its_block() -> None:
    async with reading(Talk(prompt("p", "hello"), answer("a", "world"))) as (app, pilot):
        assert app.lines()[:6] == ["▌▌ You", "▌▌ hello", "", " ▌ Gemini", " ▌ world", ""]
        await pilot.press("j")
        assert app.lines()[:5] == [" ▌ You", " ▌ hello", "", "▌▌ Gemini", "▌▌ world"]


async def test_ascii_has_no_other_signs() -> None:
    async with reading(long_talk(2), app=Reading(ASCII)) as (app, _):
        assert all(line.isascii() for line in app.lines())


async def test_what_a_key_does_to_a_block_stands_at_the_cursor_alone() -> None:
    calls = (tool("t", "1\n2\n3\n4\n5"), tool("u", "1\n2\n3\n4\n5\n6"))
    agent = replace(tool("v", "1\n2\n3\n4\n5"), agent_id="sub")
    async with reading(Talk(answer("a", *calls, agent)), size=(62, 30)) as (app, pilot):

        def hints() -> list[str]:
            return [line for line in app.lines() if "space" in line or "enter" in line]

        assert hints() == ["▌└ 1 more line " + "─" * 28 + " space to unfold ┘"]
        await pilot.press("down")
        assert [line[:15] for line in hints()] == ["▌└ 2 more lines"]
        await pilot.press("space")
        assert [line[-16:] for line in hints()] == [" space to fold ┘"]
        await pilot.press("down")
        assert [line[-28:] for line in hints()] == [" enter to open its session ┘"]
        app.view.blur()
        await pilot.pause()
        assert not hints()


async def test_a_hint_never_covers_what_was_said() -> None:
    text = "\n".join(f"line {number} " + "x" * 45 for number in range(20))
    async with reading(Talk(prompt("p", text)), size=(62, 40)) as (app, pilot):
        assert app.lines()[20].endswith("x" * 45)
        await pilot.press("space")
        assert app.lines()[4] == "▌▌ ▸ 17 more lines" + " " * 25 + " space to unfold"


async def test_the_scroll_bar_knows_the_place() -> None:
    async with reading(long_talk(50)) as (app, pilot):
        await pilot.press("end")
        view = app.view
        assert view.virtual_size.height == view.page.sheet.heights.total
        assert view.scroll_y == view.max_scroll_y == view.page.top
        assert view.vertical_scrollbar.position == view.page.top


async def test_hostile_text_reaches_no_strip() -> None:
    evil = "a\x1b]52;c;aGk=\x07b\x9b31mc\x1b[2Jd\x00\x85e\u202ef"
    talk = Talk(
        prompt("p", evil),
        answer("a", thought(evil, evil), evil, tool(evil, evil, failed=True)),
        message_with(answer("b", tool("t", evil)), model=evil),
    )
    async with reading(talk, size=(62, 40)) as (app, pilot):
        await pilot.press("f", "f", "slash", *"abc")
        await pilot.pause()
        app.view.text_select_all()
        text = "".join(app.lines()) + (app.screen.get_selected_text() or "")
        assert not [char for char in text if not char.isprintable() and char != "\n"]
        assert "a␛]52;c;aGk=␇b" in text


async def test_markup_in_text_is_text() -> None:
    async with reading(Talk(prompt("p", "[/x] [@click=app.bell]y[/]"))) as (app, pilot):
        assert "[/x] [@click=app.bell]y[/]" in app.lines()[1]
        await pilot.press("slash", *"[/x]")
        await until(pilot, lambda: app.view.found.done)
        assert app.view.found.total == 1


async def test_another_theme_draws_anew() -> None:
    async with reading(Talk(prompt("p", "hello"))) as (app, pilot):
        before = list(app.view.render_line(0))
        app.theme = "gemtui-light"
        await pilot.pause()
        after = list(app.view.render_line(0))
        assert [text for text, _, _ in after] == [text for text, _, _ in before]
        assert [style for _, style, _ in after] != [style for _, style, _ in before]


def _wheel(view: TranscriptView, kind: type[MouseEvent]) -> MouseEvent:
    return kind(view, 5, 5, 0, -1, 0, False, False, False)


# --- keys and mouse ----------------------------------------------------------------------------


async def test_keys_move_fold_and_jump() -> None:
    async with reading(long_talk()) as (app, pilot):
        await pilot.press("x")
        assert app.view.page.cursor == (9, 2)
        await pilot.press("left_square_bracket", "space")
        assert any("row 3" in line for line in app.lines())
        await pilot.press("right_curly_bracket")
        assert app.lines()[:2] == ["▌▌ You", "▌▌ question 4"]
        await pilot.press("home", "X")
        assert app.view.word == "no failed call above"
        await pilot.press("j")
        assert app.view.word == ""


async def test_the_wheel_scrolls_and_ends_following() -> None:
    async with reading(long_talk(), end=True) as (app, pilot):
        top = app.view.page.top
        assert app.view.following
        app.view.post_message(_wheel(app.view, MouseScrollUp))
        await pilot.pause()
        assert app.view.page.top < top
        assert not app.view.following
        assert app.view.scroll_y == app.view.page.top


async def test_a_click_sets_the_cursor_and_a_click_on_a_card_folds_it() -> None:
    async with reading(long_talk(3), size=(62, 30)) as (app, pilot):
        row = next(row for row, line in enumerate(app.lines()) if "reply 1" in line)
        await pilot.click(TranscriptView, offset=(8, row))
        assert app.view.page.cursor == (3, 1)
        row = next(row for row, line in enumerate(app.lines()) if "run t0" in line)
        await pilot.click(TranscriptView, offset=(8, row))
        assert app.view.page.cursor == (1, 2)
        assert "row 8" in "".join(app.lines())
        assert "run t0" in app.lines()[row]


async def test_news_are_counted_on_the_last_row_and_a_click_goes_there() -> None:
    talk = long_talk()
    async with reading(talk) as (app, pilot):
        app.view.show(talk.add(prompt("n", "one"), prompt("o", "two")), fresh=False)
        await pilot.pause()
        assert app.lines()[-1].endswith("▼ 2 new")
        await pilot.click(TranscriptView, offset=(58, 11))
        assert app.view.following
        assert app.view.page.unseen == 0
        assert "new" not in app.lines()[-1]


async def test_an_answer_that_grows_below_the_window_says_so_and_a_click_goes_there() -> None:
    talk = Talk(prompt("p", "tell"), answer("a", paragraphs(10)))
    async with reading(talk) as (app, pilot):
        await pilot.press("end", "pageup")
        shown = app.lines()
        app.view.show(talk.become((talk.messages[0], answer("a", paragraphs(20)))), fresh=False)
        await pilot.pause()
        assert app.lines()[-1].endswith("▼ new below")
        assert app.lines()[:-1] == shown[:-1]
        await pilot.click(TranscriptView, offset=(58, 11))
        assert app.view.following
        assert "paragraph 19" in "".join(app.lines())
        assert "new below" not in app.lines()[-1]


async def test_a_newer_state_keeps_scroll_cursor_and_fold() -> None:
    talk = long_talk()
    async with reading(talk) as (app, pilot):
        await pilot.press("right_square_bracket", "space", "j", "j")
        before, cursor = app.lines(), app.view.page.cursor
        app.view.show(talk.add(prompt("n", "one")), fresh=False)
        await pilot.pause()
        assert app.lines()[:-1] == before[:-1]
        assert app.view.page.cursor == cursor


async def test_a_resize_wraps_anew_and_keeps_the_place() -> None:
    talk = Talk(*(answer(f"a{n}", f"start {n} " + "words " * 80) for n in range(20)))
    async with reading(talk) as (app, pilot):
        app.view.page.go(app.view.page.cursor._replace(message=7), at_top=True)
        app.view.refresh_page()
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert "start 7" in app.lines()[1]
        assert max(map(len, app.lines())) <= 39
        await pilot.resize_terminal(62, 12)
        await pilot.pause()
        assert "start 7" in app.lines()[1]


async def test_nothing_at_all_can_be_shown_and_used() -> None:
    async with reading(Talk()) as (app, pilot):
        for key in keys_of(Where.TRANSCRIPT):
            for name in key.binding.key.split(","):
                await pilot.press(name, "escape")
        assert app.lines() == [""] * 12


# --- finding -----------------------------------------------------------------------------------


async def test_find_counts_marks_and_steps_with_a_word() -> None:
    async with reading(long_talk(8)) as (app, pilot):
        await pilot.press("slash", *"reply")
        await until(pilot, lambda: app.view.found.done and app.view.found.total == 8)
        bar = app.query_one(FindBar)
        assert "1 of 8" in str(bar.query_one(".count", Static).render())
        assert any("reply 0" in line for line in app.lines())
        await pilot.press("down", "down")
        assert str(app.view.found) == "3 of 8"
        await pilot.press("enter")
        assert not app.query(FindBar)
        assert app.focused is app.view
        await pilot.press("N", "N", "N")
        assert str(app.view.found) == "8 of 8"
        assert app.view.word == "search continued from the end"
        assert any("reply 7" in line for line in app.lines())
        await pilot.press("n")
        assert str(app.view.found) == "1 of 8"
        assert app.view.word == "search continued from the start"
        await pilot.press("escape")
        assert (app.view.found.query, app.view.word) == ("", "")
        assert app.said == []
        await pilot.press("escape")
        assert isinstance(app.said[0], BackRequested)


async def test_find_unfolds_what_hides_a_hit() -> None:
    async with reading(long_talk(3)) as (app, pilot):
        app.view.find("row 7")
        await until(pilot, lambda: app.view.found.done)
        assert app.view.page.cursor == (1, 2)
        assert any("row 7" in line for line in app.lines())


async def test_find_goes_on_while_the_transcript_grows() -> None:
    talk = long_talk(3)
    async with reading(talk) as (app, pilot):
        app.view.find("question")
        await until(pilot, lambda: app.view.found.done)
        top = app.view.page.top
        app.view.show(talk.add(prompt("n", "one more question")), fresh=False)
        await until(pilot, lambda: app.view.found.total == 4)
        assert app.view.found.current == 1
        assert app.view.page.top == top


async def test_hits_go_with_the_messages_that_go() -> None:
    talk = long_talk(4)
    async with reading(talk) as (app, pilot):
        app.view.find("question")
        await until(pilot, lambda: app.view.found.done)
        await pilot.press("N")
        assert str(app.view.found) == "4 of 4"
        whole = talk.now()
        shorter = Transcript(outlines=whole.outlines[:4], read=whole.read)
        app.view.show(shorter, fresh=False)
        await pilot.press("n", "n", "n")
        await until(pilot, lambda: app.view.found.total == 2)
        await pilot.press("N")
        assert app.view.index < app.view.total


async def test_a_search_that_still_runs_goes_to_no_message_that_has_gone() -> None:
    whole, gate, asked = long_talk(4).now(), threading.Event(), threading.Event()

    def read(index: int) -> object:
        if threading.current_thread() is not threading.main_thread() and not asked.is_set():
            asked.set()
            gate.wait(10)
        return whole.read(index)

    async with reading(long_talk(4)) as (app, pilot):
        app.view.show(Transcript(outlines=whole.outlines, read=read), fresh=True)  # type: ignore[arg-type]
        app.view.find("reply 3")
        await until(pilot, asked.is_set)
        app.view.show(Transcript(outlines=whole.outlines[:2], read=whole.read), fresh=False)
        gate.set()
        await until(pilot, lambda: app.view.found.done)
        assert app.view.found.total == 0
        app.view.show(whole, fresh=False)
        await until(pilot, lambda: app.view.found.total == 1)
        assert any("reply 3" in line for line in app.lines())


async def test_late_answers_of_an_older_search_are_dropped() -> None:
    talk, gate, asked = long_talk(3), threading.Event(), threading.Event()
    plain = talk.now()

    def read(index: int) -> object:
        if threading.current_thread() is not threading.main_thread() and not asked.is_set():
            asked.set()
            gate.wait(10)
        return plain.read(index)

    async with reading(talk) as (app, pilot):
        app.view.show(Transcript(outlines=plain.outlines, read=read), fresh=True)  # type: ignore[arg-type]
        app.view.find("question")
        await until(pilot, asked.is_set)
        app.view.find("reply 2")
        await until(pilot, lambda: app.view.found.done)
        gate.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert (app.view.found.query, app.view.found.total) == ("reply 2", 1)


async def test_another_session_ends_the_search() -> None:
    async with reading(long_talk(3)) as (app, pilot):
        await pilot.press("slash", *"question")
        await until(pilot, lambda: app.view.found.done)
        app.view.show(long_talk(2).now(), fresh=True)
        await pilot.pause()
        assert app.view.found.query == ""
        assert not app.query(FindBar)


async def test_the_bar_can_be_opened_again_to_type_another_word() -> None:
    async with reading(long_talk(3)) as (app, pilot):
        await pilot.press("slash", *"reply", "escape", "slash")
        assert app.query_one(Input).value == "reply"
        assert app.view.found.query == "reply"


# --- selecting and copying ---------------------------------------------------------------------


async def drag(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(TranscriptView, offset=start)
    await pilot.hover(TranscriptView, offset=end)
    await pilot.mouse_up(TranscriptView, offset=end)
    await pilot.pause()


async def test_the_mouse_selects_text_without_its_frame() -> None:
    async with reading(Talk(prompt("p", "hello\nthere"), answer("a", "world"))) as (app, pilot):
        await drag(pilot, (5, 1), (4, 2))
        assert app.screen.get_selected_text() == "llo\nth"
        await drag(pilot, (0, 1), (30, 5))
        assert app.screen.get_selected_text() == "hello\nthere\n\nGemini\nworld"
        assert app.view.page.cursor == (0, 0)


async def test_the_selection_is_seen_and_stays_when_messages_come_and_heights_change() -> None:
    talk = long_talk(30)
    async with reading(talk) as (app, pilot):
        await drag(pilot, (3, 1), (12, 1))
        plain = app.screen.get_component_rich_style("screen--selection").bgcolor
        shown = [text for text, style, _ in app.view.render_line(1) if _ground(style) == plain]
        assert "".join(shown) == "question 0"
        app.view.show(talk.add(prompt("n", "one")), fresh=False)
        await pilot.press("end")
        assert app.screen.get_selected_text() == "question 0"


async def test_a_double_click_selects_the_block() -> None:
    async with reading(Talk(prompt("p", "hello\nthere"), answer("a", "world"))) as (app, pilot):
        await pilot.click(TranscriptView, offset=(4, 5), times=2)
        await pilot.pause()
        assert app.screen.get_selected_text() == "Gemini\nworld"


async def test_a_drag_folds_nothing() -> None:
    async with reading(long_talk(2), size=(62, 30)) as (app, pilot):
        row = next(row for row, line in enumerate(app.lines()) if "run t0" in line)
        before = app.lines()
        await drag(pilot, (6, row), (20, row))
        assert app.lines() == before


async def test_copy_of_block_and_message() -> None:
    async with reading(Talk(answer("a", thought("s", "d"), "see\n\n```sh\nls\n```"))) as (
        app,
        pilot,
    ):
        await pilot.press("y", "j", "y", "Y")
        texts = [message.text for message in app.said if isinstance(message, CopyRequested)]
        assert [text.strip() for text in texts] == ["s\nd", "ls", "s\nd\n\nsee\n\n```sh\nls\n```"]


async def test_of_several_pieces_of_code_one_is_chosen() -> None:
    async with reading(Talk(answer("a", "```sh\nls\n```\nor\n```sh\npwd\n```"))) as (app, pilot):
        await pilot.press("y")
        await pilot.pause()
        assert app.screen.query_one(OptionList).option_count == 3
        await pilot.press("down", "enter")
        await pilot.pause()
        assert [message.text.strip() for message in app.said] == ["pwd"]  # type: ignore[attr-defined]
        await pilot.press("y", "escape")
        assert len(app.said) == 1


# --- what it asks for --------------------------------------------------------------------------


async def test_file_subagent_and_dropped_are_asked_for() -> None:
    change = DiffDisplay(diff="@@ -1 +7 @@\n-a\n+b\n", path="/src/a.py", name="a.py")
    talk = Talk(
        answer("a", replace(tool("t"), display=change), replace(tool("u"), agent_id="sub-1"))
    )
    async with reading(talk) as (app, pilot):
        await pilot.press("o", "j", "enter", "full_stop", "o")
        file, agent, dropped = app.said
        assert isinstance(file, FileRequested)
        assert (file.path, file.line) == ("/src/a.py", 7)
        assert isinstance(agent, SubagentRequested)
        assert agent.agent_id == "sub-1"
        assert isinstance(dropped, DroppedRequested)
        assert app.view.word == "no file here"


async def test_the_record_of_a_message_or_a_call_is_shown_as_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def keep(app: Reading, title: str, text: str, *, what: str) -> None:
        app.shown.append((title, text))

    monkeypatch.setattr("gemtui.ui.kit.text_view.show_text", keep)
    record: dict[str, Any] = {"id": "a", "toolCalls": [{"id": "t", "name": "ls"}]}
    stored = message_with(answer("a", "world", tool("t"), tool("u")), original=record)
    async with reading(Talk(prompt("p", "hello"), stored)) as (app, pilot):
        await pilot.press("v", "j", "v", "j", "v", "j", "v")
    whole = ("Record a", indented(record))
    call = (f"{tool('t').name}, as stored", indented({"id": "t", "name": "ls"}))
    assert app.shown == [("There is no stored record of this block.", ""), whole, call, whole]


async def test_the_keys_of_a_search_act_only_in_a_search() -> None:
    async with reading(long_talk(3)) as (app, pilot):
        assert "n" not in app.screen.active_bindings
        app.view.find("reply")
        await until(pilot, lambda: app.view.found.done)
        assert "n" in app.screen.active_bindings


async def test_the_prompts_are_listed_and_one_is_jumped_to() -> None:
    talk = Talk(
        *(each for n in range(9) for each in (prompt(f"p{n}", f"Ask {n}"), answer(f"a{n}", "Yes.")))
    )
    async with reading(talk, end=True) as (app, pilot):
        await pilot.press("P")
        await pilot.pause()
        offered = app.screen.query_one(OptionList)
        assert offered.option_count == 9
        assert offered.highlighted == 8, "the one that is read"
        await pilot.press("home", "down", "enter")
        await pilot.pause()
        assert app.view.index == 2
        assert "Ask 1" in "\n".join(app.lines()[:3])
