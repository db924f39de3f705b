"""Two gemtui at once on one folder of runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gemtui.agent import process_tree
from gemtui.paths import runs_dir
from gemtui.runs.ending import RunState
from gemtui.runs.gate.questions import QUIET
from gemtui.runs.listing import list_runs
from tests.fake_cli import INIT, FakeCli, says
from tests.terminal import Terminal

pytestmark = [
    pytest.mark.deep,
    pytest.mark.covers("gemtui/ui/run", "gemtui/runs", "gemtui/agent"),
]


def gemtui(folder: Path) -> Terminal:
    return Terminal([sys.executable, "-m", "gemtui"], environ=dict(os.environ), folder=folder)


def test_both_list_and_follow_a_run_and_either_stops_it(
    trusted_project: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    fake_cli(f"print:{INIT}", says("The beginning."), f"until:{gate}", says(" The end."), "wait")
    with gemtui(trusted_project) as first, gemtui(trusted_project) as second:
        second.shows("1 Sessions")
        first.shows("1 Sessions")
        first.press("2")
        first.shows("enter starts a run")
        first.press("tell me", "\r")
        first.shows("The beginning.")
        second.press("2")
        second.shows("enter starts a run")
        second.press("\x0c")
        second.shows("Runs", "tell me", "running")
        second.read_for(2 * QUIET)
        second.press("\r")
        second.shows("The beginning.")
        gate.touch()
        second.shows("The beginning. The end.")
        first.shows("The beginning. The end.")
        (run,) = list_runs(runs_dir())
        assert run.state is RunState.RUNNING
        second.press("\x03")
        second.shows("Press ctrl+c again to stop the run.")
        second.press("\x03")
        second.shows("interrupted")
        first.shows("interrupted")
        assert process_tree.tagged(run.id) == set()


def test_a_second_one_finds_the_run_that_goes_on(trusted_project: Path, fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", says("On and on."), "wait")
    with gemtui(trusted_project) as first:
        first.shows("1 Sessions")
        first.press("2")
        first.shows("enter starts a run")
        first.press("go on", "\r")
        first.shows("On and on.")
        with gemtui(trusted_project) as second:
            second.shows("A run is still active")
            second.press("\x11")
            assert second.wait() == 0
        (run,) = list_runs(runs_dir())
        assert run.state is RunState.RUNNING
        first.press("\x03")
        first.shows("Press ctrl+c again to stop the run.")
        first.press("\x03")
        first.shows("interrupted")
