"""Programs that keep or put back sessions, killed before each of their steps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemtui.kept.vault import keep_all, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.catalog.vault_files import COPIES, in_tree, replaced_trees
from tests.deep import DEEP
from tests.kept.test_keeping import kept as held
from tests.kept.test_keeping import linked
from tests.sessions import logs
from tests.sessions.stores import append, read, session, set_time, talk, uuid

pytestmark = pytest.mark.deep

MANY = 40 if DEEP else 6
"""How many sessions are kept or put back."""
WORKER = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from gemtui.kept.cleanup import Retention
from gemtui.kept.restoring import restore_from_vault
from gemtui.kept.vault import keep_all
from gemtui.sessions.catalog.index import Index

home, work, year = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.fsync = abs  # a step that waits for no disk
STEPS = (os.link, os.rename, os.replace, os.unlink, os.mkdir, os.utime, os.fsync)

def restore(sessions):
    for session in sessions:
        if "kept" in session.flags:
            restore_from_vault(session, home, Retention(), datetime(year, 12, 1, tzinfo=UTC))

def child(last):
    steps = 0

    def step(frame, event, called):
        nonlocal steps
        if event == "c_call" and (called in STEPS or called.__name__ == "write"):
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)

    if work == "restore":
        index = Index(home, cache=None)
        sessions = index.load(publish=lambda _: None, cancelled=lambda: False).sessions
    sys.setprofile(step)
    keep_all(home) if work == "keep" else restore(sessions)
    os._exit(0)

for line in sys.stdin:
    if (pid := os.fork()) == 0:
        child(int(line))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def killed_at_each_step(home: Path, work: str, year: int = 2026) -> Iterator[int]:
    """Kill the work at its first step, then at later ones, until it is done; yield each time.

    Each kill may leave another name of a copy, and looking at that is one more step.
    """
    words = [sys.executable, "-c", WORKER, str(home), work, str(year)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        step, code = 1, -9
        while code != 0:
            process.stdin.write(f"{step}\n")
            process.stdin.flush()
            code = int(process.stdout.readline())
            assert code in (0, -9)
            yield step
            step += 1 + step // 6


def left_over() -> list[Path]:
    """Temporary files in the vault."""
    return [path for path in vault_dir().rglob(".*") if path.is_file()]


def test_keeping_that_is_killed_loses_nothing_and_is_finished_next_time(store: Path) -> None:
    paths = [session(store, uuid(number)) for number in range(MANY)]
    keep_all(store)
    before = {path: path.read_bytes() for path in paths}
    for number, path in enumerate(paths):  # all are other files now: half go on, half began anew
        path.unlink()
        if number % 2:
            path.write_bytes(before[path])
            append(path, logs.user("late", "One more"))
        else:
            logs.write(path, talk(uuid(99), "Another"))
    for step in killed_at_each_step(store, "keep"):
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path)), step
    assert step > MANY
    assert all(path.read_bytes() in held(path) for path in paths)
    assert keep_all(store) == 0
    assert left_over() == []


def test_copying_that_is_killed_loses_nothing_either(
    other_file_system: Path, tmp_path: Path
) -> None:
    turn_on()
    home = tmp_path / ".gemini"
    paths = [session(home, uuid(number)) for number in range(MANY)]
    keep_all(home)
    before = {path: path.read_bytes() for path in paths}
    for path in paths:
        append(path, logs.user("late", "One more"))
    for step in killed_at_each_step(home, "keep"):
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path)), step
    keep_all(home)
    assert all(held(path) == [path.read_bytes()] for path in paths)
    assert left_over() == []


def test_taking_over_links_that_is_killed_loses_nothing(store: Path) -> None:
    paths = [session(store, uuid(number)) for number in range(MANY)]
    keep_all(store)
    for number, path in enumerate(paths):
        linked(path)
        if number % 3 == 0:
            in_tree(vault_dir() / COPIES, path).unlink()
        append(path, logs.user("late", "One more"))
    before = {path: path.read_bytes() for path in paths}
    for path in paths[::2]:
        path.unlink()
    for step in killed_at_each_step(store, "keep"):
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path)), step
    assert step > MANY
    assert all(held(path) == [before[path]] for path in paths)
    assert keep_all(store) == 0
    assert left_over() == []


@pytest.mark.parametrize("year", [2026, 2027])  # a year later all are too old
def test_putting_back_that_is_killed_loses_nothing_and_can_be_done_again(
    store: Path, year: int
) -> None:
    paths = [session(store, uuid(number)) for number in range(MANY)]
    ghosts = [
        session(store, uuid(number), [logs.header(uuid(number))], minute="2026-11-21T10-00")
        for number in range(MANY)
    ]
    for path in ghosts:
        set_time(path, logs.START.timestamp())
    keep_all(store)
    before = {path: path.read_bytes() for path in (*paths, *ghosts)}
    for path in paths:
        path.unlink()
    for step in killed_at_each_step(store, "restore", year):
        for path, data in before.items():
            assert any(each.startswith(data) for each in held(path)), step
        there = [path for path in paths if path.exists()]
        assert all(path.read_bytes().startswith(before[path]) for path in there)
        assert not any(ghosts[paths.index(path)].exists() for path in there)
    assert step > MANY
    assert not any(Flag.KEPT in each.flags for each in read(store).sessions)
    assert sorted(paths[0].parent.iterdir()) == paths


@pytest.mark.parametrize("year", [2026, 2027])
def test_replacing_damaged_sessions_that_is_killed_never_leaves_the_store_without_them(
    store: Path, year: int
) -> None:
    paths = [session(store, uuid(number)) for number in range(MANY)]
    for path in paths:
        set_time(path, logs.START.timestamp())
    keep_all(store)
    before = {path: path.read_bytes() for path in paths}
    bad = {path: data.replace(b"Hello", b"Hullo") for path, data in before.items()}
    for path in paths:
        with path.open("r+b") as file:
            file.write(bad[path])
    for step in killed_at_each_step(store, "restore", year):
        for path in paths:
            assert any(each.startswith(before[path]) for each in held(path)), step
            done = path.read_bytes().startswith(before[path])
            assert done or path.read_bytes() == bad[path]
            aside = (in_tree(tree, path) for tree in replaced_trees())
            assert not done or bad[path] in [name.read_bytes() for name in aside if name.exists()]
    assert step > MANY
    assert not any(Flag.KEPT in each.flags for each in read(store).sessions)
    assert all(path.read_bytes().startswith(before[path]) for path in paths)
    assert sorted(paths[0].parent.iterdir()) == paths
