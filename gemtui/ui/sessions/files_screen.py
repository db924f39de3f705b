"""The screen with the files that sessions wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.calls.paths import separator
from gemtui.marks import Mark
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.projects import folder_names
from gemtui.sessions.written_files import (
    RecordedWrite,
    writes_by_file,
)
from gemtui.text import clean_line, counted, relative, short_path
from gemtui.ui.draw.lines import Piece, Pieces, fit_end, spread, width_of
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.filtering import matching_items
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.row_list import RowList, SteeredRows
from gemtui.ui.sessions.history_screen import (
    REBUILT,
    HistoryPosition,
    HistoryScreen,
    WritesScreen,
)
from gemtui.ui.sessions.list import scope_label
from gemtui.ui.sessions.scoped_screen import (
    SPANS,
    ScreenState,
    SearchedScreen,
    scope_parts,
    since,
)


@dataclass(slots=True)
class FilesState(ScreenState):
    """The state of the file list.

    `span`: the index of the chosen period in `SPANS`. `session`: the id of the session that the
    list is limited to, or None. `history`: the state of the history screen opened from the list, or
    None.
    """

    span: int = 0
    session: str | None = None
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
    name: str
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
        rows = SteeredRows[FileRow](_draw, key=lambda row: row.id, empty="reading")
        yield from self.composed(rows, "search by path")

    @property
    def _root(self) -> Path | None:
        """The project that the list is currently limited to, or None for all projects."""
        if self.state.session is not None:
            session = self._session(self._snapshot)
            if session is None or session.project is None:
                return None
            return Path(session.project)
        return None if self.state.everywhere else self.project

    def _session(self, snapshot: Snapshot) -> Summary | None:
        """Return the session that the list is limited to; None if it no longer exists."""
        return next((each for each in snapshot.sessions if each.id == self.state.session), None)

    def _sessions(self, snapshot: Snapshot, root: Path | None) -> Sequence[Summary]:
        if self.state.session is None:
            return sessions_with_calls(snapshot, project=root)
        session = self._session(snapshot)
        return () if session is None else sessions_with_calls(snapshot, session=session)

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
        return self._sessions(snapshot, self._root), begin

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

    def _nothing(self) -> str:
        if self._all:
            return "No matches."
        if not self._whole:
            return "reading"
        key = BY_ID["files.scope"].footer()
        if self.state.session is not None:
            return f"This session has written no files. Press {key} to show those of others."
        other = "" if self._root is None else f" Press {key} to show all projects."
        return f"No session has written files here.{other}"

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        row = self.rows.chosen
        if row is not None and (self._whole or self.rows.cursor):
            self.state.chosen = row.id

    def _update_header(self) -> None:
        parts = scope_parts("Changed files", self._root, self.gemtui.glyphs, self.state.span)
        if self.state.session is not None:
            parts[1] = Content("this session")
        shown, total = len(self.rows.items), len(self._all)
        count = counted(total, "file") if shown == total else f"{shown:,} of {total:,} files"
        self.header.show_parts(parts, [Content.styled(count, "dim")])

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return True for "scope" in the list of one session, which can always be widened."""
        return self.state.session is not None or super().can(action)

    def key_label(self, action: str) -> str | None:
        """Return what the key for the scope does now, or None for any other action."""
        if action == "scope" and self.state.session is not None:
            wider = self.project is not None and not self.state.everywhere
            return scope_label(everywhere=wider)
        return super().key_label(action)

    def action_scope(self) -> None:
        """Show the files of one session's project or of all projects, or switch between these."""
        if self.state.session is None:
            super().action_scope()
        else:
            self.state.session = None
            self.scope_changed()

    def scope_changed(self) -> None:
        """Load the files of different projects or a different period."""
        self._all, self._whole, self.state.chosen = (), False, None
        self.refresh_bindings()
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
            lambda: self._sessions(snapshot, root),
            since=since(self.state.span, self.gemtui.clock()),
            only=frozenset(each.path for each in self.rows.items) if self.state.text else None,
        )
        self.app.push_screen(PatchScreen(patching, self._home))

    def action_recover(self) -> None:
        if (row := self.rows.chosen) is not None:
            self._look_into(HistoryPosition(row.path, chosen=REBUILT))

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
    made = [write for write in writes if write.written]
    folder = next((each for each in folders if path.is_relative_to(each)), None)
    name = short_path(path) if folder is None else clean_line(str(path.relative_to(folder)))
    sessions = len({write.session for write in made})
    project = made[-1].source.project
    return FileRow(
        id=str(path),
        path=path,
        project=None if project is None else Path(project),
        name=name,
        writes=len(made),
        sessions=sessions,
        when=made[-1].when,
    )


def _draw(row: FileRow, look: Look) -> Pieces:
    """Render a file's path, its numbers of writes and sessions, and its age."""
    muted = look[Role.MUTED]
    words = f"  {counted(row.writes, 'write'):>9}  {counted(row.sessions, 'session'):>11}"
    right = (Piece(f"{words}  {relative(row.when, look.now):>4}", muted),)
    room = max(0, look.width - width_of(right))
    shown = fit_end(row.name, room, look.glyphs.ellipsis)
    folder, slash, name = shown.rpartition(separator(row.path))
    left = (Piece(folder + slash, muted), Piece(name, look[Role.TEXT]))
    return spread(left, right, look.width, Piece(" ", muted))
