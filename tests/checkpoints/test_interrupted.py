"""Undo and redo that are interrupted, partial, only previewed, or have nothing to do."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.store import folder_of
from gemtui.checkpoints.undo import FilesUndone, UndoInterrupted, interrupted_undo
from gemtui.errors import UndoError
from gemtui.interrupts import SIGNALS, Interrupted, StopRequest, signals_caught
from tests.checkpoints.projects import Session, put

NAMES = [b"a", b"b", b"c", b"d"]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session with one prompt, after which a call changed four files."""
    monkeypatch.setenv("PATH", "/nowhere")
    session = Session(tmp_path)
    for name in NAMES:
        put(session.root, name, b"one")
    session.prompt()
    session.call(rewrite)
    return session


def rewrite(root: Path) -> None:
    for name in NAMES:
        put(root, name, b"two")


def undo(session: Session, stop: StopRequest | None = None) -> FilesUndone:
    with session.opened(stop=stop) as project:
        return project.undo(session.target(1), command="gemtui undo s")


def redo(session: Session, *paths: bytes, stop: StopRequest | None = None) -> FilesUndone:
    with session.opened(stop=stop) as project:
        return project.redo(paths=paths or None, command="gemtui redo")


def contents(session: Session) -> list[bytes]:
    return [(session.root / os.fsdecode(name)).read_bytes() for name in NAMES]


def stop_after(monkeypatch: pytest.MonkeyPatch, files: int) -> StopRequest:
    """Return a request to stop that becomes due when so many files have been written."""
    stop, write, written = StopRequest(), ProjectFiles.write, list[bytes]()

    def counted(self: ProjectFiles, name: bytes, *more: object) -> None:
        write(self, name, *more)  # type: ignore[arg-type]
        written.append(name)
        if len(written) == files:
            stop.receive(signal.SIGTERM)
            stop.receive(signal.SIGTERM)

    monkeypatch.setattr(ProjectFiles, "write", counted)
    return stop


@pytest.mark.parametrize("again", [undo, redo])
def test_a_stopped_undo_says_how_far_it_came_and_the_next_command_goes_on(
    session: Session, monkeypatch: pytest.MonkeyPatch, again: Callable[[Session], FilesUndone]
) -> None:
    with pytest.raises(UndoInterrupted) as stopped:
        undo(session, stop_after(monkeypatch, 1))
    assert stopped.value.files.interrupted == (1, 3, "gemtui undo s")
    assert stopped.value.files.paths(Action.RESTORE) == [b"a"]
    assert contents(session) == [b"one", b"two", b"two", b"two"]
    found = interrupted_undo(folder_of(session.data, session.root))
    assert found is not None
    assert (found.kind, found.project, found.done, found.left, found.finish) == (
        "undo",
        session.root,
        1,
        3,
        "gemtui undo s",
    )
    done = again(session)
    assert contents(session) == [b"one" if again is undo else b"two"] * 4
    assert done.paths(Action.RESTORE) == ([b"b", b"c", b"d"] if again is undo else [b"a"])
    assert done.notes[0] == "First, an interrupted undo in this folder was completed."
    assert interrupted_undo(folder_of(session.data, session.root)) is None


def test_a_redo_after_a_stopped_redo_finishes_that_one_and_no_other(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.prompt()
    session.call(lambda root: put(root, b"a", b"three"))
    for number in (2, 1):
        with session.opened() as project:
            project.undo(session.target(number))
    with pytest.raises(UndoInterrupted):
        redo(session, stop=stop_after(monkeypatch, 2))
    assert redo(session).paths(Action.RESTORE) == [b"c", b"d"]
    assert contents(session) == [b"two"] * 4
    assert redo(session).paths(Action.RESTORE) == [b"a"]
    assert contents(session) == [b"three", b"two", b"two", b"two"]


def in_a_process(work: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_files_are_written_lets_them_be_finished(
    session: Session, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def signalled() -> int:
        write = ProjectFiles.write

        def interrupted(self: ProjectFiles, name: bytes, *more: object) -> None:
            if name == b"b":
                os.kill(os.getpid(), number)
            write(self, name, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(ProjectFiles, "write", interrupted)
        stop = StopRequest()
        with signals_caught(stop):
            undo(session, stop)
        return stop.number

    assert in_a_process(signalled) == number
    assert contents(session) == [b"one"] * 4


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_before_files_are_written_changes_nothing(session: Session, number: int) -> None:
    def signalled() -> int:
        stop = StopRequest()
        with signals_caught(stop), session.opened(stop=stop) as project:
            monkeypatched = project.taker.take

            def interrupted(*words: object, **more: object) -> object:
                os.kill(os.getpid(), number)
                return monkeypatched(*words, **more)  # type: ignore[arg-type]

            project.taker.take = interrupted  # type: ignore[method-assign, assignment]
            try:
                project.undo(session.target(1))
            except Interrupted as error:
                return error.number
        return 0

    assert in_a_process(signalled) == number
    assert contents(session) == [b"two"] * 4
    assert interrupted_undo(folder_of(session.data, session.root)) is None


def test_an_undo_that_changes_nothing_is_not_recorded(session: Session) -> None:
    undo(session)
    assert undo(session).undo is None
    assert redo(session).paths(Action.RESTORE) == NAMES
    with pytest.raises(UndoError, match="nothing to redo"):
        redo(session)


def test_what_a_redo_left_out_can_be_redone_later(session: Session) -> None:
    undo(session)
    assert redo(session, b"a").paths(Action.RESTORE) == [b"a"]
    (session.root / "b").write_bytes(b"mine")
    assert redo(session).paths(Action.KEEP) == [b"b"]
    assert contents(session) == [b"two", b"mine", b"two", b"two"]
    (session.root / "b").write_bytes(b"one")
    assert redo(session).paths(Action.RESTORE) == [b"b"]
    (session.root / "c").write_bytes(b"one")
    with pytest.raises(UndoError, match="nothing to redo"):
        redo(session)


def test_a_file_that_is_left_alone_is_in_no_older_undo_s_way(session: Session) -> None:
    session.prompt()
    session.call(lambda root: put(root, b"b", b"three"))
    with session.opened() as project:
        project.undo(session.target(2))
    undo(session)
    (session.root / "a").write_bytes(b"mine")
    assert redo(session).paths(Action.KEEP) == [b"a"]
    assert redo(session).paths(Action.RESTORE) == [b"b"]
    assert contents(session) == [b"mine", b"three", b"two", b"two"]


def everything(place: Path) -> dict[str, object]:
    """The names, contents and times of all files under a folder."""
    found = sorted(each for each in place.rglob("*") if each.is_file())
    return {str(each): (each.read_bytes(), each.stat().st_mtime_ns) for each in found}


@pytest.mark.parametrize(
    "state", ["not undone", "undone", "interrupted", "killed", "edited", "no checkpoints"]
)
def test_a_preview_writes_nothing(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    target = session.target(1)
    if state == "undone":
        undo(session)
    elif state == "interrupted":
        with pytest.raises(UndoInterrupted):
            undo(session, stop_after(monkeypatch, 1))
    elif state == "killed":
        monkeypatch.setattr(ProjectFiles, "write", lambda *_: os._exit(0))
        assert in_a_process(lambda: len(undo(session).steps)) == 0
    elif state == "edited":
        (session.root / "new").write_bytes(b"mine")
    elif state == "no checkpoints":
        session.data = tmp_path / "other"
    before = everything(tmp_path)
    with session.opened(dry_run=True) as project:
        planned = project.undo(target)
    assert everything(tmp_path) == before
    assert planned.undo is None
    count = {"undone": 0, "interrupted": 3, "no checkpoints": 0}.get(state, 4)
    assert len(planned.paths(Action.RESTORE)) == count


def test_a_preview_has_the_texts_that_are_not_stored_yet(session: Session) -> None:
    (session.root / "a").write_bytes(b"mine")
    with session.opened(dry_run=True) as project:
        planned = project.undo(session.target(1))
    assert planned.paths(Action.KEEP) == [b"a"]
    assert list(planned.contents.values()) == [b"mine"]


@pytest.mark.parametrize("inside", [None, "file"])
def test_a_folder_in_the_place_of_a_file_is_told_as_that(
    session: Session, inside: str | None
) -> None:
    (session.root / "a").unlink()
    (session.root / "a").mkdir()
    if inside is not None:
        (session.root / "a" / inside).write_bytes(b"mine")
    with session.opened(dry_run=True) as project:
        planned = project.undo(session.target(1))
    done = undo(session)
    for each in (planned, done):
        assert [(step.path, step.why) for step in each.steps if step.action is Action.KEEP] == [
            (b"a", "a folder is now in its place")
        ]
