"""Read the tool calls of past sessions on a background thread, for the simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

import msgspec.structs

from gemtui.policy.model.rules import RecordedCall, Reference
from gemtui.runs.call_history import ScanStep, recorded_calls
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem
from gemtui.ui.kit.reading import Latest, Reading

State = TypeVar("State")
SHOWN = 0.15
"""Seconds between two updates of the screen while calls are being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """Which calls to read: those of `session`, else those of `project`, else all.

    `since`: leave out earlier calls; None means no limit.
    """

    session: Summary | None = None
    project: Path | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanProgress:
    """How many sessions and calls have been read.

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
    """Where a screen sends recorded calls, to be processed for display.

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
        self, home: Path, *, cache: Path | None, name_of: Callable[[str], str | None] = lambda _: None
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
                found = read_store(index)
            self._sessions = {each.id: each for each in reversed(found.sessions)}
            self._snapshot = found
        return self._snapshot

    def session(self, id: str) -> Summary | None:
        """Return the session with this id, or None if it isn't loaded or doesn't exist."""
        found = self._sessions.get(id)
        return None if found is None else self._named(found)

    def with_calls(self) -> Sequence[Summary]:
        """Return the sessions with tool calls, newest first. Raises StoreUnreadable."""
        sessions = self.snapshot().sessions
        return [self._named(each) for each in sessions if each.tool_calls and not each.hidden]

    def _named(self, session: Summary) -> Summary:
        name = self._name_of(session.id)
        return session if name is None else msgspec.structs.replace(session, title=name)

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
        sessions = sessions_with_calls(self.snapshot(), session=which.session, project=which.project)
        since = which.since
        if since is not None:
            sessions = tuple(each for each in sessions if each.when >= since)
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
            for each in step.calls:
                if Reference.to(each) == reference:
                    return each
        return None


def _later(step: ScanStep, since: datetime) -> ScanStep:
    calls = tuple(each for each in step.calls if each.time is None or each.time >= since)
    return replace(step, calls=calls)


class CallScan(Generic[State]):
    """Reads the recorded calls in a scope once, on a background thread.

    `which`: the scope, which says which calls to read. `sink`: processes the calls. `show`: called
    in the event loop with the progress and the sink's result, several times during reading and once
    at the end.
    """

    def __init__(
        self, history: CallHistory, which: CallScope, sink: CallSink[State], show: Callable[[ScanProgress, State], None]
    ) -> None:
        self._history, self._which, self._sink = history, which, sink
        self._reading = Reading(every=SHOWN)
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
                done=step.done, total=step.total, calls=progress.calls + len(step.calls), problems=problems[:1000]
            )
            if self._reading.is_due():
                self._latest.put((progress, self._sink.state(False)))
        ended = replace(progress, ended=True, stopped=self._reading.is_stopped())
        self._latest.put((ended, self._sink.state(True)))
