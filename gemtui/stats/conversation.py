"""The tokens and cost of one conversation, and its share of a model's context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from gemtui.errors import GemtuiError
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.stats.counting import answers_of
from gemtui.stats.prices import Prices
from gemtui.stats.report import Sums, with_cost
from gemtui.transcript.model import Author, Outline


class ContextUse(Struct, frozen=True):
    """The tokens of a model's context that a conversation uses.

    `limit`: the size of the context; None if unknown.
    """

    used: int
    limit: int | None

    @property
    def percent(self) -> int | None:
        """The part of the context that is used, as a percentage; None if unknown."""
        return None if self.limit is None else round(100 * self.used / self.limit)


def context_use(outlines: Sequence[Outline], prices: Prices) -> ContextUse | None:
    """Return how much of the context the conversation will use with its next prompt.

    This is at least the last answer and its input. Returns None if their tokens are unknown.
    """
    last = next((outline for outline in reversed(outlines) if outline.author is Author.MODEL), None)
    if last is None or last.usage is None or last.usage.input is None:
        return None
    used = last.usage.input + (last.usage.output or 0)
    return ContextUse(used, prices.context(last.model or ""))


def recorded_outlines(session: str, *, home: Path, cache: Path | None) -> Sequence[Outline]:
    """Return the outlines of the messages that a session contains at the moment.

    `session`: its id. `home`, `cache`: as in `Index`. Returns () if the session can't be found or
    read. Blocking, because it reads files.
    """
    try:
        path = Index(home, cache=cache).find(session).path
        with SessionLog.read(path) as log:
            return transcript_of(log, in_flight=False).outlines
    except (GemtuiError, OSError):
        return ()


def sums_of(outlines: Iterable[Outline], prices: Prices, now: datetime) -> Sums:
    """Return the tokens and cost of the answers in a conversation.

    `outlines`: its messages. `now`: the time for answers without one. Subagents are not included,
    because they have their own sessions.
    """
    sums = Sums()
    sums.add_answers([with_cost(answers, prices) for answers in answers_of(tuple(outlines), now)])
    return sums
