"""One process tree and its owner, with real children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.run_folder import KILLED, RUN_TAG, Abort, Exit, Owner, Request, RunFolder
from tests.patience import PATIENCE, until

ROOT = Path(__file__).parents[2]
CHILD = str(Path(__file__).with_name("child.py"))
Start = Callable[..., RunFolder]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the supervisor on a run of the child; whatever is left at the end is killed."""
    supervisors: list[subprocess.Popen[bytes]] = []
    ids: list[str] = []

    def begin(
        *steps: str,
        prompt: str | None = None,
        before: Callable[[], None] | None = None,
        **options: Any,
    ) -> RunFolder:
        id = f"run-{os.getpid()}-{tmp_path.name}-{len(ids)}"
        ids.append(id)
        folder = RunFolder.create(tmp_path / "runs", id)
        if prompt is not None:
            folder.write("prompt.txt", prompt)
        argv = (sys.executable, CHILD, *steps)
        base: dict[str, Any] = {"id": id, "argv": argv, "cwd": str(tmp_path), "environ": {}}
        folder.write_request(
            Request(**(base | {"stdin": prompt is not None, "grace": 0.5} | options))
        )
        command = [sys.executable, "-m", "gemtui.agent.supervise", str(folder.path)]
        supervisors.append(subprocess.Popen(command, preexec_fn=before, start_new_session=True))
        return folder

    yield begin
    for supervisor in supervisors:
        supervisor.kill()
        supervisor.wait()
    for id in ids:
        process_tree.send(process_tree.tagged(id), signal.SIGKILL)


def ended(folder: RunFolder) -> Exit:
    return until(folder.exit)


def supervisor_of(folder: RunFolder) -> int:
    owner = folder.owner()
    assert owner is not None
    return owner.pid


def written(folder: RunFolder, text: str) -> None:
    until(lambda: folder.stdout.exists() and text in folder.stdout.read_text())


@contextmanager
def gated(tmp_path: Path, gate: str, word: str, *steps: str, **options: Any) -> Iterator[RunFolder]:
    """A run of the child with one of the gates beside this file; at the end, it has ended."""
    folder = RunFolder.create(tmp_path / "runs", "run")
    argv = (sys.executable, CHILD, *steps)
    folder.write_request(Request(id="run", argv=argv, cwd=str(tmp_path), environ={}, **options))
    words = [sys.executable, "-m", f"tests.agent.{gate}", str(folder.path), word]
    with subprocess.Popen(words, cwd=ROOT, start_new_session=True):
        yield folder


def supervised(tmp_path: Path, answer: Path, **limits: Any) -> Exit:
    """A run that goes on until somebody at its slow gate has answered."""
    steps = (f"until:{tmp_path / 'answer'}", "print:done")
    with gated(tmp_path, "slow_gate", str(answer), *steps, **limits) as folder:
        return ended(folder)


def test_no_limit_runs_while_an_agent_is_kept(tmp_path: Path) -> None:
    limits = {"timeout": 0.4, "idle_timeout": 0.4}
    with gated(tmp_path, "speaking_gate", "0.6", "stdin", pipe=True, **limits) as folder:
        record = ended(folder)
    assert (record.code, record.limit, folder.stdout.read_text()) == (0, None, "hello")


def test_an_agent_that_is_kept_may_end_by_itself_when_the_run_is_ended(tmp_path: Path) -> None:
    with gated(tmp_path, "speaking_gate", "3600", "stdin", pipe=True) as folder:
        assert until(folder.kept_until) > datetime.now(UTC)
        folder.abort(Abort.TERM)
        record = ended(folder)
    assert (record.code, record.aborted, record.killed) == (0, False, False)
    assert folder.stdout.read_text() == "hello, stop"
    assert folder.kept_until() is None


def test_no_limit_runs_while_a_person_is_asked(tmp_path: Path) -> None:
    record = supervised(tmp_path, tmp_path / "answer", timeout=0.9, idle_timeout=0.9)
    assert (record.code, record.limit) == (0, None)


def test_a_gate_that_does_not_hold_ends_the_run_while_a_person_is_asked(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    record = supervised(tmp_path, broken)
    assert (record.problem, record.killed) == ("broken", True)


def test_a_run_writes_its_files_and_its_record_for_the_user_alone(start: Start) -> None:
    folder = start("print:one", "err:two", "stdin", "exit:7", prompt="three")
    record = ended(folder)
    assert (record.code, record.aborted, record.problem) == (7, False, None)
    assert folder.stdout.read_text() == "one\nthree"
    assert folder.stderr.read_text() == "two\n"
    assert record.started is not None
    assert record.ended is not None
    assert record.started <= record.ended
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}


def test_without_a_prompt_stdin_is_empty(start: Start) -> None:
    folder = start("stdin", "print:done")
    assert ended(folder).code == 0
    assert folder.stdout.read_text() == "done\n"


def test_a_command_that_is_not_there(start: Start) -> None:
    record = ended(start(argv=("/nowhere/gemini",)))
    assert (record.code, record.problem) == (None, "spawn gemini ENOENT")


def test_a_folder_that_is_not_there(start: Start) -> None:
    record = ended(start("print:x", cwd="/nowhere/at/all"))
    assert record.code is None
    assert "/nowhere/at/all" in (record.problem or "")


@pytest.mark.parametrize("by", ["file", "signal"])
def test_an_abort_ends_the_child_by_sigterm_and_removes_secrets(start: Start, by: str) -> None:
    folder = start("print:ready", "wait", secrets=("settings.json",))
    folder.write("settings.json", "{}")
    written(folder, "ready")
    if by == "file":
        folder.abort(Abort.TERM)
    else:
        os.kill(supervisor_of(folder), signal.SIGTERM)
    record = ended(folder)
    assert (record.code, record.aborted, record.killed) == (-signal.SIGTERM, True, False)
    assert not (folder.path / "settings.json").exists()


def test_signals_that_were_ignored_or_blocked_end_the_run(start: Start) -> None:
    folder = start("print:ready", "wait", before=ignore_and_block)
    written(folder, "ready")
    os.kill(supervisor_of(folder), signal.SIGTERM)
    record = ended(folder)
    assert (record.code, record.aborted, record.killed) == (-signal.SIGTERM, True, False)


def ignore_and_block() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_period(start: Start) -> None:
    folder = start("stubborn", "print:ready", "wait")
    written(folder, "ready")
    folder.abort(Abort.TERM)
    record = ended(folder)
    assert (record.code, record.aborted, record.killed) == (-signal.SIGKILL, True, True)


def test_a_second_abort_kills_at_once(start: Start) -> None:
    folder = start("stubborn", "print:ready", "wait", grace=60.0)
    written(folder, "ready")
    folder.abort(Abort.TERM)
    folder.abort(Abort.KILL)
    assert ended(folder).code == -signal.SIGKILL


def test_a_shell_child_in_a_session_of_its_own_is_ended_too(start: Start) -> None:
    folder = start("orphan", "wait")
    until(lambda: folder.stdout.exists() and folder.stdout.read_text().endswith("\n"))
    orphan = psutil.Process(int(folder.stdout.read_text()))
    assert os.getsid(orphan.pid) == orphan.pid
    folder.abort(Abort.TERM)
    ended(folder)
    assert not process_tree.is_alive(orphan)
    assert process_tree.tagged(folder.id) == set()


def test_an_orphan_that_nobody_saw_is_found_by_its_tag(start: Start, tmp_path: Path) -> None:
    folder = start("print:ready", "wait")
    written(folder, "ready")
    environ = {**os.environ, RUN_TAG: folder.id}
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    stray = subprocess.Popen(sleeper, env=environ, start_new_session=True, cwd=tmp_path)
    folder.abort(Abort.TERM)
    ended(folder)
    assert stray.wait(PATIENCE) in (-signal.SIGTERM, -signal.SIGKILL)


def test_a_background_command_ends_with_its_run(start: Start) -> None:
    folder = start("orphan", "exit:0")
    record = ended(folder)
    assert (record.code, record.aborted, record.ended_others, record.left) == (0, False, 1, ())
    assert not psutil.pid_exists(int(folder.stdout.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has child subreapers")
def test_what_the_agent_started_is_inside_its_run_whatever_it_left(start: Start) -> None:
    folder = start("orphan", "stray:polite", "wait")
    until(lambda: folder.stdout.exists() and folder.stdout.read_text().count("\n") == 2)
    owner = folder.owner()
    assert owner is not None
    assert owner.cli is not None
    orphan, stray = map(int, folder.stdout.read_text().split())
    assert RUN_TAG not in psutil.Process(stray).environ()
    assert [process_tree.is_inside(folder, pid) for pid in (owner.cli, orphan, stray)] == [True] * 3
    assert [process_tree.is_inside(folder, pid) for pid in (owner.pid, os.getpid())] == [False] * 2
    folder.abort(Abort.KILL)
    ended(folder)


def test_a_process_that_cannot_see_the_supervisor_is_inside_until_the_run_has_ended(
    tmp_path: Path,
) -> None:
    folder = RunFolder.create(tmp_path / "runs", "hidden")
    folder.write_owner(Owner(pid=os.getpid(), began=1.0, cli=1))
    assert process_tree.is_inside(folder)
    folder.finish(Exit(code=0, started=None, ended=None))
    assert not process_tree.is_inside(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists processes in /proc")
def test_a_process_that_has_another_pid_in_the_list_of_processes_is_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.create(tmp_path / "runs", "container")
    assert not process_tree.is_inside(folder)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert process_tree.is_inside(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has child subreapers")
@pytest.mark.parametrize("kind", ["polite", "stubborn"])
@pytest.mark.parametrize("by", ["itself", "abort", "death"])
def test_what_left_parent_session_and_environment_ends_with_its_run(
    start: Start, tmp_path: Path, kind: str, by: str
) -> None:
    gate = tmp_path / "gate"
    folder = start(f"stray:{kind}", f"until:{gate}", "exit:0")
    written(folder, "\n")
    stray = psutil.Process(int(folder.stdout.read_text()))
    assert stray not in process_tree.tagged(folder.id)
    if by == "abort":
        folder.abort(Abort.TERM)
    elif by == "death":
        os.kill(supervisor_of(folder), signal.SIGKILL)
    else:
        gate.touch()
    record = ended(folder)
    assert (record.left, record.aborted) == ((), by == "abort")
    assert not process_tree.is_alive(stray)


@pytest.mark.skipif(sys.platform != "linux", reason="no other system has child subreapers")
def test_no_zombie_is_left_of_what_a_run_leaves_behind(start: Start) -> None:
    folder = start("stray:polite", "wait")
    written(folder, "\n")
    stray = psutil.Process(int(folder.stdout.read_text()))
    stray.kill()
    until(lambda: not psutil.pid_exists(stray.pid))
    folder.abort(Abort.TERM)
    ended(folder)


def test_what_the_second_process_of_the_group_writes_last_is_not_lost(start: Start) -> None:
    folder = start("partner", "print:first", "exit:0", grace=10.0)
    ended(folder)
    assert folder.stdout.read_text() == "first\nthe last word\n"


def test_the_time_limit(start: Start) -> None:
    record = ended(start("fill:10", timeout=0.4))
    assert (record.limit, record.aborted) == ("timeout", False)


def test_the_idle_limit_counts_from_the_last_output(start: Start) -> None:
    record = ended(start("print:x", "wait", idle_timeout=0.3))
    assert record.limit == "idle"


def test_output_keeps_the_idle_limit_away(start: Start) -> None:
    record = ended(start("fill:10", idle_timeout=3.0, timeout=3.5))
    assert record.limit == "timeout"


def test_a_flood_and_a_long_line_are_kept_whole(start: Start) -> None:
    folder = start("flood:3000000", "line:400000", "exit:0")
    assert ended(folder).code == 0
    assert folder.stderr.stat().st_size == 3_000_000
    assert folder.stdout.stat().st_size == 400_001


def test_the_death_of_the_supervisor_ends_the_tree_at_once(start: Start) -> None:
    folder = start("orphan", "wait", secrets=("settings.json",))
    folder.write("settings.json", "{}")
    until(lambda: folder.stdout.exists() and folder.stdout.read_text().endswith("\n"))
    processes = process_tree.tagged(folder.id)
    assert len(processes) == 2
    os.kill(supervisor_of(folder), signal.SIGKILL)
    record = ended(folder)
    assert (record.code, record.problem, record.ended_others) == (None, KILLED, 2)
    assert not process_tree.alive(processes)
    assert not (folder.path / "settings.json").exists()


def test_no_guardian_is_left(start: Start) -> None:
    folder = start("print:ready", "wait")
    written(folder, "ready")
    supervisor = psutil.Process(supervisor_of(folder))
    guardian = supervisor.parent()
    assert guardian is not None
    watching = {guardian, supervisor, *supervisor.children()}
    assert len(watching) == 3
    folder.abort(Abort.TERM)
    ended(folder)
    until(lambda: not process_tree.alive(watching))


def test_a_supervisor_whose_guardian_was_killed_goes_on(start: Start, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    folder = start("print:ready", f"until:{gate}", "exit:3")
    written(folder, "ready")
    kill_guardian(folder)
    gate.touch()
    assert ended(folder).code == 3


def kill_guardian(folder: RunFolder) -> None:
    guardian = psutil.Process(supervisor_of(folder)).parent()
    assert guardian is not None
    guardian.kill()


def test_temporary_files_are_private_and_go_with_the_run(start: Start) -> None:
    folder = start("tmp:a/b", "print:ready", "wait")
    written(folder, "ready")
    place = Path(folder.stdout.read_text().split("\n")[0])
    assert (place / "a/b").exists()
    assert place.stat().st_mode & 0o777 == 0o700
    assert len(str(place)) - len(tempfile.gettempdir()) < 30
    folder.abort(Abort.TERM)
    ended(folder)
    assert not place.exists()
    assert not (folder.path / "tmp").is_symlink()


def test_the_report_of_an_error_is_kept_for_the_user_alone(start: Start) -> None:
    name = "gemini-client-error-Turn.run-sendMessageStream-1.json"
    folder = start(f"tmp:{name}", "exit:1")
    ended(folder)
    assert (folder.path / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kind", ["foreign", "open", "link"])
def test_what_stands_in_the_place_of_the_temporary_files_is_left(tmp_path: Path, kind: str) -> None:
    folder = RunFolder.create(tmp_path / "runs", "0123456789")
    place = folder.make_temporary(str(tmp_path))
    foreign = tmp_path / "foreign"
    place.rename(foreign)
    (foreign / "file").touch()
    if kind == "foreign":
        (folder.path / "tmp").unlink()
        (folder.path / "tmp").symlink_to(foreign)
    elif kind == "open":
        foreign.rename(place)
        place.chmod(0o755)
        foreign = place
    else:
        place.symlink_to(foreign)
    folder.remove_temporary()
    assert (foreign / "file").exists()
    assert not (folder.path / "tmp").is_symlink()


def test_a_folder_without_a_request(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gemtui.agent.supervise", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "not contain a run to start" in done.stderr
