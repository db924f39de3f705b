"""Why a run failed, and until when a quota is used up, as Gemini CLI and the API say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gemtui.agent.approval import ALTERED, DIFFERS, MOVED, PASSED, UNGATED
from gemtui.runs.causes import cause_of, renewed_at
from tests.rows import each_row, table

NOW = datetime(2026, 11, 23, 14, 0, tzinfo=UTC)


@each_row("said, stderr, seconds", table("runs/quota.json"))
def test_the_time_is_told_or_unknown(said: str, stderr: str, seconds: float | None) -> None:
    expected = None if seconds is None else NOW + timedelta(seconds=seconds)
    assert renewed_at(said, stderr, NOW) == expected


@each_row("reason", [ALTERED, DIFFERS, MOVED, PASSED, UNGATED])
def test_a_run_that_gemtui_stopped_has_a_cause_in_the_table(reason: str) -> None:
    cause = cause_of(reason, "", 1)
    assert cause.headline.startswith("The run was stopped because")
    assert cause.ways_out
