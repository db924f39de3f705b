"""Explain why a run failed, and suggest fixes, such as waiting until a quota is renewed.

The cause is found from the CLI's messages first and from its exit code last, because many exit
codes are HTTP statuses modulo 256, and 1 can mean anything (assets/gemini-cli.md#exit-codes). The
suggestions name only commands that exist. When an exhausted quota is renewed is in messages from
Gemini CLI and the API; see assets/gemini-cli.md#quota.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gemtui.agent.approval import ALTERED, DIFFERS, MOVED, PASSED, UNGATED
from gemtui.agent.stream import signal_of

_LOGIN = (
    "set GEMINI_API_KEY to a key from Google AI Studio",
    "or set up Vertex AI: GOOGLE_GENAI_USE_VERTEXAI=true with project and location",
    "or start gemini once in a terminal and log in there",
)
_OTHER_LOGIN = _LOGIN[:2]
_LATER = ("try again later", "or choose another model")
_SERVICE = ("try again in a few minutes", "or choose another model")
_REPHRASE = ("rephrase the prompt", "or choose another model")
_AGAIN = ("run it again, or continue the session",)
_PROMPT = ("write a prompt",)
_SESSION = ("run in the folder of the session that you want to continue", "or start a new session")
_REPORT = (
    "see everything that Gemini CLI printed on stderr",
    "check the installation with gemtui doctor",
)
_SANDBOX = ("install and start docker or podman", "or run without the sandbox")
_FLAGS = ("gemtui doctor lists the options that this Gemini CLI supports", "update Gemini CLI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a run failed.

    `headline`: the cause in a few words. `ways_out`: suggested fixes, best first.
    """

    headline: str
    ways_out: tuple[str, ...] = ()
    quota: bool = False
    """Whether the run failed because a quota is exhausted."""


def _cause(headline: str, *ways_out: str) -> Cause:
    return Cause(headline=headline, ways_out=ways_out)


_LOGIN_MISSING = _cause("Gemini CLI is not logged in", *_LOGIN)
_TRUST = _cause(
    "Gemini CLI does not trust this folder",
    "run with --trust (for this run only), or answer yes when gemtui asks",
    "trusting it also enables the project's own settings, hooks and MCP servers",
)
_TURNS = _cause("The turn limit was reached", "continue the session", "or allow more turns")
_FULL = _cause("The disk is full", "free some space, then continue the session")
_START = _cause(
    "Gemini CLI could not be started", "run gemtui doctor to see what is wrong", *_FLAGS[1:]
)

_MODEL = ("name another model",)
_QUOTA = replace(
    _cause("The quota of this model is used up", "wait for the quota to reset", *_LATER[1:]),
    quota=True,
)
_WORDS: tuple[tuple[str, Cause], ...] = (
    (
        r"IneligibleTier|not eligible|ineligible"
        r"|(account|individual|tier)s?\b[^\n]*no longer (supported|available|eligible)",
        _cause("Google does not allow this account to use Gemini CLI", *_OTHER_LOGIN),
    ),
    (r"API key not valid|API_KEY_INVALID", _cause("The API key is not valid", *_OTHER_LOGIN)),
    (r"GEMINI_API_KEY environment variable|Invalid auth method|set an Auth method", _LOGIN_MISSING),
    (r"not running in a trusted directory", _TRUST),
    (
        r"daily quota|TerminalQuota|exceeded your current quota|exhausted your (capacity|quota)",
        _QUOTA,
    ),
    (r"models?/\S+ (is|was) not found|ModelNotFound", _cause("There is no such model", *_MODEL)),
    (r"no_space_left|ENOSPC|No space left on device", _FULL),
    (
        r"without a finish reason",
        _cause("The answer was cut off: the connection was lost, or Google blocked it", *_AGAIN),
    ),
    (r"malformed function call", _cause("Gemini made a malformed tool call", *_AGAIN)),
    (
        r"response was blocked|prompt was blocked|recitation|PROHIBITED_CONTENT",
        _cause("Google's filters blocked the answer", *_REPHRASE),
    ),
    (r"empty response", _cause("Gemini did not answer", *_AGAIN)),
    (r"no final response text", _cause("Gemini returned thoughts but no answer", *_AGAIN)),
    (
        r"yolo mode is disabled|disableYolo",
        _cause("Gemini CLI's settings forbid yolo mode", "choose another mode"),
    ),
    (
        r"FatalSandboxError|GEMINI_SANDBOX|sandbox command",
        _cause("The sandbox can't be used", *_SANDBOX),
    ),
    (r"No input provided via stdin", _cause("There was no prompt", *_PROMPT)),
    (
        r"Error resuming|Invalid session identifier|No previous sessions",
        _cause("The session to continue is not in this project", *_SESSION),
    ),
    (
        r"Unknown arguments?:|Invalid values:|Not enough arguments|Cannot use both",
        _cause("Gemini CLI did not accept at least one of these options", *_FLAGS),
    ),
    (
        r"is not valid JSON|SyntaxError",
        _cause("Gemini sent a response that can't be parsed", *_AGAIN),
    ),
    (
        rf"{UNGATED}|{PASSED}",
        _cause(
            "The run was stopped because gemtui could not ask you",
            "check the extension with gemtui extension status",
            "or run without “Ask me”; calls that need approval are then denied",
        ),
    ),
    (
        ALTERED,
        _cause(
            "The run was stopped because a tool did not run as you had approved it",
            "check the BeforeTool hooks in Gemini CLI's settings and extensions",
        ),
    ),
    (
        DIFFERS,
        _cause(
            "The run was stopped because a file differs from what you approved",
            "compare both versions with gemtui runs show, or press D in the run pane",
            "to restore the earlier contents, press D in the run pane",
        ),
    ),
    (
        MOVED,
        _cause(
            "The run was stopped because gemtui could not ask you",
            "start the run again in the folder's new location",
        ),
    ),
    (
        r"supervisor of this run was killed",
        _cause("The run ended because gemtui's supervisor process was killed", *_AGAIN),
    ),
    (
        r"the folder .* is not there",
        _cause("The working folder does not exist", "choose another folder"),
    ),
)

_CODES = {
    41: _LOGIN_MISSING,
    42: _cause("Gemini CLI did not accept the prompt or the session", *_PROMPT, *_SESSION),
    44: _cause("The sandbox can't be used", *_SANDBOX),
    52: _cause(
        "A settings file of Gemini CLI is broken or forbids this run", "check settings.json"
    ),
    53: _TURNS,
    54: _cause("A tool failed, so the run could not continue", "check the last tool call"),
    55: _TRUST,
    130: _cause("The run was cancelled", *_AGAIN),
}

_HTTP = {
    400: _cause("Gemini did not accept the request (400)", "continue in a new session"),
    401: _cause("Gemini did not accept the login (401)", *_LOGIN),
    403: _cause(
        "Gemini denies access (403)",
        "check what this key or project is allowed to use",
        *_OTHER_LOGIN,
    ),
    404: _cause("There is no such model (404)", "name another model"),
    429: replace(_cause("Too many requests, or the quota is used up (429)", *_LATER), quota=True),
}

_HTTP_STATUS = re.compile(r'"code":\s*([45]\d\d)\b|\bstatus:? ([45]\d\d)\b')
_FIRST_HTTP, _LAST_HTTP = 400 - 256, 255


def cause_of(message: str, stderr: str, code: int | None) -> Cause:
    """Return why a run failed.

    `message`: the run's error message. `stderr`: what it wrote to stderr. `code`: the exit code, as
    in `Popen.returncode`; None if the run was not started.
    """
    found = _by_words(message)
    if found is None and (number := signal_of(code)):
        return _cause(f"Gemini CLI was killed by something else ({_signal(number)})", *_AGAIN)
    found = found or (None if _http(message, None) else _by_words(stderr))
    status = _http(message, code)
    return found or _by_status(status) or _by_code(code)


def _by_words(text: str) -> Cause | None:
    matches = (cause for pattern, cause in _WORDS if re.search(pattern, text, re.IGNORECASE))
    return next(matches, None)


def _http(message: str, code: int | None) -> int | None:
    """Return the HTTP status that caused a failure; None if there is none.

    It is in the message, or is derived from an exit code that can only be an HTTP status modulo
    256.
    """
    found = _HTTP_STATUS.search(message)
    if found:
        return int(found[1] or found[2])
    return code + 256 if code is not None and _FIRST_HTTP <= code <= _LAST_HTTP else None


def _by_status(status: int | None) -> Cause | None:
    if status is None:
        return None
    if status >= 500:
        return _cause(f"Gemini is overloaded or unavailable ({status})", *_SERVICE)
    return _HTTP.get(status) or _cause(f"Gemini rejected the request ({status})", *_LATER)


def _by_code(code: int | None) -> Cause:
    if code is None:
        return _START
    if code in _CODES:
        return _CODES[code]
    return _cause(f"Gemini CLI failed (exit code {code})", *_REPORT)


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
