"""Sum up the activity of sessions: in total and by group."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field

from gemtui.agents import Agent
from gemtui.calls.paths import file_key
from gemtui.jsonout import fields
from gemtui.sessions.catalog.counted import Counted, counted_sessions
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem
from gemtui.stats.activity import (
    EXIT_CODE,
    SLOT,
    UNKNOWN_TIME,
    Answers,
    FileActivity,
    SlotActivity,
    ToolCallCount,
)
from gemtui.stats.prices import Prices
from gemtui.stats.reading import activities
from gemtui.transcript.usage import Usage, usage_sum

OWN_COUNT = "by the agents' own count, for sessions that have one"
"""The words for `Sums.own_cost`."""

K = TypeVar("K")
_UNKNOWN = Usage()
UNKNOWN_MODEL = "(unknown)"
"""The name under which answers of an unknown model are counted."""


@cache
def _failed() -> frozenset[str]:
    """Return the results of calls that failed."""
    from gemtui.transcript.model import ToolStatus

    return frozenset({EXIT_CODE, *(status.value for status in ToolStatus if status.failed)})


class PricedAnswers(NamedTuple):
    """A model's answers within a time slot, and their cost.

    `has_price`: whether the model has one. `cost`: in US dollars; None if it is unknown.
    """

    model: str
    has_price: bool
    cost: float | None
    answers: Answers


class Sums(Struct):
    """The activity in one group, such as a day or a project.

    * `sessions`: how many; what a subagent did counts for the session that called the subagent.
    * `usage`: the tokens of answers in the conversation.
    * `dropped`: the tokens of rewound, replaced or failed answers, which cost money as well.
    * `unknown`: how many answers don't have all tokens recorded that they cost.
    * `calls`: how many tool calls there were, by result.
    * `files`: how many were written.
    * `cost`: in US dollars, for all answers whose model has a price.
    * `priced`: whether any answer has a known cost.
    * `unpriced`: the models without a price.
    * `own_cost`: the agents' own counts for the sessions that end here, in US dollars; None if they
      keep none.
    """

    sessions: int = 0
    prompts: int = 0
    answers: int = 0
    unknown: int = 0
    usage: Usage = field(default_factory=Usage)
    dropped: Usage = field(default_factory=Usage)
    calls: Counter[str] = field(default_factory=Counter)
    files: int = 0
    cost: float = 0.0
    priced: bool = False
    unpriced: set[str] = field(default_factory=set)
    own_cost: float | None = None

    def add_answers(self, answers: Collection[PricedAnswers]) -> None:
        """Add answers to sums that have none."""
        kept = [priced.answers for priced in answers if not priced.answers.dropped]
        dropped = [priced.answers for priced in answers if priced.answers.dropped]
        self.answers = sum([one.count for one in kept])
        self.unknown = sum([one.unknown for one in kept])
        self.usage = usage_sum([one.usage for one in kept])
        self.dropped = usage_sum([one.usage for one in dropped])
        costs = [priced.cost for priced in answers if priced.cost is not None]
        self.cost, self.priced = sum(costs), bool(costs)
        self.unpriced = {priced.model for priced in answers if not priced.has_price}

    @property
    def dollars(self) -> str:
        """The cost for display: `$0.12`, `$0.12+` if partly unknown, `?` if unknown.

        "" if there is nothing to pay for. Without an estimate, it is the agents' own count.
        """
        if not self.priced:
            return self.own_dollars or ("?" if self.unpriced or self.unknown else "")
        return f"${self.cost:,.2f}{'+' if self.unpriced or self.unknown else ''}"

    @property
    def own_dollars(self) -> str:
        """The agents' own count for display; "" if they keep none."""
        return "" if self.own_cost is None else f"${self.own_cost:,.2f}"

    @property
    def failures(self) -> dict[str, int]:
        """How many calls failed, by result."""
        failed = _failed()
        return {ended: count for ended, count in sorted(self.calls.items()) if ended in failed}

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
            "sessions": self.sessions,
            "tool_calls": self.calls.total(),
            "files_written": self.files,
            "cost": round(self.cost, 6) if self.priced else None,
            "own_cost": None if self.own_cost is None else round(self.own_cost, 6),
            "models_without_price": sorted(self.unpriced),
        }


class Stats(Struct, kw_only=True):
    """Sums over sessions, by group.

    `prices`: None if they are unknown. `week`: the number of answers by weekday (0 is Monday) and
    hour. `months`: by the first day of each.
    """

    prices: Prices | None
    total: Sums
    projects: dict[str, Sums]
    models: dict[str, Sums]
    days: dict[date, Sums]
    months: dict[date, Sums]
    tools: dict[str, Sums]
    hours: dict[int, Sums]
    week: Counter[tuple[int, int]]

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as JSON values, each list sorted by name or time."""
        prices = self.prices
        return {
            "totals": self.total.to_dict(),
            "projects": _rows("project", self.projects),
            "models": _rows("model", self.models),
            "days": _rows("day", {str(day): sums for day, sums in self.days.items()}),
            "months": _rows("month", {f"{day:%Y-%m}": sums for day, sums in self.months.items()}),
            "tools": _rows("tool", self.tools),
            "hours": _rows("hour", self.hours),
            "prices": prices and {"date": str(prices.date), "models": sorted(prices.models)},
        }


class _Part(NamedTuple):
    """One session's activity in one time slot, limited to a project, model, tool or the like.

    `session`: its id. `files`: the paths of the files written.
    """

    session: str
    prompts: int
    answers: Sequence[PricedAnswers]
    calls: Sequence[ToolCallCount]
    files: Sequence[str]
    own_cost: float | None


class Group(NamedTuple):
    """The sums over a group, with what it may share with another one.

    `sessions`: their ids. `files`: the paths of the files written.
    """

    sums: Sums
    sessions: frozenset[str]
    files: frozenset[str]


class Groups(Struct, array_like=True, kw_only=True):
    """The sums over some sessions, by group; the fields are those of `Stats`."""

    projects: dict[str, Group]
    models: dict[str, Group]
    days: dict[date, Group]
    tools: dict[str, Group]
    hours: dict[int, Group]
    week: Counter[tuple[int, int]]


class Tally:
    """Collects the activity of sessions for statistics.

    Call `add` for each session; `stats` returns the sums so far. `prices`: None if they are
    unknown. `since`, `until`: ignore activity before and from then on, and activity without a
    known time. `zone`: the time zone for days and hours.
    """

    def __init__(
        self,
        prices: Prices | None,
        *,
        since: datetime | None,
        until: datetime | None = None,
        zone: tzinfo | None,
    ) -> None:
        self._prices, self._zone = prices, zone
        self._first = UNKNOWN_TIME if since is None and until is None else UNKNOWN_TIME + 1
        if since is not None:
            self._first = int(-(-since.timestamp() // SLOT))
        self._end = math.inf if until is None else until.timestamp() / SLOT
        self._projects: defaultdict[str, list[_Part]] = defaultdict(list)
        self._models: defaultdict[str, list[_Part]] = defaultdict(list)
        self._tools: defaultdict[str, list[_Part]] = defaultdict(list)
        self.tokens = 0
        """The known tokens of the answers so far, for display while sessions are being read."""
        self._slots: defaultdict[int, list[_Part]] = defaultdict(list)

    def add(self, session: Counted, activity: FileActivity) -> None:
        """Add a session's activity."""
        for part in activity:
            prompts = 0 if session.is_subagent else part.prompts
            inside = self._first <= part.slot < self._end
            if inside and (prompts or part.answers or part.calls or part.writes):
                self._add(session, part, prompts)

    def _add(self, session: Counted, part: SlotActivity, prompts: int) -> None:
        """Add the activity within a time slot. `prompts`: how many of its prompts count."""
        answers = [with_cost(one, self._prices) for one in part.answers]
        files = [_file(session.project, path) for path in part.writes]
        kept = (one.usage.total for one in part.answers if not one.dropped)
        self.tokens += sum(tokens or 0 for tokens in kept)
        whole = _Part(session.id, prompts, answers, part.calls, files, part.own_cost)
        self._projects[session.group].append(whole)
        self._slots[part.slot].append(whole)
        for priced in answers:
            self._models[priced.model].append(_Part(session.id, 0, (priced,), (), (), None))
        for call in part.calls:
            self._tools[call.tool].append(_Part(session.id, 0, (), (call,), (), None))

    def groups(self) -> Groups:
        """Return the sums over all sessions that have been added, by group."""
        days: defaultdict[date, list[_Part]] = defaultdict(list)
        hours: defaultdict[int, list[_Part]] = defaultdict(list)
        week: Counter[tuple[int, int]] = Counter()
        for slot, parts in self._slots.items():
            if slot == UNKNOWN_TIME:
                continue
            time = datetime.fromtimestamp(slot * SLOT, self._zone)
            days[time.date()] += parts
            hours[time.hour] += parts
            answers = sum(
                priced.answers.count
                for part in parts
                for priced in part.answers
                if not priced.answers.dropped
            )
            if answers:
                week[time.weekday(), time.hour] += answers
        return Groups(
            projects=_sums_by(self._projects),
            models=_sums_by(self._models),
            days=_sums_by(days),
            tools=_sums_by(self._tools),
            hours=_sums_by(hours),
            week=week,
        )

    def stats(self) -> Stats:
        """Return the sums over all sessions that have been added."""
        return added_up([self.groups()], self._prices)


def added_up(some: Sequence[Groups], prices: Prices | None) -> Stats:
    """Return the sums over all sessions.

    `some`: those over each part of the sessions. `prices`: as in `Tally`.
    """
    projects = _added([groups.projects for groups in some])
    days = _added([groups.days for groups in some])
    months: defaultdict[date, list[Group]] = defaultdict(list)
    for day in sorted(days):
        months[day.replace(day=1)].append(days[day])
    return Stats(
        prices=prices,
        total=_total(list(projects.values())).sums,
        projects=_only_sums(projects),
        models=_only_sums(_added([groups.models for groups in some])),
        days=_only_sums(days),
        months={month: _total(groups).sums for month, groups in months.items()},
        tools=_only_sums(_added([groups.tools for groups in some])),
        hours=_only_sums(_added([groups.hours for groups in some])),
        week=sum((groups.week for groups in some), Counter()),
    )


def _added(some: Sequence[Mapping[K, Group]]) -> dict[K, Group]:
    by_key: defaultdict[K, list[Group]] = defaultdict(list)
    for groups in some:
        for key, group in groups.items():
            by_key[key].append(group)
    return {key: _total(groups) for key, groups in by_key.items()}


def _only_sums(groups: Mapping[K, Group]) -> dict[K, Sums]:
    return {key: group.sums for key, group in groups.items()}


def with_cost(answers: Answers, prices: Prices | None) -> PricedAnswers:
    """Return a model's answers with their cost. `prices`: None if they are unknown."""
    model, usage = answers.model, answers.usage
    cost = None if prices is None else prices.cost(model, usage, long=answers.long)
    known = None if usage == _UNKNOWN else cost
    return PricedAnswers(model or UNKNOWN_MODEL, cost is not None, known, answers)


def _sums_by(groups: Mapping[K, Sequence[_Part]]) -> dict[K, Group]:
    return {key: _sums(parts) for key, parts in groups.items()}


def _sums(parts: Sequence[_Part]) -> Group:
    sessions, prompts, answers, calls, files, own_costs = zip(*parts, strict=True)
    ids, paths = frozenset(sessions), frozenset(chain(*files))
    sums = Sums(sessions=len(ids), prompts=sum(prompts), files=len(paths))
    sums.add_answers(list(chain(*answers)))
    sums.own_cost = _known_sum(own_costs)
    for call in chain(*calls):
        sums.calls[call.ended] += call.count
    return Group(sums, ids, paths)


def _total(groups: Sequence[Group]) -> Group:
    """Return the sum of groups that share nothing but sessions, files and models."""
    if len(groups) == 1:
        return groups[0]
    all_sums = [group.sums for group in groups]
    ids = frozenset[str]().union(*[group.sessions for group in groups])
    paths = frozenset[str]().union(*[group.files for group in groups])
    calls: Counter[str] = Counter()
    for sums in all_sums:
        calls.update(sums.calls)
    total = Sums(
        sessions=len(ids),
        prompts=sum([sums.prompts for sums in all_sums]),
        answers=sum([sums.answers for sums in all_sums]),
        unknown=sum([sums.unknown for sums in all_sums]),
        usage=usage_sum([sums.usage for sums in all_sums]),
        dropped=usage_sum([sums.dropped for sums in all_sums]),
        calls=calls,
        files=len(paths),
        cost=sum([sums.cost for sums in all_sums]),
        priced=any(sums.priced for sums in all_sums),
        unpriced=set().union(*[sums.unpriced for sums in all_sums]),
        own_cost=_known_sum([sums.own_cost for sums in all_sums]),
    )
    return Group(total, ids, paths)


def _known_sum(costs: Iterable[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


@lru_cache(maxsize=65536)
def _file(project: str | None, path: str) -> str:
    return file_key(path, project or "")


def _rows(name: str, groups: Mapping[Any, Sums]) -> list[dict[str, Any]]:
    return [{name: key, **groups[key].to_dict()} for key in sorted(groups)]


def sums_since(
    sessions: Iterable[Summary], prices: Prices, start: datetime, *, home: Path, cache: Path | None
) -> Sums:
    """Return the tokens and cost of Gemini CLI's sessions since `start`. Blocking: reads files.

    They are what a daily budget limits. `home`, `cache`: as in `activities`. A session that can't
    be read is counted as one answer without recorded tokens.
    """
    tally, unread = Tally(prices, since=start, zone=None), 0
    recent = (
        session for session in sessions if session.when >= start and session.agent is Agent.GEMINI
    )
    for session, activity in activities(counted_sessions(recent, None), home=home, cache=cache):
        if isinstance(activity, Problem):
            unread += 1
        else:
            tally.add(session, activity)
    total = tally.stats().total
    total.unknown += unread
    return total
