"""The numbers over sessions, as a person looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from gemtui.paths import config_file
from gemtui.stats import kept
from gemtui.stats.reading import activities
from gemtui.ui.sessions import stats_screen
from gemtui.ui.sessions.stats_screen import StatsScreen, number
from tests.patience import PATIENCE
from tests.ui.people import NARROW, WIDE, person


@pytest.mark.parametrize(
    ("count", "short"),
    [(None, "?"), (9_999, "9,999"), (12_345, "12.3k"), (9_658_000, "9.7M"), (10_900_000, "10.9M")],
)
def test_numbers_side_by_side_have_one_unit(count: int | None, short: str) -> None:
    assert number(count) == short


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_numbers_of_all_projects(store: Path, size: tuple[int, int]) -> None:
    async with person(store, size) as me:
        await me.sees("first question")
        await me.does("t", "Stats", "all projects", "22 sessions", "234.6k tokens", "12 failed")
        assert max(len(line) for line in me.text.splitlines()) <= size[0]
        await me.does("end", "frobnicate", "Costs are estimates")
        await me.press("escape")
        assert not isinstance(me.app.screen, StatsScreen)


async def test_this_project_or_all_and_a_span_of_time(store: Path) -> None:
    async with person(store, WIDE, project=Path("/home/dev/notes")) as me:
        await me.sees("Write a haiku file")
        await me.does("t", "/home/dev/notes", "2 sessions")
        await me.does("a", "all projects", "all time", "22 sessions")
        await me.does("w", "30 days", "22 sessions")
        await me.does("w w w", "all time", "22 sessions")
        await me.press("a")
        await me.lacks("22 sessions")


async def test_without_numbers_the_ways_on_are_told(store: Path) -> None:
    async with person(store, NARROW, project=Path("/home/dev/elsewhere")) as me:
        await me.does("t", "all projects", "22 sessions")
        await me.does("a", "Press w to change it, or a to show all projects.")


async def test_with_wrong_prices_numbers_are_shown_without_costs(store: Path) -> None:
    prices = config_file().with_name("prices.toml")
    prices.parent.mkdir(parents=True)
    prices.write_text("=")
    async with person(store, WIDE) as me:
        await me.sees("first question")
        await me.does("t", "No costs are shown", "prices.toml", "22 sessions")


async def test_whoever_leaves_while_it_reads_leaves(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.sees("first question")
        await me.burst("taawwq")
        await me.until(lambda: not isinstance(me.app.screen, StatsScreen))
        assert me.app.is_running


async def test_sums_so_far_are_shown_while_sessions_are_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = Event()

    def slowly(*args: Any, **named: Any) -> Iterator[Any]:
        for place, found in enumerate(activities(*args, **named)):
            if place == 5:
                go_on.wait(PATIENCE)
            yield found

    monkeypatch.setattr(kept, "activities", slowly)
    monkeypatch.setattr(stats_screen, "_STEP", 0.0)
    async with person(store, WIDE) as me:
        await me.sees("first question")
        await me.does("t", "5 of ", "sessions read", "tokens", "Days")
        assert "22 sessions" not in me.text
        go_on.set()
        await me.sees("22 sessions")
        await me.lacks("sessions read")
