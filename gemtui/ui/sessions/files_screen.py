"""The screens with the files that sessions wrote, and with all writes to one of them.

They read the sessions on a background thread, and again whenever the store changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import ClassVar, Generic, NamedTuple, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.css.query import NoMatches

from gemtui.calls.paths import separator
from gemtui.marks import Mark
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary, named
from gemtui.sessions.store.projects import folder_names
from gemtui.sessions.store.store import Problem, SessionKind
from gemtui.sessions.written_files import (
    RecordedWrite,
    change_of,
    recorded_writes,
    writes_by_file,
    wrote_first,
)
from gemtui.text import Clean, clean_line, counted, relative, short_path
from gemtui.transcript.model import DiffDisplay
from gemtui.ui.draw.formats import format_time
from gemtui.ui.draw.lines import Line, Piece, Pieces, fit_end, own, spread, two_ended, width_of
from gemtui.ui.draw.text_rows import note_line
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.bars import titled_path
from gemtui.ui.kit.editor import edit_file
from gemtui.ui.kit.filtering import matching_items
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.row_list import BesideScreen, RowList, SteeredRows
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.scoped_screen import SPANS, ScreenState, SearchedScreen, scope_parts, since
from gemtui.ui.transcript.card import state_of
from gemtui.ui.transcript.diff import change_counts, draw_diff

RowT = TypeVar("RowT")
REDRAW_PAUSE = 0.3
"""Seconds between two updates while sessions are being read."""
_PAUSE = 1.0
"""Seconds to wait before each further read, as the store may change constantly."""


class WritesScreen(FullScreen[RecordedWrite], Generic[RowT]):
    """A screen that lists writes; returns the one whose session to open, or None.

    During the first read, rows appear as they are found. During later reads, the old rows stay
    until everything has been read. `marks`: the user's marks, by session id.
    """

    def __init__(
        self, snapshot: Snapshot, home: Path, marks: Mapping[str, Mark], *, id: str
    ) -> None:
        super().__init__(id=id)
        self._snapshot, self._home, self._marks = snapshot, home, marks
        self._news = asyncio.Event()

    def sessions(self, snapshot: Snapshot) -> tuple[Sequence[Summary], datetime | None]:
        """Return the sessions in the order to read them, and the earliest time to include.

        The time is None to include all writes. Blocking: call this on a background thread.
        """
        raise NotImplementedError

    def rows_of(self, writes: Sequence[RecordedWrite], snapshot: Snapshot) -> Sequence[RowT]:
        """Return the rows for these writes.

        Blocking: call this on a background thread.
        """
        raise NotImplementedError

    def show_rows(self, rows: Sequence[RowT], *, whole: bool) -> None:
        """Show these rows.

        `whole`: whether all sessions have been read.
        """
        raise NotImplementedError

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Show a newer state of the session store once the current one has been read."""
        self._snapshot = snapshot
        self._news.set()

    @work(exclusive=True, group="writes")
    async def read(self) -> None:
        """Read the sessions, and read them again after each change of the store."""
        reading = self.begin_reading(every=REDRAW_PAUSE)
        grows = True
        while True:
            self._news.clear()
            await asyncio.to_thread(self._gather, reading, grows)
            grows = False
            await self._news.wait()
            await asyncio.sleep(_PAUSE)

    def _gather(self, reading: Reading, grows: bool) -> None:
        snapshot = self._snapshot
        found: list[RecordedWrite] = []
        unread, words = 0, own("reading")

        def progress(done: int, total: int) -> None:
            nonlocal words
            words = own(f"reading {done:,} of {total:,}")

        def show(words: Clean, *, whole: bool) -> None:
            reading.show(self._take, self.rows_of(found, snapshot), words, whole)

        sessions, since = self.sessions(snapshot)
        for each in recorded_writes(
            sessions,
            home=self._home,
            cache=self.gemtui.start.cache,
            since=since,
            progress=progress,
            cancelled=reading.is_stopped,
        ):
            if isinstance(each, Problem):
                unread += 1
            else:
                found.append(each)
            if grows and reading.is_due():
                show(words, whole=False)
        end = f"{counted(unread, 'session')} can't be read" if unread else ""
        show(own(end), whole=snapshot.complete)

    def _take(self, rows: Sequence[RowT], words: Clean, whole: bool) -> None:
        try:
            self.show_status(words)
            self.show_rows(rows, whole=whole)
        except NoMatches:  # the screen is being removed
            return


@dataclass(slots=True)
class FilesState(ScreenState):
    """The state of the file list.

    `span`: the index of the chosen period in `SPANS`. `history`: the state of the history screen
    opened from the list, or None.
    """

    span: int = 0
    history: HistoryPosition | None = None


class FileRow(NamedTuple):
    """A file that sessions wrote, with its number of writes and its last write.

    `id`: the path as a string, which compares faster than a `Path`. `project`: the folder of the
    session that wrote it last. `name`: the path as displayed. `sessions`: how many sessions wrote
    it. `when`: the time of the last write.
    """

    id: str
    path: PurePath
    project: Path | None
    name: Clean
    writes: int
    sessions: int
    when: datetime


class FilesScreen(SearchedScreen[RecordedWrite], WritesScreen[FileRow]):
    """A screen with the files that sessions wrote; returns a write to open, or None.

    `project`: the project that the list can be limited to, or None. `state`: the state in which an
    earlier screen was left, to be restored.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.FILES)
    state: FilesState

    def __init__(
        self,
        snapshot: Snapshot,
        home: Path,
        marks: Mapping[str, Mark],
        project: Path | None,
        state: FilesState,
    ) -> None:
        super().__init__(snapshot, home, marks, id="files-screen")
        self.state = state
        self.project = project
        self._all: Sequence[FileRow] = ()
        self._whole = False
        self._history: HistoryScreen | None = None

    def compose(self) -> ComposeResult:
        rows = SteeredRows[FileRow](_draw, key=lambda row: row.id, empty=own("reading"))
        yield from self.composed(rows, own("search by path"))

    @property
    def _root(self) -> Path | None:
        """The project that the list is currently limited to, or None for all projects."""
        return None if self.state.everywhere else self.project

    def on_mount(self) -> None:
        self._update_header()
        self.call_after_refresh(self.read)
        if self.state.history is not None:
            self._look_into(self.state.history)

    def use_snapshot(self, snapshot: Snapshot) -> None:
        """Show a newer state of the session store, here and in a file history opened here."""
        super().use_snapshot(snapshot)
        if self._history is not None:
            self._history.use_snapshot(snapshot)

    # --- files ---------------------------------------------------------------------------------

    def sessions(self, snapshot: Snapshot) -> tuple[Sequence[Summary], datetime | None]:
        """Return the sessions to read, and the start of the selected period."""
        begin = since(self.state.span, self.gemtui.clock())
        return sessions_with_calls(snapshot, project=self._root), begin

    def rows_of(self, writes: Sequence[RecordedWrite], snapshot: Snapshot) -> list[FileRow]:
        """Return a row per file; files in the project are named relative to the project."""
        del snapshot
        folders = frozenset[str]() if self._root is None else folder_names(self._root)
        rows = [_row(path, each, folders) for path, each in writes_by_file(writes).items()]
        return sorted(rows, key=lambda row: row.when, reverse=True)

    def show_rows(self, rows: Sequence[FileRow], *, whole: bool) -> None:
        """Show the rows that match the search.

        The cursor stays on its file; initially, it is on the newest. `whole`: whether all sessions
        have been read.
        """
        self._all, self._whole = rows, whole
        self.find()

    @work(exclusive=True, group="search")
    async def find(self) -> None:
        """Show the files whose paths match the search."""
        found = await matching_items(self._all, lambda row: row.name, self.state.text)
        self.rows.empty = self._nothing()
        wanted = self.state.chosen
        self.rows.show(found, fresh=wanted is None, wanted=wanted)
        self._update_header()

    def _nothing(self) -> Clean:
        if self._all:
            return own("No matches.")
        if not self._whole:
            return own("reading")
        key = BY_ID["files.scope"].footer()
        other = "" if self._root is None else f" Press {key} to show all projects."
        return own(f"No session has written files here.{other}")

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        row = self.rows.chosen
        if row is not None and (self._whole or self.rows.cursor):
            self.state.chosen = row.id

    def _update_header(self) -> None:
        parts = scope_parts("Written files", self._root, self.gemtui.glyphs, self.state.span)
        shown, total = len(self.rows.items), len(self._all)
        count = counted(total, "file") if shown == total else f"{shown:,} of {total:,} files"
        self.header.show_parts(parts, [Content.styled(count, "dim")])

    # --- keys ----------------------------------------------------------------------------------

    def scope_changed(self) -> None:
        """Load the files of different projects or a different period."""
        self._all, self._whole, self.state.chosen = (), False, None
        self.find()
        self.read()

    def action_span(self) -> None:
        self.state.span = (self.state.span + 1) % len(SPANS)
        self.scope_changed()

    def action_patch(self) -> None:
        from gemtui.ui.sessions.patch_screen import Patching, PatchScreen

        row, snapshot = self.rows.chosen, self._snapshot
        root = self._root or (row and row.project)
        if row is None:
            self.gemtui.show_message("There are no files in the list to export.")
            return
        if root is None:
            self.gemtui.show_message(
                "No patch can be made, because this file's project folder is unknown."
            )
            return
        patching = Patching(
            root,
            lambda: sessions_with_calls(snapshot, project=root),
            since=since(self.state.span, self.gemtui.clock()),
            only=frozenset(each.path for each in self.rows.items) if self.state.text else None,
        )
        self.app.push_screen(PatchScreen(patching, self._home))

    def action_recover(self) -> None:
        from gemtui.ui.sessions.recover_screen import RecoverScreen

        if (row := self.rows.chosen) is not None:
            sessions = self._snapshot.sessions
            self.app.push_screen(RecoverScreen(Path(row.path), sessions, self._home))

    def action_open(self) -> None:
        if (row := self.rows.chosen) is not None:
            self._look_into(HistoryPosition(row.path))

    def _look_into(self, history: HistoryPosition) -> None:
        def closed(write: RecordedWrite | None) -> None:
            self._history = None
            if write is None:
                self.state.history = None
            else:
                self.dismiss(write)

        self.state.history = history
        self._history = HistoryScreen(self._snapshot, self._home, self._marks, history)
        self.app.push_screen(self._history, closed)


def _row(path: PurePath, writes: Sequence[RecordedWrite], folders: frozenset[str]) -> FileRow:
    done = [each for each in writes if each.written]
    folder = next((each for each in folders if path.is_relative_to(each)), None)
    name = short_path(path) if folder is None else clean_line(str(path.relative_to(folder)))
    sessions = len({each.session for each in done})
    project = done[-1].source.project
    return FileRow(
        id=str(path),
        path=path,
        project=None if project is None else Path(project),
        name=name,
        writes=len(done),
        sessions=sessions,
        when=done[-1].when,
    )


def _draw(row: FileRow, look: Look) -> Pieces:
    """Render a file's path, its numbers of writes and sessions, and its age."""
    muted = look[Role.MUTED]
    words = f"  {counted(row.writes, 'write'):>9}  {counted(row.sessions, 'session'):>11}"
    right = (Piece(own(f"{words}  {relative(row.when, look.now):>4}"), muted),)
    room = max(0, look.width - width_of(right))
    shown = fit_end(row.name, room, own(look.glyphs.ellipsis))
    folder, slash, name = shown.rpartition(separator(row.path))
    left = (Piece(Clean(folder + slash), muted), Piece(Clean(name), look[Role.TEXT]))
    return spread(left, right, look.width, Piece(own(" "), muted))


@dataclass(slots=True)
class HistoryPosition:
    """The file and the cursor of a history screen, so that it can be opened again.

    `chosen`: the key of the row with the cursor.
    """

    path: PurePath
    chosen: object = None


class WriteRow(NamedTuple):
    """A write to the file, with the title of the main session it belongs to."""

    write: RecordedWrite
    title: str

    @property
    def key(self) -> object:
        """A value that identifies this row."""
        return self.write.source.name, self.write.message, self.write.block


class HistoryScreen(WritesScreen[WriteRow], BesideScreen[RecordedWrite, WriteRow]):
    """A screen with all writes to a file; returns the one to open, or None.

    `history`: the file, and where the cursor was in an earlier screen, to be restored.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.HISTORY)
    AUTO_FOCUS = "RowList"

    def __init__(
        self, snapshot: Snapshot, home: Path, marks: Mapping[str, Mark], history: HistoryPosition
    ) -> None:
        super().__init__(snapshot, home, marks, id="history-screen")
        self.history = history
        self._whole = False

    def compose(self) -> ComposeResult:
        rows = RowList[WriteRow](_draw_write, key=lambda row: row.key, empty=own("reading"))
        side = LineView(what="the change")
        yield from self.beside(rows, side)

    def on_mount(self) -> None:
        self.call_after_refresh(self.read)

    def on_resize(self) -> None:
        path = Path(self.history.path)
        self.header.show_parts(
            titled_path("History of", path, self.header_room, self.gemtui.glyphs)
        )

    # --- writes --------------------------------------------------------------------------------

    def sessions(self, snapshot: Snapshot) -> tuple[Sequence[Summary], datetime | None]:
        """Return all sessions, starting with those known to have written the file."""
        return wrote_first(sessions_with_calls(snapshot), self.history.path), None

    def rows_of(self, writes: Sequence[RecordedWrite], snapshot: Snapshot) -> list[WriteRow]:
        """Return the rows of the writes to the file, newest first."""
        path = self.history.path
        mine = writes_by_file(each for each in writes if each.path == path).get(path, ())
        mains = (each for each in snapshot.sessions if each.kind is SessionKind.MAIN)
        owners = {each.id: each for each in mains} if mine else {}
        found = ((each, owners.get(each.session, each.source)) for each in reversed(mine))
        return [WriteRow(write, named(owner, self._marks).title) for write, owner in found]

    def show_rows(self, rows: Sequence[WriteRow], *, whole: bool) -> None:
        """Show the writes.

        The cursor stays on its write; initially, it is on the newest. `whole`: whether all sessions
        have been read.
        """
        self._whole = whole
        self.rows.empty = own("No stored session has written this file." if whole else "reading")
        self.rows.show(rows, fresh=self.history.chosen is None)
        self.refresh_bindings()
        keys = [row.key for row in rows]
        if self.history.chosen in keys:
            self.rows.go(keys.index(self.history.chosen))
        made = sum(row.write.written for row in rows)
        sessions = len({row.write.session for row in rows if row.write.written})
        words = f"{counted(made, 'write')} in {counted(sessions, 'session')}" if rows else ""
        if tried := len(rows) - made:
            words += f", {tried} failed"
        self.panes.above.show_parts([Content(words)])

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        row = self.rows.chosen
        if row is not None and (self._whole or self.rows.cursor):
            self.history.chosen = row.key
        self._show_change(row)

    # --- changes -------------------------------------------------------------------------------

    @work(exclusive=True, group="change")
    async def _show_change(self, row: WriteRow | None) -> None:
        reading = self.begin_reading("change")
        heading, view = self.panes.heading, self.panes.side
        if row is None:
            heading.show_parts([])
            view.show(lambda _look: ())
            return
        heading.show_parts(_heading(row.write, look_of(self.app, self.size.width)))
        change = await asyncio.to_thread(change_of, row.write, cancelled=reading.is_stopped)
        view.show(lambda look: _change_lines(change, look))

    # --- keys ----------------------------------------------------------------------------------

    @on(RowList.Opened)
    def action_open(self) -> None:
        if (row := self.rows.chosen) is not None:
            self.dismiss(row.write)

    def action_open_file(self) -> None:
        edit_file(self.gemtui, str(self.history.path), None, None)

    def action_recover(self) -> None:
        from gemtui.ui.sessions.recover_screen import RecoverScreen

        path, sessions = Path(self.history.path), self._snapshot.sessions
        self.app.push_screen(RecoverScreen(path, sessions, self._home))

    def action_patch(self) -> None:
        from gemtui.ui.sessions.patch_screen import Patching, PatchScreen

        row, writes = self.rows.chosen, [each.write for each in self.rows.items]
        if row is None or row.write.source.project is None:
            self.gemtui.show_message(
                "No patch can be made, because this session's folder is unknown."
            )
            return
        sources = {each.source.name: each.source for each in writes}
        root, only = Path(row.write.source.project), frozenset({self.history.path})
        patching = Patching(root, lambda: list(sources.values()), only=only)
        self.app.push_screen(PatchScreen(patching, self._home))


def _draw_write(row: WriteRow, look: Look) -> Pieces:
    """Render a write as a row.

    On the left are its symbol and its session's title; on the right the tool, the changed lines or
    the status, and the age.
    """
    sign, word, role = state_of(row.write.status, look)
    muted = look[Role.MUTED]
    counts = change_counts(row.write.added, row.write.removed, look, front="  ")
    right = (
        Piece(Clean(f"  {clean_line(row.write.tool)}"), muted),
        *([Piece(own(f"  {word}"), look[role])] if word else counts),
        Piece(own(f"  {relative(row.write.when, look.now):>4}"), muted),
    )
    title = (Piece(own(f"{sign} "), look[role]), Piece(clean_line(row.title), look[Role.TEXT]))
    return two_ended(title, right, look)


def _heading(write: RecordedWrite, look: Look) -> Sequence[Content]:
    sign, word, _ = state_of(write.status, look)
    said = [f"{sign} {clean_line(write.tool)}", word or ("new file" if write.is_new else "")]
    words = Content.styled("  ".join(each for each in said if each), "bold")
    return [words, Content.styled(format_time(write.when, look), "dim")]


def _change_lines(change: DiffDisplay | Problem | None, look: Look) -> Sequence[Line]:
    if isinstance(change, Problem):
        return (note_line(clean_line(f"{change.path}: {change.what}"), look),)
    if change is None:
        return (note_line("the change was not recorded", look),)
    body = draw_diff(change, look, folded=False)
    return body.lines or (note_line(body.note, look),)
