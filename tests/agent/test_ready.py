"""A CLI that waits for its prompt, with real children: what it reads, and when it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.run_folder import Abort, ProcessId, Request, RunFolder, Waiting
from tests.agent.test_supervise import ended, supervisor_of
from tests.patience import until

Begin = Callable[..., RunFolder]
HOUR = 3600
REPEATS = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"
"""A program that says nothing before its stdin is closed."""


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start a child that repeats its stdin, and that waits for more than the first character."""
    supervisors: list[subprocess.Popen[bytes]] = []

    def begin(
        first: str = "h", *, seconds: float = HOUR, program: str = REPEATS, **more: ProcessId
    ) -> RunFolder:
        folder = RunFolder.create(tmp_path, f"ready-{os.getpid()}-{tmp_path.name}")
        argv = (sys.executable, "-c", program)
        request = Request(id=folder.id, argv=argv, cwd=str(tmp_path), environ={}, stdin=True)
        sender = more.get("sender", process_tree.this_process())
        until = time.time() + seconds
        folder.write_waiting(Waiting(request=request, first=first, sender=sender, until=until))
        command = [sys.executable, "-m", "gemtui.agent.supervise", str(folder.path)]
        supervisors.append(subprocess.Popen(command, start_new_session=True))
        return folder

    yield begin
    for supervisor in supervisors:
        supervisor.kill()
        supervisor.wait()
        process_tree.end_tagged(f"ready-{os.getpid()}-{tmp_path.name}")


def started(folder: RunFolder) -> RunFolder:
    until(lambda: (owner := folder.owner()) is not None and owner.cli is not None)
    return folder


def send(folder: RunFolder, prompt: str) -> None:
    waiting = folder.waiting()
    assert waiting is not None
    assert folder.claim()
    folder.write("prompt.txt", prompt)
    folder.write_request(replace(waiting.request, timeout=HOUR))


@pytest.mark.parametrize(
    "prompt",
    ["h", "é\n\n/x @a\n ", "\n more", "x" * 1_000_000],
    ids=["short", "lines", "a blank line first", "longer than a pipe"],
)
def test_a_prompt_arrives_whole(begin: Begin, prompt: str) -> None:
    folder = started(begin(prompt[0]))
    send(folder, prompt)
    assert ended(folder).code == 0
    assert folder.stdout.read_bytes().decode() == prompt


def test_a_cli_without_a_prompt_reads_nothing_and_leaves_no_process(begin: Begin) -> None:
    gone = subprocess.Popen(["/bin/true"])
    dead = ProcessId(pid=gone.pid, began=time.time())
    gone.wait()
    folder = begin(sender=dead)
    assert ended(folder).code is None
    assert folder.stdout.read_bytes() == b""
    assert not process_tree.tagged(folder.id)
    assert not folder.claim(), "nothing is sent to it any more"


def test_a_cli_is_ended_if_its_sender_is_killed_before_the_prompt_is_written(
    begin: Begin,
) -> None:
    sender = subprocess.Popen(["/bin/sleep", "1000"])
    id = process_tree.identify(psutil.Process(sender.pid))
    folder = started(begin(sender=id))
    assert folder.claim()
    sender.kill()
    sender.wait()
    assert ended(folder).code is None
    assert folder.stdout.read_bytes() == b""


def test_a_cli_that_waited_too_long_is_ended(begin: Begin) -> None:
    folder = begin(seconds=0)
    assert ended(folder).code is None
    assert folder.stdout.read_bytes() == b""


def test_a_cli_that_does_not_wait_is_ended(begin: Begin) -> None:
    folder = begin(program="print('hello', flush=True); input()")
    assert ended(folder).code is None
    assert not folder.claim()


def test_a_cli_is_ended_on_request(begin: Begin) -> None:
    folder = started(begin())
    folder.abort(Abort.TERM)
    assert ended(folder).aborted
    assert folder.stdout.read_bytes() == b""


def test_a_killed_supervisor_sends_no_part_of_a_prompt(begin: Begin) -> None:
    folder = started(begin())
    os.kill(supervisor_of(folder), signal.SIGKILL)
    assert ended(folder).problem is not None
    assert folder.stdout.read_bytes() == b""
    assert not folder.claim()


def test_a_folder_is_claimed_or_withdrawn_but_never_both(tmp_path: Path) -> None:
    request = Request(id="x", argv=("/bin/true",), cwd="/", environ={})
    waiting = Waiting(request=request, first="h", sender=process_tree.this_process(), until=0)
    for name, first, second in (
        ("claimed", RunFolder.claim, RunFolder.withdraw),
        ("withdrawn", RunFolder.withdraw, RunFolder.claim),
    ):
        folder = RunFolder.create(tmp_path, name)
        folder.write_waiting(waiting)
        assert first(folder)
        assert not second(folder)
