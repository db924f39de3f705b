"""What one conversation has used: how full the model's context is, and what it may have cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gemtui.sessions.summary import Summary
from gemtui.stats.activity import FileActivity, activities, answers_of
from gemtui.stats.prices import Prices
from gemtui.stats.report import UNKNOWN_MODEL, Stats, Sums, counted_sessions
from gemtui.transcript.model import Author, Outline


@dataclass(frozen=True, slots=True)
class ContextUse:
    """How much of a context is used, in tokens; `limit`: of the model, None = unknown."""

    used: int
    limit: int | None

    @property
    def percent(self) -> int | None:
        """The share that is used; None = unknown."""
        return None if self.limit is None else round(100 * self.used / self.limit)


def context_use(outlines: Sequence[Outline], prices: Prices) -> ContextUse | None:
    """Return what the next prompt finds in the context: the last answer and what it was given.

    None: the tokens of the last answer are unknown.
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
    """Return what all sessions used and cost since `start`; reads files.

    `home`, `cache`: as `activities` takes them. What can't be read counts as unknown.
    """
    stats = Stats(prices, since=start, zone=None)
    recent = [each for each in counted_sessions(sessions, None) if each.when >= start]
    for session, found in activities(recent, home=home, cache=cache):
        if isinstance(found, FileActivity):
            stats.add(session, found)
        else:
            stats.total.unknown += 1
    return stats.total


def sums_of(outlines: Iterable[Outline], prices: Prices, now: datetime) -> Sums:
    """Return what these answers used and cost; subagents have sessions of their own."""
    sums = Sums()
    for each in answers_of(tuple(outlines), now):
        cost = prices.cost(each.model, each.usage, long=each.long)
        sums.add_answers(each, each.model or UNKNOWN_MODEL, cost)
    return sums
