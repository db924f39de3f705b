"""Sums that are kept: the same numbers as a fresh count, whatever has changed since."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.stats.kept import KeptStats
from gemtui.stats.prices import load_prices
from tests.sessions import logs
from tests.sessions.stores import append, marker, read, session, talk, uuid

PRICES = load_prices()
CHANGES = ("grow", "add", "delete", "copy", "help", "move")


def counted(home: Path, cache: Path | None) -> tuple[dict[str, Any], int]:
    """The statistics of a store, and how many of its sessions were counted for them."""
    sessions = counted_sessions(read(home).sessions, None)
    sums = KeptStats(home, cache, sessions, PRICES, since=logs.START)
    number = len(list(sums.count()))
    return sums.stats().to_dict(), number


def change(home: Path, kind: str, number: int) -> None:
    """Change one session of a store, or the folder of its project."""
    key = f"p{number % 3}"
    path = session(home, uuid(number), key=key) if kind == "add" else None
    path = path or home / f"tmp/{key}/chats/session-2026-11-20T23-04-{uuid(number)[:8]}.jsonl"
    match kind:
        case "grow" if path.exists():
            call = logs.call(
                f"c{number}", name="write_file", args={"file_path": f"{number % 4}.py"}
            )
            answer = logs.gemini("more", "Yes", 90_000, model=f"m{number}", toolCalls=[call])
            append(path, logs.user("again", "And?", 86_400), answer)
        case "delete":
            path.unlink(missing_ok=True)
        case "copy" if path.exists():
            session(home, uuid(number), talk(uuid(number), turns=2), key="copies")
        case "help":
            below = home / f"tmp/{key}/chats/{uuid(number)}/helper{number}.jsonl"
            logs.write(below, [logs.header(f"h{number}", kind="subagent"), *talk("h")[1:]])
        case "move":
            marker(home, key, f"/src/{number}")


@settings(max_examples=8)
@given(some.lists(some.tuples(some.sampled_from(CHANGES), some.integers(0, 8)), max_size=6))
def test_kept_sums_are_those_of_a_fresh_count(changes: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        home, cache = Path(folder, "home"), Path(folder, "cache")
        for number in range(6):
            change(home, "add", number)
        for kind, number in [("add", 0), *changes]:
            change(home, kind, number)
            assert counted(home, cache)[0] == counted(home, None)[0]


def test_only_the_part_that_changed_is_counted_again(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    for number in range(40):
        change(home, "add", number)
    assert counted(home, cache)[1] == 40
    assert counted(home, cache)[1] == 0
    change(home, "grow", 7)
    assert 1 <= counted(home, cache)[1] < 20


def test_sums_over_a_session_that_can_not_be_read_are_not_kept(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    for number in range(3):
        change(home, "add", number)
    sessions = counted_sessions(read(home).sessions, None)
    shutil.move(sessions[0].path, tmp_path / "away")
    sums = KeptStats(home, cache, sessions, PRICES, since=None)
    assert [*sums.count()] == [1, 2, 3]
    assert len(sums.problems) == 1
    assert sums.stats().total.sessions == 2
    shutil.move(tmp_path / "away", sessions[0].path)
    again = KeptStats(home, cache, sessions, PRICES, since=None)
    assert [*again.count()][-1] == 3
    assert again.stats().total.sessions == 3
