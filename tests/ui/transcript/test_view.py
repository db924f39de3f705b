"""The transcript in an app: keys, mouse, search, selection, and what it says to its screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace as message_with
from typing import Any

import pytest
from msgspec.structs import replace
from rich.style import Style
from textual import on
from textual.app import App
from textual.events import MouseEvent, MouseScrollUp
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from gemtui.jsonout import indented
from gemtui.transcript.model import DiffDisplay, Transcript
from gemtui.transcript.model import Message as TranscriptMessage
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
from tests.patience import PATIENCE
from tests.rows import table
from tests.ui.people import keys
from tests.ui.talks import (
    NOW,
    Talk,
    answer,
    built,
    long_talk,
    paragraphs,
    prompt,
    thought,
    tool,
)


class Reading(App[None]):
    """Just a transcript; keeps what it says."""

    def __init__(self, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.clock = lambda: NOW
        self.heard: list[Message] = []
        self.shown: list[tuple[str, str]] = []
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "gemtui-dark"

    @property
    def view(self) -> TranscriptView:
        return self.screen_stack[0].query_one(TranscriptView)

    @on(CopyRequested)
    @on(FileRequested)
    @on(SubagentRequested)
    @on(BackRequested)
    @on(DroppedRequested)
    def keep(self, message: Message) -> None:
        self.heard.append(message)

    def show_message(self, text: str) -> None:
        self.shown.append((text, ""))

    async def begin(self, talk: Talk, *, end: bool = False) -> None:
        """Show a transcript as it is at the start."""
        await self.screen.query("*").remove()
        await self.mount(TranscriptView())
        self.heard.clear()
        self.view.show(talk.now(), fresh=True, end=end)
        self.view.focus()

    @property
    def lines(self) -> list[str]:
        """The transcript's rows, without the scroll bar."""
        view = self.view
        width, height = view.scrollable_size
        return [view.render_line(y).crop(0, width).text.rstrip() for y in range(height)]

    @property
    def state(self) -> dict[str, Any]:
        """What the stories tell about the transcript."""
        view, bars, boxes = self.view, self.query(FindBar), self.screen.query(OptionList)
        return {
            "lines": self.lines,
            "cursor": list(view.page.cursor),
            "index": view.index,
            "word": view.word,
            "found": str(view.found) if view.found.done else None,
            "query": view.found.query,
            "bar": str(bars.first().query_one(".count", Static).render()).strip() if bars else None,
            "typed": bars.first().query_one(Input).value if bars else None,
            "n acts": "n" in self.screen.active_bindings,
            "focus": type(self.focused).__name__,
            "options": boxes.first().option_count if boxes else None,
            "option": boxes.first().highlighted if boxes else None,
            "messages": [type(message).__name__ for message in self.heard],
            "copied": [each.text.strip() for each in self.heard if isinstance(each, CopyRequested)],
        }

    def shows(self, expected: dict[str, Any], texts: list[str]) -> bool:
        """Whether this is true; of the lines, the first ones are told."""
        state, screen = self.state, "\n".join(self.lines)
        state["lines"] = state["lines"][: len(expected.get("lines", ()))]
        return all(state[name] == expected[name] for name in expected) and all(
            text in screen for text in texts
        )


@asynccontextmanager
async def reading(
    talk: Talk, *, size: tuple[int, int] = (62, 12), end: bool = False, glyphs: Glyphs = UNICODE
) -> AsyncIterator[tuple[Reading, Pilot[None]]]:
    app = Reading(glyphs)
    async with app.run_test(size=size) as pilot:
        await app.begin(talk, end=end)
        await pilot.pause()
        yield app, pilot


def _ground(style: Style | None) -> object:
    return None if style is None else style.bgcolor


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await pilot.pause()


async def test_a_person_reads_finds_and_copies_as_promised() -> None:
    async with reading(Talk()) as (app, pilot):
        for story in table("ui/transcript.json", built):
            await pilot.resize_terminal(62, story.get("height", 12))
            talk = Talk(*story["talk"]) if "talk" in story else long_talk(story["turns"])
            await app.begin(talk, end="end" in story)
            await pilot.pause()
            for words, expected, *texts in story["steps"]:
                await pilot.press(*keys(words))
                try:
                    await until(pilot, lambda: app.shows(expected, texts))  # noqa: B023
                except TimeoutError:
                    pytest.fail(f"{story['promise']}: {words}: {app.state}")


# --- drawing -----------------------------------------------------------------------------------


async def test_ascii_has_no_other_signs() -> None:
    async with reading(long_talk(2), glyphs=ASCII) as (app, _):
        assert all(line.isascii() for line in app.lines)


async def test_the_footer_names_what_space_and_enter_do_with_the_block() -> None:
    text = "\n".join(f"line {number}" for number in range(20))
    async with reading(Talk(prompt("p", text), answer("a", "short"))) as (app, pilot):
        assert app.view.key_label("fold") is None
        await pilot.press("space")
        assert app.lines[4] == "▌▌ +17 lines"
        assert app.view.key_label("fold") == "Expand"
        assert not app.view.only_says_why("fold")
        assert app.view.only_says_why("open")
        await pilot.press("down")
        assert app.view.only_says_why("fold")


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
        text = "".join(app.lines) + (app.screen.get_selected_text() or "")
        assert not [char for char in text if not char.isprintable() and char != "\n"]
        assert "a␛]52;c;aGk=␇b" in text


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


async def test_the_scroll_bar_knows_the_place_and_the_wheel_ends_following() -> None:
    async with reading(long_talk(50), end=True) as (app, pilot):
        view, top = app.view, app.view.page.top
        assert view.virtual_size.height == view.page.sheet.heights.total
        assert view.scroll_y == view.max_scroll_y == top
        assert view.vertical_scrollbar.position == top
        assert app.view.following
        app.view.post_message(_wheel(app.view, MouseScrollUp))
        await pilot.pause()
        assert app.view.page.top < top
        assert not app.view.following
        assert app.view.scroll_y == app.view.page.top


async def test_messages_that_come_move_the_scroll_bar_without_a_new_layout() -> None:
    async with reading(long_talk(50), end=True) as (app, pilot):
        view, bar, layouts = app.view, app.view.vertical_scrollbar, list[object]()
        app.screen.screen_layout_refresh_signal.subscribe(view, layouts.append)
        view.show(long_talk(60).now(), fresh=False)
        await pilot.pause()
        assert bar.window_virtual_size == view.virtual_size.height == view.page.sheet.heights.total
        assert bar.position == view.max_scroll_y == view.page.top
        assert not layouts


async def test_a_click_sets_the_cursor_and_on_a_card_folds_it_but_a_drag_does_not() -> None:
    async with reading(long_talk(3), size=(62, 30)) as (app, pilot):
        before = app.lines
        row = next(row for row, line in enumerate(before) if "run t0" in line)
        await drag(pilot, (6, row), (20, row))
        assert app.lines == before
        row = next(row for row, line in enumerate(app.lines) if "reply 1" in line)
        await pilot.click(TranscriptView, offset=(8, row))
        assert app.view.page.cursor == (3, 1)
        row = next(row for row, line in enumerate(app.lines) if "run t0" in line)
        await pilot.click(TranscriptView, offset=(8, row))
        assert app.view.page.cursor == (1, 2)
        assert "row 8" in "".join(app.lines)
        assert "run t0" in app.lines[row]


async def test_what_comes_below_the_window_is_told_on_the_last_row_and_a_click_goes_there() -> None:
    talk = long_talk()
    async with reading(talk) as (app, pilot):
        await pilot.press("right_square_bracket", "space", "j", "j")
        before, cursor = app.lines, app.view.page.cursor
        app.view.show(talk.add(prompt("n", "one"), prompt("o", "two")), fresh=False)
        await pilot.pause()
        assert app.lines[-1].endswith("▼ 2 new")
        assert app.lines[:-1] == before[:-1]
        assert app.view.page.cursor == cursor
        await pilot.click(TranscriptView, offset=(58, 11))
        assert app.view.following
        assert app.view.page.news.messages == 0
        assert "new" not in app.lines[-1]

        talk = Talk(prompt("p", "tell"), answer("a", paragraphs(10)))
        await app.begin(talk)
        await pilot.press("end", "pageup")
        before = app.lines
        app.view.show(talk.become((talk.messages[0], answer("a", paragraphs(20)))), fresh=False)
        await pilot.pause()
        assert app.lines[-1].endswith("▼ new below")
        assert app.lines[:-1] == before[:-1]
        await pilot.click(TranscriptView, offset=(58, 11))
        assert app.view.following
        assert "paragraph 19" in "".join(app.lines)
        assert "new below" not in app.lines[-1]


async def test_a_resize_wraps_anew_and_keeps_the_place() -> None:
    talk = Talk(*(answer(f"a{n}", f"start {n} " + "words " * 80) for n in range(20)))
    async with reading(talk) as (app, pilot):
        app.view.page.go(app.view.page.cursor._replace(message=7), at_top=True)
        app.view.refresh_page()
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert "start 7" in app.lines[0]
        assert max(map(len, app.lines)) <= 39
        await pilot.resize_terminal(62, 12)
        await pilot.pause()
        assert "start 7" in app.lines[0]


async def test_nothing_at_all_can_be_shown_and_used() -> None:
    async with reading(Talk()) as (app, pilot):
        for key in keys_of(Where.TRANSCRIPT):
            for name in key.binding.key.split(","):
                await pilot.press(name, "escape")
        assert app.lines == [""] * 12


# --- finding -----------------------------------------------------------------------------------


async def find(app: Reading, pilot: Pilot[None], query: str) -> None:
    app.view.find(query)
    await until(pilot, lambda: app.view.found.done)


async def test_hits_come_and_go_with_their_messages_and_another_session_ends_the_search() -> None:
    talk = long_talk(4)
    async with reading(talk) as (app, pilot):
        await find(app, pilot, "question")
        top = app.view.page.top
        app.view.show(talk.add(prompt("n", "one more question")), fresh=False)
        await until(pilot, lambda: app.view.found.total == 5)
        assert app.view.found.current == 1
        assert app.view.page.top == top
        await pilot.press("N")
        assert str(app.view.found) == "5 of 5"
        whole = talk.now()
        app.view.show(Transcript(outlines=whole.outlines[:4], read=whole.read), fresh=False)
        await pilot.press("n", "n", "n")
        await until(pilot, lambda: app.view.found.total == 2)
        await pilot.press("N")
        assert app.view.index < app.view.total

        await pilot.press("slash")
        app.view.focus()
        await until(pilot, lambda: app.view.has_focus)
        app.view.show(long_talk(2).now(), fresh=True)
        await pilot.pause()
        assert app.view.found.query == ""
        assert not app.query(FindBar)


class Held:
    """A transcript whose first reading by a thread waits until `go_on`."""

    def __init__(self, talk: Talk) -> None:
        self.whole = talk.now()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def now(self) -> Transcript:
        return Transcript(outlines=self.whole.outlines, read=self.read)

    def read(self, index: int) -> TranscriptMessage:
        is_thread = threading.current_thread() is not threading.main_thread()
        if is_thread and not self.begun.is_set():
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        return self.whole.read(index)


async def test_a_search_that_still_runs_goes_to_no_message_that_has_gone() -> None:
    held = Held(long_talk(4))
    whole = held.whole
    async with reading(long_talk(4)) as (app, pilot):
        app.view.show(held.now(), fresh=True)
        app.view.find("reply 3")
        await until(pilot, held.begun.is_set)
        app.view.show(Transcript(outlines=whole.outlines[:2], read=whole.read), fresh=False)
        held.go_on.set()
        await until(pilot, lambda: app.view.found.done)
        assert app.view.found.total == 0
        app.view.show(whole, fresh=False)
        await until(pilot, lambda: app.view.found.total == 1)
        assert any("reply 3" in line for line in app.lines)


async def test_late_answers_of_an_older_search_are_dropped() -> None:
    held = Held(long_talk(3))
    async with reading(long_talk(3)) as (app, pilot):
        app.view.show(held.now(), fresh=True)
        app.view.find("question")
        await until(pilot, held.begun.is_set)
        await find(app, pilot, "reply 2")
        held.go_on.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert (app.view.found.query, app.view.found.total) == ("reply 2", 1)


# --- selecting and copying ---------------------------------------------------------------------


async def drag(pilot: Pilot[None], start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(TranscriptView, offset=start)
    await pilot.hover(TranscriptView, offset=end)
    await pilot.mouse_up(TranscriptView, offset=end)
    await pilot.pause()


async def test_the_mouse_selects_text_without_its_frame_and_two_clicks_a_block() -> None:
    async with reading(Talk(prompt("p", "hello\nthere"), answer("a", "world"))) as (app, pilot):
        await drag(pilot, (5, 1), (4, 2))
        assert app.screen.get_selected_text() == "llo\nth"
        await drag(pilot, (0, 1), (30, 5))
        assert app.screen.get_selected_text() == "hello\nthere\n\nworld"
        assert app.view.page.cursor == (0, 0)
        await pilot.click(TranscriptView, offset=(4, 5), times=2)
        await pilot.pause()
        assert app.screen.get_selected_text() == "world"


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


# --- what it asks for --------------------------------------------------------------------------


async def test_file_subagent_and_dropped_are_asked_for() -> None:
    change = DiffDisplay(diff="@@ -1 +7 @@\n-a\n+b\n", path="/src/a.py", name="a.py")
    talk = Talk(
        answer("a", replace(tool("t"), display=change), replace(tool("u"), agent_id="sub-1"))
    )
    async with reading(talk) as (app, pilot):
        await pilot.press("o", "j", "enter", "full_stop", "o")
        file, agent, dropped = app.heard
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
