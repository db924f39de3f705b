"""The screen with all writes to a file, and the base of the screens that list writes.

They read the sessions on a background thread, and again whenever the store changes. The last row of
a file's history is its text, rebuilt from what sessions recorded: it can be read and saved, also if
the file is lost.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import ClassVar, Generic, NamedTuple, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.css.query import NoMatches

from gemtui.files import path_exists
from gemtui.marks import Mark
from gemtui.recover.history import Recovered, recover_file
from gemtui.recover.rebuilt import LineRange, Rebuilt, RebuiltLine
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary, named
from gemtui.sessions.store.store import Problem, SessionKind
from gemtui.sessions.written_files import (
    RecordedWrite,
    WriteReason,
    reason_of,
    recorded_writes,
    writes_by_file,
    wrote_first,
)
from gemtui.text import clean, clean_line, counted, file_name, relative, visible
from gemtui.ui.draw.formats import format_time
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, cut, two_ended, wrap
from gemtui.ui.draw.text_rows import note_line
from gemtui.ui.draw.theme import BOLD, Look, Role, look_of
from gemtui.ui.kit.bars import titled_path
from gemtui.ui.kit.beside import BesideScreen
from gemtui.ui.kit.dialogs import free_name
from gemtui.ui.kit.editor import edit_file
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.row_list import RowList
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.saved_text import save_text
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

    @abstractmethod
    def sessions(self, snapshot: Snapshot) -> tuple[Sequence[Summary], datetime | None]:
        """Return the sessions in the order to read them, and the earliest time to include.

        The time is None to include all writes. Blocking: call this on a background thread.
        """

    @abstractmethod
    def rows_of(self, writes: Sequence[RecordedWrite], snapshot: Snapshot) -> Sequence[RowT]:
        """Return the rows for these writes.

        Blocking: call this on a background thread.
        """

    @abstractmethod
    def show_rows(self, rows: Sequence[RowT], *, whole: bool) -> None:
        """Show these rows.

        `whole`: whether all sessions have been read.
        """

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
        unread, words = 0, "reading"

        def progress(done: int, total: int) -> None:
            nonlocal words
            words = f"reading {done:,} of {total:,}"

        def show(words: str, *, whole: bool) -> None:
            reading.show(self._take, self.rows_of(found, snapshot), words, whole)

        sessions, since = self.sessions(snapshot)
        for read in recorded_writes(
            sessions,
            home=self._home,
            cache=self.gemtui.start.cache,
            since=since,
            progress=progress,
            cancelled=reading.is_stopped,
        ):
            if isinstance(read, Problem):
                unread += 1
            else:
                found.append(read)
            if grows and reading.is_due():
                show(words, whole=False)
        end = f"{counted(unread, 'session')} can't be read" if unread else ""
        show(end, whole=snapshot.complete)

    def _take(self, rows: Sequence[RowT], words: str, whole: bool) -> None:
        try:
            self.show_status(words)
            self.show_rows(rows, whole=whole)
        except NoMatches:  # the screen is being removed
            return


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


class TextRow(NamedTuple):
    """The last row: the file's text, rebuilt from what sessions recorded.

    `found`: what is known of it; None until the sessions have been read for it.
    """

    found: Recovered | None

    @property
    def key(self) -> object:
        """A value that identifies this row."""
        return REBUILT


REBUILT = "rebuilt"
"""The key of the row with the file's text."""
HistoryRow = WriteRow | TextRow


class HistoryView(LineView):
    """The view of a change or of the rebuilt text; copied text has no line numbers."""

    rebuilt: Rebuilt | None = None

    def action_copy(self) -> None:
        if self.rebuilt is None:
            super().action_copy()
        else:
            self.post_message(CopyRequested(clean(self.rebuilt.text), "the rebuilt text"))


class HistoryScreen(WritesScreen[WriteRow], BesideScreen[RecordedWrite, HistoryRow]):
    """A screen with all writes to a file, and the file's text as sessions recorded it.

    Returns the write to open, or None. `history`: the file, and where the cursor was in an earlier
    screen, to be restored.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.HISTORY)
    AUTO_FOCUS = "RowList"

    def __init__(
        self, snapshot: Snapshot, home: Path, marks: Mapping[str, Mark], history: HistoryPosition
    ) -> None:
        super().__init__(snapshot, home, marks, id="history-screen")
        self.history = history
        self._whole = False
        self._found: Recovered | None = None

    def compose(self) -> ComposeResult:
        rows = RowList[HistoryRow](_draw, key=lambda row: row.key, empty="reading")
        yield from self.beside(rows, HistoryView(what="the change"))

    def on_mount(self) -> None:
        self.call_after_refresh(self.read)

    def on_resize(self) -> None:
        path = Path(self.history.path)
        self.header.show_parts(
            titled_path("History of", path, self.header_room, self.gemtui.glyphs)
        )

    # --- rows ----------------------------------------------------------------------------------

    def sessions(self, snapshot: Snapshot) -> tuple[Sequence[Summary], datetime | None]:
        """Return all sessions, starting with those known to have written the file."""
        return wrote_first(sessions_with_calls(snapshot), self.history.path), None

    def rows_of(self, writes: Sequence[RecordedWrite], snapshot: Snapshot) -> list[WriteRow]:
        """Return the rows of the writes to the file, newest first."""
        path = self.history.path
        to_file = writes_by_file(write for write in writes if write.path == path).get(path, ())
        if not to_file:
            return []
        sessions = (item for item in snapshot.sessions if item.kind is SessionKind.MAIN)
        mains = {session.id: session for session in sessions}
        rows: list[WriteRow] = []
        for write in reversed(to_file):
            owner = mains.get(write.session, write.source)
            rows.append(WriteRow(write, named(owner, self._marks).title))
        return rows

    @property
    def _writes(self) -> list[RecordedWrite]:
        """The writes that are shown, newest first."""
        return [row.write for row in self.rows.items if isinstance(row, WriteRow)]

    def show_rows(self, rows: Sequence[WriteRow], *, whole: bool) -> None:
        """Show the writes and, below them, the file's text.

        The cursor stays on its row; initially, it is on the newest write. `whole`: whether all
        sessions have been read.
        """
        writes = [row.write for row in rows]
        outdated = whole and self._found is not None and writes != self._writes
        if outdated:
            self._found = None
        self._whole = whole
        shown: list[HistoryRow] = [*rows]
        if rows or whole:
            shown.append(TextRow(self._found))
        self.rows.show(shown, fresh=self.history.chosen is None)
        self.refresh_bindings()
        keys = [row.key for row in shown]
        if self.history.chosen in keys:
            self.rows.go(keys.index(self.history.chosen))
        if outdated and isinstance(self.rows.chosen, TextRow):
            self._show_side(self.rows.chosen)
        self.panes.above.show_parts([Content(_summary(writes, whole=whole))])

    @on(RowList.Highlighted)
    def _moved(self) -> None:
        row = self.rows.chosen
        if row is not None and (self._whole or self.rows.cursor):
            self.history.chosen = row.key
        self._show_side(row)
        self.refresh_bindings()

    # --- beside the rows -----------------------------------------------------------------------

    @work(exclusive=True, group="change")
    async def _show_side(self, row: HistoryRow | None) -> None:
        """Show the change of a write, or the rebuilt text, which may take a while to read."""
        reading = self.begin_reading("change")
        heading, view = self.panes.heading, self.query_one(HistoryView)
        view.rebuilt = None
        if row is None:
            heading.show_parts([])
            view.show(lambda _look: ())
            return
        if isinstance(row, WriteRow):
            heading.show_parts(_heading(row.write, look_of(self.app, self.size.width)))
            reason = await asyncio.to_thread(reason_of, row.write, cancelled=reading.is_stopped)
            view.show(lambda look: _reason_lines(reason, look))
            return
        if self._found is None:
            sessions = self._snapshot.sessions
            heading.show_parts([Content(f"reading {counted(len(sessions), 'session')}")])
            view.show(lambda _look: ())
            with self.gemtui.reporting("The file could not be rebuilt"):
                self._found = await asyncio.to_thread(
                    recover_file,
                    Path(self.history.path),
                    sessions,
                    cancelled=reading.is_stopped,
                )
            if self._found is None:
                return
            self.rows.show([*self.rows.items[:-1], TextRow(self._found)])
        found, now = self._found, self.gemtui.clock()
        heading.show_parts([Content.styled(_known(found), "bold")])
        view.rebuilt = found.rebuilt
        view.show(lambda look: list(rebuilt_lines(found, look, now)))
        self.refresh_bindings()

    # --- keys ----------------------------------------------------------------------------------

    def can(self, action: str) -> bool:
        """Return whether there is a text to save, for "save"; other actions are available."""
        if action != "save":
            return True
        on_text = isinstance(self.rows.chosen, TextRow)
        return on_text and self._found is not None and self._found.rebuilt is not None

    @on(RowList.Opened)
    def action_open(self) -> None:
        match self.rows.chosen:
            case WriteRow(write=write):
                self.dismiss(write)
            case TextRow():
                self.action_save()

    def action_open_file(self) -> None:
        edit_file(self.gemtui, str(self.history.path), None, None)

    def action_recover(self) -> None:
        self.rows.action_last()

    @work(exclusive=True, group=DIALOG)
    async def action_save(self) -> None:
        rebuilt = None if self._found is None else self._found.rebuilt
        if rebuilt is None:
            self.gemtui.show_message("There is no text to save.")
            return
        path = Path(self.history.path)
        question = "Save the text to a new file"
        await save_text(
            self.gemtui,
            rebuilt.text,
            lambda: _unused_path(path),
            home=self._home,
            question=question,
        )

    def action_patch(self) -> None:
        from gemtui.ui.sessions.patch_screen import Patching, PatchScreen

        writes = self._writes
        if not writes or writes[0].source.project is None:
            self.gemtui.show_message(
                "No patch can be made, because this session's folder is unknown."
            )
            return
        sources = {write.source.name: write.source for write in writes}
        root, only = Path(writes[0].source.project), frozenset({self.history.path})
        patching = Patching(root, lambda: list(sources.values()), only=only)
        self.app.push_screen(PatchScreen(patching, self._home))


def _summary(writes: Sequence[RecordedWrite], *, whole: bool) -> str:
    """Return how many writes there are, in how many sessions, and how many failed."""
    if not writes:
        return "No stored session has written this file." if whole else ""
    made = [write for write in writes if write.written]
    sessions = len({write.session for write in made})
    failed = len(writes) - len(made)
    return f"{counted(len(made), 'write')} in {counted(sessions, 'session')}" + (
        f", {failed} failed" if failed else ""
    )


def _draw(row: HistoryRow, look: Look) -> Pieces:
    if isinstance(row, WriteRow):
        return _draw_write(row, look)
    muted = look[Role.MUTED]
    title = Piece(f"{look.glyphs.dot} Text rebuilt from sessions", muted)
    words = "" if row.found is None else f"  {_known(row.found)}"
    return two_ended((title,), (Piece(words, muted),), look)


def _draw_write(row: WriteRow, look: Look) -> Pieces:
    """Render a write as a row.

    On the left are its symbol and its session's title; on the right the tool, the changed lines or
    the status, and the age.
    """
    sign, word, role = state_of(row.write.status, look)
    muted = look[Role.MUTED]
    counts = change_counts(row.write.added, row.write.removed, look, front="  ")
    right = (
        Piece(f"  {clean_line(row.write.tool)}", muted),
        *([Piece(f"  {word}", look[role])] if word else counts),
        Piece(f"  {relative(row.write.when, look.now):>4}", muted),
    )
    title = (Piece(f"{sign} ", look[role]), Piece(clean_line(row.title), look[Role.TEXT]))
    return two_ended(title, right, look)


def _heading(write: RecordedWrite, look: Look) -> Sequence[Content]:
    sign, word, _ = state_of(write.status, look)
    said = [f"{sign} {clean_line(write.tool)}", word or ("new file" if write.is_new else "")]
    words = Content.styled("  ".join(each for each in said if each), "bold")
    return [words, Content.styled(format_time(write.when, look), "dim")]


def _reason_lines(reason: WriteReason | Problem, look: Look) -> Sequence[Line]:
    """Return the lines that show the prompt of a write, and its change."""
    if isinstance(reason, Problem):
        return (note_line(clean_line(f"{reason.path}: {reason.what}"), look),)
    lines: list[Line] = []
    if reason.prompt:
        you = Piece("You  ", look[Role.ACCENT] + BOLD)
        lines += [
            *wrap((you, Piece(clean_line(reason.prompt), look[Role.TEXT])), look.width),
            BLANK,
        ]
    if reason.change is None:
        return (*lines, note_line("the change was not recorded", look))
    body = draw_diff(reason.change, look, folded=False)
    return (*lines, *(body.lines or (note_line(body.note, look),)))


def _known(found: Recovered) -> str:
    """Return how many of the file's lines are known, guessed and missing."""
    rebuilt = found.rebuilt
    if rebuilt is None:
        return "no session contains this file's text"
    gaps = f", {rebuilt.gaps:,} missing" if rebuilt.gaps else ""
    return f"{counted(rebuilt.known, 'line')} known, {rebuilt.guessed:,} guessed{gaps}"


def _unused_path(path: Path) -> str:
    """Return the lost file's path or, if that can't be used, a free name.

    The path can't be used if a file exists there again, or if its folder no longer exists.
    Blocking: call this on a background thread.
    """
    if not path_exists(path) and path.parent.is_dir():
        return str(path)
    return free_name(file_name(f"{path.stem}-recovered"), path.suffix)


_SHORT_ID = 8
_NUMBER = 5
"""Width in cells of a line number."""


def rebuilt_lines(found: Recovered, look: Look, now: datetime) -> Iterator[Line]:
    """Yield notes, then the rebuilt lines.

    Above each range of lines, a line says where they come from.
    """
    rebuilt = found.rebuilt
    notes = [*found.notes, *(() if rebuilt is None else rebuilt.notes)]
    notes += [f"{problem.path.name}: {problem.what}" for problem in found.problems]
    for note in dict.fromkeys(notes):
        words = clean_line(f"{look.glyphs.warning} {note}")
        yield from wrap((Piece(words, look[Role.WARNING]),), look.width)
    if notes:
        yield BLANK
    if rebuilt is None:
        yield Line((Piece("no session contains this file's text", look[Role.MUTED]),))
        return
    listed = rebuilt.listed
    for span in rebuilt.spans:
        mark, role = _mark(span, look)
        yield Line(cut(_source(span, look, now, role), look))
        for number in range(span.first, min(span.last, len(listed)) + 1):
            yield from _line(number, listed[number - 1], mark, role, look)


def _mark(span: LineRange, look: Look) -> tuple[str, Role]:
    if span.source is None:
        return look.glyphs.failed, Role.ERROR
    return (look.glyphs.ok, Role.SUCCESS) if span.known else (look.glyphs.ask, Role.WARNING)


def _source(span: LineRange, look: Look, now: datetime, role: Role) -> Pieces:
    where = f"line {span.first}" if span.first == span.last else f"lines {span.first}-{span.last}"
    mark, _ = _mark(span, look)
    if span.source is None:
        return (Piece(f"{mark} {where}  missing", look[role]),)
    state = "known" if span.known else "guessed"
    source = span.source
    words = f"{source.tool}, session {source.session[:_SHORT_ID]}, {relative(source.time, now)}"
    return (
        Piece(f"{mark} {where}  {state}  ", look[role]),
        Piece(clean_line(words), look[Role.MUTED]),
    )


def _line(number: int, line: RebuiltLine, mark: str, role: Role, look: Look) -> Iterator[Line]:
    """Yield a line of the file with its number and marker, wrapped to the width.

    `mark`: the marker that shows how certain the line is.
    """
    text = visible(line.text or "").expandtabs(4)
    front = (Piece(f"{number:>{_NUMBER}} ", look[Role.MUTED]), Piece(mark, look[role]))
    room = max(1, look.width - _NUMBER - 3)
    body = wrap((Piece(text, look[Role.TEXT]),), room) if text else [BLANK]
    for at, row in enumerate(body):
        lead = front if at == 0 else (Piece(" " * (_NUMBER + 2), look[Role.MUTED]),)
        yield Line((*lead, Piece(" ", look[Role.TEXT]), *row.pieces))
