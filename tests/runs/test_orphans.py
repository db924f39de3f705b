"""Runs whose supervisor and its guardian were killed: their processes are seen, kept and ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import GeminiRun, UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import RUN_TAG, ProcessId, RunFolder
from gemtui.runs.disk_usage import runs_usage
from gemtui.runs.ending import RunState
from gemtui.runs.listing import clear_runs, list_runs, prune_runs, stop_run
from tests.fake_cli import INIT, FakeCli, HastyAdapter
from tests.patience import until
from tests.runs.test_listing import add_run


@pytest.fixture
def orphan(tmp_path: Path, fake_cli: FakeCli) -> Iterator[RunFolder]:
    """The folder of a run that goes on, with a shell command, after all who watched were killed."""
    fake_cli(f"print:{INIT}", "orphan", "wait")
    run = start(tmp_path)
    kill_watchers(run)
    yield run.folder
    process_tree.end_tagged(run.folder.id)


def start(tmp_path: Path, runs: Path | None = None) -> GeminiRun:
    run = HastyAdapter(runs=runs or tmp_path / "runs").start("go", AgentOptions(cwd=tmp_path))
    until(lambda: run.folder.stdout.exists() and run.folder.stdout.read_text().count("\n") == 2)
    return run


def kill_watchers(run: GeminiRun) -> None:
    """SIGKILL for the supervisor and its guardian, in an order that leaves the guardian no time."""
    owner = run.folder.owner()
    assert owner is not None
    supervisor = psutil.Process(owner.pid)
    for each in (*supervisor.parents()[:1], supervisor):
        each.kill()
    until(lambda: not run.supervised())


def add_secret(folder: RunFolder) -> None:
    request = folder.request()
    assert request is not None
    folder.write_request(replace(request, secrets=("settings.json",)))
    folder.write("settings.json", "{}")


async def test_an_orphan_is_listed_and_looking_at_it_does_not_end_it(
    tmp_path: Path, orphan: RunFolder
) -> None:
    (run,) = list_runs(tmp_path / "runs")
    assert run.state is RunState.ORPHANED
    assert run.pids == tuple(sorted(each.pid for each in process_tree.tagged(orphan.id)))
    assert runs_usage(tmp_path / "runs").orphaned == (orphan.id,)
    assert run.to_dict()["pids"] == list(run.pids)
    attached = UnguardedAdapter(runs=tmp_path / "runs").attach(orphan)
    assert isinstance(attached, GeminiRun)
    events = [event async for event in attached.events()]
    assert events[-1].type == "done"
    assert len(process_tree.tagged(orphan.id)) == 2


def test_its_folder_and_secrets_stay_and_go_once_it_has_ended(
    tmp_path: Path, orphan: RunFolder
) -> None:
    add_secret(orphan)
    place = (orphan.path / "tmp").readlink()
    add_run(tmp_path / "runs", "newer", age=-1_000_000)
    assert prune_runs(tmp_path / "runs", runs=1) == 0
    assert clear_runs(tmp_path / "runs") == 1
    assert (orphan.path / "settings.json").exists()
    assert place.is_dir()
    process_tree.end_tagged(orphan.id)
    (run,) = list_runs(tmp_path / "runs")
    assert run.state is RunState.LOST
    prune_runs(tmp_path / "runs")
    assert not (orphan.path / "settings.json").exists()
    assert clear_runs(tmp_path / "runs") == 1
    assert not place.exists()


def test_stopping_it_leaves_nothing(tmp_path: Path, orphan: RunFolder) -> None:
    add_secret(orphan)
    place = (orphan.path / "tmp").readlink()
    processes = process_tree.tagged(orphan.id)
    (run,) = list_runs(tmp_path / "runs")
    assert stop_run(run)
    assert not process_tree.alive(processes)
    assert not place.exists()
    assert not (orphan.path / "settings.json").exists()
    (run,) = list_runs(tmp_path / "runs")
    assert (run.state, run.status, run.pids) == (RunState.ENDED, "interrupted", ())


def test_stopping_a_run_that_is_watched(tmp_path: Path, fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", "orphan", "wait")
    started = start(tmp_path)
    (run,) = list_runs(tmp_path / "runs")
    assert run.state is RunState.RUNNING
    assert stop_run(run)
    assert process_tree.tagged(run.id) == set()
    ended = asyncio.run(started.wait())
    assert ended.aborted
    assert ended.started is not None


def test_an_ended_run_with_a_process_left_is_orphaned_until_that_is_stopped(tmp_path: Path) -> None:
    add_run(tmp_path / "runs", "ended")
    folder = RunFolder(tmp_path / "runs/ended")
    record = folder.exit()
    assert record is not None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = psutil.Process(child.pid).create_time()
    another = ProcessId(pid=os.getpid(), began=began - 1_000)
    folder.finish(replace(record, left=(ProcessId(pid=child.pid, began=began), another)))
    (run,) = list_runs(tmp_path / "runs")
    assert (run.state, run.pids, run.word) == (RunState.ORPHANED, (child.pid,), "orphaned")
    assert clear_runs(tmp_path / "runs") == 0
    assert stop_run(run)
    child.communicate()
    assert child.returncode == -signal.SIGTERM
    (run,) = list_runs(tmp_path / "runs")
    assert (run.state, run.pids) == (RunState.ENDED, ())


def test_one_look_finds_the_processes_of_all_runs() -> None:
    sleepers = [
        subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, RUN_TAG: name},
        )
        for name in ("one", "two", "two")
    ]
    try:
        for each in sleepers:
            assert each.stdout is not None
            each.stdout.readline()  # its environment can be read now
        found = process_tree.by_run()
        assert [len(found[name]) for name in ("one", "two")] == [1, 2]
    finally:
        for each in sleepers:
            each.communicate()
