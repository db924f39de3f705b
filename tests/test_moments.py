"""Moments as people type them."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gemtui.moments import period, start_of_day
from gemtui.sessions.catalog.listing import Days
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


@each_row(
    ("zone", "day"),
    [
        ("Asia/Beirut", date(2026, 3, 29)),
        ("Africa/Cairo", date(2026, 4, 24)),
        ("America/Santiago", date(2026, 9, 6)),
    ],
)
def test_a_day_without_midnight_begins_an_hour_later(
    zone: str, day: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = datetime.combine(day, datetime.min.time(), ZoneInfo(zone)).astimezone(UTC)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for at in (None, ZoneInfo(zone)):
            start = start_of_day(day, at)
            assert (start.astimezone(UTC), start.date(), start.hour) == (begin, day, 1)
            now = (begin + timedelta(hours=30)).astimezone(at)
            for text in (day.isoformat(), "yesterday"):
                assert period(text, now) == (start, start_of_day(day + timedelta(days=1), at))
            span = Days(now, at).span_of(begin)
            assert (span.name, span.start) == ("Yesterday", start)
            assert Days(now, at).span_of(begin - timedelta(seconds=1)).end == start
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()
