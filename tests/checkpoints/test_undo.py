"""Undo of a project's files: later edits, ignored files, hostile projects, kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Set
from contextlib import closing
from pathlib import Path
from types import FrameType

import pytest

from gemtui.checkpoints import project_files
from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.store import UNKNOWN, Reason, WritingCall
from gemtui.checkpoints.take import Before
from gemtui.checkpoints.undo import RecordedChange, UndoTarget, covered_calls
from tests.checkpoints.case_blind import CaseBlind
from tests.checkpoints.projects import Session, drop, files_of, put, tree_of
from tests.conftest import nobody
from tests.deep import DEEP

TEN = b"".join(b"line %d\n" % number for number in range(10))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def undo(session: Session, number: int = 1) -> dict[Action, list[bytes]]:
    with session.opened() as project:
        done = project.undo(session.target(number))
    return {action: done.paths(action) for action in Action if done.paths(action)}


def edit(root: Path, old: bytes, new: bytes, name: str = "f") -> None:
    path = root / name
    path.write_bytes(path.read_bytes().replace(old, new))


@pytest.mark.parametrize(
    ("later", "action", "text"),
    [
        pytest.param(
            (b"line 9", b"MINE"), Action.MERGE, TEN.replace(b"line 9", b"MINE"), id="apart"
        ),
        pytest.param((b"AGENT", b"MINE"), Action.KEEP, TEN.replace(b"line 1", b"MINE"), id="same"),
        pytest.param((b"line 2", b"MINE"), Action.KEEP, None, id="adjacent"),
    ],
)
def test_later_edits_are_merged_or_left_alone(
    session: Session, later: tuple[bytes, bytes], action: Action, text: bytes | None
) -> None:
    (session.root / "f").write_bytes(TEN)
    session.prompt()
    session.call(lambda root: edit(root, b"line 1", b"AGENT"))
    edit(session.root, *later)
    now = (session.root / "f").read_bytes()
    assert undo(session) == {action: [b"f"]}
    assert (session.root / "f").read_bytes() == (text or now)


def test_edits_of_the_person_between_calls_stay(session: Session) -> None:
    (session.root / "f").write_bytes(TEN)
    session.prompt()
    session.call(lambda root: edit(root, b"line 1", b"AGENT"))
    session.person(lambda root: edit(root, b"line 5", b"MINE"))
    session.person(lambda root: put(root, b"mine", b"mine"))
    session.call(lambda root: edit(root, b"line 9", b"AGENT"))
    assert undo(session) == {Action.MERGE: [b"f"]}
    assert (session.root / "f").read_bytes() == TEN.replace(b"line 5", b"MINE")
    assert (session.root / "mine").exists()


def respell(root: Path) -> None:
    (root / "README").rename(root / "readme")
    (root / "Src").rename(root / "src")


@pytest.mark.parametrize("is_edited", [False, True])
def test_two_spellings_are_one_file_on_a_disk_that_ignores_case(
    session: Session, is_edited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_files, "os", CaseBlind("os"))
    put(session.root, b"README", b"text")
    put(session.root, b"Src/caf\xc3\xa9", b"code")
    before = files_of(session.root)
    with ProjectFiles(session.root) as files:
        assert files.spelled(b"src/cafe\xcc\x81") == b"Src/caf\xc3\xa9"
    session.prompt()
    session.call(respell)
    if is_edited:
        session.call(lambda root: put(root, b"readme", b"more"))
    undo(session)
    assert {name.lower(): file for name, file in files_of(session.root).items()} == {
        name.lower(): file for name, file in before.items()
    }


def move_and_edit(root: Path) -> None:
    (root / "a").rename(root / "b")
    edit(root, b"m", b"M", "b")


@pytest.mark.parametrize("again", ["same call", "later call"])
def test_a_moved_file_with_edits_of_the_person_stays_where_its_old_name_can_not_come_back(
    session: Session, again: str
) -> None:
    session.prompt()
    session.call(lambda root: put(root, b"a", b"agent"))
    session.person(lambda root: put(root, b"a", b"mine"))
    if again == "same call":
        session.call(move_and_edit)
    else:
        session.call(lambda root: put(root, b"b", b"mine"))
        session.call(lambda root: (root / "a").unlink())
    assert undo(session) == {Action.KEEP: [b"a", b"b"]}
    assert tree_of(session.root)[b"b"][2].lower() == b"mine"


def test_changes_are_owned_by_the_call_in_whose_time_they_fall(session: Session) -> None:
    session.prompt()
    put(session.root, b"a", b"by the person")
    began = (session.root / "a").stat().st_ctime + 1
    os.utime(session.root / "a")
    with session.opened() as project:
        calls = [
            WritingCall(run="r", session="s", use="1", tool="run_shell_command", began=began),
            WritingCall(
                run="r", session="s", use="2", tool="write_file", path=b"b", began=0, ended=None
            ),
        ]
        put(session.root, b"b", b"by the call")
        project.taker.take(Reason.CALL, run="r", session="s", calls=lambda: calls)
        owners = {change.path: change for _, change in project.store.changes()}
        names = {each.id: each.use for each in project.store.calls().values()}
    assert owners[b"a"].call is None
    assert names[owners[b"b"].call or 0] == "2"


def test_a_folder_that_a_command_moved_is_undone_but_files_no_longer_ignored_stay(
    session: Session,
) -> None:
    subprocess.run(["git", "init", "-q", session.root], check=True)
    put(session.root, b".gitignore", b"cache\n")
    put(session.root, b"src/deep/f", b"one")
    put(session.root, b"cache/f", b"mine")
    session.prompt()
    while time.time() < (session.root / "cache/f").stat().st_ctime + 0.1:
        session.root.joinpath("src/deep/f").stat()
    began = time.time()
    (session.root / "src").rename(session.root / "lib")
    put(session.root, b".gitignore", b"")
    with session.opened() as project:
        call = WritingCall(run="r", session="s", use="1", tool="run_shell_command", began=began)
        project.taker.take(Reason.CALL, run="r", session="s", calls=lambda: [call])
    undo(session)
    assert tree_of(session.root) == session.trees[0]


def test_two_calls_at_the_same_time_are_not_told_apart_as_if_sure(session: Session) -> None:
    session.prompt()
    with session.opened() as project:
        calls = [
            WritingCall(run="r", session="s", use=use, tool="run_shell_command", began=0)
            for use in "12"
        ]
        put(session.root, b"a", b"by one of them")
        project.taker.take(Reason.CALL, run="r", session="s", calls=lambda: calls)
        assert [change.sure for _, change in project.store.changes()] == [False]


def test_what_was_there_before_is_not_guessed_of_a_new_ignored_file(session: Session) -> None:
    subprocess.run(["git", "init", "-q", session.root], check=True)
    put(session.root, b".gitignore", b".env\nmade\n")
    session.prompt()
    with session.opened() as project:
        calls = [
            WritingCall(
                run="r", session="s", use=name, tool="write_file", path=name.encode(), began=9
            )
            for name in (".env", "made", "known")
        ]
        put(session.root, b".env", b"new")
        put(session.root, b"made", b"new")
        also: dict[bytes, Before] = {b".env": UNKNOWN, b"made": (0o640, b"old")}
        project.taker.take(Reason.CALL, run="r", session="s", calls=lambda: calls, also=also)
        assert covered_calls(project.store) == {"made", "known"}
    assert undo(session) == {Action.KEEP: [b".env"], Action.RESTORE: [b"made"]}
    assert tree_of(session.root)[b"made"] == ("file", 0o640, b"old")
    with session.opened() as project:
        recorded = [RecordedChange(b".env", 10.0, b"old", b"new")]
        target = UndoTarget(session="s", prompt=1, since=0, recorded=recorded)
        assert project.undo(target).paths(Action.RESTORE) == [b".env"]


HOSTILE = """
[core]
    fsmonitor = touch {mark}; false
    hooksPath = {hooks}
    pager = touch {mark}
    editor = touch {mark}
    sshCommand = touch {mark}
    gitProxy = touch {mark}
    worktree = {outside}
    excludesFile = {outside}/d/f
    attributesFile = {outside}/d/f
[include]
    path = {outside}/config
[extensions]
    worktreeConfig = true
    partialClone = origin
[remote "origin"]
    url = ext::touch {mark}
    promisor = true
[alias]
    ls-files = !touch {mark}
[trace2]
    eventTarget = {mark}
[filter "f"]
    clean = touch {mark}; cat
    smudge = touch {mark}; cat
    process = touch {mark}
[diff "f"]
    textconv = touch {mark}; cat
"""


def test_no_program_of_the_project_runs_and_its_git_stays_as_it_is(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, mark, outside = session.root, tmp_path / "mark", tmp_path / "outside"
    subprocess.run(["git", "init", "-q", root], check=True)
    put(root, b"f", b"a\r\n$Id$\n")
    subprocess.run(["git", "add", "f"], cwd=root, check=True)
    hooks = root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (hooks / "post-index-change").chmod(0o755)
    for name in ("config", "config.worktree"):
        (root / ".git" / name).write_text(HOSTILE.format(mark=mark, hooks=hooks, outside=outside))
    put(root, b".gitattributes", b"* filter=f diff=f text eol=lf ident\n")
    (outside / "d").mkdir(parents=True)
    (outside / "d/f").write_text("theirs")
    for name, value in {
        "GIT_TRACE": str(mark),
        "GIT_TRACE2_EVENT": str(mark),
        "GIT_DIR": str(outside),
        "GIT_INDEX_FILE": str(mark),
        "GIT_PAGER": f"touch {mark}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": f"touch {mark}",
        "GIT_EXEC_PATH": str(outside),
        "GIT_OBJECT_DIRECTORY": str(outside),
    }.items():
        monkeypatch.setenv(name, value)
    before = {path: path.read_bytes() for path in (root / ".git").rglob("*") if path.is_file()}
    put(root, b"d/f", b"ours")
    session.prompt()

    def attack(root: Path) -> None:
        put(root, b"f", b"changed")
        (root / "d/f").unlink()
        (root / "d").rmdir()
        (root / "d").symlink_to(outside / "d")
        put(root, b"new\n\x1b[2J", b"x")

    session.call(attack)
    undo(session)
    assert tree_of(root) == session.trees[0]
    assert (outside / "d/f").read_text() == "theirs"
    assert not mark.exists()
    assert before == {p: p.read_bytes() for p in (root / ".git").rglob("*") if p.is_file()}


def test_a_link_that_takes_a_folders_place_meanwhile_leads_nowhere(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    put(session.root, b"d/f", b"ours")
    session.prompt()
    session.call(lambda root: put(root, b"d/f", b"changed"))
    (session.root / "d").rename(session.root / "e")
    (session.root / "d").symlink_to(tmp_path / "outside")
    assert undo(session) == {Action.KEEP: [b"d/f"]}
    assert not any((tmp_path / "outside").iterdir())


def test_a_git_file_that_leads_elsewhere_is_only_read(session: Session, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", elsewhere], check=True)
    os.mkfifo(elsewhere / ".git/index")
    put(session.root, b".git", f"gitdir: {elsewhere}/.git\n".encode())
    before = sorted(elsewhere.rglob("*"))
    put(session.root, b"f", b"one")
    session.prompt()
    session.call(lambda root: put(root, b"f", b"two"))
    assert undo(session) == {Action.RESTORE: [b"f"]}
    assert sorted(elsewhere.rglob("*")) == before


def test_a_folder_that_is_not_writable_is_said_and_the_rest_is_done(open_folder: Path) -> None:
    with nobody():
        session = Session(open_folder)
        put(session.root, b"d/f", b"one")
        put(session.root, b"g", b"one")
        session.prompt()
        session.call(lambda root: put(root, b"d/f", b"two"))
        session.call(lambda root: put(root, b"g", b"two"))
        (session.root / "d").chmod(0o555)
        assert undo(session) == {Action.KEEP: [b"d/f"], Action.RESTORE: [b"g"]}
        assert (session.root / "d/f").read_bytes() == b"two"


KILLED_AT = {
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
}


KILLS_APART = 1 if DEEP else 7
"""Steps from one kill to the next."""


def dies_at(number: int, session: Session, steps: Set[str] = KILLED_AT) -> bool:
    """Undo in a process that is killed before its n-th step; whether it was."""
    pid = os.fork()
    if pid == 0:
        left = [number]

        def count(frame: FrameType, event: str, what: object) -> None:
            if event == "c_call" and getattr(what, "__name__", "") in steps:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count)
            undo(session)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def test_a_kill_at_any_step_leaves_each_file_old_or_new_and_the_next_start_ends_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    def work(root: Path) -> None:
        put(root, b"changed", b"two")
        put(root, b"made/by/it", b"two")
        (root / "removed").unlink()
        (root / "link").symlink_to("removed")
        put(root, b"folder", b"two")
        put(root, b"file/in/it", b"two")

    for name in (b"changed", b"removed", b"folder/x", b"file"):
        put(session.root, name, b"one")
    session.prompt()
    session.call(work)
    old, new = tree_of(session.root), session.trees[0]
    number, begun = 1, 0
    while dies_at(number, session):
        now = tree_of(session.root)
        spare = {name for name in now if b".gemtui-undo-" in name}
        for name in {*old, *new, *now} - spare:
            assert now.get(name) in (old.get(name), new.get(name)), (number, name)
        with session.opened():
            settled = tree_of(session.root)
        assert settled in (old, new), number
        begun += settled == new
        with session.opened() as project:
            if settled == new:
                project.redo()
        assert tree_of(session.root) == old
        number += KILLS_APART
    assert begun > 3


@pytest.mark.parametrize(("number", "left"), [(1, "f/in"), (2, "f")])
def test_a_kill_before_a_folder_is_removed_leaves_it_in_no_files_way(
    session: Session, monkeypatch: pytest.MonkeyPatch, number: int, left: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    put(session.root, b"f", b"one")
    session.prompt()
    session.call(lambda root: put(root, b"f/in/it", b"two"))
    session.call(lambda root: put(root, b"g", b"two"))
    assert dies_at(number, session, {"rmdir"})
    assert [str(each.relative_to(session.root)) for each in session.root.glob("f/**")][-1] == left
    (session.root / "g").write_bytes(b"mine")
    half_done = tree_of(session.root)
    with session.opened(dry_run=True) as project:
        planned = project.redo()
        assert tree_of(session.root) == half_done
    with session.opened() as project:
        settled = tree_of(session.root)
        done = project.redo()
    assert settled == {**session.trees[0], b"g": ("file", 0o644, b"mine")}
    assert planned.notes[0] == "First, an interrupted undo in this folder will be completed."
    assert done.notes[:2] == (
        "First, an interrupted undo in this folder was completed.",
        "That undo left g alone: has just changed",
    )
    assert [step.action for step in planned.steps] == [step.action for step in done.steps]


def nothing(root: Path) -> None:
    """What somebody does who changes nothing."""


def chmod(mode: int, name: str = "d") -> Callable[[Path], object]:
    return lambda root: (root / name).chmod(mode)


def make_again(root: Path) -> None:
    drop(root, b"d")
    put(root, b"d/x", b"new")


@pytest.mark.parametrize("git", [True, False])
@pytest.mark.parametrize(
    ("work", "mine", "mode"),
    [
        (chmod(0o777), nothing, 0o750),
        (chmod(0o000), nothing, 0o750),
        (chmod(0o2700), nothing, 0o2750),
        (chmod(0o700), chmod(0o711), 0o711),
        (lambda root: drop(root, b"d"), nothing, 0o750),
        (make_again, nothing, 0o750),
        (lambda root: put(root, b"d", b"a file"), nothing, 0o750),
    ],
    ids=["opened", "closed", "setgid", "changed since", "deleted", "made again", "a file"],
)
def test_the_modes_of_folders_are_undone_unless_somebody_changed_them_since(
    session: Session,
    monkeypatch: pytest.MonkeyPatch,
    work: Callable[[Path], object],
    mine: Callable[[Path], object],
    mode: int,
    git: bool,
) -> None:
    if not git:
        monkeypatch.setenv("PATH", "/nowhere")
    put(session.root, b"d/x", b"one")
    (session.root / "d").chmod(0o750)
    session.prompt()
    session.call(work)
    session.person(mine)
    before, place = tree_of(session.root), session.root / "d"
    with session.opened() as project:
        done = project.undo(session.target(1))
    assert place.stat().st_mode & 0o7777 == mode
    assert (place / "x").read_bytes() == b"one"
    assert not done.paths(Action.KEEP)
    if done.undo is not None:
        with session.opened() as project:
            project.redo()
    assert tree_of(session.root) == before


def test_a_store_without_folders_learns_their_modes_with_its_next_checkpoint(
    session: Session,
) -> None:
    put(session.root, b"d/x", b"one")
    session.prompt()
    with closing(sqlite3.connect(next(session.data.rglob("*.sqlite3")))) as database:
        database.executescript("drop table folder; drop table folder_change")
    session.prompt()
    session.call(chmod(0o700))
    with session.opened() as project:
        done = project.undo(session.target(1))
    assert done.paths(Action.RESTORE) == [b"d/"]
    assert tree_of(session.root) == session.trees[0]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such a folder can't be opened")
def test_files_in_a_folder_that_was_closed_to_its_owner_are_undone(open_folder: Path) -> None:
    with nobody():
        session = Session(open_folder)
        put(session.root, b"d/x", b"one")
        session.prompt()
        session.call(lambda root: put(root, b"d/x", b"two"))
        session.call(chmod(0o000))
        assert undo(session) == {Action.RESTORE: [b"d/", b"d/x"]}
        assert tree_of(session.root) == session.trees[0]
        with session.opened() as project:
            project.redo()
        assert (session.root / "d").stat().st_mode & 0o777 == 0
        (session.root / "d").chmod(0o700)
        assert (session.root / "d/x").read_bytes() == b"two"
