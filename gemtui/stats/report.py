"""Sum up the activity of sessions: in total and by group, or of one conversation with its
context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from gemtui.errors import GemtuiError
from gemtui.jsonout import fields
from gemtui.sessions.catalog.counted import Counted, counted_sessions
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import normalized_path
from gemtui.stats.activity import (
    EXIT_CODE,
    SLOT,
    UNKNOWN_TIME,
    Answers,
    FileActivity,
    SlotActivity,
    activities,
    answers_of,
)
from gemtui.stats.prices import Prices
from gemtui.transcript.model import Author, Outline, ToolStatus, Usage

K = TypeVar("K")
UNKNOWN_MODEL = "(unknown)"
"""The name under which answers of an unknown model are counted."""
_FAILED = frozenset({EXIT_CODE, *(status.value for status in ToolStatus if status.failed)})


class Sums(Struct):
    """The activity in one group, such as a day or a project.

    * `sessions`: their ids; what a subagent did counts for the session that called the subagent.
    * `usage`: the tokens of answers in the conversation.
    * `dropped`: the tokens of rewound, replaced or failed answers, which cost money as well.
    * `unknown`: how many answers don't have all tokens recorded that they cost.
    * `calls`: how many tool calls there were, by result.
    * `files`: the paths of the files written.
    * `cost`: in US dollars, for all answers whose model has a price.
    * `priced`: whether any answer has a known cost.
    * `unpriced`: the models without a price.
    """

    sessions: set[str] = field(default_factory=set)
    prompts: int = 0
    answers: int = 0
    unknown: int = 0
    usage: Usage = field(default_factory=Usage)
    dropped: Usage = field(default_factory=Usage)
    calls: Counter[str] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    cost: float = 0.0
    priced: bool = False
    unpriced: set[str] = field(default_factory=set)

    def add_answers(self, answers: Answers, model: str, cost: float | None) -> None:
        """Add a model's answers within a time slot.

        `cost`: their cost in US dollars; None if the model has no price.
        """
        if answers.dropped:
            self.dropped += answers.usage
        else:
            self.answers += answers.count
            self.unknown += answers.unknown
            self.usage += answers.usage
        if cost is None:
            self.unpriced.add(model)
        elif answers.usage != Usage():
            self.cost, self.priced = self.cost + cost, True

    @property
    def dollars(self) -> str:
        """The cost for display: `$0.12`, `$0.12+` if partly unknown, `?` if unknown.

        "" if there is nothing to pay for.
        """
        if not self.priced:
            return "?" if self.unpriced or self.unknown else ""
        return f"${self.cost:,.2f}{'+' if self.unpriced or self.unknown else ''}"

    @property
    def failures(self) -> dict[str, int]:
        """How many calls failed, by result."""
        return {ended: count for ended, count in sorted(self.calls.items()) if ended in _FAILED}

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as JSON values; null means unknown."""
        return fields(
            self,
            "prompts",
            "answers",
            "failures",
            answers_without_tokens="unknown",
            tokens="usage",
            tokens_dropped="dropped",
        ) | {
            "sessions": len(self.sessions),
            "tool_calls": self.calls.total(),
            "files_written": len(self.files),
            "cost": round(self.cost, 6) if self.priced else None,
            "models_without_price": sorted(self.unpriced),
        }


class Stats:
    """Sums over sessions, by group.

    Call `add` for each session, then read the groups. `prices`: None if they are unknown. `since`:
    ignore earlier activity, and activity without a known time. `zone`: the time zone for days and
    hours.
    """

    def __init__(
        self, prices: Prices | None, *, since: datetime | None, zone: tzinfo | None
    ) -> None:
        self.prices = prices
        self.total = Sums()
        self.projects: dict[str, Sums] = {}
        self.models: dict[str, Sums] = {}
        self.days: dict[date, Sums] = {}
        self.tools: dict[str, Sums] = {}
        self.hours: dict[int, Sums] = {}
        self.week: Counter[tuple[int, int]] = Counter()
        """The number of answers by weekday (0 is Monday) and hour."""
        self._zone = zone
        self._first = UNKNOWN_TIME if since is None else int(-(-since.timestamp() // SLOT))
        self._times: dict[int, tuple[date, int]] = {}

    def add(self, session: Counted, activity: FileActivity) -> None:
        """Add a session's activity to all groups it belongs to."""
        for part in activity:
            prompts = 0 if session.is_subagent else part.prompts
            if part.slot >= self._first and (prompts or part.answers or part.calls or part.writes):
                self._add(session, part, prompts)

    def _add(self, session: Counted, part: SlotActivity, prompts: int) -> None:
        """Add the activity within a time slot. `prompts`: how many of its prompts count."""
        answers = [(one, one.model or UNKNOWN_MODEL, self._cost(one)) for one in part.answers]
        files = [_file(session.project, path) for path in part.writes]
        for sums in self._groups(part.slot, session.group):
            sums.sessions.add(session.id)
            sums.prompts += prompts
            for answer, model, cost in answers:
                sums.add_answers(answer, model, cost)
            for call in part.calls:
                sums.calls[call.ended] += call.count
            sums.files.update(files)
        for answer, model, cost in answers:
            sums = _of(self.models, model)
            sums.sessions.add(session.id)
            sums.add_answers(answer, model, cost)
            if part.slot != UNKNOWN_TIME and not answer.dropped:
                day, hour = self._time(part.slot)
                self.week[day.weekday(), hour] += answer.count
        for call in part.calls:
            sums = _of(self.tools, call.tool)
            sums.sessions.add(session.id)
            sums.calls[call.ended] += call.count

    def _cost(self, answers: Answers) -> float | None:
        if self.prices is None:
            return None
        return self.prices.cost(answers.model, answers.usage, long=answers.long)

    def _groups(self, slot: int, project: str) -> Iterator[Sums]:
        """Yield the groups for all activity of a project within a time slot.

        `slot`: UNKNOWN_TIME belongs to no day or hour.
        """
        yield self.total
        yield _of(self.projects, project)
        if slot != UNKNOWN_TIME:
            day, hour = self._time(slot)
            yield _of(self.days, day)
            yield _of(self.hours, hour)

    def _time(self, slot: int) -> tuple[date, int]:
        if slot not in self._times:
            time = datetime.fromtimestamp(slot * SLOT, self._zone)
            self._times[slot] = time.date(), time.hour
        return self._times[slot]

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON values, each list sorted by name or time."""
        prices = self.prices
        return {
            "totals": self.total.to_dict(),
            "projects": _rows("project", self.projects),
            "models": _rows("model", self.models),
            "days": _rows("day", {str(day): sums for day, sums in self.days.items()}),
            "tools": _rows("tool", self.tools),
            "hours": _rows("hour", self.hours),
            "prices": prices and {"date": str(prices.date), "models": sorted(prices.models)},
        }


def _of(groups: dict[K, Sums], key: K) -> Sums:
    if key not in groups:
        groups[key] = Sums()
    return groups[key]


@lru_cache(maxsize=65536)
def _file(project: str | None, path: str) -> str:
    return str(normalized_path(project, path))


def _rows(name: str, groups: Mapping[Any, Sums]) -> list[dict[str, Any]]:
    return [{name: key, **groups[key].to_dict()} for key in sorted(groups)]


# --- one conversation ----------------------------------------------------------------------------


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


def sums_since(
    sessions: Iterable[Summary], prices: Prices, start: datetime, *, home: Path, cache: Path | None
) -> Sums:
    """Return the tokens and cost of sessions since `start`. Blocking: reads files.

    `home`, `cache`: as in `activities`. A session that can't be read is counted as one answer
    without recorded tokens.
    """
    stats = Stats(prices, since=start, zone=None)
    recent = (session for session in sessions if session.when >= start)
    for session, activity in activities(counted_sessions(recent, None), home=home, cache=cache):
        if isinstance(activity, Problem):
            stats.total.unknown += 1
        else:
            stats.add(session, activity)
    return stats.total


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
    for answers in answers_of(tuple(outlines), now):
        cost = prices.cost(answers.model, answers.usage, long=answers.long)
        sums.add_answers(answers, answers.model or UNKNOWN_MODEL, cost)
    return sums
