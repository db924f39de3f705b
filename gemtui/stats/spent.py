"""The usage of one conversation: its context, tokens and estimated cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gemtui.errors import GemtuiError
from gemtui.sessions.index import Index
from gemtui.sessions.load import transcript_of
from gemtui.sessions.session_log import SessionLog
from gemtui.sessions.summary import Summary
from gemtui.stats.activity import FileActivity, activities, answers_of
from gemtui.stats.prices import Prices
from gemtui.stats.report import UNKNOWN_MODEL, Stats, Sums, counted_sessions
from gemtui.transcript.model import Author, Outline


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How much of a context is in use, in tokens.

    `limit`: the model's limit; None if unknown.
    """

    used: int
    limit: int | None

    @property
    def percent(self) -> int | None:
        """The used part of the context, as a percentage; None if unknown."""
        return None if self.limit is None else round(100 * self.used / self.limit)


def context_use(outlines: Sequence[Outline], prices: Prices) -> ContextUse | None:
    """Return how much of the context the conversation will use with its next prompt.

    That is at least the tokens of the last answer and of its input. Returns None if they are
    unknown.
    """
    last = next((each for each in reversed(outlines) if each.author is Author.MODEL), None)
    if last is None or last.usage is None or last.usage.input is None:
        return None
    used = last.usage.input + (last.usage.output or 0)
    return ContextUse(used, prices.context(last.model or ""))


def sums_since(
    sessions: Iterable[Summary],
    prices: Prices,
    start: datetime,
    *,
    home: Path,
    cache: Path | None,
) -> Sums:
    """Return the tokens and cost of all sessions since `start`. Blocking: reads files.

    `home`, `cache`: as in `activities`. A session that can't be read is counted as an answer
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
    """Return the outlines of a session's messages, with the tokens recorded so far.

    `home`, `cache`: as in `Index`. Returns () if the session can't be found or read. Blocking,
    because it reads files.
    """
    try:
        path = Index(home, cache=cache).find(session).path
        with SessionLog(path) as log:
            log.refresh()
            return transcript_of(log, in_flight=False).outlines
    except (GemtuiError, OSError):
        return ()


def sums_of(outlines: Iterable[Outline], prices: Prices, now: datetime) -> Sums:
    """Return the tokens and cost of these answers.

    Subagents are not included, because they have their own sessions.
    """
    sums = Sums()
    for each in answers_of(tuple(outlines), now):
        cost = prices.cost(each.model, each.usage, long=each.long)
        sums.add_answers(each, each.model or UNKNOWN_MODEL, cost)
    return sums
