"""The screen with sessions' changes as a single patch to view, copy or save."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from gemtui.calls.paths import recorded_path
from gemtui.paths import current_folder
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import ProjectPatch, Remark, recorded_changes, remarks
from gemtui.text import clean, clean_line, counted, file_name, short_path
from gemtui.ui.draw.lines import BLANK, Line, Piece, wrap
from gemtui.ui.draw.text_rows import text_rows
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.kit.bars import titled_path
from gemtui.ui.kit.dialogs import at_most, free_name
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import CopyRequested
from gemtui.ui.kit.screens import DIALOG, FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.saved_text import save_text

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_NAMES = 20
"""Maximum number of files to name in a note; any others are only counted."""


@dataclass(frozen=True, slots=True)
class Patching:
    """The scope of a patch: the changes by these sessions to files under `root`.

    `since`: leave out changes before this time. `only`: leave out all files but these.
    """

    root: Path
    sessions: Callable[[], Sequence[Summary]]
    since: datetime | None = None
    only: frozenset[PurePath] | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch for `git apply`, with notes on files it doesn't cover exactly.

    The notes name files that were left out, and files that something else changed between two of
    the sessions' writes. `files`: how many files the patch changes. `left_out`: how many files
    could not be included.
    """

    text: str
    files: int
    left_out: int
    remarks: Sequence[Remark]


class PatchView(LineView):
    """The view of a patch, which copies all of it even if only a part is shown."""

    patch: Patch | None = None

    def action_copy(self) -> None:
        if self.patch is None or not self.patch.text:
            return
        self.post_message(CopyRequested(self.patch.text, "the patch"))
        if clean(self.patch.text) != self.patch.text:
            app = cast("AppBase", self.app)
            app.show_message(
                "Control characters in the patch can't be copied. Save the patch instead.",
                problem=True,
            )


class PatchScreen(FullScreen[None]):
    """A screen that shows a patch, made by reading sessions on a background thread."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.PATCH)
    AUTO_FOCUS = "PatchView"

    def __init__(self, patching: Patching, home: Path) -> None:
        super().__init__(id="patch-screen")
        self._patching, self._home = patching, home
        self._patch: Patch | None = None

    @property
    def view(self) -> PatchView:
        """The widget that shows the patch."""
        return self.query_one(PatchView)

    def compose(self) -> ComposeResult:
        yield from self.framed(PatchView(what="the patch"))

    def on_mount(self) -> None:
        self._read()

    def on_resize(self) -> None:
        count = "" if self._patch is None else counted(self._patch.files, "file")
        room = self.header_room - len(count)
        words = titled_path("Patch of", self._patching.root, room, self.gemtui.glyphs)
        self.header.show_parts(words, [Content.styled(count, "dim")])

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        reading = self.begin_reading()

        def progress(done: int, total: int) -> None:
            reading.show(self.show_status, f"reading {done:,} of {total:,}")

        patch = await asyncio.to_thread(_made, self._patching, progress, reading.is_stopped)
        self._patch = self.view.patch = patch
        self.on_resize()
        left = f"{counted(patch.left_out, 'file')} left out" if patch.left_out else ""
        self.show_status(left)
        self.view.show(lambda look: _lines(patch, look))
        self.refresh_bindings()

    def can(self, action: str) -> bool:
        """Return False for "write" if there is no patch."""
        return action != "write" or (self._patch is not None and bool(self._patch.text))

    @work(exclusive=True, group=DIALOG)
    async def action_write(self) -> None:
        """Save the patch, by default under an unused name that starts with the project's."""
        if self._patch is None:
            return
        name = file_name(self._patching.root.name)
        await save_text(
            self.gemtui,
            self._patch.text,
            lambda: free_name(name, ".patch"),
            home=self._home,
            question=clean_line(f"Save the patch to a file in {short_path(current_folder())}"),
        )


def _made(
    patching: Patching, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
) -> Patch:
    """Return the whole patch.

    `patching`: what the patch covers. `progress`: called with the number of sessions read, and
    their total. `cancelled`: returns whether to stop. Blocking: call this on a background thread.
    """
    made, problems = ProjectPatch(patching.root), list[Problem]()
    for each in recorded_changes(
        patching.sessions(), since=patching.since, progress=progress, cancelled=cancelled
    ):
        if isinstance(each, Problem):
            problems.append(each)
        elif patching.only is None or each.path in patching.only:
            made.add(each)
    files = list(made.files())
    return Patch(
        text="".join(each.text for each in files),
        files=sum(bool(each.text) for each in files),
        left_out=sum(bool(each.unknown) for each in files),
        remarks=remarks(files, problems),
    )


def _lines(patch: Patch, look: Look) -> Sequence[Line]:
    """Return lines with the notes, followed by the patch as it will be saved."""
    lines = [line for remark in patch.remarks for line in _remark_lines(remark, look)]
    if not patch.text:
        lines += _warning("no changes to export", look)
    elif lines:
        lines.append(BLANK)
    return (*lines, *text_rows(patch.text, look, folded=False, language="diff").lines)


def _remark_lines(remark: Remark, look: Look) -> Iterator[Line]:
    yield from _warning(clean_line(remark.what), look)
    for name in at_most([short_path(recorded_path(path)) for path in remark.about], _NAMES):
        yield from wrap((Piece(f"  {name}", look[Role.MUTED]),), look.width)


def _warning(words: str, look: Look) -> Sequence[Line]:
    return wrap((Piece(f"{look.glyphs.warning} {words}", look[Role.WARNING]),), look.width)
