"""The logic of the session list, without the screen: scope, search, and order.

`Listing` keeps results that are costly to compute (sanitized strings, the sort order) from one
snapshot to the next, so that a key press while searching 10,000 sessions takes a few milliseconds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from gemtui.agents import WORDS
from gemtui.calls.paths import recorded_path
from gemtui.moments import period, start_of_day
from gemtui.sessions.catalog.columns import Sort, sorted_by
from gemtui.sessions.catalog.query import (
    SYMBOLS_ONLY,
    Field,
    Narrowed,
    Query,
    can_tell,
    fits_all,
    parse_query,
)
from gemtui.sessions.catalog.subagents import calls_with_subagents
from gemtui.sessions.catalog.summary import (
    CallFields,
    Summary,
    project_group,
    project_name,
    title_of,
)
from gemtui.sessions.store.projects import ProjectFolders
from gemtui.sessions.store.store import SessionKind
from gemtui.text import Clean, clean, clean_line, composed, either_form, short_path

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


# --- search ----------------------------------------------------------------------------------


class ListQuery:
    """A search for sessions: words that must all occur, and words that must not.

    It is parsed like a full-text search (`gemtui.sessions.catalog.query.parse_query`), and fields
    have the same meaning there (`gemtui.sessions.catalog.query.fits_all`). `-word` and `!word`
    exclude a word. A word with a capital letter is case-sensitive. The search covers a session's
    name, title, project, models, tags, note and id, but not its text. `#tag` also matches the
    beginning of a tag. `after:7d` and `before:2026-11-20` compare the time of last use. `today` and
    `yesterday` match the day, or match as words. `now`: a timezone-aware time; None means the
    current time.

    `note`: a message for the user if a part of the query is searched as words but was probably
    meant as something else; otherwise None. Fields such as `in:prompt`, which only a full-text
    search supports, are searched as words.
    """

    def __init__(self, text: str, now: datetime | None = None) -> None:
        now = now or datetime.now().astimezone()
        asked = text_query(text, now)
        self._fields = tuple(filter(can_tell, asked.fields))
        self._before, self._after = asked.before, asked.after
        terms = [(term.text, not term.excluded) for term in asked.terms]
        others = (field for field in asked.fields if not can_tell(field))
        terms += [(f"{field.field}:{field.value}", not field.excluded) for field in others]
        self.note = asked.note
        self.wanted = tuple(word for word, wanted in terms if wanted)
        self.unwanted = tuple(word for word, wanted in terms if word and not wanted)
        self._days = {
            wanted: day for wanted in self.wanted if (day := _day(wanted, now)) is not None
        }

    def __bool__(self) -> bool:
        times = self._before or self._after
        return bool(self.wanted or self.unwanted or self._fields or times)

    @property
    def for_archived(self) -> bool:
        """Whether the query asks for archived sessions (otherwise hidden from lists)."""
        return Narrowed(field=Field.IS, value="archived") in self._fields

    def select(self, entries: Iterable[ListEntry]) -> list[ListEntry]:
        """Return the entries that match, in their original order."""
        narrowed = self._fields or self._before or self._after
        selected = [entry for entry in entries if self._fits(entry)] if narrowed else list(entries)
        for word in self.wanted:
            if word in self._days:
                start, end = self._days[word]
                has = {id(entry) for entry in _having(word, selected, True)}
                selected = [
                    entry for entry in selected if start <= entry.when < end or id(entry) in has
                ]
            else:
                selected = _having(word, selected, True)
        for word in self.unwanted:
            selected = _having(word, selected, False)
        return selected

    def _fits(self, entry: ListEntry) -> bool:
        when, before, after = entry.when, self._before, self._after
        in_time = (before is None or when < before) and (after is None or when >= after)
        return in_time and fits_all(self._fields, entry.summary, entry.mark, entry.calls)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) of each required word found in a string, in order.

        The spans don't overlap.
        """
        return [match.span() for match in self._pattern.finditer(text)] if self.wanted else []

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.wanted, key=len, reverse=True)
        return re.compile("|".join(map(_any_case, longest_first)))


def text_query(text: str, now: datetime) -> Query:
    """Return the full-text search for what the user has typed to search a list."""
    return parse_query(_NOT.sub(_minus, text), now=now)


_DAYS = ("today", "yesterday")
_NOT = re.compile(rf'"[^"]*"|(?<!\S)!(?!{SYMBOLS_ONLY})')
"""Matches a phrase, or a `!` that excludes the word after it, unless that is a symbol as in `!=`.

A `!` at the end, with no word after it yet, means nothing.
"""


def _minus(match: re.Match[str]) -> str:
    if match[0] != "!":
        return match[0]
    return "-" if match.string[match.end() :][:1].strip() else ""


def _day(word: str, now: datetime) -> tuple[datetime, datetime] | None:
    return period(word, now) if word in _DAYS else None


def _having(word: str, entries: list[ListEntry], wanted: bool) -> list[ListEntry]:
    word = composed(word)
    if _minds_case(word):
        return [entry for entry in entries if (word in entry.plain) is wanted]
    return [entry for entry in entries if (word.lower() in entry.lower) is wanted]


def _minds_case(word: str) -> bool:
    return word != word.lower() and not word.startswith("#")


def _any_case(word: str) -> str:
    pattern = either_form(word)
    return pattern if _minds_case(word) else f"(?i:{pattern})"


# --- rows ------------------------------------------------------------------------------------


class ListEntry:
    """One session, with its strings prepared for display and search.

    `key`: unique in a listing, and stable for the session in later listings. `calls`: the calls of
    the session and of its subagents, as far as a query can ask about them. `project`: a short
    label, unique among projects, followed by `@` and the worktree's name if there is one. `group`:
    the same for all sessions of a project. `title`: the user's name for the session, or else its
    own title. `unseen`: text that is searched but not shown in a row. `plain`: the searched text,
    composed. `lower`: the same in lower case. `when`: as `Summary.when`. `above`: the id of the
    session that it belongs below. `row`: its row unless it is below that session.
    """

    __slots__ = (
        "above",
        "archived",
        "calls",
        "group",
        "hidden",
        "key",
        "lower",
        "mark",
        "models",
        "pinned",
        "plain",
        "project",
        "row",
        "summary",
        "tags",
        "title",
        "unseen",
        "when",
    )

    def __init__(
        self,
        summary: Summary,
        project: Clean,
        key: str,
        mark: Mark | None = None,
        calls: tuple[CallFields, ...] | None = None,
    ) -> None:
        self.summary = summary
        self.calls = summary.calls if calls is None else calls
        self.key = key
        self.mark = mark
        self.group = project_group(summary)
        self.when = summary.when
        self.above = summary.id if summary.is_copy else summary.parent
        self.pinned = mark is not None and mark.pinned
        self.archived = mark is not None and mark.archived
        self.hidden = summary.hidden or self.archived
        title = clean_line(summary.title)
        self.title = clean_line(title_of(summary, None if mark is None else mark.name))
        self.tags = () if mark is None else tuple(clean_line(f"#{tag}") for tag in mark.tags)
        self.project = project
        self.models = tuple(short_model(model) for model in summary.models)
        note = () if mark is None or mark.note is None else clean(mark.note).split("\n")
        self.unseen = (*(() if title == self.title else (title,)), *map(clean_line, note))
        shown = (self.title, project, *self.models, *self.tags)
        self.plain = composed("\n".join((*shown, *self.unseen, summary.id)))
        self.lower = self.plain.lower()
        self.row = SessionRow(self, key)


class SessionRow(Struct, frozen=True):
    """A session in the list; if `depth` > 0, it is shown under its parent session.

    `key`: that of the entry, which is the same in every snapshot.
    """

    entry: ListEntry
    key: str
    depth: int = 0


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


class _Prepared(NamedTuple):
    """The entries of `sessions`, by key, and what they were created from.

    `ordered`: the entries in the order of the last arrangement.
    """

    sessions: Sequence[Summary]
    marks: Mapping[str, Mark]
    labels: dict[str, Clean]
    entries: dict[str, ListEntry]
    ordered: tuple[tuple[Sort, bool], list[ListEntry]] | None


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


_FIRST_ORDER = (Sort.UPDATED, False)


class Listing:
    """A store's sessions, arranged according to a `View`.

    `project`: the folder to which the list can be limited; None if there is no such folder.
    """

    def __init__(self, project: Path | None = None) -> None:
        self.limit(project)
        self._labels: dict[str, Clean] = {}
        self._marks: Mapping[str, Mark] = MappingProxyType({})
        self._entries: dict[str, ListEntry] = {}
        self._ordered: tuple[tuple[Sort, bool], list[ListEntry]] | None = None
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
            if prepared.marks is not self._marks:
                prepared = self._entries_of(sessions)
        self._labels, self._entries = prepared.labels, prepared.entries
        self._ordered, self._scope = prepared.ordered, None
        self.has_several_agents = len({session.agent for session in sessions}) > 1

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
        last = self._ordered  # read once, because the event loop may change it meanwhile
        order = _FIRST_ORDER if last is None else last[0]
        ordered = (order, _sort(entries.values(), *order))
        return _Prepared(sessions, marks, labels, entries, ordered)

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Replace the user's marks on sessions, such as names and tags.

        `marks`: the marks by session id.
        """
        old, self._marks = self._marks, marks
        changed = {id for id in old.keys() | marks.keys() if old.get(id) != marks.get(id)}
        for key, entry in self._entries.items():
            if entry.summary.id in changed:
                self._entries[key] = _entry(entry.summary, key, self._labels, marks, entry.calls)
        self._ordered = self._scope = None

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
            rows=tuple(_below_headings(pinned, others, view, days)),
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
            ordered = self._in_order(view)
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

    def known(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that belong to sessions in the store."""
        return {key for key in keys if key in self._entries}

    def _in_order(self, view: View) -> list[ListEntry]:
        wanted = (view.sort, view.reverse)
        if self._ordered is None or self._ordered[0] != wanted:
            self._ordered = (wanted, _sort(self._entries.values(), *wanted))
        return self._ordered[1]


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
    mains = {entry.summary.id for entry in entries if entry.above != entry.summary.id}
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
) -> list[Row]:
    """Return rows under their headings; pinned sessions and their children come first."""
    rows: list[Row] = []
    if pinned and view.grouped:
        folded = ALL_PINNED in view.folded
        rows.append(Heading(ALL_PINNED, PINNED, len(pinned), folded))
        pinned = [] if folded else pinned
    elif pinned:
        rows.append(DayHeading(PINNED, len(pinned)))
    rows += pinned
    if view.grouped:
        rows += _grouped(others, view)
    elif view.by_day and days is not None:
        rows += _by_day(others, pinned, view, days)
    else:
        if pinned and others:
            rows.append(DayHeading(NOT_PINNED, len(others)))
        rows += others
    return rows


def _parted(rows: Sequence[SessionRow]) -> tuple[list[SessionRow], list[SessionRow]]:
    pinned: list[SessionRow] = []
    others: list[SessionRow] = []
    part = others
    for row in rows:
        if not row.depth:
            part = pinned if row.entry.pinned else others
        part.append(row)
    return pinned, others


def _grouped(rows: Sequence[SessionRow], view: View) -> Iterator[Row]:
    """Yield rows under a heading for each project or agent, in order of first occurrence."""
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
        yield Heading(group, name, len(members), group in view.folded)
        if group not in view.folded:
            yield from members


def _by_day(
    rows: Sequence[SessionRow], pinned: Sequence[SessionRow], view: View, days: Days
) -> list[Row]:
    """Return rows that are sorted by a time under a heading for each day.

    Children stay under the same heading as their parent session. `pinned`: sessions that count for
    their days, but are listed elsewhere.
    """
    time = _PROPERTY[view.sort]
    times = [time(row.entry) for row in pinned if not row.depth]
    listed_above = Counter(days.span_of(when).name for when in times if when is not None)
    tops: Sequence[int] = range(len(rows))
    if view.hidden:
        tops = [at for at, row in enumerate(rows) if not row.depth]
    below: list[Row] = []
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
        below.append(DayHeading(name, after - position + listed_above[name]))
        below += rows[tops[position] : tops[after] if after < len(tops) else len(rows)]
        position = after
    return below


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


def _sort(entries: Iterable[ListEntry], sort: Sort, reverse: bool) -> list[ListEntry]:
    """Return sorted entries.

    Entries whose value is unknown come last, even if `reverse` is true. Entries with equal values
    stay sorted newest first.
    """
    column, listed = sorted_by(sort), list(entries)
    if column is None:
        values = list(map(_PROPERTY[sort], listed))
    else:
        values = [column.number(entry.summary) for entry in listed]
    known = [at for at, value in enumerate(values) if value is not None]
    known.sort(key=values.__getitem__, reverse=reverse is (sort in _A_FIRST))
    ordered = [listed[at] for at in known]
    if len(known) < len(listed):
        ordered += [entry for entry, value in zip(listed, values, strict=True) if value is None]
    return ordered


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


@lru_cache
def short_model(model: str) -> Clean:
    """Return a model's name without its usual prefix, such as `2.5-pro`."""
    return clean_line(model.removeprefix("models/").removeprefix("gemini-"))
