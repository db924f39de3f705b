"""The activity in session files, by time, as it is cached."""

from __future__ import annotations

import msgspec.msgpack
from msgspec import Struct

from gemtui.sessions.catalog.cache import CachedRows
from gemtui.transcript.usage import Usage

UNKNOWN_TIME = -1
"""The time slot of activity without any plausible time. Its tokens count as unknown."""
SLOT = 900
"""The length of a time slot in seconds.

Slots are counted in quarters of an hour since 1970, because in every time zone days begin on a full
quarter.
"""
LONG_PROMPT = 200_000
"""The number of input tokens above which some models cost more."""
EXIT_CODE = "exit_code"
"""The result under which a command with a nonzero exit code is counted.

All other results are values of ToolStatus.
"""


class Answers(Struct, frozen=True, array_like=True, gc=False):
    """One model's answers within one time slot.

    * `long`: whether each of these answers has more than LONG_PROMPT input tokens.
    * `dropped`: whether they are no longer part of the conversation, because they were rewound,
      replaced, or part of a failed prompt.
    * `unknown`: how many of the answers don't have both their input and their output recorded,
      without which their cost is unknown.
    """

    slot: int
    model: str
    long: bool
    dropped: bool
    count: int
    unknown: int
    usage: Usage


class ToolCallCount(Struct, frozen=True, array_like=True, gc=False):
    """The number of calls to one tool that have the same result, in one time slot.

    `ended`: the result, which is a value of ToolStatus or EXIT_CODE.
    """

    tool: str
    ended: str
    count: int


class SlotActivity(Struct, frozen=True, array_like=True, gc=False):
    """The activity in one session file within one time slot.

    `prompts`: how many there are. `writes`: the paths of the files written. `own_cost`: the agent's
    own count for the whole file, in US dollars, in the file's last slot; None in any other.
    """

    slot: int
    prompts: int = 0
    answers: tuple[Answers, ...] = ()
    calls: tuple[ToolCallCount, ...] = ()
    writes: tuple[str, ...] = ()
    own_cost: float | None = None


FileActivity = tuple[SlotActivity, ...]
"""The activity in one session file, by time slot."""

ACTIVITIES: CachedRows[FileActivity] = CachedRows(
    file="activity.sqlite3",
    version=10,
    application=0x67656E00,
    decode=msgspec.msgpack.Decoder(FileActivity).decode,
)
"""The cache of activity and of its sums: a change of `Stats` or `Groups` needs a new version."""
