"""Find out when an exhausted quota is renewed, and wait until then.

The time is in messages from Gemini CLI and the API; see assets/gemini-cli.md#quota.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MARGIN = timedelta(seconds=5)
"""How long to wait beyond the reported time, because clocks differ."""
_LENGTH = r"((?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+)"
_AFTER = re.compile(rf"(?:quota will reset after|Suggested retry after|Please retry in)\s+{_LENGTH}", re.IGNORECASE)
_DELAY = re.compile(r"retryDelayMs: (\d+(?:\.\d+)?)")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DAILY = re.compile(r"exhausted your daily quota")
_LONGEST = 40 * 86400.0
"""The longest plausible delay, in seconds; longer ones in messages are ignored."""


def renewed_at(said: str, stderr: str, now: datetime) -> datetime | None:
    """Return when an exhausted quota is renewed; None if unknown.

    `said`: the run's error message. `stderr`: the CLI's stderr, which may contain the time if the
    error message doesn't. `now`: when the error occurred. A daily quota without a stated time is
    renewed at midnight Pacific time.
    """
    for text in (said, stderr):
        for delay in _delays(text):
            if 0 < delay <= _LONGEST:
                return now + timedelta(seconds=delay)
    return _midnight(now) if _DAILY.search(said) else None


def _delays(text: str) -> Iterator[float]:
    """Yield the delays mentioned in a message, in seconds, last one first."""
    for found in reversed(list(_AFTER.finditer(text))):
        parts = _PART.findall(found[1])
        yield sum(float(number) * _SECONDS[unit] for number, unit in parts)
    for found in reversed(list(_DELAY.finditer(text))):
        yield float(found[1]) / 1000


def _midnight(now: datetime) -> datetime | None:
    try:
        zone = ZoneInfo("America/Los_Angeles")
    except ZoneInfoNotFoundError:
        return None
    there = now.astimezone(zone) + timedelta(days=1)
    return there.replace(hour=0, minute=0, second=0, microsecond=0).astimezone(now.tzinfo)


def until_words(until: datetime, now: datetime) -> str:
    """Format a moment in local time: `09:00`, with the date unless it is today."""
    here = until.astimezone()
    return f"{here:%H:%M}" if here.date() == now.astimezone().date() else f"{here:%Y-%m-%d %H:%M}"


_STEP = 30.0
"""The most seconds between two looks at the clock.

Timers stop while a machine sleeps, so one long timer would end too late.
"""


async def wait_until(when: datetime, stopped: asyncio.Event) -> bool:
    """Wait until `MARGIN` after `when`, then return True.

    Returns False as soon as `stopped` is set.
    """
    while (left := (when + MARGIN - datetime.now(UTC)).total_seconds()) > 0:
        try:
            async with asyncio.timeout(min(left, _STEP)):
                await stopped.wait()
        except TimeoutError:
            continue
        return False
    return not stopped.is_set()
