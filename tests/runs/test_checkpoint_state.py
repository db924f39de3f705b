"""What is said of checkpoints that are slow, late, or fail."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.checkpoints import take, tree
from gemtui.checkpoints.store import GONE, Reason, only_one, open_store
from gemtui.checkpoints.tree import TreeListing
from gemtui.checkpoints.undo import covered_calls, open_project
from gemtui.runs.undo import checkpointing
from gemtui.runs.undo.checkpointing import (
    CheckpointPhase,
    RunCheckpoints,
    checkpoint_state,
    project_of,
)
from tests.checkpoints.projects import put
from tests.patience import PATIENCE, until


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "project").mkdir()
    (tmp_path / "run").mkdir()
    found = RunFolder(tmp_path / "run")
    found.stdout.touch()
    return found


def of(folder: RunFolder) -> RunCheckpoints:
    project = folder.path.parent / "project"
    request = Request(id="r", argv=("gemini",), cwd=str(project), environ={})
    return RunCheckpoints(folder, request)


def says(folder: RunFolder, **event: object) -> None:
    with folder.stdout.open("a") as file:
        file.write(json.dumps(event) + "\n")


def begins_a_command(folder: RunFolder, timestamp: str) -> None:
    says(
        folder,
        type="tool_use",
        tool_name="run_shell_command",
        tool_id="1",
        parameters={"command": "make"},
        timestamp=timestamp,
    )


def a_second_ago() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1))


def test_calls_before_a_late_first_checkpoint_are_not_covered(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointing, "_LONGEST", 0.3)
    monkeypatch.setattr(checkpointing, "_SLOW", 0.1)
    checkpoints = of(folder)
    place, root, own = project_of(folder.path.parent / "project")
    with only_one(place):
        checkpoints.check()
        state = checkpoint_state(folder)
        assert state is not None
        assert state.late
        begins_a_command(folder, "2026-11-23T10:00:00.000Z")
        checkpoints.check()
    monkeypatch.setattr(checkpointing, "_LONGEST", PATIENCE)
    put(root, b"made", b"x")
    says(folder, type="tool_result", tool_id="1", status="success")
    checkpoints.close()
    assert ["undo may miss changes" in note for note in state.notes()] == [True]
    with open_project(place, root, own) as project:
        assert [call.use for call in project.store.calls().values()] == ["1"]
        assert covered_calls(project.store) == frozenset()
        assert not any(change.sure for _, change in project.store.changes() if change.call)


def test_a_command_that_begins_while_files_are_looked_for_owns_what_it_changed(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = of(folder)
    place, root, _ = project_of(folder.path.parent / "project")
    checkpoints.check()

    def list_files(*arguments: Any, **options: Any) -> TreeListing:
        begins_a_command(folder, a_second_ago())
        put(root, b"made", b"x")
        return tree.list_files(*arguments, **options)

    monkeypatch.setattr(take, "list_files", list_files)
    checkpoints.close()
    with open_store(place) as store:
        (change,) = (change for _, change in store.changes())
        assert (change.path, change.call is not None) == (b"made", True)


def test_a_file_whose_folder_is_a_file_does_not_exist_before_a_call(folder: RunFolder) -> None:
    root = folder.path.parent / "project"
    (root / "docs").write_text("a file")
    assert checkpointing._before(root, b"docs/a.txt", time.time() + 60) == GONE
    assert checkpointing._before(root, b"docs", time.time() + 60) != GONE


def test_an_undo_that_a_run_completed_is_reported_by_the_run_and_its_checkpoint(
    folder: RunFolder,
) -> None:
    place, root, own = project_of(folder.path.parent / "project")
    with open_project(place, root, own) as project:
        taken = project.taker.take(Reason.UNDO, session="s")
        assert taken is not None
        project.store.begin_undo(time.time(), "s", 2, taken.id, 0, "[]")
    checkpoints = of(folder)
    checkpoints.check()
    checkpoints.close()
    state = checkpoint_state(folder)
    assert state is not None
    assert state.phase is CheckpointPhase.READY
    assert state.notes() == ["First, an interrupted undo in this folder was completed."]
    with open_store(place) as store:
        noted = [each.reason for each in store.checkpoints() if each.notes == state.settled]
    assert noted == [Reason.UNDO]


def test_a_checkpoint_that_failed_is_said_and_the_next_one_covers_its_calls(
    folder: RunFolder,
) -> None:
    checkpoints = of(folder)
    place, root, _ = project_of(folder.path.parent / "project")
    checkpoints.check()
    assert checkpoint_state(folder) is None
    begins_a_command(folder, a_second_ago())
    put(root, b"made", b"x")
    root.rename(root.parent / "away")
    says(folder, type="tool_result", tool_id="1", status="success")
    problems = []

    def is_noted() -> bool:
        try:
            checkpoints.check()
        except OSError as error:
            problems.append(str(error))
        return checkpoint_state(folder) is not None

    until(is_noted)
    (root.parent / "away").rename(root)
    checkpoints.close()
    state = checkpoint_state(folder)
    assert state is not None
    assert (state.phase, state.problem) == (CheckpointPhase.READY, problems[-1])
    with open_store(place) as store:
        (change,) = (change for _, change in store.changes())
        assert (change.path, change.call is not None) == (b"made", True)
