"""Numbers over sessions, beside what the records say when they are read plainly."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Self

import pytest

from gemtui.errors import ConfigError
from gemtui.sessions.catalog import read_files
from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.projects import repository_of
from gemtui.sessions.store.store import Problem
from gemtui.stats.activity import ACTIVITIES
from gemtui.stats.prices import load_prices
from gemtui.stats.reading import activities
from gemtui.stats.report import Stats, Tally
from gemtui.transcript.usage import Usage
from tests.sessions import logs
from tests.sessions.stores import read, session, talk, uuid

PRICES = load_prices()


def stats_of(
    home: Path, *, cache: Path | None = None, zone: Any = UTC, **period: datetime
) -> Stats:
    tally = Tally(PRICES, **({"since": None} | period), zone=zone)
    sessions = counted_sessions(read(home).sessions, None)
    for counted, found in activities(sessions, home=home, cache=cache):
        assert not isinstance(found, Problem)
        tally.add(counted, found)
    return tally.stats()


def answer(id: str, seconds: float, model: str, **tokens: int) -> dict[str, Any]:
    return logs.gemini(id, "Yes", seconds, model=model, tokens=tokens)


def test_tokens_by_model_day_and_hour(tmp_path: Path) -> None:
    counts = {"input": 1000, "output": 50, "cached": 400, "thoughts": 10, "tool": 0, "total": 1060}
    session(
        tmp_path,
        uuid(1),
        [
            logs.header(uuid(1)),
            logs.user("u", "Go"),
            answer("a", 5, "gemini-2.5-pro", **counts),
            answer("b", 3600, "gemini-2.5-pro", **counts),
            logs.gemini("c", "Yes", 3601, model="mystery", tokens=None),
        ],
    )
    stats = stats_of(tmp_path)
    assert stats.total.usage == Usage(
        input=2000, output=100, cached=800, thoughts=20, tool=0, total=2120
    )
    assert (stats.total.prompts, stats.total.answers, stats.total.unknown) == (1, 3, 1)
    assert set(stats.models) == {"gemini-2.5-pro", "mystery"}
    assert list(stats.days) == [date(2026, 11, 20), date(2026, 11, 21)]
    assert list(stats.months) == [date(2026, 11, 1)]
    assert stats.months[date(2026, 11, 1)] == stats.total
    assert sorted(stats.hours) == [0, 23]
    assert stats.week == {(4, 23): 1, (5, 0): 2}
    price = PRICES.models["gemini-2.5-pro"]
    cost = (1200 * price.input + 800 * price.cached + 120 * price.output) / 1e6
    assert stats.total.cost == pytest.approx(cost)
    assert stats.total.unpriced == {"mystery"}
    assert not stats.models["mystery"].priced


def test_days_and_hours_are_those_of_the_zone(tmp_path: Path) -> None:
    session(tmp_path, uuid(1), talk(uuid(1)))
    stats = stats_of(tmp_path, zone=timezone(timedelta(hours=5, minutes=45)))
    assert (list(stats.days), list(stats.hours)) == ([date(2026, 11, 21)], [4])


def test_calls_by_how_they_ended(tmp_path: Path) -> None:
    calls = [
        logs.call("1", name="read_file"),
        logs.call("2", name="read_file", status="error"),
        logs.call("3", name="write_file", args={"file_path": "/p/a"}),
        logs.call("4", name="write_file", args={"file_path": "/p/a"}),
    ]
    records = [*talk(uuid(1)), logs.gemini("g", "", 9, toolCalls=calls)]
    session(tmp_path, uuid(1), records)
    stats = stats_of(tmp_path)
    assert stats.total.calls.total() == 4
    assert stats.total.failures == {"error": 1}
    assert stats.tools["read_file"].failures == {"error": 1}
    assert stats.total.files == 1


def test_what_was_rewound_counts_apart(tmp_path: Path) -> None:
    records = [*talk(uuid(1), turns=2), {"$rewindTo": "u1"}]
    session(tmp_path, uuid(1), records)
    total = stats_of(tmp_path).total
    assert (total.usage.total, total.dropped.total, total.answers) == (13, 13, 1)


def test_a_subagents_work_is_its_sessions(tmp_path: Path) -> None:
    session(tmp_path, uuid(1), talk(uuid(1)))
    below = tmp_path / "tmp/proj/chats" / uuid(1) / "helper.jsonl"
    logs.write(below, [logs.header("helper", kind="subagent"), *talk("helper")[1:]])
    total = stats_of(tmp_path).total
    assert (total.sessions, total.prompts, total.usage.total) == (1, 1, 26)


def test_since(tmp_path: Path) -> None:
    session(tmp_path, uuid(1), [*talk(uuid(1)), logs.user("late", "More", 7200)])
    assert stats_of(tmp_path).total.prompts == 2
    late = stats_of(tmp_path, since=logs.START + timedelta(hours=1)).total
    assert (late.prompts, late.answers) == (1, 0)
    assert stats_of(tmp_path, since=datetime(2027, 1, 1, tzinfo=UTC)).total.sessions == 0
    early = stats_of(tmp_path, until=logs.START + timedelta(hours=1)).total
    assert early.answers + late.answers == stats_of(tmp_path).total.answers
    assert stats_of(tmp_path, until=datetime(2025, 1, 1, tzinfo=UTC)).total.sessions == 0


def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [session(tmp_path, uuid(number), talk(uuid(number))) for number in range(3)]
    cache = tmp_path / "cache"
    opened: list[Path] = []

    class Counted(SessionLog):
        @classmethod
        def read(cls, path: Path, **options: Any) -> Self:
            opened.append(path)
            return super().read(path, **options)

    monkeypatch.setattr(read_files, "SessionLog", Counted)
    first = stats_of(tmp_path, cache=cache).to_dict()
    assert sorted(opened) == sorted(paths)
    opened.clear()
    assert stats_of(tmp_path, cache=cache).to_dict() == first
    assert opened == []
    with paths[1].open("ab") as stream:
        stream.write(logs.lines([logs.user("more", "And?", 50)]))
    assert stats_of(tmp_path, cache=cache).total.prompts == 4
    assert opened == [paths[1]]


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: data[:5000],
        lambda data: data.replace(b"gemini-3.8-flash", b"gemini-2.5-flash"),
        lambda data: b"not a database" * 500,
    ],
)
def test_a_damaged_cache_does_not_change_the_numbers(
    harm: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    for number in range(3):
        records = [*talk(uuid(number)), answer("m", 5, "gemini-3.8-flash", input=number, output=1)]
        session(tmp_path, uuid(number), records)
    cache = tmp_path / "cache"
    first = stats_of(tmp_path, cache=cache).to_dict()
    file = cache / ACTIVITIES.file
    damaged = harm(file.read_bytes())
    assert damaged != file.read_bytes()
    file.write_bytes(damaged)
    assert [stats_of(tmp_path, cache=cache).to_dict() for _ in range(2)] == [first, first]


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    path = session(tmp_path, uuid(1), talk(uuid(1)))
    sessions = counted_sessions(read(tmp_path).sessions, None)
    path.unlink()
    ((_, found),) = activities(sessions, home=tmp_path, cache=None)
    assert isinstance(found, Problem)
    assert "can't be read" in found.what


# --- prices --------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "prices.toml"


def test_long_prompts_cost_more() -> None:
    usage = Usage(input=300_000, output=0, cached=0, thoughts=0)
    short, long = (PRICES.cost("gemini-2.5-pro", usage, long=long) for long in (False, True))
    assert short is not None
    assert long == pytest.approx(2 * short)
    assert PRICES.cost("models/gemini-2.5-pro", usage, long=False) == short


def test_what_is_written_to_a_cache_has_a_price_of_its_own(own: Path) -> None:
    own.write_text("[models.claude-mine-5]\ninput = 1\noutput = 9\ncached = 0.1\nwritten = 4\n")
    prices = load_prices(own)
    usage = Usage(input=1_000_000, cached=500_000, written=250_000)
    cost = prices.cost("claude-mine-5-20260131", usage, long=False)
    assert cost == pytest.approx(0.25 + 0.05 + 1)
    assert prices.cost("gemini-2.5-pro", Usage(input=10, written=10), long=False) == (
        prices.cost("gemini-2.5-pro", Usage(input=10), long=False)
    )


def test_the_users_own_prices_come_first(own: Path) -> None:
    own.write_text("[models.mine]\ninput = 1\noutput = 2.5\ncached = 0\n")
    prices = load_prices(own)
    assert prices.cost("mine", Usage(input=1_000_000, output=2_000_000), long=False) == 6.0
    assert prices.models["gemini-2.5-pro"] == PRICES.models["gemini-2.5-pro"]


@pytest.mark.parametrize(
    "text",
    [
        "models = 1",
        "[models.a]\ninput = 'x'",
        "[models.a]\ninput = 1",
        "=",
        "other = 1",
        "[models.a]\ninput = -1\noutput = 1\ncached = 1",
        f"a = {'9' * 5000}",
        f"a = {'[' * 5000}",
        "[models.a]\ninput = nan\noutput = inf\ncached = 1",
    ],
)
def test_prices_that_are_wrong_are_refused(own: Path, text: str) -> None:
    own.write_text(text)
    with pytest.raises(ConfigError, match=str(own)):
        load_prices(own)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_prices_that_are_no_file_are_refused(own: Path, make: Callable[[Path], None]) -> None:
    make(own)
    with pytest.raises(ConfigError, match=str(own)):
        load_prices(own)


# --- worktrees -----------------------------------------------------------------------------------


def test_a_worktree_counts_for_its_repository(tmp_path: Path) -> None:
    import subprocess

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=tmp_path / "repo", check=True, capture_output=True)

    (tmp_path / "repo").mkdir()
    git("init", "-q")
    git("-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", "c")
    git("worktree", "add", "-q", str(tmp_path / "tree"))
    assert repository_of(str(tmp_path / "tree")) == str(tmp_path / "repo")
    assert repository_of(str(tmp_path / "repo")) == str(tmp_path / "repo")
    gone = tmp_path / "other/.gemini/worktrees/fix"
    assert repository_of(str(gone)) == str(tmp_path / "other")


@pytest.mark.parametrize(
    "absurd",
    [
        {"input": -5},
        {"output": 10**18},
        {"cached": 101},
        {"total": -1},
        {"input": 10**12},
        {"total": 99},
        {"input": 100.5},
        {"input": 1e30},
        {"output": "10"},
        {"cached": True},
    ],
)
def test_tokens_that_can_not_be_are_unknown_and_cost_nothing(
    tmp_path: Path, absurd: dict[str, Any]
) -> None:
    tokens = {"input": 100, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 110}
    answer = logs.gemini("g", "Yes", 5, model="gemini-2.5-pro", tokens=tokens | absurd)
    session(tmp_path, uuid(1), [logs.header(uuid(1)), logs.user("u", "Hello"), answer])
    totals = stats_of(tmp_path).to_dict()["totals"]
    assert (totals["answers"], totals["answers_without_tokens"]) == (1, 1)
    assert set(totals["tokens"].values()) == {None}
    assert (totals["cost"], totals["models_without_price"]) == (None, [])


@pytest.mark.parametrize("known", [{"input": 100}, {"output": 10}, {}])
def test_an_answer_with_only_some_tokens_does_not_look_fully_priced(
    tmp_path: Path, known: dict[str, int]
) -> None:
    records = [
        logs.header(uuid(1)),
        logs.user("u", "Hello"),
        answer("g", 5, "gemini-2.5-pro", **known),
    ]
    session(tmp_path, uuid(1), records)
    total = stats_of(tmp_path).total
    assert total.unknown == 1
    assert total.dollars == ("$0.00+" if known else "?")


@pytest.mark.parametrize("time", ["1969-12-31T00:00:00Z", "0002-01-01T00:00:00Z", "9998-01-01"])
def test_a_time_that_can_not_be_is_that_of_the_session(tmp_path: Path, time: str) -> None:
    records = talk(uuid(1))
    for record in records:
        record |= {"timestamp": time} if "timestamp" in record else {}
    session(tmp_path, uuid(1), records)
    assert all(day["day"].startswith("20") for day in stats_of(tmp_path).to_dict()["days"])


@pytest.mark.parametrize("time", ["1969-12-31T00:00:00.000Z", "9998-01-01T00:00:00.000Z"])
def test_without_any_possible_time_tokens_are_unknown_and_belong_to_no_day(
    tmp_path: Path, time: str
) -> None:
    times = ("timestamp", "startTime", "lastUpdated")
    records = [
        record | {key: time for key in times if key in record}
        for record in (
            logs.header(uuid(1)),
            logs.user("u", "Go"),
            answer("a", 5, "gemini-2.5-pro", input=100, output=10, total=110),
        )
    ]
    session(tmp_path, uuid(1), records)
    stats = stats_of(tmp_path)
    total = stats.to_dict()["totals"]
    assert (total["prompts"], total["answers"], total["answers_without_tokens"]) == (1, 1, 1)
    assert (total["tokens"]["total"], total["cost"]) == (None, None)
    assert not stats.days
    assert not stats.hours
