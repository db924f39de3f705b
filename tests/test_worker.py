"""Helper processes, with real ones: what they are asked, and how they end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import psutil
import pytest

from gemtui.processes import FOLDER
from gemtui.worker import ForkedCall, Worker
from tests import worker_programs
from tests.patience import PATIENCE

PROGRAMS = worker_programs.__name__
ROOT = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def _tests_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker(f"{PROGRAMS}:doubles")
    yield worker
    worker.end()


def is_gone(pid: int) -> bool:
    """Whether a process that is no child of ours ends in time."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            return bool(select.select([handle], [], [], PATIENCE)[0])
        finally:
            os.close(handle)
    return True


@pytest.mark.parametrize("size", [0, 1, 200_000, 9_000_000])
def test_messages_of_any_size_are_answered_in_order(worker: Worker, size: int) -> None:
    assert worker.ask(b"x" * size) == b"x" * size * 2
    assert [worker.ask(number) for number in range(20)] == [2 * number for number in range(20)]


def test_one_thread_sends_while_another_receives(worker: Worker) -> None:
    sent = [b"x" * 300_000] * 30

    def send() -> None:
        for message in sent:
            worker.send(message)

    sender = Thread(target=send)
    sender.start()
    assert [worker.receive(seconds=PATIENCE) for _ in sent] == [message * 2 for message in sent]
    sender.join()


def test_a_process_that_takes_too_long_can_be_killed() -> None:
    worker = Worker(f"{PROGRAMS}:sleeps")
    assert worker.ask(0, seconds=PATIENCE) is None
    with pytest.raises(TimeoutError):
        worker.ask(PATIENCE, seconds=0.01)
    worker.end()
    assert not worker.is_running()


def test_a_process_that_reads_nothing_takes_too_long_as_well(worker: Worker) -> None:
    assert worker.ask(1) == 2
    psutil.Process(worker.pid).suspend()
    with pytest.raises(TimeoutError):
        worker.ask(b"x" * 9_000_000, seconds=0.01)


def test_a_killed_process_is_an_error_for_both_directions(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(OSError):
        worker.receive()
    with pytest.raises(OSError):
        worker.send(b"x" * 9_000_000)
    worker._process.wait(PATIENCE)
    assert not worker.is_running()


@pytest.mark.parametrize(
    "function", [f"{PROGRAMS}:no_such_function", "gemtui.no_such_module:serve"]
)
def test_a_function_that_is_missing_is_a_process_that_has_ended(function: str) -> None:
    worker = Worker(function)
    with pytest.raises(OSError):
        worker.receive()
    worker.end()


def test_a_message_of_another_version_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(f"{PROGRAMS}:sends_unknown")
    monkeypatch.delattr(worker_programs, "Unknown")
    with pytest.raises(OSError):
        worker.receive()
    worker.end()


def test_without_a_program_there_is_an_error_and_no_open_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    before = psutil.Process().num_fds()
    with pytest.raises(OSError):
        Worker(f"{PROGRAMS}:doubles")
    assert psutil.Process().num_fds() == before


def test_ending_leaves_neither_a_process_nor_an_open_file() -> None:
    before = psutil.Process().num_fds()
    worker = Worker(f"{PROGRAMS}:doubles")
    pid = worker.pid
    worker.end()
    worker.end()
    assert not psutil.pid_exists(pid)
    assert psutil.Process().num_fds() == before
    with pytest.raises(OSError):
        worker.send(1)


def test_a_process_that_is_told_to_finish_receives_everything_before(tmp_path: Path) -> None:
    worker = Worker(f"{PROGRAMS}:counts")
    worker.send(str(tmp_path / "done"))
    worker.send("more")
    worker.finish()
    assert worker.receive(seconds=PATIENCE) == "written"
    assert (tmp_path / "done").read_text() == "all received"
    worker.end()


PARENT = """
import os, sys, time
from gemtui.worker import Worker
worker = Worker({function!r}, grace={grace!r})
worker.send({message!r})
print(worker.pid, flush=True)
{end}
"""


def started(function: str, *, message: object, end: str, grace: float = 0.0) -> int:
    """The id of a process that another process has started before it ended itself in some way."""
    program = PARENT.format(
        function=f"{PROGRAMS}:{function}", message=message, end=end, grace=grace
    )
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", program],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return int(done.stdout)


KILLED = "os.kill(os.getpid(), 9)"


def test_a_process_ends_with_its_parent_even_while_it_works() -> None:
    for end, grace in ((KILLED, 0.0), ("os._exit(0)", 0.0), (KILLED, 0.5)):
        assert is_gone(started("sleeps", message=10 * PATIENCE, end=end, grace=grace))


def test_a_process_whose_parent_has_ended_can_finish_within_its_grace(tmp_path: Path) -> None:
    pid = started("counts", message=str(tmp_path / "done"), end=KILLED, grace=PATIENCE)
    assert is_gone(pid)
    assert (tmp_path / "done").read_text() == "all received"


def test_a_process_that_is_left_finishes_its_work(tmp_path: Path) -> None:
    end = "worker.leave()"
    pid = started("counts", message=str(tmp_path / "done"), end=end, grace=1e9)
    try:
        while not (tmp_path / "done").exists():
            assert psutil.pid_exists(pid)
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_the_program_imports_nothing_heavy_of_its_own() -> None:
    program = "import sys; import gemtui.policy.match.pattern_process; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
    )
    bare = subprocess.run(
        [sys.executable, "-P", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {
        "asyncio",
        "msgspec",
        "multiprocessing",
        "pathlib",
        "queue",
        "selectors",
        "socket",
        "subprocess",
    }
    assert ({*done.stdout.split()} - {*bare.stdout.split()}) & heavy == set()


FORK = """
import os, sys
from gemtui.worker import ForkedCall
def work():
    print("This is for a person.", flush=True)
    {work}
fork = ForkedCall(work)
{then}
"""


def forked(work: str, then: str) -> str:
    program = FORK.format(work=work, then=then)
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    ).stdout


def test_a_copy_gives_its_result() -> None:
    assert forked("return b'x' * 1_000_000", "print(len(fork.result()))") == "1000000\n"


@pytest.mark.parametrize(
    "work", ["raise ValueError", "os._exit(1)", "os.kill(os.getpid(), 9)", "return lambda: 0"]
)
def test_a_copy_that_fails_is_an_error(work: str) -> None:
    then = "try:\n    fork.result()\nexcept OSError:\n    print('failed')"
    assert forked(work, then) == "failed\n"


def test_a_copy_whose_parent_is_gone_ends() -> None:
    pid = int(forked("return b'x' * 1_000_000", "print(fork._child, flush=True)"))
    assert is_gone(pid)


def test_without_a_copy_there_is_an_error_and_no_open_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    before = psutil.Process().num_fds()
    with pytest.raises(OSError):
        ForkedCall(int)
    assert psutil.Process().num_fds() == before
