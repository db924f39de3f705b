"""Runs as their folders tell: states, ends, sizes, and the bound on what they take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.approval import Approval, ApprovalRequest, GateFolder
from gemtui.agent.events import DoneStatus
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import RUN_TAG, About, Exit, Limit, Owner, Request, RunFolder
from gemtui.agents import Agent
from gemtui.runs.disk_usage import runs_usage
from gemtui.runs.ending import RunState
from gemtui.runs.listing import (
    agents_used,
    asking_words,
    broken_runs,
    clear_runs,
    find_run,
    list_runs,
    prune_runs,
)
from tests.rows import table

INIT = '{"type":"init","session_id":"s1","model":"auto"}\n'
SAID = '{"type":"message","role":"assistant","content":"Yes.","delta":true}\n'
OK = '{"type":"result","status":"success","stats":{}}\n'
BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def add_run(
    place: Path,
    id: str,
    output: str = INIT + SAID + OK,
    *,
    age: int = 0,
    ended: Exit | None = None,
    cwd: str = "/work",
    agent: Agent = Agent.GEMINI,
) -> RunFolder:
    """A run that began `age` minutes before BEGAN and ended well, unless `ended` says else."""
    folder = RunFolder.create(place, id)
    about: About = {"prompt": "\n Do it. \nPlease.", "model": "pro", "agent": agent}
    folder.write_request(Request(id=id, argv=("gemini",), cwd=cwd, environ={}, about=about))
    folder.stdout.write_text(output)
    began = BEGAN - timedelta(minutes=age)
    folder.finish(ended or Exit(code=0, started=began, ended=began + timedelta(seconds=9)))
    return folder


def unended(place: Path, id: str, owner: Owner | None) -> RunFolder:
    folder = add_run(place, id, INIT)
    (folder.path / "exit.json").unlink()
    if owner is not None:
        folder.write_owner(owner)
    return folder


@pytest.fixture
def someone() -> Iterator[Owner]:
    """A process that lives as long as the test."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield Owner(pid=process.pid, began=psutil.Process(process.pid).create_time())
    process.communicate()


def test_the_agent_used_last_is_that_of_the_newest_run(tmp_path: Path) -> None:
    for number, agent in enumerate([Agent.GEMINI, Agent.CLAUDE, Agent.QWEN, Agent.CLAUDE]):
        request = add_run(tmp_path, f"run{number}", agent=agent).path / "request.json"
        os.utime(request, (number, number))
    assert agents_used(tmp_path) == (Agent.CLAUDE, Agent.QWEN, Agent.GEMINI)


def test_questions_count_for_the_size_of_a_run(tmp_path: Path) -> None:
    gate = GateFolder.of(add_run(tmp_path, "one"))
    (before,) = list_runs(tmp_path)
    gate.create()
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={"content": "x" * 5000}, number=1))
    (run,) = list_runs(tmp_path)
    assert 5000 < run.size - before.size < 6000


def test_the_latest_run_is_that_of_the_same_folder_as_the_latest_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    runs = tmp_path / "runs"
    add_run(runs, "elsewhere", cwd=str(tmp_path))
    assert find_run(runs, "latest").id == "elsewhere", "a folder without runs means all"
    for age, id in enumerate(("newest", "older"), start=1):
        add_run(runs, id, age=age, cwd=str(here))
    assert find_run(runs, " latest").id == "newest"


def test_a_run_that_waits_for_an_answer_is_told(tmp_path: Path, someone: Owner) -> None:
    gate = GateFolder.of(unended(tmp_path, "one", someone))
    gate.create()
    assert asking_words(tmp_path) is None
    gate.ask(ApprovalRequest(tool_name="write_file", arguments={}, number=1))
    assert asking_words(tmp_path) == "a run is waiting for your answer: see gemtui runs questions"
    gate.answer(1, Approval.deny())
    assert asking_words(tmp_path) is None


def test_what_a_folder_tells(tmp_path: Path) -> None:
    folder = add_run(tmp_path, "one")
    (run,) = list_runs(tmp_path)
    assert (run.id, run.state, run.status, run.complete) == (
        "one",
        RunState.ENDED,
        DoneStatus.SUCCESS,
        True,
    )
    assert (run.prompt, run.model, run.cwd, run.session) == ("Do it.", "pro", "/work", "s1")
    assert run.size == sum(path.stat().st_size for path in folder.path.iterdir())
    assert run.to_dict()["ended"] == "2026-01-02T03:04:14.000Z"


def test_a_run_of_another_agent_is_told_by_what_that_agent_prints(
    tmp_path: Path, someone: Owner
) -> None:
    began = '{"type":"system","subtype":"init","session_id":"s2","model":"m"}\n'
    done = '{"type":"result","subtype":"success","is_error":false,"result":"A"}\n'
    folder = add_run(tmp_path, "one", began + SAID + done, agent=Agent.CLAUDE)
    (run,) = list_runs(tmp_path)
    assert (run.agent, run.session, run.word, run.complete) == (Agent.CLAUDE, "s2", "done", True)
    (folder.path / "exit.json").unlink()
    folder.write_owner(someone)
    folder.keep_until(BEGAN.timestamp())
    (run,) = list_runs(tmp_path)
    assert (run.word, run.to_dict()["kept_until"]) == ("waits", "2026-01-02T03:04:05.000Z")
    folder.keep_until(1e300)
    assert [run.word for run in list_runs(tmp_path)] == ["running"]


LINES = {
    "init": INIT,
    "ok": OK,
    "long": '{"a":"' + "x" * 70_000 + '"}\n',
    "longer": "x" * 300_000 + "\n",
}


def exit_of(data: dict[str, Any]) -> Exit:
    """How a run of the table ended."""
    limit = Limit(data["limit"]) if "limit" in data else None
    return Exit(**{"started": BEGAN, "ended": BEGAN, **data, "limit": limit})


@pytest.mark.parametrize(
    ("output", "ended", "status", "complete"), table("runs/listing.json", exit_of)
)
def test_how_a_run_ended(
    tmp_path: Path, output: str, ended: Exit | None, status: str, complete: bool
) -> None:
    add_run(tmp_path, "one", "".join(LINES[name] for name in output.split()), ended=ended)
    (run,) = list_runs(tmp_path)
    assert (run.status, run.complete) == (status, complete)


def test_running_starting_and_lost(tmp_path: Path, someone: Owner) -> None:
    unended(tmp_path, "running", someone)
    unended(tmp_path, "starting", None)
    unended(tmp_path, "other", Owner(pid=someone.pid, began=someone.began - 1000))
    old = unended(tmp_path, "never", None)
    long_ago = BEGAN.timestamp()
    os.utime(old.path / "request.json", (long_ago, long_ago))
    states = {run.id: run.state for run in list_runs(tmp_path)}
    assert states == {
        "running": RunState.RUNNING,
        "starting": RunState.RUNNING,
        "other": RunState.LOST,
        "never": RunState.LOST,
    }


def test_newest_first_and_what_is_no_run_is_passed_over(tmp_path: Path) -> None:
    add_run(tmp_path, "old", age=2)
    add_run(tmp_path, "new")
    add_run(tmp_path, "mid", age=1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "old")
    broken = RunFolder.create(tmp_path, "broken")
    (broken.path / "request.json").write_text('{"argv": [')
    assert [run.id for run in list_runs(tmp_path)] == ["new", "mid", "old"]
    assert list_runs(tmp_path / "nowhere") == ()


def abandoned(place: Path, id: str) -> RunFolder:
    """What a start has left that broke off an hour ago, before it had asked for anything."""
    folder = RunFolder.create(place, id)
    for path in (folder.write("prompt.txt", "Do it."), folder.write("settings.json", "{}")):
        os.utime(path, (time.time() - 3600,) * 2)
    return folder


def test_what_a_start_has_left_is_named_its_secrets_go_and_it_is_cleared(tmp_path: Path) -> None:
    folder, young = abandoned(tmp_path, str(uuid4())), abandoned(tmp_path, str(uuid4()))
    young.write("prompt.txt", "Just now.")
    stranger = abandoned(tmp_path, "notes")
    prune_runs(tmp_path)
    assert broken_runs(tmp_path) in ((folder.path, stranger.path), (stranger.path, folder.path))
    assert not (folder.path / "settings.json").exists()
    assert (young.path / "settings.json").exists()
    assert (stranger.path / "settings.json").exists()
    assert clear_runs(tmp_path) == 1
    assert set(tmp_path.iterdir()) == {young.path, stranger.path}


def test_what_a_start_has_left_stays_while_something_of_it_goes_on(tmp_path: Path) -> None:
    folder = abandoned(tmp_path, str(uuid4()))
    environ = {**os.environ, RUN_TAG: folder.id}
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert clear_runs(tmp_path) == prune_runs(tmp_path) == 0
        assert (folder.path / "settings.json").exists()
        process.communicate()
    assert clear_runs(tmp_path) == 1


async def test_a_run_is_not_lost_before_its_supervisor_has_said_who_it_is(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "new")
    folder.write_request(Request(id="new", argv=("/bin/true",), cwd="/", environ={}))
    run = UnguardedAdapter(runs=tmp_path).attach(folder)
    assert run is not None
    assert run.supervised()
    with subprocess.Popen([sys.executable, "-m", "gemtui.agent.supervise", str(folder.path)]):
        ended = await run.wait()
    assert (ended.code, ended.problem) == (0, None)
    (folder.path / "exit.json").unlink()
    (folder.path / "supervisor.json").unlink()
    os.utime(folder.path / "request.json", (0, 0))
    assert not run.supervised()


def test_the_oldest_ended_runs_go(tmp_path: Path, someone: Owner) -> None:
    for age in range(5):
        add_run(tmp_path, str(age), age=age)
    unended(tmp_path, "running", someone)
    assert prune_runs(tmp_path, runs=3) == 3
    assert {run.id for run in list_runs(tmp_path)} == {"running", "0", "1"}
    assert prune_runs(tmp_path, size=1) == 2
    assert [run.id for run in list_runs(tmp_path)] == ["running"]


def test_a_large_old_run_goes_and_small_ones_stay(tmp_path: Path) -> None:
    add_run(tmp_path, "new")
    add_run(tmp_path, "large", INIT + " " * 100_000, age=1)
    add_run(tmp_path, "old", age=2)
    assert prune_runs(tmp_path, size=50_000) == 1
    assert [run.id for run in list_runs(tmp_path)] == ["new", "old"]


def test_the_newest_run_stays_whatever_it_takes(tmp_path: Path) -> None:
    add_run(tmp_path, "new", INIT + " " * 100_000)
    add_run(tmp_path, "old", age=1)
    assert prune_runs(tmp_path, size=50_000) == 1
    assert [run.id for run in list_runs(tmp_path)] == ["new"]


def test_a_run_behind_which_prompts_wait_stays(tmp_path: Path) -> None:
    add_run(tmp_path, "new")
    PromptQueue.of(add_run(tmp_path, "old", age=1)).add_prompt("one")
    assert prune_runs(tmp_path, runs=1) == 0


def test_clear_leaves_what_goes_on(tmp_path: Path, someone: Owner) -> None:
    add_run(tmp_path, "one")
    unended(tmp_path, "running", someone)
    assert clear_runs(tmp_path) == 1
    assert runs_usage(tmp_path).runs == 1


def test_what_all_take(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    folder = add_run(place, "one")
    found = runs_usage(place)
    assert (found.runs, found.private) == (1, True)
    assert found.bytes == sum(path.stat().st_size for path in folder.path.iterdir())
    assert runs_usage(tmp_path / "nowhere").runs == 0
