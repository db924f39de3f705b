"""A moment as it is typed: `--since yesterday`, `7d`, `2026-11-20`, `2026-11-20T12:00`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_DAYS = {"today": 0, "yesterday": 1}
_AGO = re.compile(r"(\d{1,5})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


class Moment(click.ParamType[datetime]):
    """A date or time, local if it names no zone; days begin at midnight."""

    name = "date"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002
        ctx: click.Context | None,  # noqa: ARG002
    ) -> datetime:
        """Return the moment as an aware datetime."""
        if isinstance(value, datetime):
            return value
        now = datetime.now().astimezone()
        if value in _DAYS:
            day = now.date() - timedelta(days=_DAYS[value])
            return datetime.combine(day, datetime.min.time()).astimezone()
        if ago := _AGO.fullmatch(value):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is no date: take 2026-11-20, today, yesterday, 12h, 7d or 2w")
