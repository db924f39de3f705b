"""The lists of a run's files, and the card below a finished run.

The card shows what failed, which files changed, which commands passed, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.strip import Strip

from gemtui.transcript.model import ToolCall
from gemtui.transcript.tools import ToolKind, kind_of
from gemtui.transcript.writes import FileWrite, WriteStatus
from gemtui.ui.draw.theme import Role, glyphs_of, look_of
from gemtui.ui.kit.bars import BarLine, key_hint
from gemtui.ui.kit.clean_widgets import Option, OptionList, Static
from gemtui.ui.kit.keys import BY_ID, Where, bindings
from gemtui.ui.kit.messages import BackRequested, FileRequested, HistoryRequested
from gemtui.ui.kit.row_list import GUTTER
from gemtui.ui.run.labels import call_row, ending_text, write_row
from gemtui.ui.run.live_run import LiveRun

EndRow = ToolCall | FileWrite
_SHARE = 4
"""The rows take up at most a quarter of the screen's height."""
_SHORTER = {"run.undo_to": "undo"}
"""Labels of keys that are shorter than usual, by the key's id."""


class WriteList(OptionList):
    """The list of the files that a working run changes.

    On request, the screen shows a file's diff or the call that wrote it, or opens the file.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.WRITES)

    @dataclass
    class DiffRequested(Message):
        """Request to show how a run has changed a file."""

        write: FileWrite

    @dataclass
    class CallRequested(Message):
        """Request to show a call in the transcript.

        `call`: the call's id.
        """

        call: str

    def __init__(self, *, id: str = "writes") -> None:
        super().__init__(id=id)
        self.shown: Sequence[EndRow] = ()
        self._state: object = None

    def rows(self, run: LiveRun) -> Sequence[EndRow]:
        """Return the rows to show for a run."""
        return run.files.rows

    def show(self, run: LiveRun) -> None:
        """Show the rows for a run.

        The cursor stays on the first row, or else on the same file or call.
        """
        rows = self.rows(run)
        state = rows, run.waiting_call_ids, run.queued
        if state == self._state:
            return
        self._state = state
        chosen, at = self.chosen, self.highlighted or 0
        self.shown = rows
        self.clear_options()
        self.add_options(Option(self._drawn(row, run)) for row in rows)
        keys = [_key(row) for row in rows]
        if at > 0 and chosen is not None and _key(chosen) in keys:
            self.highlighted = keys.index(_key(chosen))
        elif keys:
            self.highlighted = min(at, len(keys) - 1)

    def _drawn(self, row: EndRow, run: LiveRun) -> Content:
        if isinstance(row, ToolCall):
            return call_row(row, look_of(self.app, self.size.width))
        asked, queued = run.waiting_call_ids, run.queued
        return write_row(row, run.cwd, glyphs_of(self.app), asked=asked, queued=queued)

    @property
    def chosen(self) -> EndRow | None:
        """The file or call under the cursor."""
        at = self.highlighted
        return None if at is None or at >= len(self.shown) else self.shown[at]

    @property
    def file(self) -> FileWrite | None:
        """The file under the cursor; None if it is on a call."""
        return self.chosen if isinstance(self.chosen, FileWrite) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the keys for files unless the cursor is on one."""
        if action in ("diff", "open_file", "history"):
            return self.file is not None
        return super().check_action(action, parameters)

    @on(OptionList.OptionSelected)
    def _open(self) -> None:
        """Show the call under the cursor, or the last call that wrote the file there.

        If the call isn't known, the file's diff is shown.
        """
        chosen = self.chosen
        if isinstance(chosen, ToolCall):
            self.post_message(self.CallRequested(chosen.id))
        elif chosen is not None:
            self.open_file_row(chosen)

    def open_file_row(self, write: FileWrite) -> None:
        """Show the last call that wrote a file or, if it isn't known, the file's diff."""
        if write.calls:
            self.post_message(self.CallRequested(write.calls[-1]))
        else:
            self.action_diff()

    def action_diff(self) -> None:
        if self.file is not None:
            self.post_message(self.DiffRequested(self.file))

    def action_open_file(self) -> None:
        if self.file is not None:
            self.post_message(FileRequested(str(self.file.path)))

    def action_history(self) -> None:
        if self.file is not None:
            self.post_message(HistoryRequested(str(self.file.path)))

    def action_back(self) -> None:
        self.post_message(BackRequested())


class EndRows(WriteList):
    """What matters of a finished run: failed calls, files, commands that passed."""

    @dataclass
    class ReviewRequested(Message):
        """Request to review a file's changes."""

        write: FileWrite

    def __init__(self) -> None:
        super().__init__(id="end-rows")
        self._seen: object = None

    def rows(self, run: LiveRun) -> Sequence[EndRow]:
        """Return the rows to show for a finished run."""
        seen = run.id, run.revision
        if seen == self._seen:
            return self.shown
        self._seen = seen
        return end_rows(run)

    def render_line(self, y: int) -> Strip:
        """Return a row, with the cursor's mark in its first cell if the cursor is there."""
        strip = super().render_line(y)
        if self.highlighted != self.scroll_offset.y + y:
            return strip
        look = look_of(self.app, self.size.width)
        style = look[Role.CURSOR if self.has_focus else Role.MUTED]
        ground = self.get_visual_style("option-list--option", "option-list--option-highlighted")
        mark = Segment(look.glyphs.cursor, ground.rich_style + style)
        return Strip([mark, *strip.crop(GUTTER)])

    def open_file_row(self, write: FileWrite) -> None:
        """Review the file's changes."""
        self.post_message(self.ReviewRequested(write))


def end_rows(run: LiveRun) -> Sequence[EndRow]:
    """Return what matters of a finished run: failed calls, files, commands that passed.

    A file that a failed call would have written is left out, because the call stands for it.
    """
    calls = run.own_transcript.calls()
    failed = [call for call in calls if call.failed]
    failed_ids = {call.id for call in failed}
    passed = [call for call in calls if kind_of(call.name) is ToolKind.SHELL and not call.failed]
    files = [
        write
        for write in run.files.rows
        if write.written is not WriteStatus.FAILED or failed_ids.isdisjoint(write.calls)
    ]
    return (*failed, *files, *passed)


def _key(row: EndRow) -> object:
    return row.id if isinstance(row, ToolCall) else row.path


class EndCard(Vertical):
    """How a run ended: words about it, rows for its calls and files, and keys."""

    def __init__(self) -> None:
        super().__init__(id="ending")

    def compose(self) -> ComposeResult:
        yield Static(id="ending-words")
        yield EndRows()
        yield BarLine(id="ending-keys", mark="")

    @property
    def rows(self) -> EndRows:
        """The rows for the run's calls and files."""
        return self.query_one(EndRows)

    def show(self, run: LiveRun, keys: Sequence[str], first: str) -> bool:
        """Show how a run ended; return whether there is anything to show.

        `keys`: the ids of the keys that help. `first`: the key to press before them, or "".
        """
        glyphs, rows, words = glyphs_of(self.app), self.rows, self.query_one("#ending-words")
        assert isinstance(words, Static)
        text = ending_text(run, glyphs)
        rows.show(run)
        rows.display, words.display = bool(rows.shown), text is not None
        rows.styles.height = min(len(rows.shown), self.app.size.height // _SHARE)
        words.update(text or "")
        hints = [Content.styled(f"{first}, then:", "dim")] if first else []
        hints += [key_hint(BY_ID[id], glyphs, label=_SHORTER.get(id, "")) for id in keys]
        self.query_one("#ending-keys", BarLine).show_parts(hints)
        return bool(rows.shown) or text is not None
