"""Tool calls that were made, as recorded in a stored session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from gemtui.policy.model.rules import Call

ARGUMENT = 120
"""Characters of the argument that a reference contains."""


class CallStatus(StrEnum):
    """The status of a finished recorded call."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DENIED = "denied"
    REFUSED = "refused"
    """The tool itself refused it."""
    UNKNOWN = "unknown"
    """The session does not contain its outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One recorded call, with its tool name and arguments as they were recorded.

    `session`: the id of the session that contains it. `project`: that session's folder; None =
    unknown. `id`: the call's own id, which may be empty. The approval mode of its time is not
    stored.
    """

    call: Call
    session: str
    id: str
    ended: CallStatus
    project: Path | None = None
    time: datetime | None = None


class Reference(NamedTuple):
    """The location of a recorded call, without its arguments.

    `argument`: the most telling one, raw, at most 120 characters of it.
    """

    session: str
    id: str
    tool: str
    argument: str
    ended: CallStatus

    @classmethod
    def to(cls, recorded: RecordedCall) -> Reference:
        """Return the reference to a call."""
        call = recorded.call
        return cls(recorded.session, recorded.id, call.tool, short(call), recorded.ended)


_TELLING = ("command", "file_path", "absolute_path", "dir_path", "path", "pattern", "query", "url")


def short(call: Call) -> str:
    """Return the most telling argument of a call: its command, path, pattern…

    Otherwise, the first text among its arguments. At most 120 characters, raw, without blanks
    around its lines.
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
