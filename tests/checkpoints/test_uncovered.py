"""What checkpoints don't cover: that it may have changed is told, and nothing is told if it has
not.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.store import Reason, WritingCall
from gemtui.checkpoints.tree import TOO_MANY
from gemtui.checkpoints.undo import FilesUndone, UndoTarget
from tests.checkpoints.projects import Session, put, tree_of
from tests.conftest import nobody


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session in a repository with ignored files, a nested repository and special files."""
    session = Session(tmp_path)
    subprocess.run(["git", "init", "-q", session.root], check=True)
    subprocess.run(["git", "init", "-q", session.root / "nested"], check=True)
    put(session.root, b".gitignore", b".env\ncache\n")
    put(session.root, b"src/a", b"one")
    put(session.root, b".env", b"one")
    put(session.root, b"cache/deep/x", b"one")
    put(session.root, b"nested/f", b"one")
    os.mkfifo(session.root / "src/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(session.root / "socket"))
    return session


def undone(
    session: Session,
    work: Callable[[Path], object],
    *,
    shell: bool = True,
    person: Callable[[Path], object] = lambda root: None,
) -> FilesUndone:
    """The result of undoing what a call did; `person`: what the person did afterwards."""
    with session.opened() as project:
        project.taker.take(Reason.PROMPT, run="r", session="s")
    began = time.time()
    work(session.root)
    path = None if shell else b"src/a"
    call = WritingCall(run="r", session="s", use="1", tool="t", path=path, began=began)
    with session.opened() as project:
        project.taker.take(Reason.CALL, run="r", session="s", calls=lambda: [call])
    person(session.root)
    with session.opened() as project:
        return project.undo(UndoTarget(session="s", prompt=1, since=began))


def edit(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes(b"two")


@pytest.mark.parametrize(
    ("work", "note"),
    [
        (lambda root: (root / ".env").unlink(), ".env (ignored by git) has been deleted"),
        (edit(".env"), ".env (ignored by git) has been changed"),
        (edit("cache/deep/x"), "cache (ignored by git) has been changed"),
        (edit("cache/new"), "cache (ignored by git) has been changed"),
        (edit("nested/f"), "nested (a nested repository) has been changed"),
        (edit("nested/.git/config"), "nested (a nested repository) has been changed"),
        (
            lambda root: (root / "src/pipe").unlink(),
            "src/pipe (neither a file nor a link) has been deleted",
        ),
        (
            lambda root: (root / "socket").unlink(),
            "socket (neither a file nor a link) has been deleted",
        ),
        (lambda root: os.mkfifo(root / "new"), "new (neither a file nor a link) has been created"),
        (lambda root: (root / "new").mkdir(), "new (an empty folder) has been created"),
    ],
)
def test_what_a_command_changed_beside_the_checkpoints_is_named(
    session: Session, work: Callable[[Path], object], note: str
) -> None:
    done = undone(session, work)
    assert [each for each in done.notes if note in each] == [f"Not covered by checkpoints: {note}."]
    assert not done.complete


@pytest.mark.parametrize("work", [edit("src/a"), lambda root: put(root, b"new/deep/x", b"two")])
def test_an_undo_is_complete_if_nothing_else_has_changed(
    session: Session, work: Callable[[Path], object]
) -> None:
    before = tree_of(session.root)
    done = undone(session, work)
    assert (done.complete, tree_of(session.root)) == (True, before)


@pytest.mark.parametrize("folder", ["", "new/deep/"])
def test_a_file_of_the_persons_own_is_not_told_as_ignored(session: Session, folder: str) -> None:
    mine = f"{folder}mine".encode()
    done = undone(session, edit("src/a"), person=lambda root: put(root, mine, b"one"))
    assert (done.complete, done.notes) == (True, ("nested repositories are not covered",))


def test_in_a_folder_of_too_many_files_none_is_told_as_ignored(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(root: Path) -> None:
        for number in range(9):
            put(root, b"mine %d" % number, b"one")
        monkeypatch.setattr("gemtui.checkpoints.tree.MOST_FILES", 3)

    done = undone(session, edit("src/a"), person=fill)
    assert not done.complete
    assert TOO_MANY in done.notes
    assert not any("ignored by git" in note for note in done.notes)


def test_a_file_tool_s_call_can_not_have_changed_what_is_not_covered(session: Session) -> None:
    assert undone(session, edit(".env"), shell=False).complete


def test_too_many_ignored_files_may_have_changed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.checkpoints.uncovered._MOST_FILES", 1)
    done = undone(session, edit("src/a"))
    assert any("may have been changed" in each for each in done.notes)
    assert not done.complete


def test_whether_calls_before_the_first_record_changed_more_is_unknown(session: Session) -> None:
    session.prompt()
    session.call(edit("src/a"))
    with session.opened() as project:
        done = project.undo(session.target(1))
    assert "It is unknown whether commands changed" in done.notes[-1]
    assert not done.complete


def test_without_a_repository_gitignore_does_not_count(tmp_path: Path) -> None:
    session = Session(tmp_path)
    put(session.root, b".gitignore", b"*.log\n")
    put(session.root, b"a.log", b"one")
    before = tree_of(session.root)
    done = undone(session, edit("a.log"))
    assert (done.paths(Action.RESTORE), done.complete) == ([b"a.log"], True)
    assert tree_of(session.root) == before


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a folder can't be opened")
def test_a_folder_without_rights_is_told_as_that(open_folder: Path) -> None:
    with nobody():
        session = Session(open_folder)
        put(session.root, b"d/x", b"one")
        session.prompt()
        session.call(lambda root: put(root, b"d/x", b"two"))
        (session.root / "d").chmod(0o000)
        with session.opened(dry_run=True) as project:
            planned = project.undo(session.target(1))
        with session.opened() as project:
            done = project.undo(session.target(1))
        (session.root / "d").chmod(0o700)
    for each in (planned, done):
        assert [step.why for step in each.steps] == ["its folder can't be read: Permission denied"]
        assert "d/ can't be read, so changes in it are not covered" in each.notes
