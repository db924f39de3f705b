"""The logic of the session list, without the screen: scope, search, and order.

`Listing` keeps results that are costly to compute (sanitized strings, the sort order) from one
snapshot to the next, so that a key press while searching 10,000 sessions takes a few milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from itertools import chain, pairwise
from operator import attrgetter, eq
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from gemtui.agents import WORDS, Agent
from gemtui.calls.paths import recorded_path
from gemtui.moments import start_of_day
from gemtui.sessions.catalog.columns import Sort, sorted_by
from gemtui.sessions.catalog.entries import ListEntry, ListQuery, SessionRow
from gemtui.sessions.catalog.subagents import calls_with_subagents
from gemtui.sessions.catalog.summary import (
    CallFields,
    Summary,
    project_group,
    project_name,
)
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import SessionKind
from gemtui.text import Clean, clean_line, short_path

if TYPE_CHECKING:
    from gemtui.marks import Mark


# --- days ----------------------------------------------------------------------------------------


class DaySpan(Struct, frozen=True):
    """A day, under whose name sessions are listed.

    The span includes `start` and excludes `end`; if `end` is None, the span has no end.
    """

    name: str
    start: datetime
    end: datetime | None

    def __contains__(self, when: datetime | None) -> bool:
        return when is not None and self.start <= when and (self.end is None or when < self.end)


class Days:
    """Assigns times to headings such as Today, Monday, and Sun 11 Oct.

    `now`: the current time, which decides what today is. `tz`: the time zone in which days begin;
    None means the local one. Today, yesterday, and the five days before have names; earlier days
    have dates.
    """

    def __init__(self, now: datetime, tz: tzinfo | None = None) -> None:
        self.tz = tz
        self.today = now.astimezone(tz).date()

    def span_of(self, when: datetime) -> DaySpan:
        """Return the day under whose heading a time belongs.

        A time in the future, which comes from a wrong clock, belongs under today.
        """
        day = when.astimezone(self.tz).date()
        ago = (self.today - day).days
        if ago <= 0:
            return DaySpan("Today", self._start(self.today), None)
        if ago <= _NAMED:
            name = "Yesterday" if ago == 1 else f"{day:%A}"
        else:
            name = f"{day:%a} {day.day} {day:%b}"
            name += f" {day.year}" if day.year != self.today.year else ""
        return DaySpan(name, self._start(day), self._start(day + _DAY))

    def _start(self, day: date) -> datetime:
        return start_of_day(day, self.tz)


_NAMED = 6
_DAY = timedelta(days=1)


# --- views ---------------------------------------------------------------------------------------


class View(Struct, frozen=True, kw_only=True):
    """The settings of a session list: its search, order, and scope.

    `reverse`: sort in the opposite of the natural order of `sort` (newest, most, or A first).
    `grouped`: by project, or `by_agent`. `everywhere`: show the sessions of all projects.
    `hidden`: show hidden sessions. `folded`: the keys of folded groups, which show only their
    heading.
    """

    query: str = ""
    sort: Sort = Sort.UPDATED
    reverse: bool = False
    grouped: bool = False
    by_agent: bool = False
    everywhere: bool = False
    hidden: bool = False
    folded: frozenset[str] = frozenset()

    @property
    def by_day(self) -> bool:
        """Whether sessions are sorted by time and not grouped, so days can have headings."""
        return self.sort in (Sort.UPDATED, Sort.STARTED) and not self.grouped

    @property
    def order(self) -> str:
        """The order in words, such as "oldest first" if `reverse` is true."""
        return self.sort.words(reverse=self.reverse)


# --- rows ------------------------------------------------------------------------------------


class Heading(Struct, frozen=True):
    """The heading of a project, of an agent, or of the pinned sessions (`ALL_PINNED`).

    `count`: how many of its sessions match the search. They are shown unless the heading is
    `folded`.
    """

    group: str
    name: Clean
    count: int
    folded: bool

    @property
    def key(self) -> str:
        """The heading's key, which is the same in every snapshot."""
        return f"project {self.group}"


class DayHeading(Struct, frozen=True):
    """The heading of a day, of the pinned sessions, or of all unpinned ones.

    `count`: the number of its sessions; a day's pinned ones count, though they are listed at the
    top. The cursor skips this row.
    """

    name: str
    count: int

    @property
    def key(self) -> str:
        """The heading's key, which is the same in every snapshot."""
        return f"day {self.name}"


Row = SessionRow | Heading | DayHeading
PINNED, NOT_PINNED = Clean("Pinned"), Clean("Others")
ALL_PINNED = ""
"""The group of pinned sessions; it differs from every project's group."""


class Rows(Struct, frozen=True, kw_only=True):
    """The rows to show, and counts of the sessions not shown.

    `shown`: how many sessions match, including those in folded groups. `total`: how many sessions
    the whole store has; hidden ones are counted only if the view shows them. `concealed`: how many
    hidden sessions in this scope are not shown. `elsewhere`: how many matches other projects have,
    counted only if nothing in this scope matches.
    """

    rows: tuple[Row, ...] = ()
    shown: int = 0
    total: int = 0
    concealed: int = 0
    elsewhere: int = 0


# --- the listing -----------------------------------------------------------------------------


class _Scope(NamedTuple):
    """The sessions among which the query of a view searches, in the order of the view.

    `entries`, `rows`: those of the view's project, or of all. `everywhere`: the entries of all
    projects. `concealed`: how many entries of the project are hidden.
    """

    entries: list[ListEntry]
    rows: list[SessionRow]
    everywhere: list[ListEntry]
    concealed: int


class _Order(NamedTuple):
    """Entries in the natural direction of an order.

    `ties`: where each run of entries with equal values begins. `known`: how many entries have a
    value; the others come after them.
    """

    entries: list[ListEntry]
    ties: Sequence[int]
    known: int

    def directed(self, *, reverse: bool) -> list[ListEntry]:
        """Return the entries in one of both directions; equal ones stay newest first."""
        if not reverse:
            return self.entries
        entries, ends = self.entries, (*self.ties, self.known)
        if len(self.ties) == self.known:
            ordered = entries[: self.known][::-1]
        else:
            runs = (entries[start:end] for start, end in pairwise(ends))
            ordered = [*chain.from_iterable(reversed([*runs]))]
        return ordered + entries[self.known :]


class _Prepared(NamedTuple):
    """The entries of `sessions`, by key, and what they were created from.

    `orders`: the entries in the order of the last arrangement. `agents`: whose sessions they are.
    """

    sessions: Sequence[Summary]
    marks: Mapping[str, Mark]
    labels: dict[str, Clean]
    entries: dict[str, ListEntry]
    orders: dict[Sort, _Order]
    agents: set[Agent]


def _entry(
    summary: Summary,
    key: str,
    labels: Mapping[str, Clean],
    marks: Mapping[str, Mark],
    calls: tuple[CallFields, ...],
) -> ListEntry:
    group, folder = project_group(summary), summary.project
    label = labels[group]
    if folder not in (None, group):
        label = clean_line(f"{label}@{recorded_path(folder or '').name}")
    return ListEntry(summary, label, key, marks.get(summary.id), calls)


class Listing:
    """A store's sessions, arranged according to a `View`.

    `project`: the folder to which the list can be limited; None if there is no such folder.
    """

    def __init__(self, project: Path | None = None) -> None:
        self.limit(project)
        self._labels: dict[str, Clean] = {}
        self._marks: Mapping[str, Mark] = MappingProxyType({})
        self._entries: dict[str, ListEntry] = {}
        self._sort = Sort.UPDATED
        self._orders: dict[Sort, _Order] = {}
        self._scope: tuple[tuple[object, ...], _Scope] | None = None
        self._prepared: _Prepared | None = None
        self.has_several_agents = False
        """Whether the sessions are those of more than one agent."""

    def limit(self, project: Path | None) -> None:
        """Use another folder to which the list can be limited; None for no such folder."""
        self._folders = None if project is None else ProjectFolders(project)
        self._scope = None

    def projects(self) -> Mapping[str, int]:
        """Return the folders of all projects that are known, and how many sessions each has.

        Hidden sessions don't count. The project that was used last comes first.
        """
        open_entries = (entry for entry in self._entries.values() if not entry.hidden)
        return Counter(entry.group for entry in open_entries if entry.summary.project is not None)

    def prepare(self, sessions: Sequence[Summary]) -> None:
        """Do most of the work of the next `replace_all`, if it gets these same sessions.

        Blocking, and meant for a worker thread: 10,000 new sessions take 0.1 s.
        """
        self._prepared = self._entries_of(sessions)

    def replace_all(self, sessions: Sequence[Summary]) -> None:
        """Replace the sessions, which must be sorted newest first, as in a snapshot."""
        prepared = self._prepared
        if prepared is None or prepared.sessions is not sessions:  # it may be for the next call
            prepared = self._entries_of(sessions)
        else:
            self._prepared = None
        self._labels, self._entries = prepared.labels, prepared.entries
        self._orders, self._scope = prepared.orders, None
        marks, self._marks = self._marks, prepared.marks
        if marks is not prepared.marks:
            self.mark(marks)
        self.has_several_agents = len(prepared.agents) > 1

    def _entries_of(self, sessions: Sequence[Summary]) -> _Prepared:
        """Create the entries of sessions; those of unchanged sessions are reused."""
        marks, labels = self._marks, project_labels(sessions)
        old = self._entries if labels == self._labels else {}
        with_subagents = calls_with_subagents(sessions)
        entries: dict[str, ListEntry] = {}
        for key, summary in _keyed(sessions):
            calls = with_subagents.get(summary.name, summary.calls)
            entry = old.get(key)
            unchanged = entry is not None and entry.summary is summary and entry.calls == calls
            if entry is None or not unchanged or entry.mark != marks.get(summary.id):
                entry = _entry(summary, key, labels, marks, calls)
            entries[key] = entry
        sort = self._sort  # read once, because the event loop may change it meanwhile
        orders = {sort: _sorted(entries.values(), sort)}
        agents = {session.agent for session in sessions}
        return _Prepared(sessions, marks, labels, entries, orders, agents)

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Replace the user's marks on sessions, such as names and tags.

        `marks`: the marks by session id.
        """
        old, self._marks = self._marks, marks
        changed = {id for id in old.keys() | marks.keys() if old.get(id) != marks.get(id)}
        newer: dict[ListEntry, ListEntry] = {}
        for key, entry in self._entries.items():
            if entry.summary.id in changed:
                newer[entry] = _entry(entry.summary, key, self._labels, marks, entry.calls)
                self._entries[key] = newer[entry]
        sort, orders = self._sort, self._orders
        self._orders, self._scope = {}, None
        renamed = any(entry.title != new.title for entry, new in newer.items())
        if sort in orders and not (renamed and sort is Sort.TITLE):
            entries = [newer.get(entry, entry) for entry in orders[sort].entries]
            self._orders[sort] = orders[sort]._replace(entries=entries)

    def prepare_orders(self) -> None:
        """Do most of the work of the next arrangements, if they have other orders than now.

        Blocking, and meant for a worker thread.
        """
        for sort in Sort:
            self._in_order(sort)

    def arrange(self, view: View, days: Days | None = None) -> Rows:
        """Return the rows for a view.

        `days`: adds day headings if the view is sorted by day; None adds no headings.
        """
        query = ListQuery(view.query)
        scope = self._scope_of(view, query)
        matching, rows = scope.entries, scope.rows
        if query:
            matching = query.select(matching)
            rows = _rows_of(matching, view)
        has_pins = any(mark.pinned for mark in self._marks.values())
        pinned, others = _parted(rows) if has_pins else ([], rows)
        return Rows(
            rows=tuple(chain.from_iterable(_below_headings(pinned, others, view, days))),
            shown=len(matching),
            total=len(scope.everywhere),
            concealed=scope.concealed,
            elsewhere=0 if matching else len(query.select(scope.everywhere)),
        )

    def _scope_of(self, view: View, query: ListQuery) -> _Scope:
        """Return the sessions among which a view's query searches; the next one is likely to, too.

        `query`: that query.
        """
        key = (view.sort, view.reverse, view.everywhere, view.hidden, query.for_archived)
        if self._scope is None or self._scope[0] != key:
            self._sort = view.sort
            ordered = self._in_order(view.sort).directed(reverse=view.reverse)
            everywhere = _open(ordered, view, query)
            scoped, entries = ordered, everywhere
            if not view.everywhere and self._folders is not None:
                scoped = [entry for entry in ordered if entry.summary.project in self._folders]
                entries = _open(scoped, view, query)
            concealed = len(scoped) - len(entries)
            self._scope = key, _Scope(entries, _rows_of(entries, view), everywhere, concealed)
        return self._scope[1]

    def summaries(self, keys: Collection[str]) -> tuple[Summary, ...]:
        """Return the sessions with these row keys, even if their rows are not shown now.

        Sessions are in the order of the last `replace_all`, newest first.
        """
        entries = self._entries.items() if keys else ()
        return tuple(entry.summary for key, entry in entries if key in keys)

    def entry(self, key: object) -> ListEntry | None:
        """Return the entry with this row key, even if its row isn't shown now; None if unknown."""
        return self._entries.get(key) if isinstance(key, str) else None

    def known(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that belong to sessions in the store."""
        return {key for key in keys if key in self._entries}

    def _in_order(self, sort: Sort) -> _Order:
        orders = self._orders  # it is replaced by changes that come meanwhile
        if sort not in orders:
            orders[sort] = _sorted(self._entries.values(), sort)
        return orders[sort]


def _keyed(sessions: Sequence[Summary]) -> Iterator[tuple[str, Summary]]:
    """Yield each session and each of its copies with a key.

    The key is the session id; for copies, checkpoints, and sessions that share an id, it is the
    path of the file.
    """
    ids = Counter(summary.id for summary in sessions)
    for summary in sessions:
        lasting = not summary.is_copy and summary.kind is not SessionKind.CHECKPOINT
        yield summary.id if lasting and ids[summary.id] == 1 else summary.name, summary
        for copy in summary.copies:
            yield copy.name, copy


def _open(entries: list[ListEntry], view: View, query: ListQuery) -> list[ListEntry]:
    if view.hidden:
        return entries
    if query.for_archived:
        return [entry for entry in entries if not entry.summary.hidden]
    return [entry for entry in entries if not entry.hidden]


def _rows_of(entries: list[ListEntry], view: View) -> list[SessionRow]:
    return _below_parents(entries) if view.hidden else [entry.row for entry in entries]


def _below_parents(entries: Sequence[ListEntry]) -> list[SessionRow]:
    """Return rows in which subagents and copies follow their parent session.

    A subagent or copy whose parent session isn't listed gets a row of its own.
    """
    below = {entry.above for entry in entries if entry.above is not None}
    if not below:
        return [entry.row for entry in entries]
    mains = {entry.summary.id for entry in entries if entry.above != entry.summary.id} & below
    children: defaultdict[str | None, list[ListEntry]] = defaultdict(list)
    tops: list[ListEntry] = []
    for entry in entries:
        (children[entry.above] if entry.above in mains else tops).append(entry)
    rows: list[SessionRow] = []
    while tops or children:
        # once the top-level rows are done, only sessions that are each other's parents are left
        for top in tops or children.pop(next(iter(children))):
            _add_with_children(rows, top, children)
        tops = []
    return rows


def _add_with_children(
    rows: list[SessionRow], top: ListEntry, children: dict[str | None, list[ListEntry]]
) -> None:
    rows.append(top.row)
    waiting = _children_of(top, 1, children)
    while waiting:
        row = waiting.pop()
        rows.append(row)
        waiting += _children_of(row.entry, row.depth + 1, children)


def _children_of(
    entry: ListEntry, depth: int, children: dict[str | None, list[ListEntry]]
) -> list[SessionRow]:
    id = entry.summary.id
    if entry.above == id or id not in children:
        return []
    return [SessionRow(child, child.key, depth) for child in reversed(children.pop(id))]


def _below_headings(
    pinned: Sequence[SessionRow], others: Sequence[SessionRow], view: View, days: Days | None
) -> Iterator[Sequence[Row]]:
    """Yield parts of the list: headings, and the rows below each.

    Pinned sessions and their children come first.
    """
    if pinned and view.grouped:
        folded = ALL_PINNED in view.folded
        yield [Heading(ALL_PINNED, PINNED, len(pinned), folded)]
        pinned = [] if folded else pinned
    elif pinned:
        yield [DayHeading(PINNED, len(pinned))]
    yield pinned
    if view.grouped:
        yield from _grouped(others, view)
    elif view.by_day and days is not None:
        yield from _by_day(others, pinned, view, days)
    else:
        if pinned and others:
            yield [DayHeading(NOT_PINNED, len(others))]
        yield others


def _parted(rows: Sequence[SessionRow]) -> tuple[list[SessionRow], list[SessionRow]]:
    pinned: list[SessionRow] = []
    others: list[SessionRow] = []
    part = others
    for row in rows:
        if not row.depth:
            part = pinned if row.entry.pinned else others
        part.append(row)
    return pinned, others


def _grouped(rows: Sequence[SessionRow], view: View) -> Iterator[Sequence[Row]]:
    """Yield headings of projects or agents with their rows, in order of first occurrence."""
    groups: defaultdict[str, list[SessionRow]] = defaultdict(list)
    group = ""
    for row in rows:
        if not row.depth:
            group = row.entry.summary.agent if view.by_agent else row.entry.group
        groups[group].append(row)
    for group, members in groups.items():
        first = members[0].entry
        program = Clean(WORDS[first.summary.agent].program)
        name = program if view.by_agent else _heading(first)
        yield [Heading(group, name, len(members), group in view.folded)]
        if group not in view.folded:
            yield members


def _by_day(
    rows: Sequence[SessionRow], pinned: Sequence[SessionRow], view: View, days: Days
) -> Iterator[Sequence[Row]]:
    """Yield headings of days with their rows, which are sorted by a time.

    Children stay under the same heading as their parent session. `pinned`: sessions that count for
    their days, but are listed elsewhere.
    """
    time = _PROPERTY[view.sort]
    times = [time(row.entry) for row in pinned if not row.depth]
    listed_above = Counter(days.span_of(when).name for when in times if when is not None)
    tops: Sequence[int] = range(len(rows))
    if view.hidden:
        tops = [at for at, row in enumerate(rows) if not row.depth]
    position = 0
    while position < len(tops):
        when = time(rows[tops[position]].entry)
        name, after = "Time unknown", len(tops)
        if when is not None:
            span = days.span_of(when)
            name = span.name
            after = bisect_left(
                tops, True, position + 1, key=lambda at: time(rows[at].entry) not in span
            )
        yield [DayHeading(name, after - position + listed_above[name])]
        yield rows[tops[position] : tops[after] if after < len(tops) else len(rows)]
        position = after


class DayCount(Struct, frozen=True):
    """The number of sessions on one day of a list, and the key of the row to go to for it."""

    day: date
    count: int
    first: str


def days_of(rows: Iterable[Row], view: View, tz: tzinfo | None) -> list[DayCount]:
    """Count the sessions of each day in a list sorted by time, in the list's order.

    A day leads to its heading's first row or, if all of its sessions are pinned, to one of these.
    `view`: how the list is arranged. `tz`: the time zone, as for `Days`.
    """
    pinned, others = _parted([row for row in rows if isinstance(row, SessionRow)])
    counts: dict[date, DayCount] = {}
    for row in (*others, *pinned):
        when = None if row.depth else _PROPERTY[view.sort](row.entry)
        if when is not None:
            day = when.astimezone(tz).date()
            count = counts.get(day) or DayCount(day, 0, row.key)
            counts[day] = DayCount(day, count.count + 1, count.first)
    return sorted(counts.values(), key=lambda count: count.day, reverse=not view.reverse)


def _heading(entry: ListEntry) -> Clean:
    unknown = entry.summary.project is None
    return entry.project if unknown else short_path(Path(entry.group))


# --- order -----------------------------------------------------------------------------------


_PROPERTY: dict[Sort, Callable[[ListEntry], Any]] = {
    Sort.UPDATED: attrgetter("when"),
    Sort.STARTED: attrgetter("summary.started"),
    Sort.TITLE: lambda entry: entry.title.casefold() or None,
    Sort.PROJECT: lambda entry: entry.project.casefold(),
}
_A_FIRST = {Sort.TITLE, Sort.PROJECT}


def _sorted(entries: Iterable[ListEntry], sort: Sort) -> _Order:
    """Return sorted entries.

    Entries whose value is unknown come last. Entries with equal values stay sorted newest first.
    """
    column, listed = sorted_by(sort), list(entries)
    if column is None:
        values = list(map(_PROPERTY[sort], listed))
    else:
        values = [column.number(entry.summary) for entry in listed]
    known = [at for at, value in enumerate(values) if value is not None]
    known.sort(key=values.__getitem__, reverse=sort not in _A_FIRST)
    ordered = [values[at] for at in known]
    ties: Sequence[int] = range(len(known))
    if any(map(eq, ordered, ordered[1:])):
        ties = [at for at in ties if not at or ordered[at] != ordered[at - 1]]
    unknown = [entry for entry, value in zip(listed, values, strict=True) if value is None]
    return _Order([listed[at] for at in known] + unknown, ties, len(known))


# --- names -----------------------------------------------------------------------------------


def project_labels(sessions: Iterable[Summary]) -> dict[str, Clean]:
    """Return a short label for each project, by the key from `project_group`.

    The label is the name of the project's folder. If two projects have the same name, the label
    also includes the parent folder's name.
    """
    folders = {
        (group := project_group(summary)): None if summary.project is None else group
        for summary in sessions
    }
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for group, folder in folders.items():
        by_name[project_name(folder, group)].append(group)
    return {
        group: clean_line(name if len(groups) == 1 else _longer_name(group, folders[group]))
        for name, groups in by_name.items()
        for group in groups
    }


def _longer_name(group: str, folder: str | None) -> str:
    return group if folder is None else "/".join(recorded_path(folder).parts[-2:])
