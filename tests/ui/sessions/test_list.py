"""The list of sessions as a person uses it: keys, mouse, search, and a store that changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual import on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.listing import DayHeading, SessionRow, Sort
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind, StoreState
from gemtui.ui.draw.theme import ASCII, UNICODE
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.sessions.list import SessionList
from gemtui.ui.sessions.list_pane import Crumbs, SessionPane
from tests.patience import PATIENCE
from tests.sessions.summaries import NOW, summary
from tests.ui.quick_pilot import drawn

GEMTUI, API = "/home/dev/src/gemtui", "/home/dev/src/api"
FEW = (
    summary("s1", "Fix the JSONL parser", hours=1, prompts=41, tools=12),
    summary("s2", "Why is the build slow?", project=API, hours=2, failures=1, tools=2),
    summary("s3", "The parser, explained", hours=3),
    summary("s4", "Upgrade textual", project=API, hours=4),
    summary("s5", "(empty)", hours=5, flags=(Flag.EMPTY,)),
)
MANY = tuple(summary(f"m{n}", f"Session number {n}", hours=n) for n in range(200))


def snapshot(sessions: Sequence[Summary], *, complete: bool = True) -> Snapshot:
    return Snapshot(
        sessions=tuple(sessions),
        done=len(sessions),
        total=412,
        complete=complete,
        unreadable=(),
        state=StoreState.OK,
    )


class ListApp(App[None]):
    """Only the pane, with the time standing still; remembers what the list says."""

    CSS = "SessionPane { width: 44; } SessionList { scrollbar-size-vertical: 1; }"

    def __init__(self, project: str | None) -> None:
        super().__init__()
        self.project = None if project is None else Path(project)
        self.now = NOW
        self.glyphs = UNICODE
        self.said: list[Message] = []

    def clock(self) -> datetime:
        return self.now

    def compose(self) -> ComposeResult:
        yield SessionPane(self.project)

    @on(SessionList.Highlighted)
    @on(SessionList.Opened)
    @on(CopyRequested)
    def _remember(self, message: Message) -> None:
        self.said.append(message)

    @property
    def sessions(self) -> SessionList:
        return self.query_one(SessionList)

    @property
    def highlighted(self) -> str | None:
        found = self.sessions.highlighted
        return None if found is None else found.id

    @property
    def listed(self) -> list[str]:
        """The ids in the list; headings of projects as "# name"."""
        return [
            row.entry.summary.id if isinstance(row, SessionRow) else f"# {row.name}"
            for row in self.sessions.rows.rows
            if not isinstance(row, DayHeading)
        ]

    def lines(self) -> list[str]:
        """The list as it stands on the screen."""
        drawn(self)
        height = self.sessions.size.height
        return [self.sessions.render_line(y).text.rstrip() for y in range(height)]


@asynccontextmanager
async def showing(
    sessions: Sequence[Summary] = FEW,
    *,
    project: str | None = None,
    size: tuple[int, int] = (80, 24),
) -> AsyncIterator[tuple[ListApp, Pilot[None]]]:
    app = ListApp(project)
    async with app.run_test(size=size) as pilot:
        app.sessions.show_sessions(snapshot(sessions))
        app.sessions.focus()
        await pilot.pause()
        yield app, pilot


# --- moving and opening ----------------------------------------------------------------------


async def test_the_first_session_is_highlighted_at_start() -> None:
    async with showing() as (app, _):
        assert app.listed == ["s1", "s2", "s3", "s4"]
        assert app.highlighted == "s1"
        assert [type(each).__name__ for each in app.said] == ["Highlighted"]


MOVES = (
    ("down", "m1"),
    ("j k", "m1"),
    ("up up", "m0"),
    ("end", "m199"),
    ("down", "m199"),
    ("home", "m0"),
    ("pagedown", "m10"),
    ("pagedown pageup", "m9"),
    ("end pageup", "m189"),
)


async def test_keys_move_the_cursor() -> None:
    async with showing(MANY) as (app, pilot):
        for keys, highlighted in MOVES:
            await pilot.press(*keys.split())
            assert app.highlighted == highlighted
            assert any(line.startswith("▌") for line in app.lines())


async def test_enter_opens_and_y_copies_the_id() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down", "enter", "y")
        opened, copied = app.said[-2:]
        assert isinstance(opened, SessionList.Opened)
        assert opened.summary.id == "s2"
        assert isinstance(copied, CopyRequested)
        assert copied.text == "s2"


async def test_a_click_highlights_and_two_open() -> None:
    async with showing() as (app, pilot):
        await pilot.click(SessionList, offset=(5, 4))
        assert app.highlighted == "s2"
        assert not any(isinstance(each, SessionList.Opened) for each in app.said)
        await pilot.double_click(SessionList, offset=(5, 5))
        assert isinstance(opened := app.said[-1], SessionList.Opened)
        assert opened.summary.id == "s3"
        await pilot.click(SessionList, offset=(5, 15))
        assert app.highlighted == "s3"


async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    async with showing(MANY) as (app, pilot):
        app.sessions.scroll_relative(y=30, animate=False)
        await pilot.pause()
        assert app.highlighted == "m0"
        assert "Session number 14" in app.lines()[0]


# --- search ----------------------------------------------------------------------------------


async def test_typing_filters_and_esc_brings_all_back() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down", "slash", *"explained")
        assert app.listed == ["s3"]
        assert app.highlighted == "s3"
        await pilot.press("escape")
        assert app.listed == ["s1", "s2", "s3", "s4"]
        assert app.highlighted == "s3"
        assert app.focused is app.sessions


async def test_where_nothing_matched_the_cursor_is_where_it_was() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down", "slash", *"zzz", "escape")
        assert app.highlighted == "s2"


async def test_a_search_that_ends_shows_what_is_around_the_chosen_session() -> None:
    async with showing(MANY) as (app, pilot):
        await pilot.press("slash", *"number 150", "escape")
        assert app.highlighted == "m150"
        around = "\n".join(app.lines())
        assert [n for n in range(147, 154) if f"Session number {n} " not in around] == [], around


async def test_enter_in_the_search_opens_what_was_found() -> None:
    async with showing() as (app, pilot):
        await pilot.press("slash", *"explained", "enter")
        opened = [each.summary.id for each in app.said if isinstance(each, SessionList.Opened)]
        assert opened == ["s3"]


async def test_down_keeps_the_search_and_goes_to_the_list() -> None:
    async with showing() as (app, pilot):
        await pilot.press("slash", *"parser", "down", "down")
        assert app.focused is app.sessions
        assert app.highlighted == "s3"
        assert app.query_one(FilterBar).has_class("-open")
        await pilot.press("escape")
        assert app.highlighted == "s3"
        assert app.listed == ["s1", "s2", "s3", "s4"]
        assert not app.query_one(FilterBar).has_class("-open")
        assert app.query_one(Input).value == ""


async def test_an_empty_search_leaves_no_trace() -> None:
    async with showing() as (app, pilot):
        await pilot.press("slash", "enter")
        assert app.focused is app.sessions
        assert not app.query_one(FilterBar).has_class("-open")


async def test_letters_in_the_search_are_letters() -> None:
    async with showing() as (app, pilot):
        await pilot.press("slash", *"aqgd.")
        assert app.query_one(Input).value == "aqgd."
        assert app.sessions.view.query == "aqgd."


async def test_nothing_found_is_said() -> None:
    async with showing() as (app, pilot):
        await pilot.press("slash", *"[/x] zzz")
        assert app.lines()[1] == "   Nothing matches “[/x] zzz”. Press esc"
        assert app.lines()[2] == "   to clear the search."
        assert app.highlighted is None


async def test_ascii_is_ascii_where_nothing_is_found() -> None:
    async with showing() as (app, pilot):
        app.glyphs = ASCII
        await pilot.press("slash", *"zzz")
        assert app.lines()[1].startswith('   Nothing matches "zzz". Press esc')


async def test_matches_in_other_projects_are_offered() -> None:
    async with showing(project=GEMTUI) as (app, pilot):
        await pilot.press("slash", *"textual")
        text = " ".join(" ".join(app.lines()).split())
        assert "1 in other projects. Press ↓ a to show all." in text


# --- scope, order, groups, hidden ones -------------------------------------------------------


async def test_one_key_shows_all_projects() -> None:
    async with showing(project=GEMTUI) as (app, pilot):
        assert app.listed == ["s1", "s3"]
        assert app.sessions.crumbs == ("2 of 4", "this project", "newest first", "1 hidden")
        await pilot.press("a")
        assert app.listed == ["s1", "s2", "s3", "s4"]
        assert app.sessions.crumbs[:2] == ("4", "all projects")
        await pilot.press("a")
        assert app.listed == ["s1", "s3"]


async def test_without_a_project_there_are_only_all() -> None:
    async with showing() as (app, pilot):
        await pilot.press("a")
        assert app.listed == ["s1", "s2", "s3", "s4"]


async def test_the_cursor_stays_on_its_session_when_the_order_changes() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down", "S")
        assert app.listed == ["s4", "s3", "s2", "s1"]
        assert app.highlighted == "s2"
        app.sessions.sort(Sort.TITLE)
        assert app.listed == ["s1", "s3", "s4", "s2"]
        assert app.highlighted == "s2"
        await pilot.press("s", "down", "enter")
        assert app.sessions.view.sort is Sort.PROJECT


async def test_groups_have_headings_that_fold() -> None:
    async with showing() as (app, pilot):
        await pilot.press("g")
        assert app.listed == [f"# {GEMTUI}", "s1", "s3", f"# {API}", "s2", "s4"]
        assert app.highlighted == "s1"
        await pilot.press("left")
        assert app.listed == [f"# {GEMTUI}", f"# {API}", "s2", "s4"]
        assert app.highlighted is None
        await pilot.press("enter")
        assert "s1" in app.listed
        await pilot.click(SessionList, offset=(5, 5))
        assert app.listed == [f"# {GEMTUI}", "s1", "s3", f"# {API}"]
        await pilot.press("g")
        assert app.listed == ["s1", "s2", "s3", "s4"]


async def test_hidden_ones_can_be_shown() -> None:
    child = summary("child", "Find it", hours=1, kind=SessionKind.SUBAGENT, parent="s3")
    async with showing((*FEW, child)) as (app, pilot):
        assert app.sessions.crumbs[-1] == "2 hidden"
        await pilot.press("full_stop")
        assert app.listed == ["s1", "s2", "s3", "child", "s4", "s5"]
        assert "   └ Find it" in "\n".join(app.lines())
        assert app.sessions.crumbs[-1] == "including hidden"


# --- a store that changes --------------------------------------------------------------------


async def test_a_new_session_moves_neither_cursor_nor_screen() -> None:
    async with showing(MANY) as (app, pilot):
        await pilot.press(*["pagedown"] * 3)
        before, highlighted = app.lines(), app.highlighted
        app.sessions.show_sessions(snapshot((summary("new", "A new one", hours=0), *MANY)))
        await pilot.pause()
        assert app.highlighted == highlighted
        assert app.lines() == before


async def test_the_screen_stays_where_the_wheel_left_it() -> None:
    async with showing(MANY) as (app, pilot):
        app.sessions.scroll_relative(y=30, animate=False)
        await pilot.pause()
        before = app.lines()
        app.sessions.show_sessions(snapshot((summary("new", "A new one", hours=0), *MANY)))
        await pilot.pause()
        assert app.lines() == before


async def test_at_the_top_a_new_session_comes_into_sight() -> None:
    async with showing(MANY) as (app, pilot):
        app.sessions.show_sessions(snapshot((summary("new", "A new one", hours=0), *MANY)))
        await pilot.pause()
        assert "A new one" in app.lines()[1]
        assert app.highlighted == "m0"


async def test_a_session_that_changed_shows_what_is_new() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down", "down")
        changed = replace(FEW[2], prompts=4, updated=NOW, flags=frozenset({Flag.LIVE}))
        app.sessions.show_sessions(snapshot((changed, FEW[0], FEW[1], *FEW[3:])))
        await pilot.pause()
        assert app.listed == ["s3", "s1", "s2", "s4"]
        assert app.lines()[1:3] == [
            "▌● The parser, explained               now",
            "▌  live · gemtui · 2.5-pro · 4 prompts",
        ]
        assert app.highlighted == "s3"
        assert [type(each).__name__ for each in app.said] == ["Highlighted"] * 3


async def test_when_the_highlighted_session_goes_its_neighbour_is_highlighted_for_good() -> None:
    async with showing() as (app, pilot):
        await pilot.press("down")
        app.sessions.show_sessions(snapshot((FEW[0], *FEW[2:])))
        assert app.highlighted == "s3"
        app.sessions.show_sessions(snapshot((summary("new", hours=0), FEW[0], *FEW[2:])))
        assert app.highlighted == "s3"


async def test_a_search_goes_on_while_the_store_changes() -> None:
    async with showing() as (app, pilot):
        await pilot.press("slash", *"parser", "down", "down")
        app.sessions.show_sessions(snapshot((summary("new", "A parser", hours=0), *FEW)))
        assert app.listed == ["new", "s1", "s3"]
        assert app.highlighted == "s3"


async def test_reading_is_said_and_the_list_works_meanwhile() -> None:
    async with showing(()) as (app, pilot):
        app.sessions.show_sessions(snapshot((), complete=False))
        assert app.lines()[1] == "   Reading…"
        app.sessions.show_sessions(snapshot(FEW[:3], complete=False))
        assert app.sessions.crumbs[2] == "reading 3 of 412"
        await pilot.press("down")
        assert app.highlighted == "s2"


async def test_ages_are_those_of_the_app_s_clock() -> None:
    async with showing() as (app, pilot):
        assert app.lines()[1].endswith(" 1h")
        app.now = NOW + timedelta(hours=5)
        app.sessions.refresh()
        await pilot.pause()
        assert app.lines()[1].endswith(" 6h")


async def test_a_cursor_in_sight_stays_in_sight_in_a_lower_window() -> None:
    many = [summary(f"s{number}", hours=number) for number in range(60)]
    async with showing(many) as (app, pilot):
        await pilot.press(*["down"] * 7)
        assert app.sessions.sees("s7")
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert app.sessions.sees("s7")


# --- days --------------------------------------------------------------------------------------

DAYS = (
    summary("d1", "Of today", hours=1),
    summary("d2", "Of today, too", hours=2),
    summary("d3", "Of yesterday", hours=13),
    summary("d4", "Of Tuesday", hours=24 * 3),
    summary("d5", "Of another month", hours=24 * 40),
)


async def test_a_list_by_time_has_the_days_as_headings_which_leave_their_name_unsaid() -> None:
    async with showing(DAYS) as (app, _):
        shown = [line.split() for line in app.lines() if line and "gemtui" not in line]
        assert [" ".join(words) for words in shown] == [
            "Today 2",
            "▌ Of today 1h",
            "Of today, too 2h",
            "Yesterday 1",
            "Of yesterday 23:00",
            "Tuesday 1",
            "Of Tuesday 12:00",
            "October 2026 1",
            "Of another month Sun 11",
        ]


@pytest.mark.parametrize("width", [44, 80])
async def test_the_cursor_goes_over_headings_of_days(width: int) -> None:
    async with showing(DAYS) as (app, pilot):
        app.query_one(SessionPane).styles.width = width
        await pilot.pause()
        seen = [app.highlighted]
        for key in ("down", "down", "down", "down", "down", "up", "up", "up", "up", "up"):
            await pilot.press(key)
            seen.append(app.highlighted)
        down = ["d1", "d2", "d3", "d4", "d5", "d5"]
        assert seen == [*down, "d4", "d3", "d2", "d1", "d1"]
        await pilot.press("pagedown", "pageup", "end", "ctrl+u", "home", "ctrl+d", "home")
        assert app.highlighted == "d1"
        assert app.lines()[0].startswith("   Today")


async def test_a_click_on_a_heading_of_a_day_does_nothing() -> None:
    async with showing(DAYS) as (app, pilot):
        await pilot.press("down")
        await pilot.double_click(SessionList, offset=(5, 0))
        assert app.highlighted == "d2"
        assert not any(isinstance(each, SessionList.Opened) for each in app.said)


async def test_other_orders_and_groups_have_no_days() -> None:
    async with showing(DAYS) as (app, pilot):
        await pilot.press("s", "down", "enter")
        assert any("began" in line for line in app.lines())
        assert "Yesterday" in "".join(app.lines())
        await pilot.press("s", "down", "enter")
        assert "Yesterday" not in "".join(app.lines())
        assert any(line.endswith(" 13h") for line in app.lines())
        await pilot.press("S", "s", "home", "enter", "g")
        assert app.sessions.view.sort is Sort.UPDATED
        assert "Yesterday" not in "".join(app.lines())


async def test_a_day_is_gone_to_from_any_order() -> None:
    async with showing(DAYS) as (app, pilot):
        await pilot.press("down", "g", "D")
        days = app.screen.query_one(OptionList)
        words = [" ".join(str(days.get_option_at_index(n).prompt).split()) for n in range(4)]
        assert words == [
            "2026-11-20 Fri today 2 sessions",
            "2026-11-19 Thu yesterday 1 session",
            "2026-11-17 Tue 1 session",
            "2026-10-11 Sun 1 session",
        ]
        assert days.highlighted == 0
        await pilot.press("end", "enter")
        assert app.highlighted == "d5"
        await pilot.press("D")
        assert app.screen.query_one(OptionList).highlighted == 3
        await pilot.press("up", "enter")
        assert app.highlighted == "d4"


async def test_at_midnight_the_days_get_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemtui.ui.sessions.list._MINUTE", 0.01)
    async with showing(DAYS) as (app, pilot):
        await pilot.press("down", "down")
        app.now = NOW + timedelta(hours=12)
        async with asyncio.timeout(PATIENCE):
            while not app.lines()[0].startswith("   Yesterday"):
                await pilot.pause(0.01)
        assert app.highlighted == "d3"
        assert sum("Friday" in line or "Thursday" in line for line in app.lines()) == 1


# --- the room that there is ------------------------------------------------------------------


async def test_a_wide_list_has_one_line_each_and_keeps_its_place() -> None:
    async with showing(MANY) as (app, pilot):
        await pilot.press("pagedown", "pagedown")
        app.query_one(SessionPane).styles.width = 80
        await pilot.pause()
        lines = app.lines()
        headings = sum(line.split()[0] in ("Today", "Yesterday") for line in lines)
        assert sum("Session number" in line for line in lines) == len(lines) - headings
        assert any(line.startswith("▌") for line in lines)


async def test_a_very_small_list_still_draws() -> None:
    async with showing(MANY, size=(9, 4)) as (app, pilot):
        await pilot.press("down")
        assert app.lines()[0].startswith("▌")


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (60, " Sessions 2 of 4 · this project · newest first · 1 hidden"),
        (52, " 2 of 4 · this project · newest first · 1 hidden"),
        (44, " 2 of 4 · this project · newest · 1 hidden"),
        (40, " 2 of 4 · this one · newest · 1 hidden"),
        (30, " 2 of 4 · this one · newest"),
        (9, " 2 of 4"),
    ],
)
async def test_crumbs_give_way(width: int, said: str) -> None:
    async with showing(project=GEMTUI) as (app, pilot):
        app.query_one(SessionPane).styles.width = width
        await pilot.pause()
        assert app.query_one(Crumbs).render_line(0).text.rstrip() == said


async def test_the_command_that_resumes_a_session_is_copied() -> None:
    async with showing((summary("s1", project="/home/dev/my src"),)) as (app, pilot):
        await pilot.press("Y")
        (copied,) = (each for each in app.said if isinstance(each, CopyRequested))
        assert copied.text == "cd '/home/dev/my src' && gemini --resume s1"
