"""Sum up the activity of sessions: in total and by group, or of one conversation with its
context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from gemtui.errors import GemtuiError
from gemtui.jsonout import fields
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary, project_group
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import SessionKind
from gemtui.sessions.written_files import normalized_path
from gemtui.stats.activity import (
    EXIT_CODE,
    SLOT,
    UNKNOWN_TIME,
    Answers,
    FileActivity,
    activities,
    answers_of,
)
from gemtui.stats.prices import Prices
from gemtui.transcript.model import Author, Outline, ToolStatus, Usage, usage_sum

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
            self.dropped = usage_sum([self.dropped, answers.usage])
        else:
            self.answers += answers.count
            self.unknown += answers.unknown
            self.usage = usage_sum([self.usage, answers.usage])
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

    def add(self, session: Summary, activity: FileActivity) -> None:
        """Add a session's activity to all groups it belongs to."""
        project = project_group(session)
        id = session.owner
        for slot, prompts in activity.prompts if id == session.id else ():
            for sums in self._groups(slot, id, project):
                sums.prompts += prompts
        for answers in activity.answers:
            model = answers.model or UNKNOWN_MODEL
            prices = self.prices
            cost = (
                None
                if prices is None
                else prices.cost(answers.model, answers.usage, long=answers.long)
            )
            for sums in self._groups(answers.slot, id, project, model=model):
                sums.add_answers(answers, model, cost)
            if answers.slot > UNKNOWN_TIME and answers.slot >= self._first and not answers.dropped:
                day, hour = self._time(answers.slot)
                self.week[day.weekday(), hour] += answers.count
        for call in activity.calls:
            for sums in self._groups(call.slot, id, project, tool=call.tool):
                sums.calls[call.ended] += call.count
        for slot, path in activity.writes:
            whole = str(normalized_path(session.project, path))
            for sums in self._groups(slot, id, project):
                sums.files.add(whole)

    def _groups(
        self, slot: int, session: str, project: str, *, model: str = "", tool: str = ""
    ) -> list[Sums]:
        """Return the groups that count an activity, and add the session to each of them.

        `slot`: the time slot of the activity; UNKNOWN_TIME belongs to no day or hour. `model`,
        `tool`: the model or tool that it belongs to; "" if none. Returns [] for activity before
        `since`.
        """
        if slot < self._first:
            return []
        groups = [self.total, self.projects.setdefault(project, Sums())]
        if slot != UNKNOWN_TIME:
            day, hour = self._time(slot)
            groups += [self.days.setdefault(day, Sums()), self.hours.setdefault(hour, Sums())]
        groups += [self.models.setdefault(model, Sums())] if model else []
        groups += [self.tools.setdefault(tool, Sums())] if tool else []
        for sums in groups:
            sums.sessions.add(session)
        return groups

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


def counted_sessions(sessions: Iterable[Summary], project: Path | None) -> list[Summary]:
    """Return the sessions that statistics count, including subagents.

    Ghosts, copies and checkpoints are left out, so that each session counts once. `project`: count
    only sessions in this folder and its git worktrees; None means all.
    """
    folders = None if project is None else ProjectFolders(project)
    counted = filter(_counts, sessions)
    return [session for session in counted if folders is None or session.project in folders]


def _counts(session: Summary) -> bool:
    return not (session.is_copy if session.kind is SessionKind.SUBAGENT else session.hidden)


def _rows(name: str, groups: Mapping[Any, Sums]) -> list[dict[str, Any]]:
    return [{name: key, **groups[key].to_dict()} for key in sorted(groups)]


# --- one conversation ----------------------------------------------------------------------------


class ContextUse(Struct, frozen=True):
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
    recent = [session for session in counted_sessions(sessions, None) if session.when >= start]
    for session, activity in activities(recent, home=home, cache=cache):
        if isinstance(activity, FileActivity):
            stats.add(session, activity)
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
