"""What stands in a run's folder, whoever wrote it."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.process_tree import owner_lives
from gemtui.agent.run_folder import Abort, Exit, Owner, ProcessId, Request, RunFolder
from gemtui.kept.resume_guard import settle_abandoned
from gemtui.kept.run_copies import aftermath_of, backup_of
from gemtui.runs.disk_usage import runs_usage
from gemtui.runs.listing import list_runs
from tests.odd_json import ODD, spoilt
from tests.rows import each_row, table

REQUEST = Request(
    id="one",
    argv=("gemini", "-p"),
    cwd="/work",
    environ={"A": "b"},
    secrets=("settings.json",),
    timeout=2,
    turn_limit=3,
    about={
        "prompt": "Do it",
        "model": None,
        "session_id": "s1",
        "notes": ["so"],
        "capabilities": {"resume": True, "models": ["pro"]},
    },
)
EXIT = Exit(
    code=0,
    started=datetime(2026, 1, 2, tzinfo=UTC),
    ended=None,
    left=(ProcessId(pid=7, began=1.5),),
)
BEFORE = {
    "session_id": "s1",
    "home": "/home/dev/.gemini",
    "files": [{"path": "/home/dev/.gemini/tmp/a/chats/x.jsonl", "copy": "before-0-x.jsonl"}],
    "seen": ["/home/dev/.gemini/tmp/a/chats/x.jsonl"],
}
AFTER = {"ghosts": ["/x"], "lost": ["/y"], "changed": [], "problems": ["so"]}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "runs", "one")


def test_what_is_stored_comes_back(folder: RunFolder) -> None:
    folder.write_request(REQUEST)
    folder.write_owner(Owner(pid=5, began=7))
    folder.finish(EXIT)
    assert (folder.request(), folder.owner(), folder.exit()) == (
        REQUEST,
        Owner(pid=5, began=7),
        EXIT,
    )


@pytest.mark.parametrize(
    "stored", ['{"argv": "gemini", "cwd": "/"}', "[]", "5", "", '{"a":' * 5000, '{"pid": "5"}']
)
def test_what_is_no_record_counts_as_none(folder: RunFolder, stored: str) -> None:
    for name in ("request.json", "supervisor.json", "exit.json", "abort"):
        (folder.path / name).write_text(stored)
    assert (folder.request(), folder.owner(), folder.exit(), folder.abort_request()) == (None,) * 4


@pytest.mark.parametrize(
    "time",
    ["2026-03-01T12:00:00", "0001-01-01T00:00:00+14:00", "yesterday", 5, "2026-13-01T00:00Z"],
)
def test_an_end_at_no_time_counts_as_none(folder: RunFolder, time: object) -> None:
    (folder.path / "exit.json").write_text(json.dumps({"code": 0, "started": time, "ended": None}))
    assert folder.exit() is None


def test_a_pipe_in_the_place_of_a_record_is_not_waited_for(folder: RunFolder) -> None:
    for name in ("request.json", "supervisor.json", "exit.json", "abort", "stdout.ndjson"):
        os.mkfifo(folder.path / name)
    assert (folder.request(), folder.owner(), folder.exit(), folder.abort_request()) == (None,) * 4


async def test_output_that_is_no_file_ends_as_a_run_without_words(folder: RunFolder) -> None:
    for path in (folder.stdout, folder.stderr, folder.prompt):
        os.mkfifo(path)
    folder.write_request(REQUEST)
    folder.finish(EXIT)
    run = UnguardedAdapter(runs=folder.path.parent).attach(folder)
    assert run is not None
    assert [event.type for event in [each async for each in run.events()]][-1] == "done"
    assert [run.id for run in list_runs(folder.path.parent)] == ["one"]
    assert folder.prompt_text() == ""


@each_row("pid", table("agent/run_folder.json"))
def test_a_number_that_is_no_pid_is_nobody(pid: int) -> None:
    assert not owner_lives(Owner(pid=pid, began=0))


def plain(value: Any) -> Any:
    import orjson

    return json.loads(orjson.dumps(value))


@given(
    request=spoilt(plain(REQUEST)),
    owner=spoilt({"pid": 1, "began": 0.5, "cli": 2}),
    ended=st.none() | spoilt(plain(EXIT)),
    before=spoilt(BEFORE),
    after=spoilt(AFTER),
    abort=ODD,
)
def test_no_folder_stops_the_list(
    request: Any, owner: Any, ended: Any, before: Any, after: Any, abort: Any
) -> None:
    with tempfile.TemporaryDirectory() as place:
        runs = Path(place).resolve()
        folder = RunFolder.create(runs, "one")
        stored = {"request": request, "supervisor": owner, "before": before, "after": after}
        for name, value in {**stored, **({} if ended is None else {"exit": ended})}.items():
            (folder.path / f"{name}.json").write_text(json.dumps(value))
        (folder.path / "abort").write_text(json.dumps(abort))
        for run in list_runs(runs):
            json.dumps(run.to_dict())
        attached = UnguardedAdapter(runs=runs).attach(folder)
        assert attached is None or attached.supervised() in (True, False)
        assert folder.abort_request() in (None, *Abort)
        assert owner_lives(folder.owner()) in (True, False)
        assert runs_usage(runs).runs == 1
        backup_of(folder)
        aftermath_of(folder)
        settle_abandoned(runs)
