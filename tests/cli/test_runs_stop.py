"""`gemtui runs stop`, and what is said of a run whose watchers were killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.agent import process_tree
from gemtui.paths import prompts_file, runs_dir
from gemtui.ui.run.prompt_sources import History
from tests.cli.conftest import Gemtui, has
from tests.fake_cli import INIT, FakeCli
from tests.runs.test_orphans import kill_watchers, start


@pytest.fixture
def orphan(tmp_path: Path, fake_cli: FakeCli) -> str:
    """The id of a run whose processes go on with nobody in charge."""
    fake_cli(f"print:{INIT}", "orphan", "wait")
    run = start(tmp_path, runs_dir())
    kill_watchers(run)
    return run.folder.id


def test_a_run_with_nobody_in_charge_is_named_kept_and_stopped_once(
    gemtui: Gemtui, orphan: str
) -> None:
    pids = sorted(each.pid for each in process_tree.tagged(orphan))
    (run,) = gemtui.json("runs")["runs"]
    has(run, state="orphaned", pids=pids)
    way_out = f"gemtui runs stop {orphan[:8]}"
    listed = gemtui("runs")
    listed.shows("orphaned")
    listed.complains(way_out)
    doctor = gemtui("doctor --json")
    assert (doctor.code, doctor.json["runs"]["orphaned"]) == (1, [orphan])
    assert any(way_out in problem for problem in doctor.json["problems"])
    assert gemtui.json("runs clear") == {"version": 1, "removed": 0, "left": 1, "only_copies": []}
    assert (runs_dir() / orphan).is_dir()
    answer = gemtui.ok("runs stop", orphan[:8], "--json")
    assert answer.json == {"version": 1, "run": orphan, "stopped": pids}
    assert process_tree.tagged(orphan) == set()
    again = gemtui("runs stop", orphan)
    assert (again.code, again.complaint) == (1, "gemtui: this run has no running processes")
    assert gemtui.json("runs clear")["left"] == 0


def test_prompts_are_named_and_removed(gemtui: Gemtui) -> None:
    History(prompts_file()).add("a secret")
    assert str(prompts_file()) in gemtui("doctor").out
    assert gemtui.json("doctor")["files"]["prompts"]["bytes"] == 11
    gemtui("runs clear")
    assert prompts_file().exists()
    gemtui("runs clear --prompts")
    assert not prompts_file().exists()
    assert gemtui.json("doctor")["files"]["prompts"]["bytes"] is None
