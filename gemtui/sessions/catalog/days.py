"""The day headings of a list sorted by time."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, tzinfo

from msgspec import Struct


class DaySpan(Struct, frozen=True):
    """A day, or several days of one month that share a heading.

    The span includes `start` and excludes `end`; if `end` is None, the span has no end.
    """

    name: str
    start: datetime
    end: datetime | None

    def __contains__(self, when: datetime | None) -> bool:
        return when is not None and self.start <= when and (self.end is None or when < self.end)


class Days:
    """Assigns times to headings such as Today, Monday, and March 2026.

    `now`: the current time, which decides what today is. `tz`: the time zone in which days begin;
    None means the local one. Today, yesterday, and the five days before have their own headings.
    Earlier days share one heading per month, because otherwise half of a list would be headings.
    """

    def __init__(self, now: datetime, tz: tzinfo | None = None) -> None:
        self.tz = tz
        self.today = now.astimezone(tz).date()

    def span_of(self, when: datetime) -> DaySpan:
        """Return the day or month under whose heading a time belongs.

        A time in the future, which comes from a wrong clock, belongs under today.
        """
        day = when.astimezone(self.tz).date()
        ago = (self.today - day).days
        if ago <= 0:
            return DaySpan("Today", self._start(self.today), None)
        if ago <= _NAMED:
            name = "Yesterday" if ago == 1 else f"{day:%A}"
            return DaySpan(name, self._start(day), self._start(day + _DAY))
        first = day.replace(day=1)
        following = (first + 31 * _DAY).replace(day=1)
        this_month = following > self.today
        end = min(following, self.today - _NAMED * _DAY)
        name = "Earlier this month" if this_month else f"{day:%B %Y}"
        return DaySpan(name, self._start(first), self._start(end))

    def moment(self, when: datetime) -> str:
        """Return the part of a time that its heading doesn't show: `23:11`, or `Sat 14`.

        Under the heading of a day, this is the time of day; under the heading of a month, the date.
        Call this only for days before today.
        """
        local = when.astimezone(self.tz)
        return f"{local:%H:%M}" if (self.today - local.date()).days <= _NAMED else f"{local:%a %d}"

    def _start(self, day: date) -> datetime:
        midnight = datetime.combine(day, time.min, self.tz)
        return midnight if self.tz is not None else midnight.astimezone()


_NAMED = 6
_DAY = timedelta(days=1)
