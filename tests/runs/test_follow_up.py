"""Prompts that wait behind runs that have ended: each is sent once, and none is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.agent.folder_options import from_dict, to_dict
from gemtui.agent.options import AgentOptions
from gemtui.agent.prompt_queue import PromptQueue, hand_on, send_next, settle, went_on
from gemtui.agent.run_folder import Exit, Request, RunFolder
from gemtui.errors import OptionError
from gemtui.policy.file.levels import Level, PermissionPolicy

KILLED = """
import asyncio, os, signal, sys, threading
from pathlib import Path
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.prompt_queue import send_next
from tests.runs.test_follow_up import begun

def child(run, step):
    calls = 0

    def count(frame, event, called):
        nonlocal calls
        if event == "c_call" and called in (os.replace, os.open, os.mkdir, os.close):
            calls += 1
            if calls == step:
                os.kill(os.getpid(), signal.SIGKILL)

    async def begin(text, id):
        return begun(run.path.parent, id, text)

    sys.setprofile(count)
    threading.setprofile(count)
    asyncio.run(send_next(run, begin))
    os._exit(0)

killed, step = True, 0
while killed:
    step += 1
    run = begun(Path(sys.argv[1]) / str(step), "first", "go")
    for text in ("a", "b"):
        PromptQueue.of(run).add_prompt(text)
    if (pid := os.fork()) == 0:
        child(run, step)
    killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
"""
"""Sends the next prompt, killed before each of its calls of the system in turn, then not killed."""


def begun(runs: Path, id: str, text: str) -> RunFolder:
    """A run as a start leaves it."""
    folder = RunFolder.create(runs, id)
    folder.write("prompt.txt", text)
    folder.write_request(Request(id=id, argv=("/bin/true",), cwd="/", environ={}))
    now = datetime.now(UTC)
    folder.finish(Exit(code=0, started=now, ended=now))
    return folder


def texts(run: RunFolder) -> list[str]:
    return [each.text for each in PromptQueue.of(run).prompts()]


class Begins:
    """Starts the run that follows on another, and keeps its prompt."""

    def __init__(self, run: RunFolder) -> None:
        self._runs = run.path.parent
        self.texts: list[str] = []

    async def __call__(self, text: str, id: str) -> RunFolder:
        self.texts.append(text)
        await asyncio.sleep(0)
        return begun(self._runs, id, text)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return begun(tmp_path / "runs", "first", "go")


async def test_the_rest_waits_behind_the_run_that_goes_on(run: RunFolder) -> None:
    queue = PromptQueue.of(run)
    for text in "abc":
        last = queue.add_prompt(text)
    queue.keep_options({"model": "x"})
    queue.move(last.id, 0)
    begin = Begins(run)
    before: RunFolder | None = run
    for left in (["a", "b"], ["b"], []):
        assert before is not None
        following = await send_next(before, begin)
        assert following is not None
        assert (texts(before), texts(following)) == ([], left)
        assert went_on(before) == following
        before = following
    assert before is not None
    assert await send_next(before, begin) is None
    assert begin.texts == ["c", "a", "b"]
    assert went_on(run) == before
    queue.add_prompt("late")
    settle(run)
    assert texts(before) == ["late"]
    assert PromptQueue.of(before).options() == {"model": "x"}


async def test_what_does_not_begin_waits_as_before(run: RunFolder) -> None:
    queue = PromptQueue.of(run)
    first, second = queue.add_prompt("a"), queue.add_prompt("b")

    async def fails(_text: str, _id: str) -> RunFolder | None:
        raise OptionError("no")

    async def refuses(_text: str, _id: str) -> RunFolder | None:
        return None

    for prompt in (None, second.id):
        with pytest.raises(OptionError):
            await send_next(run, fails, prompt=prompt)
        assert await send_next(run, refuses, prompt=prompt) is None
        assert queue.prompts() == [first, second]
    assert await send_next(run, refuses, prompt="00000000") is None


async def test_of_two_one_sends(run: RunFolder) -> None:
    queue = PromptQueue.of(run)
    for n in range(3):
        queue.add_prompt(str(n))
    begin = Begins(run)
    found = await asyncio.gather(*(send_next(run, begin) for _ in range(4)))
    assert begin.texts == ["0"]
    (sent,) = filter(None, found)
    assert texts(sent) == ["1", "2"]


async def test_words_that_did_not_arrive_are_sent_first(run: RunFolder) -> None:
    PromptQueue.of(run).add_prompt("then")
    PromptQueue.of(run).send_message("faster")
    following = await send_next(run, Begins(run))
    assert following is not None
    assert following.prompt_text() == "faster"
    assert texts(following) == ["then"]


def test_killed_at_any_step_a_prompt_is_neither_lost_nor_sent_twice(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, check=True)
    counts = []
    for runs in tmp_path.iterdir():
        for request in runs.glob("*/request.json"):
            os.utime(request, (0, 0))  # as if all of it were long ago
        run = RunFolder(runs / "first")
        settle(run)
        others = [RunFolder(each) for each in runs.iterdir() if each != run.path]
        sent = [each.prompt_text() for each in others if each.exit() is not None]
        waits = [text for each in (run, *others) for text in texts(each)]
        assert [*sent, *waits] == ["a", "b"], runs
        counts.append(len(sent))
    assert set(counts) == {0, 1}
    assert len(counts) > 20


def test_a_prompt_typed_meanwhile_goes_before_what_waits(run: RunFolder) -> None:
    queue = PromptQueue.of(run)
    queue.add_prompt("a")
    other = begun(run.path.parent, "typed", "typed")
    hand_on(run, other)
    assert (texts(run), texts(other)) == ([], ["a"])


def test_options_come_back_as_they_were(tmp_path: Path) -> None:
    options = AgentOptions(
        cwd=tmp_path,
        model="m",
        approval_mode="yolo",
        permissions=PermissionPolicy(shell_execute=Level.DENY),
        only_tools=("glob",),
        policies=(tmp_path / "\udcff.toml",),
        timeout=1.5,
        trust=True,
        ask=True,
    )
    assert from_dict(to_dict(options), cwd=tmp_path, resume="s1") == replace(options, resume="s1")
    for wrong in ({"permissions": {"x": 1}}, {"permissions": 5}, {"timeout": "soon"}):
        with pytest.raises(OptionError):
            from_dict(wrong, cwd=tmp_path, resume="s1")
