"""Until when a quota is used up, as Gemini CLI and the API say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gemtui.runs.causes import renewed_at
from tests.rows import each_row

NOW = datetime(2026, 11, 23, 14, 0, tzinfo=UTC)


@each_row(
    ("said", "stderr", "after"),
    [
        ("Your quota will reset after 8h44m7s.", "", timedelta(hours=8, minutes=44, seconds=7)),
        ("Too many.\nSuggested retry after 7200s.", "", timedelta(hours=2)),
        ("Please retry in 37.5s", "", timedelta(seconds=37.5)),
        ("Quota exceeded", "  retryDelayMs: 90000,\n", timedelta(seconds=90)),
        ("You have exhausted your daily quota on this model.", "", timedelta(hours=18)),
        ("Your quota will reset after 0s", "retryDelayMs: undefined", None),
        ("Your quota will reset after 99999999999h", "", None),
        ("No quota left.", "", None),
    ],
)
def test_the_time_is_told_or_unknown(said: str, stderr: str, after: timedelta | None) -> None:
    expected = None if after is None else NOW + after
    assert renewed_at(said, stderr, NOW) == expected
