"""`gemtui sessions --live`: what the active sessions in all terminals are doing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct

from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note
from gemtui.commands.session_choice import index_of_user, marks_of_user
from gemtui.extension.live import LiveFolder, LiveSession, LiveState
from gemtui.extension.status import INSTALL, HookState, extension_state
from gemtui.jsonout import fields
from gemtui.paths import runs_dir
from gemtui.runs.ending import RunState
from gemtui.runs.listing import list_runs
from gemtui.sessions.catalog.index import read_store
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.sessions.catalog.summary import Flag, Summary, named
from gemtui.system import Unported, why_not
from gemtui.text import clean_line, ellipsis, relative

_HEAD = ("STATE", "SINCE", "PROJECT", "SESSION", "ASKS")
_WIDEST = (8, 5, 24, 40)


class _Live(Struct, frozen=True, kw_only=True):
    """One active session.

    `by`: the source of this information: `hook` (a Gemini CLI hook), `file` (the session's file has
    just been written) or `run` (a run of gemtui). `reported`: what the hooks reported; None unless
    `by` is `hook`.
    """

    session: str
    state: LiveState
    since: datetime
    project: str | None
    by: str
    reported: LiveSession | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the session as JSON values.

        null means that a value is unknown or doesn't apply.
        """
        names = ("pid", "tool", "question")
        reported = dict.fromkeys(names) if self.reported is None else fields(self.reported, *names)
        session = {"session": self.session or None}
        return session | fields(self, "state", "since", "project", "by") | reported


def list_live_sessions(project: Path | None, *, as_json: bool) -> int:
    """List active sessions, in all projects or in one; waiting sessions come first."""
    with index_of_user() as index:
        home, snapshot = index.home, read_store(index, project=project)
    stored = {
        session.id: session for session in listed_sessions(snapshot, project=project, hidden=False)
    }
    live = [active for active in _found(stored.values()) if _concerns(active, project, stored)]
    if as_json:
        sessions = [
            stored[active.session].to_dict(files=False)
            for active in live
            if active.session in stored
        ]
        json_to_stdout({"home": home, "sessions": sessions, "live": live})
    else:
        marks = marks_of_user()
        titles = {id: named(session, marks).title for id, session in stored.items()}
        rows = [tuple(_row(active, titles, datetime.now(UTC))) for active in live]
        lines_to_stdout(columns([_HEAD, *rows] if rows else []))
    state = extension_state().state
    if state is not HookState.READY:
        note(
            f"gemtui's extension is {state.value.replace('_', ' ')}, so only runs and sessions "
            "written in the last minute are listed; to see more: "
            f"{why_not(Unported.EXTENSION) or INSTALL}"
        )
    elif not live and not as_json:
        note("no active sessions")
    return 0


def _found(stored: Iterable[Summary]) -> Iterator[_Live]:
    """Yield the active sessions: first those that Gemini CLI hooks have reported.

    After these come the sessions of gemtui's runs, and those whose files have just been written.
    """
    seen = set()
    for reported in LiveFolder().read():
        seen.add(reported.session)
        yield _Live(
            session=reported.session,
            state=reported.state,
            since=reported.since,
            project=reported.project,
            by="hook",
            reported=reported,
        )
    for run in list_runs(runs_dir()):
        if run.state is RunState.RUNNING and run.session and run.session not in seen:
            seen.add(run.session)
            yield _active(run.session, run.started, run.cwd, "run")
    for summary in stored:
        if Flag.LIVE in summary.flags and summary.id not in seen:
            yield _active(summary.id, summary.when, summary.project, "file")


def _active(session: str, since: datetime, project: str | None, by: str) -> _Live:
    return _Live(session=session, state=LiveState.ACTIVE, since=since, project=project, by=by)


def _concerns(live: _Live, project: Path | None, stored: Mapping[str, Summary]) -> bool:
    inside = live.project is not None and PurePath(live.project) == project
    return project is None or live.session in stored or inside


def _row(live: _Live, titles: Mapping[str, str], now: datetime) -> Iterator[str]:
    """Yield the cells of a row; all but the last are cut to the width of their column."""
    title = titles.get(live.session)
    question = None if live.reported is None else live.reported.question
    front = (
        live.state.value,
        relative(live.since, now),
        PurePath(live.project).name if live.project else "?",
        live.session[:8] if title is None else f"{live.session[:8]} {title}",
    )
    for cell, width in zip(map(clean_line, front), _WIDEST, strict=True):
        yield ellipsis(cell, width)
    yield clean_line("" if question is None else question.message)
