"""Explain why a run failed, and suggest fixes, such as waiting until a quota is renewed.

The cause is found from the CLI's messages first and from its exit code last, because many exit
codes are HTTP statuses modulo 256, and 1 can mean anything (assets/gemini-cli.md#exit-codes). The
causes and the suggestions, which name only commands that exist, are in `causes.toml`. When an
exhausted quota is renewed is in messages from Gemini CLI and the API; see
assets/gemini-cli.md#quota.
"""

from __future__ import annotations

import asyncio
import re
import signal
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Struct

from gemtui.agent.stream import signal_of
from gemtui.agents import WORDS, Agent, Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause of a run's failure.

    `headline`: the cause in a few words. `ways_out`: suggested fixes, best first.
    """

    headline: str
    ways_out: tuple[str, ...] = ()
    quota: bool = False
    """Whether the run failed because a quota is exhausted."""
    tells_all: bool = False
    """Whether the CLI's own message says no more than this."""


class _CauseRow(Struct, frozen=True, forbid_unknown_fields=True, rename={"shared": "and"}):
    headline: str
    ways_out: tuple[str, ...] = ()
    shared: str = ""
    quota: bool = False
    tells_all: bool = False
    pattern: str = ""


class _CausesFile(Struct, frozen=True, forbid_unknown_fields=True):
    shared: Mapping[str, tuple[str, ...]] = {}
    messages: Sequence[_CauseRow] = ()
    codes: Mapping[int, _CauseRow] = {}
    http: Mapping[int, _CauseRow] = {}

    def cause(self, row: _CauseRow) -> Cause:
        """Return the cause in a row."""
        shared = self.shared[row.shared] if row.shared else ()
        ways_out = (*row.ways_out, *shared)
        return Cause(
            headline=row.headline, ways_out=ways_out, quota=row.quota, tells_all=row.tells_all
        )

    def other(self, headline: str, shared: str) -> Cause:
        """Return a cause that has no row, with a shared list of fixes."""
        return Cause(headline=headline, ways_out=self.shared.get(shared, ()))


@cache
def _table(agent: Agent) -> _CausesFile:
    """Return the table that is shipped with gemtui; an empty one except for Gemini CLI."""
    if agent is not Agent.GEMINI:
        return _CausesFile()
    text = Path(__file__).with_name("causes.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _CausesFile, strict=False)


_HTTP_STATUS = re.compile(r'"code":\s*([45]\d\d)\b|\bstatus:? ([45]\d\d)\b')
_FIRST_HTTP, _LAST_HTTP = 400 - 256, 255


def cause_of(message: str, stderr: str, code: int | None, agent: Agent = Agent.GEMINI) -> Cause:
    """Return why a run failed.

    `message`: the run's error message. `stderr`: what it wrote to stderr. `code`: the exit code, as
    in `Popen.returncode`; None if the run was not started.
    """
    table, words = _table(agent), WORDS[agent]
    by_message = _by_words(message, table)
    if by_message is not None:
        return by_message
    number = signal_of(code)
    if number:
        killed = f"{words.program} was killed by something else ({_signal(number)})"
        return table.other(killed, "again")
    status = _http(message, code)
    if _http(message, None) is None:
        by_stderr = _by_words(stderr, table)
        if by_stderr is not None:
            return by_stderr
    return _by_code(code, table, words) if status is None else _by_status(status, table, words)


def _by_words(text: str, table: _CausesFile) -> Cause | None:
    for row in table.messages:
        if re.search(row.pattern, text, re.IGNORECASE):
            return table.cause(row)
    return None


def _http(message: str, code: int | None) -> int | None:
    """Return the HTTP status that caused a failure; None if there is none.

    It is in the message, or is derived from an exit code that can only be an HTTP status modulo
    256.
    """
    match = _HTTP_STATUS.search(message)
    if match:
        return int(match[1] or match[2])
    return code + 256 if code is not None and _FIRST_HTTP <= code <= _LAST_HTTP else None


def _by_status(status: int, table: _CausesFile, words: Words) -> Cause:
    if status >= 500:
        return table.other(f"{words.speaker} is overloaded or unavailable ({status})", "service")
    if status in table.http:
        return table.cause(table.http[status])
    return table.other(f"{words.speaker} rejected the request ({status})", "later")


def _by_code(code: int | None, table: _CausesFile, words: Words) -> Cause:
    if code is None:
        return table.other(f"{words.program} could not be started", "start")
    if code in table.codes:
        return table.cause(table.codes[code])
    return table.other(f"{words.program} failed (exit code {code})", "report")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# --- quotas ---------------------------------------------------------------------------------------


MARGIN = timedelta(seconds=5)
"""How long to wait beyond the reported time, because clocks differ."""
_LENGTH = r"((?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+)"
_AFTER = re.compile(
    rf"(?:quota will reset after|Suggested retry after|Please retry in)\s+{_LENGTH}", re.IGNORECASE
)
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
    for match in reversed(list(_AFTER.finditer(text))):
        parts = _PART.findall(match[1])
        yield sum(float(number) * _SECONDS[unit] for number, unit in parts)
    for match in reversed(list(_DELAY.finditer(text))):
        yield float(match[1]) / 1000


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
