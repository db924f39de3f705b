"""The list of sessions as a person uses it: keys, mouse, search, and a store that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual import on
from textual.app import App
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.entries import SessionRow
from gemtui.sessions.catalog.listing import DayHeading
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind, StoreState
from gemtui.ui.draw.theme import ASCII, UNICODE
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.list_pane import Crumbs, SessionPane
from tests.patience import PATIENCE
from tests.rows import table
from tests.sessions.summaries import NOW, summary
from tests.ui.people import keys
from tests.ui.quick_pilot import drawn

TABLES = table("ui/list.json")
GEMTUI, API = "/home/dev/src/gemtui", "/home/dev/src/api"
FEW = (
    summary("s1", "Fix the JSONL parser", hours=1, prompts=41, tools=12),
    summary("s2", "Why is the build slow?", project=API, hours=2, failures=1, tools=2),
    summary("s3", "The parser, explained", hours=3),
    summary("s4", "Upgrade textual", project=API, hours=4),
    summary("s5", "(empty)", hours=5, flags=(Flag.EMPTY,)),
)
MANY = tuple(summary(f"m{n}", f"Session number {n}", hours=n) for n in range(200))
NEW = summary("new", "A new parser", hours=0)
DAYS = (
    summary("d1", "Of today", hours=1),
    summary("d2", "Of today, too", hours=2),
    summary("d3", "Of yesterday", hours=13),
    summary("d4", "Of Tuesday", hours=24 * 3),
    summary("d5", "Of another month", hours=24 * 40),
)
CHILD = summary("child", "Find it", hours=1, kind=SessionKind.SUBAGENT, parent="s3")
STORES = {
    "few": FEW,
    "many": MANY,
    "days": DAYS,
    "with a subagent": (*FEW, CHILD),
    "blank": (summary("s1", project="/home/dev/my src"),),
}


class ListApp(App[None]):
    """Only the pane, with the time standing still; remembers what the list says."""

    CSS = "SessionPane { width: 44; } SessionList { scrollbar-size-vertical: 1; }"

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.glyphs = UNICODE
        self.heard: list[Message] = []

    def clock(self) -> datetime:
        return self.now

    @on(SessionList.SessionHighlighted)
    @on(SessionList.SessionOpened)
    @on(CopyRequested)
    def _remember(self, message: Message) -> None:
        self.heard.append(message)

    async def begin(self, sessions: Sequence[Summary], project: str | None = None) -> None:
        """Show a list as it is at the start."""
        await self.query(SessionPane).remove()
        await self.mount(SessionPane(None if project is None else Path(project)))
        self.heard.clear()
        self.show(sessions)
        self.sessions.focus()

    def show(self, sessions: Sequence[Summary], *, complete: bool = True) -> None:
        self.sessions.show_sessions(
            Snapshot(
                sessions=tuple(sessions),
                done=len(sessions),
                total=412,
                complete=complete,
                unreadable=(),
                state=StoreState.OK,
            )
        )

    @property
    def sessions(self) -> SessionList:
        return self.query_one(SessionList)

    @property
    def highlighted(self) -> str | None:
        session = self.sessions.highlighted
        return None if session is None else session.id

    @property
    def listed(self) -> list[str]:
        """The ids in the list; headings of projects as "# name"."""
        return [
            row.entry.summary.id if isinstance(row, SessionRow) else f"# {row.name}"
            for row in self.sessions.rows.rows
            if not isinstance(row, DayHeading)
        ]

    @property
    def lines(self) -> list[str]:
        """The list as it stands on the screen."""
        drawn(self)
        height = self.sessions.size.height
        return [self.sessions.render_line(y).text.rstrip() for y in range(height)]

    @property
    def opened(self) -> list[str]:
        return [
            each.summary.id for each in self.heard if isinstance(each, SessionList.SessionOpened)
        ]

    @property
    def state(self) -> dict[str, Any]:
        """What the stories tell about the list."""
        search = self.query_one(FilterBar)
        days = self.screen.query(OptionList)
        return {
            "listed": self.listed,
            "highlighted": self.highlighted,
            "messages": [type(message).__name__ for message in self.heard],
            "opened": self.opened,
            "copied": [each.text for each in self.heard if isinstance(each, CopyRequested)],
            "focus": "list" if self.sessions.has_focus else "elsewhere",
            "search": search.text if search.has_class("-open") else None,
            "typed": search.query_one(Input).value,
            "query": self.sessions.view.query,
            "sort": self.sessions.view.sort,
            "crumbs": list(self.sessions.crumbs),
            "rows": [_spaced(line) for line in self.lines if line and " · " not in line],
            "days": [_spaced(str(option.prompt)) for box in days for option in box.options],
            "day": days.first().highlighted if days else None,
        }


def _spaced(text: str) -> str:
    return " ".join(text.split())


@asynccontextmanager
async def showing(
    sessions: Sequence[Summary] = FEW,
    *,
    project: str | None = None,
    size: tuple[int, int] = (80, 24),
) -> AsyncIterator[tuple[ListApp, Pilot[None]]]:
    app = ListApp()
    async with app.run_test(size=size) as pilot:
        await app.begin(sessions, project)
        await pilot.pause()
        yield app, pilot


async def test_a_person_finds_orders_and_opens_sessions_as_promised() -> None:
    async with showing() as (app, pilot):
        for story in TABLES["stories"]:
            app.glyphs = ASCII if "ascii" in story else UNICODE
            await app.begin(STORES[story.get("sessions", "few")], story.get("project"))
            app.query_one(SessionPane).styles.width = story.get("width", 44)
            await pilot.pause()
            for words, expected, *texts in story["steps"]:
                await pilot.press(*keys(words))
                state = app.state
                promise = f"{story['promise']}: {words}"
                assert {name: state[name] for name in expected} == expected, promise
                screen = "\n".join(app.lines)
                assert [text for text in texts if text not in screen] == [], promise + screen


async def test_clicks_highlight_two_open_and_the_wheel_leaves_the_cursor() -> None:
    async with showing() as (app, pilot):
        await pilot.click(SessionList, offset=(5, 4))
        assert app.highlighted == "s2"
        assert app.opened == []
        await pilot.double_click(SessionList, offset=(5, 5))
        assert app.opened == ["s3"]
        await pilot.click(SessionList, offset=(5, 15))
        assert app.highlighted == "s3"
        await pilot.double_click(SessionList, offset=(5, 0))  # the heading of a day
        assert app.highlighted == "s3"
        assert app.opened == ["s3"]
        await pilot.press("g", "left")
        await pilot.click(SessionList, offset=(5, 1))
        assert app.listed == [f"# {GEMTUI}", f"# {API}"]

        await app.begin(MANY)
        await pilot.pause()
        app.sessions.scroll_relative(y=30, animate=False)
        await pilot.pause()
        assert app.highlighted == "m0"


async def test_a_project_is_chosen_by_a_part_of_its_name_and_stays_the_lists_own() -> None:
    async with showing() as (app, pilot):
        app.sessions.action_projects()  # type: ignore[attr-defined]
        await pilot.pause()
        assert app.state["days"] == [
            "All projects 4 sessions",
            f"{GEMTUI} 2 sessions",
            f"{API} 2 sessions",
        ]
        await pilot.press(*"api", "enter")
        await pilot.pause()
        assert app.listed == ["s2", "s4"]
        await pilot.press("a")
        assert len(app.listed) == 4
        await pilot.press("a")
        assert app.listed == ["s2", "s4"]


async def test_a_chosen_day_stands_at_the_top_with_its_heading() -> None:
    async with showing(MANY) as (app, pilot):
        await pilot.press("D", "down", "enter")
        await pilot.pause()
        assert app.lines[0].startswith("   Yesterday")
        assert app.highlighted == "m13"


# --- a store that changes --------------------------------------------------------------------


async def test_a_new_session_moves_neither_cursor_nor_screen_unless_it_comes_into_sight() -> None:
    async with showing(MANY) as (app, pilot):
        await pilot.press(*["pagedown"] * 3)
        before, highlighted = app.lines, app.highlighted
        app.show((NEW, *MANY))
        await pilot.pause()
        assert app.highlighted == highlighted
        assert app.lines == before

        await app.begin(MANY)
        await pilot.pause()
        app.sessions.scroll_relative(y=30, animate=False)
        await pilot.pause()
        before = app.lines
        assert "Session number 14" in before[0]
        app.show((NEW, *MANY))
        await pilot.pause()
        assert app.lines == before

        await app.begin(MANY)
        await pilot.pause()
        app.show((NEW, *MANY))
        await pilot.pause()
        assert "A new parser" in app.lines[1]
        assert app.highlighted == "m0"


async def test_changed_sessions_show_what_is_new_and_the_neighbour_of_a_lost_one_is_kept() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down", "down")
        changed = replace(FEW[2], prompts=4, updated=NOW, flags=frozenset({Flag.LIVE}))
        app.show((changed, FEW[0], FEW[1], *FEW[3:]))
        await pilot.pause()
        assert app.listed == ["s3", "s1", "s2", "s4"]
        assert app.lines[1:3] == [
            "▌● The parser, explained               now",
            "▌  live · gemtui · 2.5-pro · 4 prompts",
        ]
        assert app.highlighted == "s3"
        assert app.state["messages"] == ["SessionHighlighted"] * 3

        await app.begin(FEW)
        await pilot.press("down")
        app.show((FEW[0], *FEW[2:]))
        assert app.highlighted == "s3"
        app.show((NEW, FEW[0], *FEW[2:]))
        assert app.highlighted == "s3"


async def test_a_search_goes_on_while_the_store_changes() -> None:
    async with showing() as (app, pilot):
        await pilot.press(*keys("slash 'parser down down"))
        app.show((NEW, *FEW))
        assert app.listed == ["new", "s1", "s3"]
        assert app.highlighted == "s3"


async def test_reading_is_said_and_the_list_works_meanwhile() -> None:
    async with showing(()) as (app, pilot):
        app.show((), complete=False)
        assert app.lines[1] == "   Reading…"
        app.show(FEW[:3], complete=False)
        assert app.sessions.crumbs[2] == "checking 412 files"
        await pilot.press("down")
        assert app.highlighted == "s2"


async def test_ages_and_names_of_days_are_those_of_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with showing() as (app, pilot):
        assert app.lines[1].endswith(" 1h")
        app.now = NOW + timedelta(hours=5)
        app.sessions.refresh()
        await pilot.pause()
        assert app.lines[1].endswith(" 6h")

        monkeypatch.setattr("gemtui.ui.sessions.list._MINUTE", 0.01)
        app.now = NOW
        await app.begin(DAYS)
        await pilot.press("down", "down")
        app.now = NOW + timedelta(hours=12)
        async with asyncio.timeout(PATIENCE):
            while not app.lines[0].startswith("   Yesterday"):
                await pilot.pause(0.01)
        assert app.highlighted == "d3"
        assert sum("Friday" in line or "Thursday" in line for line in app.lines) == 1


# --- the room that there is ------------------------------------------------------------------


async def test_the_list_keeps_its_place_in_a_lower_and_in_a_wide_window() -> None:
    async with showing(MANY) as (app, pilot):
        await pilot.press(*["down"] * 7)
        assert app.sessions.sees("m7")
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert app.sessions.sees("m7")
        await pilot.press("pagedown", "pagedown")
        app.query_one(SessionPane).styles.width = 80
        await pilot.pause()
        lines = app.lines
        headings = sum(line.split()[0] in ("Today", "Yesterday") for line in lines)
        assert sum("Session number" in line for line in lines) == len(lines) - headings
        assert any(line.startswith("▌") for line in lines)


async def test_crumbs_give_way_and_a_very_small_list_still_draws() -> None:
    async with showing(project=GEMTUI) as (app, pilot):
        for width, crumbs in TABLES["crumbs"]:
            app.query_one(SessionPane).styles.width = width
            await pilot.pause()
            assert app.query_one(Crumbs).render_line(0).text.rstrip() == crumbs
        await pilot.resize_terminal(9, 4)
        await app.begin(MANY)
        await pilot.press("down")
        assert app.lines[0].startswith("▌")
