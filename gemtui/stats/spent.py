"""The usage of one conversation: its context, tokens and estimated cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gemtui.errors import GemtuiError
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.stats.activity import FileActivity, activities, answers_of
from gemtui.stats.prices import Prices
from gemtui.stats.report import UNKNOWN_MODEL, Stats, Sums, counted_sessions
from gemtui.transcript.model import Author, Outline


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How many tokens of a model's context a conversation uses.

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
    last = next((each for each in reversed(outlines) if each.author is Author.MODEL), None)
    if last is None or last.usage is None or last.usage.input is None:
        return None
    used = last.usage.input + (last.usage.output or 0)
    return ContextUse(used, prices.context(last.model or ""))


def sums_since(sessions: Iterable[Summary], prices: Prices, start: datetime, *, home: Path, cache: Path | None) -> Sums:
    """Return the tokens and cost of sessions since `start`. Blocking: reads files.

    `home`, `cache`: as in `activities`. A session that can't be read is counted as one answer
    without recorded tokens.
    """
    stats = Stats(prices, since=start, zone=None)
    recent = [each for each in counted_sessions(sessions, None) if each.when >= start]
    for session, found in activities(recent, home=home, cache=cache):
        if isinstance(found, FileActivity):
            stats.add(session, found)
        else:
            stats.total.unknown += 1
    return stats.total


def recorded_outlines(session: str, *, home: Path, cache: Path | None) -> Sequence[Outline]:
    """Return the outlines of the messages that a session contains at the moment.

    `session`: its id. `home`, `cache`: as in `Index`. Returns () if the session can't be found or
    read. Blocking, because it reads files.
    """
    try:
        path = Index(home, cache=cache).find(session).path
        with SessionLog(path) as log:
            log.refresh()
            return transcript_of(log, in_flight=False).outlines
    except (GemtuiError, OSError):
        return ()


def sums_of(outlines: Iterable[Outline], prices: Prices, now: datetime) -> Sums:
    """Return the tokens and cost of the answers in a conversation.

    `outlines`: its messages. `now`: the time for answers without one. Subagents are not included,
    because they have their own sessions.
    """
    sums = Sums()
    for each in answers_of(tuple(outlines), now):
        cost = prices.cost(each.model, each.usage, long=each.long)
        sums.add_answers(each, each.model or UNKNOWN_MODEL, cost)
    return sums
