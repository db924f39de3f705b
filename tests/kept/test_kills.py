"""Programs that keep or put back sessions and are killed at any moment."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gemtui.kept.vault import keep_all, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.catalog.vault_files import in_tree, replaced_trees, trees
from tests.sessions import logs
from tests.sessions.stores import append, read, session, set_time, talk, uuid

KEEP = """
from pathlib import Path
from gemtui.kept.vault import keep_all
print("ready", flush=True)
keep_all(Path({home!r}))
"""
RESTORE = """
from datetime import UTC, datetime
from pathlib import Path
from gemtui.sessions.catalog.index import Index
from gemtui.kept.cleanup import Retention
from gemtui.kept.restoring import restore_from_vault
home = Path({home!r})
index = Index(home, cache=None)
kept = [each for each in index.load(publish=lambda _: None, cancelled=lambda: False).sessions
        if "kept" in each.flags]
print("ready", flush=True)
for session in kept:
    restore_from_vault(session, home, Retention(), datetime({year}, 12, 1, tzinfo=UTC))
"""


def killed(program: str, home: Path, after: float, year: int = 2026) -> None:
    """Run a program until so many seconds after it was ready."""
    words = [sys.executable, "-c", program.format(home=str(home), year=year)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)


def held(path: Path) -> list[bytes]:
    """What the vault has of a file."""
    names = (in_tree(tree, path) for tree in trees())
    return [name.read_bytes() for name in names if name.exists()]


def left_over() -> list[Path]:
    """Temporary files in the vault."""
    return [path for path in vault_dir().rglob(".*") if path.is_file()]


@pytest.mark.parametrize("seed", range(5))
def test_keeping_that_is_killed_loses_nothing_and_is_finished_next_time(store: Path, seed: int) -> None:
    numbers = random.Random(seed)
    paths = [session(store, uuid(number)) for number in range(1, 300)]
    keep_all(store)
    before = {path: path.read_bytes() for path in paths}
    for path in paths:  # all are other files now: half go on, half began anew
        path.unlink()
        if numbers.random() < 0.5:
            path.write_bytes(before[path])
            append(path, logs.user("late", "One more"))
        else:
            logs.write(path, talk(uuid(9), "Another"))
    for _ in range(3):
        killed(KEEP, store, numbers.random() * 0.03)
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path))
    keep_all(store)
    assert all(path.read_bytes() in held(path) for path in paths)
    assert left_over() == []
    assert keep_all(store) == 0


@pytest.mark.parametrize("seed", range(3))
def test_copies_too(other_file_system: Path, tmp_path: Path, seed: int) -> None:
    turn_on()
    home, numbers = tmp_path / ".gemini", random.Random(seed)
    paths = [session(home, uuid(number)) for number in range(1, 40)]
    keep_all(home)
    before = {path: path.read_bytes() for path in paths}
    for path in paths:
        append(path, logs.user("late", "One more"))
    for _ in range(3):
        killed(KEEP, home, numbers.random() * 0.02)
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path))
    keep_all(home)
    assert all(held(path) == [path.read_bytes()] for path in paths)
    assert left_over() == []


@pytest.mark.parametrize("year", [2026, 2027])  # a year later all are too old
@pytest.mark.parametrize("seed", range(3))
def test_putting_back_that_is_killed_loses_nothing_and_can_be_done_again(store: Path, seed: int, year: int) -> None:
    numbers = random.Random(seed)
    paths = [session(store, uuid(number)) for number in range(1, 60)]
    ghosts = [
        session(store, uuid(number), [logs.header(uuid(number))], minute="2026-11-21T10-00") for number in range(1, 60)
    ]
    for path in ghosts:
        set_time(path, logs.START.timestamp())
    keep_all(store)
    before = {path: path.read_bytes() for path in (*paths, *ghosts)}
    for path in paths:
        path.unlink()
    for _ in range(3):
        killed(RESTORE, store, numbers.random() * 0.06, year)
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path))
        there = [path for path in paths if path.exists()]
        assert all(path.read_bytes().startswith(before[path]) for path in there)
        assert not any(ghosts[paths.index(path)].exists() for path in there)
    subprocess.run([sys.executable, "-c", RESTORE.format(home=str(store), year=year)], check=True)
    assert not any(Flag.KEPT in each.flags for each in read(store).sessions)
    assert all(path.exists() for path in paths)
    assert sorted(paths[0].parent.iterdir()) == paths


@pytest.mark.parametrize("year", [2026, 2027])
@pytest.mark.parametrize("seed", range(2))
def test_replacing_damaged_sessions_that_is_killed_never_leaves_the_store_without_them(
    store: Path, seed: int, year: int
) -> None:
    numbers = random.Random(seed)
    paths = [session(store, uuid(number)) for number in range(1, 40)]
    for path in paths:
        set_time(path, logs.START.timestamp())
    keep_all(store)
    before = {path: path.read_bytes() for path in paths}
    bad = {path: data.replace(b"Hello", b"Hullo") for path, data in before.items()}
    for path in paths:
        with path.open("r+b") as file:
            file.write(bad[path])
    for _ in range(3):
        killed(RESTORE, store, numbers.random() * 0.2, year)
        for path in paths:
            assert any(each.startswith(before[path]) for each in held(path))
            done = path.read_bytes().startswith(before[path])
            assert done or path.read_bytes() == bad[path]
            aside = (in_tree(tree, path) for tree in replaced_trees())
            assert not done or bad[path] in [name.read_bytes() for name in aside if name.exists()]
    subprocess.run([sys.executable, "-c", RESTORE.format(home=str(store), year=year)], check=True)
    assert not any(Flag.KEPT in each.flags for each in read(store).sessions)
    assert all(path.read_bytes().startswith(before[path]) for path in paths)
    assert sorted(paths[0].parent.iterdir()) == paths
