"""The screen with a file's history: every write to it, newest first, with changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.marks import Mark
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem, SessionKind
from gemtui.sessions.writes.written_files import RecordedWrite, change_of, writes_by_file, wrote_first
from gemtui.text import Clean, clean_line, counted, relative
from gemtui.transcript.model import DiffDisplay
from gemtui.ui.draw.formats import format_time
from gemtui.ui.draw.gutter_rows import note_line
from gemtui.ui.draw.lines import Line, Piece, Pieces, own, two_ended
from gemtui.ui.draw.theme import Look, Role, look_of
from gemtui.ui.kit.editor import edit_file
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.row_list import BesideScreen, RowList
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.labels import titled_path
from gemtui.ui.sessions.marking import named
from gemtui.ui.sessions.writes_screen import WritesScreen
from gemtui.ui.transcript.card import state_of
from gemtui.ui.transcript.card_body import draw_diff


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

    def __init__(self, snapshot: Snapshot, home: Path, marks: Mapping[str, Mark], history: HistoryPosition) -> None:
        super().__init__(snapshot, home, marks, id="history-screen")
        self.history = history
        self._whole = False

    def compose(self) -> ComposeResult:
        rows = RowList[WriteRow](_draw, key=lambda row: row.key, empty=own("reading"))
        side = LineView(what="the change")
        yield from self.beside(rows, side)

    def on_mount(self) -> None:
        self.call_after_refresh(self.read)

    def on_resize(self) -> None:
        header = self.header
        room, path = header.content_size.width, Path(self.history.path)
        header.show_parts(titled_path("History of", path, room, self.gemtui.glyphs))

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
            self.gemtui.show_message("No patch can be made, because this session's folder is unknown.")
            return
        sources = {each.source.name: each.source for each in writes}
        root, only = Path(row.write.source.project), frozenset({self.history.path})
        patching = Patching(root, lambda: list(sources.values()), only=only)
        self.app.push_screen(PatchScreen(patching, self._home))


def _draw(row: WriteRow, look: Look) -> Pieces:
    """Render a write as a row.

    On the left are its symbol and its session's title; on the right the tool, the changed lines or
    the status, and the age.
    """
    sign, word, role = state_of(row.write.status, look)
    muted = look[Role.MUTED]
    right = (
        Piece(Clean(f"  {clean_line(row.write.tool)}"), muted),
        *([Piece(own(f"  {word}"), look[role])] if word else _counts(row.write, look)),
        Piece(own(f"  {relative(row.write.when, look.now):>4}"), muted),
    )
    title = (Piece(own(f"{sign} "), look[role]), Piece(clean_line(row.title), look[Role.TEXT]))
    return two_ended(title, right, look)


def _counts(write: RecordedWrite, look: Look) -> Sequence[Piece]:
    pieces = []
    if write.added is not None:
        pieces.append(Piece(own(f"  {look.glyphs.added}{write.added}"), look[Role.ADDED]))
    if write.removed:
        pieces.append(Piece(own(f" {look.glyphs.removed}{write.removed}"), look[Role.REMOVED]))
    return pieces


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
