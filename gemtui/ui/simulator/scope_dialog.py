"""Let the user choose which calls to read: a session's, a project's or all calls.

The calls of a project, or all calls, can be limited to the last days.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean_line, short_path
from gemtui.ui.kit.dialogs import Choice, ChooseScreen
from gemtui.ui.kit.filtering import FiltersRows, SearchedRows
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.rules.draw_rows import session_row
from gemtui.ui.simulator.call_scan import CallHistory, CallScope

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_ONE = "one"


def describe_scope(which: CallScope, now: datetime) -> Clean:
    """Describe a scope, for example "project tidewatch, since yesterday"."""
    if which.session is not None:
        said = f'session "{clean_line(which.session.title)[:60]}"'
    elif which.project is not None:
        said = f"project {which.project.name or which.project}"
    else:
        said = "all projects"
    if which.since is not None:
        days = (_midnight(now) - which.since).days
        said += ", since yesterday" if days == 1 else f", the last {days} days"
    return clean_line(said)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _offered(project: Path | None, now: datetime) -> Iterator[tuple[str, CallScope]]:
    for place in dict.fromkeys((project, None)):
        whose = "This project" if place is not None else "All projects"
        yield whose, CallScope(project=place)
        for days, ending in ((1, "since yesterday"), (7, "the last 7 days")):
            since = _midnight(now) - timedelta(days=days)
            yield f"{whose}, {ending}", CallScope(project=place, since=since)


async def choose_scope(app: AppBase, history: CallHistory, now_shown: CallScope | None) -> CallScope | None:
    """Let the user choose the scope (which calls to read); return None if cancelled.

    `now_shown`: the current scope, on which the cursor starts.
    """
    project, now = app.start.project, app.clock()
    offered = list(_offered(project, now))
    choices = [
        Choice(str(number), clean_line(label), Clean("") if each.since else _meaning(each))
        for number, (label, each) in enumerate(offered)
    ]
    choices.append(Choice(_ONE, Clean("One session"), Clean("choose from a list")))
    places = [each for _, each in offered]
    at = places.index(now_shown) if now_shown in places else 0
    chosen = await app.push_screen_wait(ChooseScreen(Clean("Choose the calls"), (), choices, at=at))
    if chosen is None:
        return None
    if chosen != _ONE:
        return offered[int(chosen)][1]
    session = await app.push_screen_wait(PickSessionScreen(history))
    return None if session is None else CallScope(session=session)


def _meaning(which: CallScope) -> Clean:
    return Clean("every session") if which.project is None else short_path(which.project)


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
            session_row, lambda each: f"{each.title} {each.project} {each.id}", empty=Clean("reading")
        )
        yield from self.framed(rows)

    def on_mount(self) -> None:
        self.header.show_parts([Content.styled("Choose a session", "bold")])
        self._fill()

    @work(exclusive=True)
    async def _fill(self) -> None:
        with self.gemtui.reporting():
            found = await asyncio.to_thread(self._history.with_calls)
            if self.is_open:
                self.searched.empty = Clean("No session has tool calls.")
                self.searched.show(found, fresh=True)

    @on(RowList.Opened)
    def _chosen(self) -> None:
        self.dismiss(self.searched.rows.chosen)
