"""A sample of the recorded decisions, made anew by the real CLI: as recorded, and as we say.

`python -m tests.tools.observation` makes all of them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.observation.__main__ import CASES, observe_run, report
from tests.tools.observation.cases import Case, in_runs, read_cases

pytestmark = pytest.mark.covers("gemtui/policy")

SAMPLE = frozenset(
    {
        "bad.empty-tool-array",
        "build.none.auto_edit.acp",
        "build.rule-999.yolo",
        "int.flag.yolo.acp",
        "mcp.plan-allow.plan.acp",
        "modes.2.plan",
        "name.agent-alias.yolo",
        "none.default.acp",
        "out.include.auto_edit",
        "plan.enter-then.auto_edit",
        "pri.admin",
        "pri.relative-path",
        "pri.user-dir",
        "set.core.default",
        "set.exclude.yolo.acp",
        "sh.redir-kinds.acp",
        "sh.regex",
        "sh.unparsable.default",
        "sh.wrap-deny.yolo",
    }
)
"""Runs in which every outcome and every way of handing policies over is seen."""

RUNS = {run[0].run: run for run in in_runs(read_cases(CASES)) if run[0].run in SAMPLE}


def test_the_sample_holds_every_outcome_headless_and_interactive() -> None:
    assert set(RUNS) == SAMPLE
    seen = {case.seen.outcome for run in RUNS.values() for case in run if case.seen}
    assert seen == {case.seen.outcome for case in read_cases(CASES) if case.seen}
    kinds = {given.kind for run in RUNS.values() for given in run[0].given}
    assert {"policy", "policy_paths", "admin", "user"} <= kinds


@pytest.mark.parametrize("name", sorted(SAMPLE))
def test_the_real_cli_decides_as_recorded_and_as_we_do(
    gemini_program: Path, tmp_path: Path, name: str
) -> None:
    run: tuple[Case, ...] = RUNS[name]
    found = observe_run(gemini_program, tmp_path / "place", run)
    differing = [each for each in found if each.changed or each.missed or each.problem]
    assert not differing, "\n".join(report(found))
