"""Tool calls as they are recorded in stored sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from gemtui.calls.paths import PATH_ARGUMENTS
from gemtui.policy.model.rules import Call

ARGUMENT = 120
"""The maximum length, in characters, of a reference's `argument`."""


class CallStatus(StrEnum):
    """How a recorded call ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DENIED = "denied"
    REFUSED = "refused"
    """The tool itself refused the call."""
    UNKNOWN = "unknown"
    """The session does not contain the call's outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A recorded call, with its tool name and arguments as they were recorded.

    `session`: the id of the session that contains the call. `id`: the call's own id, which may be
    "". `ended`: how the call ended. `project`: the folder the session worked in; None if unknown.
    The approval mode in force at that time is not recorded.
    """

    call: Call
    session: str
    id: str
    ended: CallStatus
    project: Path | None = None
    time: datetime | None = None


class Reference(NamedTuple):
    """Enough about a recorded call to find it again and to show it in a list.

    `argument`: the call's most informative argument, as returned by `short`.
    """

    session: str
    id: str
    tool: str
    argument: str
    ended: CallStatus

    @classmethod
    def to(cls, recorded: RecordedCall) -> Reference:
        """Return a reference to a recorded call."""
        call = recorded.call
        return cls(recorded.session, recorded.id, call.tool, short(call), recorded.ended)


_TELLING = ("command", *PATH_ARGUMENTS, "dir_path", "pattern", "query", "url")


def short(call: Call) -> str:
    """Return a call's most informative argument, such as its command or path.

    If there is none, the first string among the arguments is returned. The result has at most 120
    characters, and no blanks at the ends of its lines; control characters are not escaped.
    """
    args = call.args
    for name in _TELLING:
        text = args.get(name)
        if isinstance(text, str) and text:
            break
    else:
        text = next((value for value in args.values() if isinstance(value, str) and value), "")
    text = text[: ARGUMENT * 4]
    if "\n" not in text:
        return text.strip(" \t")[:ARGUMENT]
    lines = text.split("\n")
    return "\n".join(filter(None, (line.strip(" \t") for line in lines)))[:ARGUMENT]
