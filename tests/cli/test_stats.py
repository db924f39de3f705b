"""`gemtui stats`."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import click
import orjson
import pytest

from gemtui.paths import cache_dir, config_file
from gemtui.stats.activity import ACTIVITIES
from tests.cli.conftest import Gemtui, put, values
from tests.cli.shapes import fits
from tests.sessions import logs
from tests.sessions.stores import marker, session, talk, uuid

PRICE = "input = 1\noutput = 1\ncached = 1"


@pytest.fixture(autouse=True)
def store(home: Path) -> Path:
    for number, key in ((1, "one"), (2, "two")):
        marker(home / ".gemini", key, f"/src/{key}")
        call = logs.call("c", name="evil\x1b[31m", status="error")
        records = [*talk(uuid(number)), logs.gemini("g", "", 9, toolCalls=[call])]
        session(home / ".gemini", uuid(number), records, key=key)
    return home / ".gemini"


def test_its_json(gemtui: Gemtui) -> None:
    report = gemtui.json("stats")
    fits(report, "Stats")
    assert report["totals"]["sessions"] == 2
    assert values(report["projects"], "project") == ["/src/one", "/src/two"]
    one = gemtui.json("stats --project /src/one")
    assert (one["project"], one["totals"]["sessions"]) == ("/src/one", 1)
    assert (
        one["totals"]["tokens"]["total"]
        == gemtui.json("sessions")["sessions"][0]["tokens"]["total"]
    )


def test_tokens_so_far_are_shown_while_sessions_are_read(
    gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    shown: list[str] = []
    monkeypatch.setattr(click, "echo", lambda text, **_: shown.append(text))
    gemtui("stats")
    assert shown[-1].startswith("\rreading 2 of 2 sessions, 52 tokens")


def test_numbers_are_kept_until_something_changes(
    gemtui: Gemtui, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = gemtui.json("stats")
    with monkeypatch.context() as patch:
        patch.setattr("gemtui.stats.report.Tally.add", None)
        assert gemtui.json("stats") == first
        assert gemtui.ok("stats").out.startswith("2 sessions, 2 prompts")

    def grow() -> None:
        file = next(store.glob("tmp/one/chats/*.jsonl"))
        file.write_bytes(file.read_bytes() + orjson.dumps(logs.user("u9", "more", 99)) + b"\n")

    def move() -> None:
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()

    def price() -> None:
        put(config_file().with_name("prices.toml"), f"[models.gemini-x]\n{PRICE}")

    for change in (grow, move, price, lambda: marker(store, "two", "/src/other")):
        change()
        changed = gemtui.json("stats")
        assert changed != first
        shutil.rmtree(cache_dir())
        first = gemtui.json("stats")
        assert first == changed
    with closing(sqlite3.connect(cache_dir() / ACTIVITIES.file)) as database, database:
        database.execute("update answer set answer = x'00'")
    assert gemtui.json("stats") == first
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_its_tables(gemtui: Gemtui) -> None:
    answer = gemtui("stats")
    assert answer.out.splitlines()[:3] == [
        "2 sessions, 2 prompts",
        "52 tokens: input 40, including 16 cached; output 8, thoughts 4, tools 0",
        "2 tool calls, 2 failures (2 error)",
    ]
    assert "\x1b" not in answer.out
    assert "COST" in answer.out


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("on", "no folder or project “on”: did you mean /src/one?"),
        ("elsewhere", "no folder or project “elsewhere”"),
        ("src", "no folder or project “src”"),
    ],
)
def test_a_name_that_is_no_project_is_answered_by_similar_ones(
    gemtui: Gemtui, name: str, complaint: str
) -> None:
    answer = gemtui(f"stats --project {name}")
    assert answer.code
    assert answer.complaint.strip().endswith(complaint)


def test_a_project_is_named_as_the_list_names_it(gemtui: Gemtui) -> None:
    for name in ("one", "src/one"):
        assert gemtui.json(f"stats --project {name}")["project"] == "/src/one"


def test_a_project_of_windows_is_named_by_its_path_there_or_by_the_end_of_it(
    gemtui: Gemtui, store: Path
) -> None:
    marker(store, "two", r"c:\users\ada\shop")
    for name in (r"C:\Users\Ada\Shop", "c:/users/ada/shop"):
        assert gemtui.json("stats --project", name)["totals"]["sessions"] == 1
    assert gemtui.json("stats --project Shop")["project"] == r"c:\users\ada\shop"


def test_months_and_an_end_of_the_period(gemtui: Gemtui) -> None:
    report = gemtui.json("stats")
    (month,) = values(report["months"], "month")
    assert gemtui.json(f"stats --until {month}")["totals"] == report["totals"]
    assert f"\n{month} " in gemtui("stats").out
    gemtui("stats --until 2020").fails("no sessions in this period")


def test_nothing_to_count(gemtui: Gemtui) -> None:
    gemtui("stats --since 1h").fails("no sessions in this period: give other dates")
    gemtui("files --since 1h").fails("in this period: give other dates")


def test_with_wrong_prices_numbers_are_shown_without_costs(gemtui: Gemtui) -> None:
    path = config_file().with_name("prices.toml")
    put(path, "models = 1")
    answer = gemtui("stats")
    assert (answer.code, answer.out.splitlines()[0]) == (0, "2 sessions, 2 prompts")
    assert "$" not in answer.out
    assert answer.complaint.startswith(f"gemtui: no costs are shown: {path}: ")
    assert answer.complaint.endswith(": correct or remove it")
    report = gemtui.json("stats")
    assert (report["totals"]["cost"], report["prices"]) == (None, None)
