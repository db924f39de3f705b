"""Parse times that users type: `yesterday`, `7d`, `2026-11`, `2026-11-20T12:00`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone

EXAMPLES = "2026-11-20, today, yesterday, 12h, 7d or 2w"
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_AGO = re.compile(r"(\d{1,5})([hdwmy])")
_UNITS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_NAMED = {"today": 0, "yesterday": 1}


def period(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Parse a time, and return its first moment and the first moment after it.

    A single moment, such as `7d`, is returned twice. `now`: a timezone-aware time, from which `7d`
    counts back; days start at midnight in its time zone. Returns None for invalid strings and for
    times outside the calendar.
    """
    word = text.strip().lower()
    try:
        if (ago := _AGO.fullmatch(word)) is not None:
            moment = now - timedelta(days=int(ago[1]) * _UNITS[ago[2]])
            return moment, moment
        midnight = _midnight_in(now)
        if word in _NAMED:
            day = now.date() - timedelta(days=_NAMED[word])
            return midnight(day), midnight(day + timedelta(days=1))
        if (found := _DAY.fullmatch(word)) is not None:
            first = date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
            return midnight(first), midnight(_after(first, month=found[2], day=found[3]))
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo is not None else _in_zone(moment, now)
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


def _midnight_in(now: datetime) -> Callable[[date], datetime]:
    return lambda day: _in_zone(datetime.combine(day, time.min), now)


def _in_zone(local: datetime, now: datetime) -> datetime:
    """Attach the time zone of `now` to a local time.

    If `now` is in the system's own time zone, daylight saving time is applied.
    """
    fixed = isinstance(now.tzinfo, timezone) and now.utcoffset() == now.astimezone().utcoffset()
    return local.astimezone() if fixed else local.replace(tzinfo=now.tzinfo)
