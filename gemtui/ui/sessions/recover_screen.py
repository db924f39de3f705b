"""The screen with a lost file, rebuilt from sessions' records, to view or to save."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from gemtui.files import path_exists
from gemtui.recover.history import Recovered, recover_file
from gemtui.recover.rebuilt import LineRange, Rebuilt
from gemtui.recover.rebuilt import RebuiltLine as FileLine
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean, clean_line, counted, file_name, relative, visible
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, cut, own, wrap
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.bars import titled_path
from gemtui.ui.kit.dialogs import free_name
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.saved_text_screen import SavedTextScreen

_SHORT_ID = 8
_NUMBER = 5
"""Width in cells of a line number."""


class RecoveredView(LineView):
    """The view of the rebuilt lines with their markers; copied text has no markers."""

    rebuilt: Rebuilt | None = None

    def action_copy(self) -> None:
        if self.rebuilt is not None:
            self.post_message(CopyRequested(clean(self.rebuilt.text), "the rebuilt text"))


class RecoverScreen(SavedTextScreen):
    """A screen that rebuilds a lost file and shows how certain each line is.

    The sessions are read on a background thread. `path`: the lost file's path.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.RECOVER)
    AUTO_FOCUS = "RecoveredView"

    def __init__(self, path: Path, sessions: Sequence[Summary], home: Path) -> None:
        super().__init__(home, id="recover")
        self._path, self._sessions = path, sessions
        self._since = time.monotonic()
        self._found: Recovered | None = None

    def compose(self) -> ComposeResult:
        yield from self.framed(RecoveredView(what="the rebuilt text"))

    def on_mount(self) -> None:
        self.set_interval(1.0, self._say)
        self._say()
        self._read()

    def on_resize(self) -> None:
        self.header.show_parts(
            titled_path("Recovered:", self._path, self.header_room, self.gemtui.glyphs)
        )

    def _say(self) -> None:
        if self._found is None:
            seconds = int(time.monotonic() - self._since)
            words = f"reading {counted(len(self._sessions), 'session')}"
            words += f", {seconds} s" if seconds else ""
        elif (rebuilt := self._found.rebuilt) is None:
            words = "no session contains this file's text"
        else:
            words = f"{counted(rebuilt.known, 'line')} known, {rebuilt.guessed:,} guessed"
            words += f", {rebuilt.gaps:,} missing" if rebuilt.gaps else ""
        self.show_status(words)

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        reading, found = self.begin_reading(), None
        with self.gemtui.reporting("The file could not be rebuilt"):
            found = await asyncio.to_thread(
                recover_file, self._path, self._sessions, cancelled=reading.is_stopped
            )
        if found is None:
            self.dismiss()
            return
        self._found = found
        self._say()
        now = self.gemtui.clock()
        view = self.query_one(RecoveredView)
        view.rebuilt = found.rebuilt
        self.text = None if found.rebuilt is None else found.rebuilt.text
        view.show(lambda look: list(_lines(found, look, now)))
        self.refresh_bindings()

    def question(self) -> Clean:
        """Return the title of the dialog that asks where to save the file."""
        return own("Save the text to a new file")

    def offered(self) -> str:
        """Return the lost file's path or, if that can't be used, a free name.

        The path can't be used if a file exists there again, or if its folder no longer exists.
        Blocking: call this on a background thread.
        """
        path = self._path
        if not path_exists(path) and path.parent.is_dir():
            return str(path)
        return free_name(file_name(f"{path.stem}-recovered"), path.suffix)


def _lines(found: Recovered, look: Look, now: datetime) -> Iterator[Line]:
    """Yield notes, then the rebuilt lines.

    Above each range of lines, a line says where they come from.
    """
    rebuilt = found.rebuilt
    notes = [*found.notes, *(() if rebuilt is None else rebuilt.notes)]
    notes += [f"{each.path.name}: {each.what}" for each in found.problems]
    for note in dict.fromkeys(notes):
        words = clean_line(f"{look.glyphs.warning} {note}")
        yield from wrap((Piece(words, look[Role.WARNING]),), look.width)
    if notes:
        yield BLANK
    if rebuilt is None:
        yield Line((Piece(own("no session contains this file's text"), look[Role.MUTED]),))
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
        return (Piece(own(f"{mark} {where}  missing"), look[role]),)
    state = "known" if span.known else "guessed"
    source = span.source
    words = f"{source.tool}, session {source.session[:_SHORT_ID]}, {relative(source.time, now)}"
    return (
        Piece(own(f"{mark} {where}  {state}  "), look[role]),
        Piece(clean_line(words), look[Role.MUTED]),
    )


def _line(number: int, line: FileLine, mark: str, role: Role, look: Look) -> Iterator[Line]:
    """Yield a line of the file with its number and marker, wrapped to the width.

    `mark`: the marker that shows how certain the line is.
    """
    text = own(visible(line.text or "").expandtabs(4))
    front = (Piece(own(f"{number:>{_NUMBER}} "), look[Role.MUTED]), Piece(own(mark), look[role]))
    room = max(1, look.width - _NUMBER - 3)
    body = wrap((Piece(text, look[Role.TEXT]),), room) if text else [BLANK]
    for at, row in enumerate(body):
        lead = front if at == 0 else (Piece(own(" " * (_NUMBER + 2)), look[Role.MUTED]),)
        yield Line((*lead, Piece(own(" "), look[Role.TEXT]), *row.pieces))
