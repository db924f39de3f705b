"""Checkpoints and undo where something goes wrong: kills, full disks, two programs at once."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from gemtui.checkpoints import store as store_module
from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.store import GONE, CheckpointStore, FileState, Reason, folder_of
from gemtui.errors import CheckpointsUnreadable
from tests.checkpoints.projects import Session, put, tree_of, wait_for_next_second
from tests.conftest import fill

STEPS = {
    "execute",
    "executemany",
    "rename",
    "unlink",
    "open",
    "write",
    "fsync",
    "fchmod",
    "symlink",
    "mkdir",
    "rmdir",
    "read",
    "stat",
    "lstat",
    "chmod",
    "_fork_exec",
    "fork_exec",
}


def at_step(number: int, act: Callable[[], object], work: Callable[[], object]) -> bool:
    """Work in a process that does `act` before its n-th step; whether there were so many."""
    pid = os.fork()
    if pid == 0:
        left = [number]

        def count(frame: FrameType, event: str, what: object) -> None:
            if event == "c_call" and getattr(what, "__name__", "") in STEPS:
                left[0] -= 1
                if left[0] == 0:
                    sys.setprofile(None)
                    act()

        try:
            sys.setprofile(count)
            with suppress(OSError):
                work()
        finally:
            os._exit(0 if left[0] > 0 else 1)
    return os.waitpid(pid, 0)[1] != 0


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def take(session: Session) -> None:
    with session.opened() as project:
        project.taker.take(Reason.MANUAL)


def told(store: CheckpointStore) -> dict[bytes, FileState]:
    """The tree as all changes together tell it."""
    found: dict[bytes, FileState] = {}
    for _, change in store.changes():
        assert found.get(change.path, GONE) == change.before
        found[change.path] = change.after
    return {path: state for path, state in found.items() if state != GONE}


@pytest.mark.deep
@pytest.mark.parametrize("git", [True, False])
def test_a_kill_during_a_checkpoint_loses_nothing_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: bool
) -> None:
    monkeypatch.setattr(store_module, "_POOR", 0)
    if not git:
        monkeypatch.setenv("PATH", "/nowhere")
    session = Session(tmp_path)
    for name in (b"a", b"b", b"d/x", b"d/y"):
        put(session.root, name, b"one")
    take(session)
    put(session.root, b"a", b"two")
    put(session.root, b"new/x", b"two")
    (session.root / "b").unlink()
    (session.root / "d").rename(session.root / "e")
    if git:
        wait_for_next_second()
    shutil.copytree(session.data, tmp_path / "as it was")
    number = 1
    while at_step(number, kill, lambda: take(session)):
        take(session)
        with session.opened() as project:
            tree = project.store.tree()
            assert told(project.store) == {name: state for name, (state, _) in tree.items()}
            assert tree.keys() == {b"a", b"new/x", b"e/x", b"e/y"}
            assert project.store.content(tree[b"a"][0].content) == b"two"
        shutil.rmtree(session.data)
        shutil.copytree(tmp_path / "as it was", session.data)
        number += 7 if git else 5
    assert number > 40
    index = list(folder_of(session.data, session.root).glob("git/index-*"))
    assert bool(index) == git


def test_a_link_that_appears_at_any_moment_of_an_undo_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    session, outside = Session(tmp_path), tmp_path / "outside"
    (outside / "e").mkdir(parents=True)
    (outside / "e/f").write_text("theirs")
    (outside / "g").write_text("theirs")
    put(session.root, b"d/e/f", b"one")
    put(session.root, b"g", b"one")
    session.prompt()
    session.call(lambda root: put(root, b"d/e/f", b"two"))
    session.call(lambda root: put(root, b"g", b"two"))
    session.call(lambda root: (root / "d/e").chmod(0o700))
    theirs = tree_of(outside)
    shutil.copytree(tmp_path, tmp_path.parent / "as it was", symlinks=True)

    def swap() -> None:
        (session.root / "d").rename(session.root / "was")
        (session.root / "d").symlink_to(outside)
        (session.root / "g").unlink()
        (session.root / "g").symlink_to(outside / "g")

    def undo() -> None:
        with session.opened() as project:
            project.undo(session.target(1))

    number = 1
    while at_step(number, swap, undo):
        assert tree_of(outside) == theirs
        for folder in (session.root, session.data):
            shutil.rmtree(folder)
            shutil.copytree(tmp_path.parent / "as it was" / folder.name, folder, symlinks=True)
        number += 9
    assert number > 40


def test_two_undos_at_once_are_done_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    session = Session(tmp_path)
    for number in range(50):
        put(session.root, b"f%d" % number, b"one")
    session.prompt()
    session.call(rewrite)
    after, pids = tree_of(session.root), list[int]()
    for work in (undo_all, undo_all, take_often):
        pids.append(os.fork())
        if pids[-1] == 0:
            code = 1
            try:
                work(session)
                code = 0
            finally:
                os._exit(code)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
    assert tree_of(session.root) == session.trees[0]
    with session.opened() as project:
        assert all(each.plan is None for each in project.store.undos())
        while any(undo.redoes is None and not undo.undone for undo in project.store.undos()):
            project.redo()
    assert tree_of(session.root) == after


def rewrite(root: Path) -> None:
    for number in range(50):
        put(root, b"f%d" % number, b"two")


def undo_all(session: Session) -> None:
    with session.opened() as project:
        project.undo(session.target(1))


def take_often(session: Session) -> None:
    for _ in range(10):
        take(session)


def test_on_a_full_disk_no_checkpoint_is_taken_and_the_next_one_is_whole(
    tmp_path: Path, other_file_system: Path
) -> None:
    session = Session(tmp_path)
    session.data = other_file_system / "data"
    put(session.root, b"f", b"one")
    session.prompt()
    put(session.root, b"f", os.urandom(20_000))
    fill(other_file_system)
    with pytest.raises((CheckpointsUnreadable, OSError), match="full"):
        take(session)
    (other_file_system / "full").unlink()
    take(session)
    with session.opened() as project:
        assert told(project.store).keys() == {b"f"}
        ((state, _),) = project.store.tree().values()
        assert project.store.content(state.content) == (session.root / "f").read_bytes()


def test_an_undo_on_a_full_disk_leaves_files_alone_and_says_so(
    tmp_path: Path, other_file_system: Path
) -> None:
    session = Session(tmp_path)
    session.root.rmdir()
    session.root = other_file_system / "project"
    session.root.mkdir()
    (session.root / ".gitignore").write_text("full\n")
    put(session.root, b"f", os.urandom(50_000))
    put(session.root, b"gone", b"one")
    session.prompt()
    session.call(lambda root: put(root, b"f", b"two"))
    session.call(lambda root: put(root, b"made", b"two"))
    fill(session.root)
    with session.opened() as project:
        done = project.undo(session.target(1))
    assert done.paths(Action.REMOVE) == [b"made"]
    ((path, why),) = [(step.path, step.why) for step in done.steps if step.action is Action.KEEP]
    assert (path, why) == (b"f", "No space left on device")
    (session.root / "full").unlink()
    now = tree_of(session.root)
    assert now.keys() == {b"./", b".gitignore", b"f", b"gone"}
    assert now[b"f"][2] == b"two"
    with session.opened() as project:
        assert project.undo(session.target(1)).paths(Action.RESTORE) == [b"f"]
    assert tree_of(session.root) == session.trees[0]


def test_a_store_whose_journal_is_a_pipe_is_said_to_be_unreadable(tmp_path: Path) -> None:
    session = Session(tmp_path)
    take(session)
    place = folder_of(session.data, session.root)
    os.mkfifo(place / "checkpoints.sqlite3-journal")
    with pytest.raises(CheckpointsUnreadable, match="journal"):
        take(session)
