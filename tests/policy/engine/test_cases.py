"""Every observed decision of the real CLI 0.61.0 that the engine takes comes out as observed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.policy.observed import Run
from tests.tools.observation.cases import Case, in_runs, read_cases

CASES = Path(__file__).parents[2] / "data" / "policy" / "cases.jsonl"
RUNS = tuple(in_runs(read_cases(CASES)))
REFUSED = "Tool execution denied by policy."


def _expected(case: Case) -> tuple[str, str, bool | None, str | None]:
    seen = case.seen
    assert seen is not None
    message = None
    if seen.message and seen.message.startswith(REFUSED):
        message = seen.message.removeprefix(REFUSED).strip() or None
    return case.id, seen.outcome, seen.offered, message


@pytest.mark.parametrize("run", RUNS, ids=[run[0].run for run in RUNS])
def test_the_calls_of_an_observed_run_come_out_as_observed(
    run: tuple[Case, ...], tmp_path: Path
) -> None:
    answers = Run(run[0], tmp_path / "home").answers(run)
    told = [case for case in run if case.scope == "engine"]
    ours = [
        (
            case.id,
            answer.outcome,
            answer.offered,
            None if case.interactive else answer.explained.message,
        )
        for case, answer in zip(run, answers, strict=True)
        if case.scope == "engine"
    ]
    assert ours == [_expected(case) for case in told]


def test_no_recorded_case_is_left_out() -> None:
    scopes = [case.scope for run in RUNS for case in run]
    assert (len(scopes), scopes.count("engine")) == (1039, 935)
