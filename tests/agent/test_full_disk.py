"""A disk that a run fills: it ends in order, says why, and can be stopped on the way."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gemtui.agent import process_tree
from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.events import AgentEvent, Done, DoneStatus, ErrorSaid
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import RunFolder
from gemtui.runs.ending import RunState
from gemtui.runs.listing import list_runs
from gemtui.runs.outcome import RunOutcome, RunProgress
from tests.fake_cli import CHILD, HELP, INIT
from tests.patience import PATIENCE, turns_until

Fake = Callable[..., UnguardedAdapter]


@pytest.fixture
def disk(other_file_system: Path) -> Iterator[Path]:
    """A small disk, on which no run is left at the end."""
    yield other_file_system
    for folder in (other_file_system / "runs").glob("*"):
        process_tree.end_tagged(folder.name)


@pytest.fixture
def fake(disk: Path, tmp_path: Path) -> Fake:
    """An adapter with its runs on the small disk, whose CLI does these steps."""

    def adapter(*steps: str) -> UnguardedAdapter:
        (tmp_path / "help.txt").write_text(HELP)
        program = tmp_path / "gemini"
        program.write_text(
            f'#!/bin/sh\nif [ "$1" = --help ]; then cat {tmp_path}/help.txt; exit 0; fi\n'
            'if [ "$1" = --version ]; then echo 0.61.0; exit 0; fi\n'
            f"exec {shlex.join([sys.executable, str(CHILD), *steps])}\n"
        )
        program.chmod(0o755)
        return UnguardedAdapter(cli=program, runs=disk / "runs", environ=dict(os.environ))

    return adapter


async def told(events: AsyncIterator[AgentEvent], progress: RunProgress) -> list[AgentEvent]:
    seen = []
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            progress.add(event)
            seen.append(event)
    return seen


def outcome(progress: RunProgress, folder: RunFolder) -> RunOutcome:
    found = progress.outcome(folder.stderr.read_text())
    assert found is not None
    return found


@pytest.mark.parametrize("code", [0, 1])
async def test_a_run_that_fills_the_disk_ends_and_says_so(
    fake: Fake, tmp_path: Path, code: int
) -> None:
    adapter, progress = fake(f"print:{INIT}", "full", f"exit:{code}"), RunProgress()
    events = await told(adapter.run("x", AgentOptions(cwd=tmp_path)), progress)
    assert [event.type for event in events] == ["init", "error", "error", "done"]
    (run,) = list_runs(adapter.runs)
    assert (run.state, run.complete) == (RunState.ENDED, False)
    assert run.exit is not None
    assert run.exit.code == code
    ended = outcome(progress, run.folder)
    assert "No space left on device" in ended.detail
    if code:
        assert ended.headline == "The disk is full"
        last = events[-2].payload
        assert isinstance(last, ErrorSaid)
        assert "No space left on device" in last.message
    assert oct(run.folder.stderr.stat().st_mode & 0o777) == "0o600"


async def test_a_run_on_a_full_disk_can_be_stopped(fake: Fake, disk: Path, tmp_path: Path) -> None:
    adapter, stop = fake(f"print:{INIT}", "orphan", "full", "wait"), asyncio.Event()
    seen = []
    async for event in adapter.run("x", AgentOptions(cwd=tmp_path, abort=stop)):
        seen.append(event)
        if event.type == "init":
            (folder,) = adapter.runs.iterdir()
            await turns_until(lambda: not os.statvfs(disk).f_bavail)
            stop.set()
    assert isinstance(seen[-1].payload, Done)
    assert seen[-1].payload.status is DoneStatus.INTERRUPTED
    assert process_tree.tagged(folder.name) == set()


async def test_nothing_is_started_on_a_full_disk(fake: Fake, disk: Path, tmp_path: Path) -> None:
    adapter = fake("wait")
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass
    events = await told(adapter.run("x", AgentOptions(cwd=tmp_path)), RunProgress())
    assert [event.type for event in events] == ["init", "error", "done"]
    assert isinstance(events[1].payload, ErrorSaid)
    assert "No space left on device" in events[1].payload.message
    assert list_runs(adapter.runs) == ()
