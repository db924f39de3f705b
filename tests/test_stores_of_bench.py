"""The benchmarks' stores: the same seed, the same bytes; they hold what is hard to read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.sessions.catalog.summary import Flag
from tests.sessions import stores
from tests.tools.bench.make_store import make_store
from tests.tools.bench.used_store import make_used_store


def digest(home: Path) -> str:
    made = hashlib.sha256()
    for path in sorted(home.rglob("*")):
        if path.is_file():
            made.update(str(path.relative_to(home)).encode() + path.read_bytes())
        if path.name.startswith("session"):
            made.update(str(path.stat().st_mtime_ns).encode())
    return made.hexdigest()


@pytest.mark.parametrize("make", [make_store, make_used_store])
def test_the_same_seed_makes_the_same_store(
    tmp_path: Path, make: Callable[[Path, int], int]
) -> None:
    made = [tmp_path / name for name in ("one", "two", "other")]
    sizes = [make(home, count) for home, count in zip(made, (30, 30, 29), strict=True)]
    one, two, other = map(digest, made)
    assert sizes[0] == sizes[1]
    assert one == two != other


def test_a_used_store_has_what_is_hard_to_read(tmp_path: Path) -> None:
    make_used_store(tmp_path, 200)
    sessions = stores.read(tmp_path / ".gemini").sessions
    assert {each.format for each in sessions} == {"json", "jsonl"}
    assert {each.kind.value for each in sessions} == {"main", "subagent"}
    assert any(each.copies for each in sessions)
    assert any(Flag.TORN in each.flags for each in sessions)
    assert any(Flag.BURIED in each.flags for each in sessions)
    logs = [each.path.read_bytes() for each in sessions]
    assert any(b'"$rewindTo"' in log for log in logs)
    assert max(each.size for each in sessions) > 1_000_000 > 5_000 > min(map(len, logs))
