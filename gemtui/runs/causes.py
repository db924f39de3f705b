"""Explain why a run failed, and suggest fixes, based on the CLI's messages and exit code.

Messages are considered before exit codes, because many exit codes are HTTP statuses mod 256, and 1
can mean anything (assets/gemini-cli.md#exit-codes). The suggestions name only commands that exist.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace

from gemtui.agent.approval import ALTERED, DIFFERS, MOVED, PASSED, UNGATED
from gemtui.agent.stream import signal_of

_LOGIN = (
    "set GEMINI_API_KEY to a key of Google AI Studio",
    "or set up Vertex AI: GOOGLE_GENAI_USE_VERTEXAI=true with project and location",
    "or start gemini once in a terminal and log in there",
)
_OTHER_LOGIN = _LOGIN[:2]
_LATER = ("try again later", "or choose another model")
_SERVICE = ("try again in a few minutes", "or choose another model")
_REPHRASE = ("word the prompt differently", "or choose another model")
_AGAIN = ("run it again, or continue the session",)
_PROMPT = ("write a prompt",)
_SESSION = ("run in the folder of the session to resume", "or start a new session")
_REPORT = ("see all that gemini said on stderr", "gemtui doctor looks at the installation")
_SANDBOX = ("install and start docker or podman", "or run without the sandbox")
_FLAGS = ("gemtui doctor says what this Gemini CLI takes", "update Gemini CLI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause of a failed run: a headline and suggested fixes, best first."""

    headline: str
    ways_out: tuple[str, ...] = ()
    quota: bool = False
    """Whether the cause is that a quota is exhausted."""


def _cause(headline: str, *ways_out: str) -> Cause:
    return Cause(headline=headline, ways_out=ways_out)


_LOGIN_MISSING = _cause("Gemini CLI is not logged in", *_LOGIN)
_TRUST = _cause(
    "Gemini CLI does not trust this folder",
    "run with --trust (for this run only), or answer yes when gemtui asks",
    "trusting also switches on the project's own settings, hooks and MCP servers",
)
_TURNS = _cause("The turn limit was reached", "continue the session", "or allow more turns")
_FULL = _cause("The disk is full", "make room, then continue the session")
_START = _cause("Gemini CLI could not be started", "gemtui doctor says what is wrong", *_FLAGS[1:])

_MODEL = ("name another model",)
_QUOTA = replace(
    _cause("The quota of this model is used up", "wait until it is renewed", *_LATER[1:]),
    quota=True,
)
_WORDS: tuple[tuple[str, Cause], ...] = (
    (
        r"IneligibleTier|not eligible|ineligible"
        r"|(account|individual|tier)s?\b[^\n]*no longer (supported|available|eligible)",
        _cause("Google refuses this account for Gemini CLI", *_OTHER_LOGIN),
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
        _cause("The answer broke off: the connection was lost, or Google blocked it", *_AGAIN),
    ),
    (r"malformed function call", _cause("Gemini made a tool call that can't be read", *_AGAIN)),
    (
        r"response was blocked|prompt was blocked|recitation|PROHIBITED_CONTENT",
        _cause("Google's filters blocked the answer", *_REPHRASE),
    ),
    (r"empty response", _cause("Gemini answered nothing", *_AGAIN)),
    (r"no final response text", _cause("Gemini only thought and answered nothing", *_AGAIN)),
    (
        r"yolo mode is disabled|disableYolo",
        _cause("The settings of Gemini CLI forbid yolo mode", "choose another mode"),
    ),
    (
        r"FatalSandboxError|GEMINI_SANDBOX|sandbox command",
        _cause("The sandbox can't be used", *_SANDBOX),
    ),
    (r"No input provided via stdin", _cause("There was no prompt", *_PROMPT)),
    (
        r"Error resuming|Invalid session identifier|No previous sessions",
        _cause("The session to resume is not in this project", *_SESSION),
    ),
    (
        r"Unknown arguments?:|Invalid values:|Not enough arguments|Cannot use both",
        _cause("Gemini CLI rejected at least one of these options", *_FLAGS),
    ),
    (r"is not valid JSON|SyntaxError", _cause("Gemini sent something that can't be read", *_AGAIN)),
    (
        rf"{UNGATED}|{PASSED}",
        _cause(
            "The run was stopped, since nobody could be asked",
            "see gemtui extension status",
            "or run without being asked: what would be asked about is refused then",
        ),
    ),
    (
        ALTERED,
        _cause(
            "The run was ended, since what ran was not what you allowed",
            "look for BeforeTool hooks in Gemini CLI's settings and extensions",
        ),
    ),
    (
        DIFFERS,
        _cause(
            "The run was ended, since a file differs from what you approved",
            "see both texts by gemtui runs show, or by D in the run pane",
            "D puts the former text back",
        ),
    ),
    (MOVED, _cause("The run was stopped, since nobody could be asked", "start it where it is now")),
    (
        r"supervisor of this run was killed",
        _cause("The process that looked after the run was killed, and the run ended", *_AGAIN),
    ),
    (r"the folder .* is not there", _cause("The folder to run in is not there", "choose another")),
)

_CODES = {
    41: _LOGIN_MISSING,
    42: _cause("Gemini CLI did not accept the prompt or the session", *_PROMPT, *_SESSION),
    44: _cause("The sandbox can't be used", *_SANDBOX),
    52: _cause(
        "A settings file of Gemini CLI is broken, or forbids this run", "look at settings.json"
    ),
    53: _TURNS,
    54: _cause("A tool failed so that the run could not go on", "see the last tool call"),
    55: _TRUST,
    130: _cause("The run was cancelled", *_AGAIN),
}

_HTTP = {
    400: _cause("Gemini did not accept the request (400)", "continue in a new session"),
    401: _cause("Gemini did not accept the login (401)", *_LOGIN),
    403: _cause(
        "Gemini denies access (403)", "check what this key or project may use", *_OTHER_LOGIN
    ),
    404: _cause("There is no such model (404)", "name another model"),
    429: replace(_cause("Too many requests, or the quota is used up (429)", *_LATER), quota=True),
}

_HTTP_STATUS = re.compile(r'"code":\s*([45]\d\d)\b|\bstatus:? ([45]\d\d)\b')
_FIRST_HTTP, _LAST_HTTP = 400 - 256, 255


def cause_of(message: str, stderr: str, code: int | None) -> Cause:
    """Return the cause of a failed run.

    `message`: its error message. `stderr`: its output to stderr. `code`: as in `Popen.returncode`;
    None if the run was not started.
    """
    found = _by_words(message)
    if found is None and (number := signal_of(code)):
        return _cause(f"Gemini CLI was ended from outside ({_signal(number)})", *_AGAIN)
    found = found or (None if _http(message, None) else _by_words(stderr))
    status = _http(message, code)
    return found or _by_status(status) or _by_code(code)


def _by_words(text: str) -> Cause | None:
    matches = (cause for pattern, cause in _WORDS if re.search(pattern, text, re.IGNORECASE))
    return next(matches, None)


def _http(message: str, code: int | None) -> int | None:
    """Return the HTTP status behind a failure, or None.

    The status is taken from the message, or else from an exit code that can only be an HTTP status.
    """
    found = _HTTP_STATUS.search(message)
    if found:
        return int(found[1] or found[2])
    return code + 256 if code is not None and _FIRST_HTTP <= code <= _LAST_HTTP else None


def _by_status(status: int | None) -> Cause | None:
    if status is None:
        return None
    if status >= 500:
        return _cause(f"Gemini is overloaded or out of order ({status})", *_SERVICE)
    return _HTTP.get(status) or _cause(f"Gemini refused the request ({status})", *_LATER)


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
