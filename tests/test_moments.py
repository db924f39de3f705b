"""Moments as people type them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gemtui.moments import period
from tests.rows import each_row

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


@each_row(
    ("text", "start", "end"),
    [
        ("today", day(2026, 11, 20), day(2026, 11, 21)),
        (" Yesterday ", day(2026, 11, 19), day(2026, 11, 20)),
        ("2026-11-05", day(2026, 11, 5), day(2026, 11, 6)),
        ("2026-2", day(2026, 2, 1), day(2026, 3, 1)),
        ("2026-12", day(2026, 12, 1), day(2027, 1, 1)),
        ("2026", day(2026, 1, 1), day(2027, 1, 1)),
        ("12h", NOW - timedelta(hours=12), NOW - timedelta(hours=12)),
        ("2w", NOW - timedelta(days=14), NOW - timedelta(days=14)),
        ("2026-11-05T12:00", *[datetime(2026, 11, 5, 12, tzinfo=UTC)] * 2),
        ("2026-11-05T12:00+02:00", *[datetime(2026, 11, 5, 10, tzinfo=UTC)] * 2),
    ],
)
def test_what_is_meant_begins_and_ends(text: str, start: datetime, end: datetime) -> None:
    assert period(text, NOW) == (start, end)


@each_row("text", ["", "someday", "2026-13", "2026-02-30", "9999", "99999y", "7x"])
def test_what_is_no_moment_is_none(text: str) -> None:
    assert period(text, NOW) is None


def test_days_begin_at_midnight_of_the_zone_also_in_summer(monkeypatch: pytest.MonkeyPatch) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    summer = datetime(2026, 7, 1, tzinfo=berlin), datetime(2026, 7, 2, tzinfo=berlin)
    assert period("2026-07-01", NOW.astimezone(berlin)) == summer
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert period("2026-07-01", NOW.astimezone()) == summer
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
