"""A run's side pane: changed files, turn and token counts, and stderr output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from gemtui.text import clean, counted
from gemtui.transcript.writes import FileWrite
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.clean_widgets import Option, OptionList, Static
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import BackRequested, FileRequested, HistoryRequested
from gemtui.ui.run.labels import write_row, write_totals
from gemtui.ui.run.live_run import LiveRun, ToolEnd

_STDERR_LINES = 8


class WriteList(OptionList):
    """The list of changed files.

    On request, the screen shows a file's diff or the call that wrote it, or opens the file.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.WRITES)

    @dataclass
    class DiffRequested(Message):
        """Request to show how a run has changed a file."""

        write: FileWrite

    @dataclass
    class CallRequested(Message):
        """Request to show the call that wrote a file.

        `call`: the call's id.
        """

        call: str

    def __init__(self) -> None:
        super().__init__(id="writes")
        self.shown: tuple[FileWrite, ...] = ()
        self._asked: frozenset[str] = frozenset()
        self._queued: frozenset[str] = frozenset()

    def show(self, run: LiveRun) -> None:
        """Show the files that a run has changed, keeping the cursor on the same file."""
        asked, queued = run.waiting_call_ids, run.queued
        if run.files.rows is self.shown and (asked, queued) == (self._asked, self._queued):
            return
        chosen, at = self._chosen, self.highlighted or 0
        self.shown, self._asked, self._queued = run.files.rows, asked, queued
        self.clear_options()
        rows = (write_row(each, run.cwd, glyphs_of(self.app), asked=asked, queued=queued) for each in self.shown)
        self.add_options(map(Option, rows))
        paths = [each.path for each in self.shown]
        if chosen is not None and chosen.path in paths:
            self.highlighted = paths.index(chosen.path)
        elif paths:
            self.highlighted = min(at, len(paths) - 1)

    @property
    def _chosen(self) -> FileWrite | None:
        at = self.highlighted
        return None if at is None or at >= len(self.shown) else self.shown[at]

    @on(OptionList.OptionSelected)
    def _open(self) -> None:
        """Show the last call that wrote the file.

        If the call isn't known, the file's diff is shown.
        """
        write = self._chosen
        if write is not None and write.calls:
            self.post_message(self.CallRequested(write.calls[-1]))
        else:
            self.action_diff()

    def action_diff(self) -> None:
        if (write := self._chosen) is not None:
            self.post_message(self.DiffRequested(write))

    def action_open_file(self) -> None:
        if (write := self._chosen) is not None:
            self.post_message(FileRequested(str(write.path)))

    def action_history(self) -> None:
        if (write := self._chosen) is not None:
            self.post_message(HistoryRequested(str(write.path)))

    def action_back(self) -> None:
        self.post_message(BackRequested())


class RunSide(Vertical):
    """The whole side pane of a run."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="pane")
        self._said: tuple[Content, Content] | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="writes-heading", classes="heading")
        yield WriteList()
        yield Static(id="counters")

    def show(self, run: LiveRun | None) -> None:
        """Show a run's changed files, counts and stderr; None leaves the pane as it is."""
        if run is None:
            return
        writes = self.query_one(WriteList)
        writes.show(run)
        totals = write_totals(run, glyphs_of(self.app)) or "none yet"
        heading = Content.assemble(("Files changed", "bold"), "  ", (totals, "dim"))
        said = heading, Content("\n").join(self._counters(run))
        if said != self._said:
            self._said = said
            self.query_one("#writes-heading", Static).update(said[0])
            self.query_one("#counters", Static).update(said[1])

    def _counters(self, run: LiveRun) -> Sequence[Content]:
        ends, usage = run.ends(), None if run.done is None else run.done.tokens
        tools = "  ".join(f"{ends[end]} {end}" for end in ToolEnd if ends[end])
        pid = f"pid {run.pid}  " if run.alive and run.pid is not None else ""
        lines = [
            Content.styled("Run", "bold"),
            Content(f"{pid}{counted(run.answers(), 'turn')}"),
            Content(f"tools {tools or 'none yet'}"),
        ]
        if usage is not None:
            named = (("in", usage.input), ("out", usage.output), ("cached", usage.cached))
            known = (f"{name} {count:,}" for name, count in named if count is not None)
            lines.append(Content(f"tokens {'  '.join(known)}"))
        if run.misread:
            lines.append(Content(f"{counted(run.misread, 'output line')} not understood"))
        if run.stderr:
            said = clean(run.stderr).split("\n")
            lines += [Content(""), Content.styled("stderr", "bold")]
            lines += [Content(line) for line in said[-_STDERR_LINES:]]
        return lines
