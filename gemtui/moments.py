"""Parse times that users type: `yesterday`, `7d`, `2026-11`, `2026-11-20T12:00`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

EXAMPLES = "2026-11-20, today, yesterday, 12h, 7d or 2w"
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_AGO = re.compile(r"(\d{1,5})([hdwmy])")
_UNITS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_NAMED = {"today": 0, "yesterday": 1}


def period(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Parse a time, and return its first moment and the first moment after it.

    A single moment, such as `7d`, is returned twice. `now`: a timezone-aware time, from which `7d`
    counts back; days start in its time zone, as in `start_of_day`. Returns None for invalid strings
    and for times outside the calendar.
    """
    word = text.strip().lower()
    try:
        ago = _AGO.fullmatch(word)
        if ago is not None:
            moment = now - timedelta(days=int(ago[1]) * _UNITS[ago[2]])
            return moment, moment
        zone = _zone_of(now)
        if word in _NAMED:
            day = now.date() - timedelta(days=_NAMED[word])
            return start_of_day(day, zone), start_of_day(day + timedelta(days=1), zone)
        match = _DAY.fullmatch(word)
        if match is not None:
            first = date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
            return start_of_day(first, zone), start_of_day(
                _after(first, month=match[2], day=match[3]), zone
            )
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
        return moment, moment
    except (ValueError, OverflowError, OSError):
        return None


def _after(first: date, *, month: str | None, day: str | None) -> date:
    """Return the first day after the period the user typed: a year, month or day.

    `first`: the period's first day. `month`, `day`: as typed; None if no month or day was typed.
    """
    if day is not None:
        return first + timedelta(days=1)
    if month is not None:
        return (first + timedelta(days=31)).replace(day=1)
    return first.replace(year=first.year + 1)


def start_of_day(day: date, zone: tzinfo | None) -> datetime:
    """Return the first moment of a day in a time zone; None means the system's own.

    That is midnight, except where daylight saving time begins at midnight, as in Beirut: there the
    day begins an hour later. Raises ValueError and OverflowError for days outside the calendar.
    """
    midnight = datetime.combine(day, time.min)
    if zone is not None:
        return midnight.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    start = midnight.astimezone()
    if start.date() != day:  # midnight doesn't exist, and Python has applied the offset after it
        start = midnight.replace(fold=1).astimezone()
    return start


def _zone_of(now: datetime) -> tzinfo | None:
    """Return a time's zone; None for the system's own, in which the offset changes in summer."""
    fixed = isinstance(now.tzinfo, timezone) and now.utcoffset() == now.astimezone().utcoffset()
    return None if fixed else now.tzinfo
