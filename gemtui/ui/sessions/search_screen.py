"""The full-text search screen: search while typing, and choose a match to open.

The matches ("hits") are listed by session.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.calls.paths import recorded_path
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.search.indexer import IndexerState, IndexProgress
from gemtui.search.lost import LostSessions, prompts_text
from gemtui.search.search import NO_MARKS, Search
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.query import Field, parse_query, query_completions
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.typed_prompts import typed_prompts
from gemtui.text import clean_line
from gemtui.ui.kit.bars import GAP
from gemtui.ui.kit.clean_widgets import Input
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.row_list import RowList, SteeredRows
from gemtui.ui.kit.text_view import show_text
from gemtui.ui.sessions.hits import HitFeed, HitRow, OpenedHit
from gemtui.ui.sessions.marks import tags_in_use
from gemtui.ui.sessions.scoped_screen import ScreenState, SearchedScreen, scope_parts

if TYPE_CHECKING:
    from gemtui.marks import Mark

MOST = 200
"""Maximum number of hits to show."""
_HELP = 'words "a phrase" -not  project: tool: file: tag: after:7d is:failed in:prompt'
_DAYS = ("7d", "30d", "today", "yesterday")
_VALUES = {Field.TOOL: [tool.name for tool in TOOLS], Field.AFTER: _DAYS, Field.BEFORE: _DAYS}
"""The values to suggest for search fields in every store."""


@dataclass(slots=True)
class SearchState(ScreenState):
    """The state of the search screen.

    `dropped`: whether to search only dropped messages, which failed or were rewound or replaced,
    instead of the other messages.
    """

    dropped: bool = False


class _Scope(NamedTuple):
    """The sessions to search, those whose files are gone, and values for completions.

    `snapshot`, `project`: what they were made from.
    """

    snapshot: Snapshot
    project: Path | None
    sessions: tuple[Summary, ...]
    lost: LostSessions
    values: Mapping[Field, Sequence[str]]


class SearchScreen(SearchedScreen[OpenedHit]):
    """A screen that returns the hit to open, or None.

    `project`: the project that the search can be limited to, or None. `state`: the state in
    which an earlier screen was left, to be restored. `home`: the CLI's folder. `indexing`: the
    state of the index, or None.
    `marks`: the user's marks, by session id.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.SEARCH)
    state: SearchState

    def __init__(
        self,
        search: Search,
        snapshot: Snapshot,
        project: Path | None,
        state: SearchState,
        *,
        home: Path,
        indexing: IndexProgress | None = None,
        marks: Mapping[str, Mark] = NO_MARKS,
    ) -> None:
        super().__init__(id="search")
        self._indexing, self._marks, self._home = indexing, marks, home
        self._search, self._snapshot, self.project = search, snapshot, project
        self.state = state
        self._feed = HitFeed(self, self._show)
        self._shown = False
        self._scope: _Scope | None = None

    def compose(self) -> ComposeResult:
        rows = SteeredRows[HitRow](
            lambda row, look: row.draw(self._marks, look),
            stops=lambda row: row.hit is not None,
            key=lambda row: row.key,
            empty=_HELP,
        )
        yield from self.composed(rows, "search all sessions", self._complete)

    def on_mount(self) -> None:
        self.find()

    def _scope_now(self) -> _Scope:
        """Return the sessions to search, which are the same object until something has changed.

        A search recognises an unchanged scope by that. Blocking: call this on a background thread.
        """
        scope, snapshot = self._scope, self._snapshot
        project = None if self.state.everywhere else self.project
        if scope is None or scope.snapshot is not snapshot or scope.project != project:
            sessions = tuple(listed_sessions(snapshot, project=project, hidden=True))
            ids = {session.id for session in snapshot.sessions}
            lost = LostSessions(self._home, ids, project)
            self._scope = scope = _Scope(snapshot, project, sessions, lost, _values_in(snapshot))
        return scope

    def _complete(self, text: str) -> str | None:
        """Return `text` with its last field name or value completed, or None."""
        values = {} if self._scope is None else self._scope.values
        tags = {Field.TAG: tags_in_use(self._marks)}
        return next(iter(query_completions(text, {**_VALUES, **values, **tags})), None)

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Search a newer state of the session store; the cursor stays on its hit."""
        self._snapshot = snapshot
        if self.query("#status") and self.state.text:
            self.find()

    def mark(self, marks: Mapping[str, Mark]) -> None:
        """Use these marks, and search again, because searches also look at marks.

        `marks`: the user's marks by session id.
        """
        self._marks = marks
        if self.query("#status"):
            self.find()

    def indexing(self, progress: IndexProgress) -> None:
        """Show the progress of the index.

        Once the index is complete, a search that had to read the files instead is repeated.
        """
        before, self._indexing = self._indexing, progress
        was_done = before is not None and before.state is IndexerState.DONE
        if self.query("#status") and progress.state is IndexerState.DONE and not was_done:
            self.find()
        elif self.query("#status"):
            self._update_status()

    # --- searching -----------------------------------------------------------------------------

    @work(exclusive=True, group="find")
    async def find(self) -> None:
        """Search the sessions in scope; the results of an earlier search are discarded."""
        reading = self.begin_reading()
        self._update_header()
        if self.state.text:
            self._feed.begin()
            self._update_status()
        await asyncio.to_thread(self._look, reading)

    def _look(self, reading: Reading) -> None:
        """Search the sessions in scope. Blocking: call this on a background thread."""
        query = parse_query(self.state.text, now=self.gemtui.clock())
        scope = self._scope_now()
        if not query:
            self._search.prepare(scope.sessions, self._marks)
        self._feed.look(
            self._search,
            query,
            scope.sessions,
            reading,
            limit=MOST,
            dropped=self.state.dropped,
            marks=self._marks,
            lost=scope.lost if scope.snapshot.complete else None,
        )

    def _show(self, first: bool) -> None:
        """Show what has been found so far.

        `first`: whether these are the first results of a search.
        """
        results = self._feed.results
        self.rows.empty = self._empty() if results is not None and results.query else _HELP
        fresh = (first and self._shown) or self.state.chosen is None
        self._shown = True
        self.rows.show(list(self._feed.rows()), fresh=fresh, wanted=self.state.chosen)
        self._update_status()

    def _empty(self) -> str:
        if self.state.dropped:
            return "No rewound or replaced message matches. Press ctrl+t to search current ones."
        if self.state.everywhere or self.project is None:
            return "No matches. Press ctrl+t to search rewound or replaced messages."
        return "No matches in this project. Press ctrl+r to search all projects."

    # --- texts ---------------------------------------------------------------------------------

    def _update_header(self) -> None:
        project = None if self.state.everywhere else self.project
        words = scope_parts("Search", project, self.gemtui.glyphs)
        if self.state.dropped:
            words.append(Content.styled("rewound or replaced messages", "$text-warning"))
        self.header.show_parts(words)

    def _update_status(self) -> None:
        results, indexing = self._feed.results, _words_of(self._indexing)
        if not self.state.text.strip():
            self.show_status(indexing)
            return
        words = [self._feed.words]
        if indexing:
            words.append(indexing)
        if results is not None and results.note is not None:
            words.append(results.note)
        self.status.show_parts([Content(GAP).join(Content(clean_line(word)) for word in words)])

    # --- keys ----------------------------------------------------------------------------------

    def action_complete(self) -> None:
        self.query_one(Input).action_cursor_right()

    def scope_changed(self) -> None:
        """Search the sessions in the new scope."""
        self.find()

    def action_dropped(self) -> None:
        self.state.dropped = not self.state.dropped
        self.find()

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        row = self.rows.chosen
        self.state.chosen = None if row is None else row.key

    @work(exclusive=True, group="open")
    async def action_open(self) -> None:
        """Open the hit under the cursor, if there is one."""
        results, row = self._feed.results, self.rows.chosen
        if results is None or row is None or row.hit is None:
            return
        session = row.group.session
        if Flag.LOST in session.flags:
            prompts = await asyncio.to_thread(typed_prompts, self._home, session.id)
            title = f"Prompts of {session.id}, whose file is gone"
            show_text(self.gemtui, title, prompts_text(prompts), what="the prompts")
        else:
            pattern = await asyncio.to_thread(self._search.pattern, row.hit, results.query)
            self.dismiss(OpenedHit(row.hit, self.state.text, pattern))


def _values_in(snapshot: Snapshot) -> Mapping[Field, Sequence[str]]:
    """Return the values in a store to suggest for search fields, most frequent first."""
    projects, models = Counter[str](), Counter[str]()
    for project, count in Counter(session.project for session in snapshot.sessions).items():
        projects[recorded_path(project).name if project else ""] += count
    for used, count in Counter(session.models for session in snapshot.sessions).items():
        models.update(dict.fromkeys(used, count))
    agents = {session.agent for session in snapshot.sessions}
    return {
        Field.AGENT: sorted(agents) if len(agents) > 1 else (),
        Field.PROJECT: [name for name, _ in projects.most_common() if name],
        Field.MODEL: [name for name, _ in models.most_common()],
    }


def _words_of(progress: IndexProgress | None) -> str:
    """Return words for the index's progress, or "" if the user needn't know it."""
    if progress is None or progress.state in (IndexerState.DONE, IndexerState.WAITING):
        return ""
    if progress.state is IndexerState.INDEXING:
        return f"index: {progress.done:,} of {progress.total:,}"
    return clean_line(f"no index: {progress.note or 'the indexing process has ended'}")
