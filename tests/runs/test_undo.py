"""Undo of sessions: by the checkpoints of runs, and by their record alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gemtui.checkpoints.plan import Action
from gemtui.checkpoints.prune import remove_old_checkpoints
from gemtui.checkpoints.store import Reason, only_one, open_store
from gemtui.checkpoints.undo import open_project
from gemtui.checkpoints.usage import checkpoints_usage
from gemtui.errors import UndoError
from gemtui.paths import checkpoints_dir, config_file, gemini_home, live_dir
from gemtui.runs.undo.checkpointing import project_of
from gemtui.runs.undo.fork import fork_session
from gemtui.runs.undo.undo import Undone, checkpoint_list, sessions_with_checkpoints, undo_session
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from tests.cli.conftest import Gemtui, gemtui
from tests.extension.live_files import hook_input, process, write_live
from tests.fake_cli import INIT, OK, FakeCli, ends, uses
from tests.patience import PATIENCE
from tests.runs.reviewed import write_call
from tests.sessions import logs
from tests.sessions.stores import marker, session, uuid
from tests.terminal import Terminal

__all__ = ["gemtui"]


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    """A project with one session of two prompts, of which there are no checkpoints."""
    root = tmp_path / "proj"
    root.mkdir()
    calls = [
        write_call("c1", root / "a.txt", "one\n", "two\n"),
        write_call("c2", root / "new.txt", None, "new\n"),
        logs.call("c3", name="run_shell_command", args={"command": "rm -rf build"}),
    ]
    records = [
        logs.header(uuid(1)),
        logs.user("u1", "First.", 1),
        logs.gemini("g1", "", 2, toolCalls=[write_call("c0", root / "a.txt", "zero\n", "one\n")]),
        logs.user("u2", "Second.", 5),
        logs.gemini("g2", "", 6, toolCalls=calls),
    ]
    marker(gemini_home(), "proj", str(root))
    session(gemini_home(), uuid(1), records)
    (root / "a.txt").write_bytes(b"two\r\n")
    (root / "new.txt").write_text("new\n")
    return root


def stored() -> Summary:
    return Index(gemini_home(), cache=None).find(uuid(1))


def undo(number: int, **more: Any) -> Undone:
    return undo_session(stored(), number, chat=False, **more)


def test_without_checkpoints_the_record_counts_and_commands_that_stay_are_named(
    project: Path,
) -> None:
    planned = undo(2, dry_run=True)
    assert (project / "new.txt").exists()
    done = undo(2)
    assert planned.paths(Action.REMOVE) == done.paths(Action.REMOVE) == ["new.txt"]
    assert done.paths(Action.RESTORE) == ["a.txt"]
    assert (project / "a.txt").read_bytes() == b"one\r\n"
    assert not (project / "new.txt").exists()
    assert not done.complete
    assert "rm -rf build" in "".join(done.notes)
    assert undo(1, paths=[str(project / "a.txt")]).paths(Action.RESTORE) == ["a.txt"]
    assert (project / "a.txt").read_bytes() == b"zero\r\n"


def test_what_was_edited_since_stays_without_checkpoints_too(project: Path) -> None:
    (project / "a.txt").write_text("mine\n")
    assert [step.path for step in undo(2).kept] == [b"a.txt"]
    assert (project / "a.txt").read_text() == "mine\n"


@pytest.mark.parametrize(("number", "what"), [(3, "no prompt 3"), (0, "no prompt 0")])
def test_a_prompt_that_is_not_there_is_said(project: Path, number: int, what: str) -> None:
    with pytest.raises(UndoError, match=what):
        undo(number)


def test_while_gemini_cli_itself_works_in_the_folder_nothing_is_undone(project: Path) -> None:
    with process() as cli:
        for event, works in (("BeforeTool", True), ("Notification", True), ("AfterAgent", False)):
            write_live(live_dir(), cli.pid, hook_input(event, cwd=str(project)))
            if works:
                with pytest.raises(UndoError, match=rf"\(process {cli.pid}\): wait until"):
                    undo(2)
                assert undo(2, dry_run=True).paths(Action.REMOVE) == ["new.txt"]
        assert undo(2).paths(Action.REMOVE) == ["new.txt"]


@pytest.fixture
def run(project: Path, fake_cli: FakeCli, gemtui: Gemtui) -> Callable[..., None]:
    """Run a CLI that does these steps in the project."""

    def once(*steps: str) -> None:
        fake_cli(f"print:{INIT}", *steps, f"print:{OK}")
        done = gemtui("run", "--quiet", "hi", "-C", project)
        assert done.code == 0, done.err

    return once


def test_a_run_takes_a_checkpoint_before_its_prompt_and_after_calls_that_write(
    project: Path, run: Callable[..., None]
) -> None:
    place, _, _ = project_of(project)
    run(uses("r", "read_file", "a.txt"), ends("r"))
    with open_store(place) as store:
        assert [each.reason for each in store.checkpoints()] == [Reason.PROMPT]
        assert {change.path for _, change in store.changes()} == {b"a.txt", b"new.txt"}
        assert {change.call for _, change in store.changes()} == {None}
    run(uses("w", "write_file", "a%2etxt"), ends("w"))
    with open_store(place) as store:
        (call,) = store.calls().values()
        assert (call.tool, call.use, call.path, call.session) == ("write_file", "w", b"a.txt", "s1")
    assert {path.stat().st_mode & 0o077 for path in (place, *place.rglob("*"))} == {0}


def test_a_slow_first_checkpoint_is_said_and_waited_for(project: Path, fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    command = [sys.executable, "-m", "gemtui", "run", "hi"]
    with only_one(project_of(project)[0]):
        process = subprocess.Popen(
            command,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        said = process.stderr.readline()
    out, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, rest
    assert "taking the first checkpoint" in said
    assert "checkpoint" not in rest + out


def test_an_undo_that_takes_long_says_so_on_a_terminal(project: Path) -> None:
    words = [sys.executable, "-m", "gemtui", "undo", uuid(1), "--files"]
    with open_project(*project_of(project)) as opened:
        opened.taker.take(Reason.PROMPT, run="r", session=uuid(1))
    with ExitStack() as held:
        held.enter_context(only_one(project_of(project)[0]))
        with Terminal(words, environ=os.environ, folder=project, columns=80, rows=24) as terminal:
            terminal.shows("comparing files")
            held.close()
            terminal.shows("Undo files of session 00000001 (First.) to before prompt 2?")


def test_where_checkpoints_are_off_none_is_taken(project: Path, run: Callable[..., None]) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('checkpoints = "off"\n')
    run()
    assert not project_of(project)[0].exists()
    assert checkpoint_list(stored()) == []


def test_a_fork_has_the_checkpoints_of_its_session(project: Path) -> None:
    with open_project(*project_of(project)) as opened:
        opened.taker.take(Reason.PROMPT, run="r", session=uuid(1))
    fork = fork_session(stored(), gemini_home())
    assert fork.session_id in sessions_with_checkpoints()
    forked = Index(gemini_home(), cache=None).find(fork.session_id)
    assert checkpoint_list(forked) == checkpoint_list(stored()) != []


def test_old_checkpoints_are_removed_but_not_those_that_a_run_needs(project: Path) -> None:
    place, root, own = project_of(project)
    for number in range(6):
        (project / "big").write_bytes(os.urandom(50_000))
        with open_project(place, root, own) as opened:
            opened.taker.take(Reason.PROMPT, run=f"run {number}", session="s")
    size = checkpoints_usage(checkpoints_dir()).bytes
    assert size > 6 * 50_000

    def ids() -> list[int]:
        with open_store(place) as store:
            return [each.id for each in store.checkpoints()]

    future, past = time.time() + 10, 0.0
    remove_old_checkpoints(
        checkpoints_dir(), before=future, most_bytes=10**9, goes_on=lambda run: run == "run 2"
    )
    assert ids() == [3, 4, 5, 6]
    remove_old_checkpoints(
        checkpoints_dir(), before=past, most_bytes=200_000, goes_on=lambda run: run == "run 5"
    )
    assert ids()[-1] == 6
    assert checkpoints_usage(checkpoints_dir()).bytes <= 200_000
    freed = remove_old_checkpoints(
        checkpoints_dir(), before=future, most_bytes=1, goes_on=lambda _: False
    )
    assert freed.projects == 1
    assert not place.exists()
