"""Screens for files that differ from what the user approved, and for file diffs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.content import Content

from gemtui.agent import approval
from gemtui.runs.changed_files import FileStates
from gemtui.runs.gate.verification import restore_former
from gemtui.text import clean_line, visible_line
from gemtui.transcript.displays import content_diff
from gemtui.transcript.writes import FileWrite
from gemtui.ui.draw.code import language_of
from gemtui.ui.draw.lines import Line
from gemtui.ui.draw.text_rows import text_rows
from gemtui.ui.draw.theme import Look
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.dialogs import Choice, ChooseScreen
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.kit.text_view import DetailView
from gemtui.ui.run.labels import write_row
from gemtui.ui.transcript.diff import draw_diff

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun


class DifferenceScreen(FullScreen[None]):
    """A screen with the diff of one file.

    `row`: the header's text, such as the file's row in the list of changed files. `name`: the
    file's base name. `found`: the diff or, if there is none, the contents to show.
    """

    HAS_STATUS = False

    def __init__(self, row: Content, name: str, found: FileStates) -> None:
        super().__init__()
        self._row, self._file, self._found = row, name, found

    def compose(self) -> ComposeResult:
        why = Static(clean_line(self._found.why), id="why")
        yield from self.framed(why, DetailView(what="the change", id="difference"))

    def on_mount(self) -> None:
        self.header.show_parts([self._row])
        self.query_one("#why", Static).display = bool(self._found.why)
        self.query_one(DetailView).show(self._draw)

    def _draw(self, look: Look) -> Sequence[Line]:
        if self._found.diff is not None:
            return draw_diff(self._found.diff, look, folded=False).lines
        language = language_of(clean_line(self._file))
        return text_rows(self._found.text, look, folded=False, language=language).lines


async def show_differing(app: AppBase, run: LiveRun) -> None:
    """List the files that differ from what the user approved.

    The user can choose one to see its diff, or to restore what it contained before the approved
    call.
    """
    while True:
        differences = {str(difference.number): difference for difference in run.differing}
        rows = []
        for number, difference in differences.items():
            path = visible_line(difference.path[-60:])
            rows.append(Choice(f"view {number}", "View", path))
            rows.append(Choice(f"back {number}", "Restore the text from before the call", path))
        text = "After an approved call, these files have contents that you did not approve."
        about = (text,)
        title = "Files that differ from what you approved"
        chosen = await app.push_screen_wait(ChooseScreen(title, about, rows))
        if chosen is None:
            return
        action, _, number = chosen.partition(" ")
        if action == "view":
            await _view(app, differences[number])
        else:
            await _put_back(app, run, differences[number])


async def _view(app: AppBase, differs: approval.Difference) -> None:
    path, approved, now = differs.path, differs.approved or "", differs.found or ""
    diff = await asyncio.to_thread(content_diff, path, approved, now)
    why = "what you approved (−) and what was found (+)"
    if differs.found is None:
        why = "what you approved (−); the file is missing or can't be shown"
    row = Content.styled(visible_line(path), "bold")
    shown = FileStates(why=why, diff=diff)
    name = clean_line(Path(path).name)
    await app.push_screen_wait(DifferenceScreen(row, name, shown))


async def _put_back(app: AppBase, run: LiveRun, differs: approval.Difference) -> None:
    with app.reporting("The file was not restored"):
        path = await asyncio.to_thread(restore_former, run.run.gate, differs.number)
        app.show_message(f"Restored as it was before the call: {path}")


async def show_difference(app: AppBase, run: LiveRun, write: FileWrite) -> None:
    """Show a screen that compares a file before the run with the file as it is now.

    `write`: the file, as listed among the changed files.
    """
    difference = await run.files.difference(Path(write.path))
    row = write_row(write, run.cwd, app.glyphs)
    await app.push_screen_wait(DifferenceScreen(row, write.path.name, difference))
