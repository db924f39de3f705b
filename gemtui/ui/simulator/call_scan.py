"""Reading the tool calls of past sessions on a background thread, for the simulator.

The user chooses which calls to read (the scope): a session's, a project's or all calls, possibly
only those of the last days. Screens show the result while it grows.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import msgspec.structs
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import ScreenResultType

from gemtui.moments import start_of_day
from gemtui.policy.model.rules import RecordedCall, Reference
from gemtui.runs.call_history import ScanStep, recorded_calls
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary, title_of
from gemtui.sessions.store.store import Problem
from gemtui.text import clean_line, short_path
from gemtui.ui.kit.dialogs import Choice, ChooseScreen
from gemtui.ui.kit.filtering import FiltersRows, SearchedRows
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.reading import Latest, Reading
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.rules.draw import session_row

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


State = TypeVar("State")
UPDATE_PAUSE = 0.15
"""Seconds between two updates of the screen while calls are being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """A choice of calls to read: those of `session`, else those of `project`, else all.

    `since`: leave out earlier calls; None means no limit.
    """

    session: Summary | None = None
    project: Path | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """The numbers of sessions and calls that have been read.

    * `done`, `total`: how many sessions have been read, and how many there are.
    * `calls`: how many calls they contained.
    * `problems`: what couldn't be read.
    * `ended`: whether reading has ended.
    * `stopped`: whether it ended because the user stopped it.
    """

    done: int = 0
    total: int = 0
    calls: int = 0
    problems: tuple[Problem, ...] = ()
    ended: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSink(Generic[State]):
    """The functions to which a screen sends recorded calls, to be prepared for display.

    `feed(calls)` processes the next calls. `state(ended)` returns an immutable snapshot of the
    result for display; `ended` says whether all calls have been read. Both are called on a
    background thread.
    """

    feed: Callable[[Sequence[RecordedCall]], None]
    state: Callable[[bool], State]


class CallHistory:
    """The recorded calls in a session store.

    All methods except `session` and `forget` may block. `name_of`: returns the name that the user
    gave to the session with this id, which replaces its title; None if there is no such name.
    """

    def __init__(
        self,
        home: Path,
        *,
        cache: Path | None,
        name_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._home, self._cache, self._name_of = home, cache, name_of
        self._sessions: dict[str, Summary] = {}
        self._snapshot: Snapshot | None = None

    def forget(self) -> None:
        """Discard the loaded sessions, so that they are loaded again when needed."""
        self._snapshot = None

    def snapshot(self) -> Snapshot:
        """Return all sessions, which are loaded only once. Raises StoreUnreadable."""
        if self._snapshot is None:
            with closing(Index(self._home, cache=self._cache)) as index:
                self._snapshot = read_store(index)
            newest_last = reversed(self._snapshot.sessions)
            self._sessions = {session.id: session for session in newest_last}
        return self._snapshot

    def session(self, id: str) -> Summary | None:
        """Return the session with this id, or None if it isn't loaded or doesn't exist."""
        session = self._sessions.get(id)
        return None if session is None else self._named(session)

    def with_calls(self) -> Sequence[Summary]:
        """Return the sessions with tool calls, newest first. Raises StoreUnreadable."""
        return [
            self._named(session)
            for session in self.snapshot().sessions
            if session.tool_calls and not session.hidden
        ]

    def _named(self, session: Summary) -> Summary:
        return msgspec.structs.replace(session, title=title_of(session, self._name_of(session.id)))

    def initial_scope(self, project: Path | None) -> CallScope:
        """Return the initial scope: the project's calls or, if it has none, all calls."""
        which = CallScope(project=project)
        if project is None or sessions_with_calls(self.snapshot(), project=project):
            return which
        return CallScope()

    def steps(self, which: CallScope, stopped: Callable[[], bool]) -> Iterator[ScanStep]:
        """Yield the calls in a scope, session by session.

        `which`: the scope. `stopped`: returns whether to stop. Raises StoreUnreadable.
        """
        sessions = sessions_with_calls(
            self.snapshot(), session=which.session, project=which.project
        )
        since = which.since
        if since is not None:
            sessions = tuple(session for session in sessions if session.when >= since)
        for step in recorded_calls(sessions, cancelled=stopped):
            yield step if since is None else _later(step, since)

    def find(self, reference: Reference) -> RecordedCall | None:
        """Return a call including its arguments, which the reference doesn't contain.

        Returns None if the call or its session can't be read.
        """
        session = self.session(reference.session)
        if session is None:
            return None
        for step in recorded_calls((session,)):
            for recorded in step.calls:
                if Reference.to(recorded) == reference:
                    return recorded
        return None


def _later(step: ScanStep, since: datetime) -> ScanStep:
    """Return a step with only the calls since a time; calls without a time stay."""
    calls = tuple(call for call in step.calls if call.time is None or call.time >= since)
    return replace(step, calls=calls)


class CallScan(Generic[State]):
    """Reads the recorded calls in a scope once, on a background thread.

    `which`: the scope, which says which calls to read. `sink`: processes the calls. `show`: called
    in the event loop with the progress and the sink's result, several times during reading and once
    at the end.
    """

    def __init__(
        self,
        history: CallHistory,
        which: CallScope,
        sink: CallSink[State],
        show: Callable[[ScanProgress, State], None],
    ) -> None:
        self._history, self._which, self._sink = history, which, sink
        self._reading = Reading(every=UPDATE_PAUSE)
        self._latest = Latest[tuple[ScanProgress, State]](lambda latest: show(*latest))

    def stop(self) -> None:
        """Stop reading; the results so far are kept."""
        self._reading.stop()

    async def run(self) -> None:
        """Read until the end, or until stopped or cancelled. Raises StoreUnreadable."""
        try:
            await asyncio.to_thread(self._read)
            self._latest.flush()
        finally:
            self.stop()

    def _read(self) -> None:
        progress = ScanProgress()
        for step in self._history.steps(self._which, self._reading.is_stopped):
            self._sink.feed(step.calls)
            problems = (*progress.problems, *([step.problem] if step.problem else []))
            progress = ScanProgress(
                done=step.done,
                total=step.total,
                calls=progress.calls + len(step.calls),
                problems=problems[:1000],
            )
            if self._reading.is_due():
                self._latest.put((progress, self._sink.state(False)))
        ended = replace(progress, ended=True, stopped=self._reading.is_stopped())
        self._latest.put((ended, self._sink.state(True)))


_ONE = "one"


def describe_scope(which: CallScope, now: datetime) -> str:
    """Describe a scope, for example "project tidewatch, since yesterday"."""
    if which.session is not None:
        scope = f'session "{clean_line(which.session.title)[:60]}"'
    elif which.project is not None:
        scope = f"project {which.project.name or which.project}"
    else:
        scope = "all projects"
    if which.since is not None:
        days = (now.date() - which.since.astimezone().date()).days
        scope += ", since yesterday" if days == 1 else f", the last {days} days"
    return clean_line(scope)


def _offered(project: Path | None, now: datetime) -> Iterator[tuple[str, CallScope]]:
    """Yield what the user can choose: a project's calls, and all, each with three periods."""
    for scope in dict.fromkeys((project, None)):
        whose = "This project" if scope is not None else "All projects"
        yield whose, CallScope(project=scope)
        for days, ending in ((1, "since yesterday"), (7, "the last 7 days")):
            since = start_of_day(now.date() - timedelta(days=days), None)
            yield f"{whose}, {ending}", CallScope(project=scope, since=since)


async def choose_scope(
    app: AppBase, history: CallHistory, now_shown: CallScope | None
) -> CallScope | None:
    """Let the user choose the scope (which calls to read); return None if cancelled.

    `now_shown`: the current scope, on which the cursor starts.
    """
    project, now = app.start.project, app.clock()
    offered = list(_offered(project, now))
    choices: list[Choice] = []
    for number, (label, scope) in enumerate(offered):
        meaning = "every session" if scope.project is None else short_path(scope.project)
        choices.append(Choice(str(number), clean_line(label), "" if scope.since else meaning))
    choices.append(Choice(_ONE, "One session", "choose from a list"))
    scopes = [scope for _, scope in offered]
    at = scopes.index(now_shown) if now_shown in scopes else 0
    chosen = await app.push_screen_wait(ChooseScreen("Choose the calls", (), choices, at=at))
    if chosen is None:
        return None
    if chosen != _ONE:
        return offered[int(chosen)][1]
    session = await app.push_screen_wait(PickSessionScreen(history))
    return None if session is None else CallScope(session=session)


class PickSessionScreen(FiltersRows, FullScreen[Summary]):
    """A screen for choosing a session; returns it, or None if cancelled.

    Only sessions with tool calls are listed.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CALLS)
    AUTO_FOCUS = "RowList"
    HAS_STATUS = False

    def __init__(self, history: CallHistory) -> None:
        super().__init__()
        self._history = history

    def compose(self) -> ComposeResult:
        rows = SearchedRows[Summary](
            session_row,
            lambda session: f"{session.title} {session.project} {session.id}",
            empty="reading",
        )
        yield from self.framed(rows)

    def on_mount(self) -> None:
        self.header.show_parts([Content.styled("Choose a session", "bold")])
        self._fill()

    @work(exclusive=True)
    async def _fill(self) -> None:
        with self.gemtui.reporting():
            sessions = await asyncio.to_thread(self._history.with_calls)
            if self.is_open:
                self.searched.empty = "No session has tool calls."
                self.searched.show(sessions, fresh=True)

    @on(RowList.Opened)
    def _chosen(self) -> None:
        self.dismiss(self.searched.rows.chosen)


class CallScanner(FullScreen[ScreenResultType], Generic[ScreenResultType, State]):
    """Reads the calls in a scope on a background thread, and shows the growing result.

    `which`: the scope, which says which calls to read; None until the first one has been
    determined. Subclasses define a sink, which processes the calls, and how to show its result.
    """

    history: CallHistory
    which: CallScope | None = None
    progress = ScanProgress()
    _scan: CallScan[State] | None = None

    @abstractmethod
    def sink(self) -> CallSink[State]:
        """Return a new sink, which processes the calls of a single scan."""

    @abstractmethod
    def scan_again(self) -> None:
        """Start a new scan, because the scope has changed."""

    @abstractmethod
    def show_result(self, found: State) -> None:
        """Show the sink's result for the calls that have been read so far."""

    @abstractmethod
    def show_scope(self) -> None:
        """Show which calls are being read (the scope)."""

    def show_progress(self) -> None:
        """Show how many calls have been read."""

    def unreadable(self) -> None:
        """Show that nothing could be read."""

    def on_unmount(self) -> None:
        self.action_stop()

    @work(exclusive=True, group="read")
    async def read(self) -> None:
        """Start a scan of the current scope.

        The first scope is the project's calls or, if it has none, all calls.
        """
        self.action_stop()
        with self.gemtui.reporting():
            if self.which is None:
                project = self.gemtui.start.project
                self.which = await asyncio.to_thread(self.history.initial_scope, project)
                self.show_scope()
            self._scan = CallScan(self.history, self.which, self.sink(), self._take)
            await self._scan.run()
            return
        self.unreadable()

    def _take(self, progress: ScanProgress, found: State) -> None:
        if self.is_open:
            self.progress = progress
            self.show_result(found)
            self.show_progress()

    @property
    def scope_text(self) -> str:
        """A description of the scope (the calls that are read), such as "all projects"."""
        return "" if self.which is None else describe_scope(self.which, self.gemtui.clock())

    def action_stop(self) -> None:
        if self._scan is not None:
            self._scan.stop()

    @work(exclusive=True, group=DIALOG)
    async def action_which(self) -> None:
        which = await choose_scope(self.gemtui, self.history, self.which)
        if which is not None:
            self.which = which
            self.show_scope()
            self.scan_again()
