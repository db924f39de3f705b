"""How the days of a list are called, and where they begin and end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from gemtui.marks import Mark
from gemtui.sessions.catalog.columns import Sort
from gemtui.sessions.catalog.listing import DayHeading, Days, Listing, Row, View, days_of
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.store.store import SessionKind
from tests.rows import each_row
from tests.sessions.summaries import NOW, summary

BERLIN = ZoneInfo("Europe/Berlin")


def called(days: Days, when: datetime) -> str:
    span = days.span_of(when)
    assert when in span
    return span.name


def test_each_of_the_last_days_has_a_name_and_earlier_days_have_dates() -> None:
    days = Days(NOW, UTC)
    names = [called(days, NOW - timedelta(hours=hours)) for hours in range(24 * 9)]
    assert [name for name, _ in groupby(names)] == [
        "Today",
        "Yesterday",
        "Wednesday",
        "Tuesday",
        "Monday",
        "Sunday",
        "Saturday",
        "Fri 13 Nov",
        "Thu 12 Nov",
        "Wed 11 Nov",
    ]
    assert called(days, NOW - timedelta(days=365)) == "Thu 20 Nov 2025"


@each_row("tz", [UTC, BERLIN, None])
@each_row("now", [NOW, datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC)])
def test_a_span_holds_just_the_times_that_are_called_so(now: datetime, tz: ZoneInfo | None) -> None:
    days = Days(now, tz)
    for hours in range(-30, 24 * 40):
        when = now - timedelta(hours=hours)
        span = days.span_of(when)
        assert when in span
        assert (span.end is None) is (span.name == "Today")
        if span.end is not None:
            assert called(days, span.end) != span.name
        assert called(days, span.start) == span.name
        assert called(days, span.start - timedelta(seconds=1)) != span.name


def test_a_day_of_23_hours_begins_and_ends_at_midnight() -> None:
    days = Days(datetime(2026, 3, 30, 12, tzinfo=UTC), BERLIN)
    span = days.span_of(datetime(2026, 3, 29, 10, tzinfo=UTC))
    assert span.end is not None
    assert span.end.astimezone(UTC) - span.start.astimezone(UTC) == timedelta(hours=23)


def test_what_is_to_come_is_today() -> None:
    assert called(Days(NOW, UTC), NOW + timedelta(days=400)) == "Today"


# --- in a listing ------------------------------------------------------------------------------


def headings(rows: tuple[Row, ...]) -> list[str]:
    return [f"{row.name} {row.count}" for row in rows if isinstance(row, DayHeading)]


SESSIONS = [summary(f"s{at}", hours=6 * at) for at in range(8)]


def test_either_direction_has_its_headings() -> None:
    listing = Listing()
    listing.replace_all(SESSIONS)
    newest = listing.arrange(View(everywhere=True), Days(NOW, UTC))
    assert headings(newest.rows) == ["Today 3", "Yesterday 4", "Wednesday 1"]
    assert newest.shown == 8
    oldest = listing.arrange(View(everywhere=True, reverse=True), Days(NOW, UTC))
    assert headings(oldest.rows) == ["Wednesday 1", "Yesterday 4", "Today 3"]
    found = listing.arrange(View(everywhere=True, query="s5"), Days(NOW, UTC))
    assert headings(found.rows) == ["Yesterday 1"]


def test_sessions_that_began_at_no_known_time_have_a_heading() -> None:
    listing = Listing()
    listing.replace_all([*SESSIONS[:2], replace(SESSIONS[2], started=None)])
    rows = listing.arrange(View(everywhere=True, sort=Sort.STARTED), Days(NOW, UTC)).rows
    assert headings(rows) == ["Today 2", "Time unknown 1"]


def test_what_belongs_to_a_session_stands_on_its_day() -> None:
    listing = Listing()
    below = summary("agent", hours=40, kind=SessionKind.SUBAGENT, parent="s0")
    listing.replace_all([*SESSIONS[:4], below, summary("old", hours=72, flags=(Flag.EMPTY,))])
    rows = listing.arrange(View(everywhere=True, hidden=True), Days(NOW, UTC)).rows
    assert headings(rows) == ["Today 3", "Yesterday 1", "Tuesday 1"]
    assert [row.key for row in rows][:3] == ["day Today", "s0", "agent"]


def test_a_day_counts_its_pinned_sessions_and_leads_to_its_first_row_below_its_heading() -> None:
    listing = Listing()
    listing.replace_all([*SESSIONS, summary("old", hours=72)])
    listing.mark({id: Mark(session=id, pinned=True) for id in ("s0", "old")})
    view = View(everywhere=True)
    rows = listing.arrange(view, Days(NOW, UTC)).rows
    assert headings(rows) == ["Pinned 2", "Today 3", "Yesterday 4", "Wednesday 1"]
    days = [(str(each.day), each.count, each.first) for each in days_of(rows, view, UTC)]
    assert days == [
        ("2026-11-20", 3, "s1"),
        ("2026-11-19", 4, "s3"),
        ("2026-11-18", 1, "s7"),
        ("2026-11-17", 1, "old"),
    ]
    oldest = listing.arrange(reverse := View(everywhere=True, reverse=True), Days(NOW, UTC)).rows
    assert days_of(oldest, reverse, UTC)[0].first == "old"
