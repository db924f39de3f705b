"""A moment as it is typed: `--since yesterday`, `--until 2026-11-20`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click


class Moment(click.ParamType[datetime]):
    """A date or time, local if it names no zone; days begin at midnight.

    `end`: the end of the day, month or year is meant.
    """

    name = "date"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the moment as an aware datetime."""
        from gemtui.moments import EXAMPLES, period

        if isinstance(value, datetime):
            return value
        found = period(str(value), datetime.now().astimezone())
        if found is None:
            self.fail(f"{value!r} is no date: take {EXAMPLES}", param, ctx)
        return found[self._end]
