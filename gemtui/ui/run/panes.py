"""The panes that show a run, and the run pane as its parts see it.

They show the run's transcript, how it ended, its changed files, its counts and its stderr.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content

from gemtui.agents import Agent
from gemtui.policy.model.foreign import spelled
from gemtui.policy.model.rules import Call
from gemtui.text import clean, clean_line, counted
from gemtui.transcript.model import Block, ToolCall, ToolStatus, Transcript
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.screens import FullScreen, ScreenPart
from gemtui.ui.run.end_card import EndCard, EndRow, WriteList
from gemtui.ui.run.labels import no_run, write_totals
from gemtui.ui.run.live_run import LiveRun, ToolEnd
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.run.question_pane import QuestionPane
from gemtui.ui.transcript.cursor import Cursor
from gemtui.ui.transcript.view import TranscriptView
from gemtui.ui.undo.marked_transcript import MarkedTranscript, shown_checkpoints

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


_STDERR_LINES = 8


_LONG = 400
"""How many characters of a prompt the heading shows."""


class RunSide(Vertical):
    """The side pane of a run that works; once it has ended, its card has the files."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="pane")
        self._said: tuple[Content, Content] | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="writes-heading", classes="heading")
        yield WriteList()
        yield Static(id="counters")

    def show(self, run: LiveRun) -> None:
        """Show a run's changed files, counts and stderr."""
        writes = self.query_one(WriteList)
        writes.show(run)
        totals = write_totals(run, glyphs_of(self.app)) or "none yet"
        heading = Content.assemble(("Files changed", "bold"), "  ", (totals, "dim"))
        lines = heading, Content("\n").join(self._counters(run))
        if lines != self._said:
            self._said = lines
            self.query_one("#writes-heading", Static).update(lines[0])
            self.query_one("#counters", Static).update(lines[1])

    def _counters(self, run: LiveRun) -> Sequence[Content]:
        ends = run.ends()
        tools = "  ".join(f"{ends[end]} {end}" for end in ToolEnd if ends[end])
        pid = f"pid {run.reports.pid}  " if run.reports.pid is not None else ""
        lines = [
            Content.styled("Run", "bold"),
            Content(f"{pid}{counted(run.answers(), 'turn')}"),
            Content(f"tools {tools or 'none yet'}"),
        ]
        if run.misread:
            lines.append(Content(f"{counted(run.misread, 'output line')} not understood"))
        if run.reports.stderr:
            stderr = clean(run.reports.stderr).split("\n")
            lines += [Content(""), Content.styled("stderr", "bold")]
            lines += [Content(line) for line in stderr[-_STDERR_LINES:]]
        return lines


class RunPanes(Horizontal):
    """The panes that show a run, or the session that the next run will continue.

    The screen handles most of their actions.
    """

    def __init__(self) -> None:
        super().__init__(id="run-panes")
        self.run_shown: LiveRun | None = None
        self.before: Transcript | None = None
        self._painted: object = None
        self._ending_closed = False
        self._marked = MarkedTranscript()
        self._looked_for: object = None

    def compose(self) -> ComposeResult:
        """Yield the transcript and the side pane; CSS classes decide which are visible."""
        with Vertical(id="run-main", classes="pane"):
            yield Static(id="nothing-yet")
            yield BarLine(id="run-heading", classes="heading")
            yield TranscriptView()
            yield EndCard()
        yield RunSide(id="run-side")

    @property
    def view(self) -> TranscriptView:
        """The view of the transcript on screen."""
        return self.query_one(TranscriptView)

    @property
    def card(self) -> EndCard:
        """The card that shows how the run on screen ended."""
        return self.query_one(EndCard)

    @property
    def empty(self) -> bool:
        """Whether there is neither a run nor a session to show."""
        return self.run_shown is None and self.before is None

    # --- contents ------------------------------------------------------------------------------

    def show_run(self, run: LiveRun, *, fresh: bool) -> None:
        """Show a run.

        `fresh`: False if the run continues the one that is already on screen.
        """
        self.run_shown, self._painted, self._ending_closed = run, None, False
        self._forget_checkpoints()
        self.view.show(run.transcript(), fresh=fresh, end=True)
        self.view.action_follow()

    def prepare(
        self, before: Transcript | None, name: str | None = None, session: str | None = None
    ) -> None:
        """Show no run, but the session that the next run will continue, if any.

        `before`: the session's conversation. `name`: the name the user gave to the session; used as
        the heading instead of its first prompt. `session`: the session's id.
        """
        self.run_shown, self.before = None, before
        self._forget_checkpoints()
        self.remove_class("-ended", "-over")
        outlines = () if before is None else before.outlines
        self._say_heading(
            name or next((outline.excerpt for outline in outlines if outline.prompt), "")
        )
        self.view.show(before or Transcript.of(()), fresh=True, end=True)
        if session is not None and before is not None:
            self._look_for_checkpoints(session, before)

    def stale(self) -> None:
        """Make the next call to `paint` draw, even if the run itself hasn't changed."""
        self._painted = None

    def paint(self) -> bool:
        """Draw what has changed in the run; return whether anything has."""
        run = self.run_shown
        if run is None or run.revision == self._painted:
            return False
        self._painted = run.revision
        transcript, session = run.transcript(), run.session or run.resumes
        self.view.show(self._marked.mark(transcript), fresh=False)
        if session is not None:
            self._look_again(run, session, transcript)
        return True

    # --- checkpoints ---------------------------------------------------------------------------

    def _forget_checkpoints(self) -> None:
        self._marked, self._looked_for = MarkedTranscript(), None

    def _look_again(self, run: LiveRun, session: str, transcript: Transcript) -> None:
        """Look for checkpoints again if there may be new ones.

        This is the case after a prompt, after the first answer to it, and at the end of the run.
        """
        outlines = transcript.outlines
        number = sum(outline.prompt for outline in outlines)
        waits = bool(outlines) and outlines[-1].prompt
        wanted = run.id, session, number, waits, run.alive, run.told is not None
        if wanted != self._looked_for:
            self._looked_for = wanted
            self._look_for_checkpoints(session, transcript)

    @work(exclusive=True, group="checkpoints")
    async def _look_for_checkpoints(self, session: str, transcript: Transcript) -> None:
        """Mark the prompts and calls on screen that have checkpoints to restore."""
        app, marked = cast("AppBase", self.app), self._marked
        marks = await asyncio.to_thread(shown_checkpoints, app, session, transcript)
        if marked is self._marked and marked.replace(marks):
            shown = self.before if self.run_shown is None else self.run_shown.transcript()
            if shown is not None:
                self.view.show(marked.mark(shown), fresh=False, news=False)

    # --- texts ---------------------------------------------------------------------------------

    def show_empty(
        self,
        folder: Path,
        others: Sequence[Path],
        problem: str | None,
        *,
        offers_extension: bool,
    ) -> None:
        """If there is nothing to show, explain how to start; the arguments are `no_run`'s."""
        self.set_class(self.empty, "-nothing")
        if self.empty:
            glyphs = glyphs_of(self.app)
            words = no_run(folder, others, problem, glyphs, offers_extension=offers_extension)
            self.query_one("#nothing-yet", Static).update(words)

    def _say_heading(self, asked: str) -> None:
        """Show a prompt in the heading.

        `asked`: the run's prompt, or the first one of the session that will be continued.
        """
        title = Content.styled(clean_line(asked[:_LONG]), "bold")
        self.query_one("#run-heading", BarLine).show_parts([title])

    def show_state(self, run: LiveRun, keys: Sequence[str], first: str) -> None:
        """Show a run's changed files and counts or, once it has ended, how it ended.

        `keys`, `first`: the keys that help after the run, as in `EndCard.show`.
        """
        self.remove_class("-nothing")
        self._say_heading(run.prompt)
        self.set_class(not run.alive, "-over")
        if run.alive:
            self.query_one(RunSide).show(run)
        shows = not (run.alive or self._ending_closed) and self.card.show(run, keys, first)
        self.set_class(shows, "-ended")

    # --- navigation ----------------------------------------------------------------------------

    def to_files(self) -> None:
        """Move the focus to the list of changed files; of a finished run, to its card.

        On a narrow screen, which has no room for both, show the list or hide it again.
        """
        if self.has_class("-over"):
            self._ending_closed = False
            self.call_after_refresh(self.to_card)
            return
        writes = self.query_one("#writes", WriteList)
        if self.screen.has_class("-narrow"):
            self.toggle_class("-side")
        if writes.is_on_screen or self.has_class("-side"):
            self.call_after_refresh(writes.focus)
        else:
            self.view.focus()

    def to_card(self) -> bool:
        """Move the focus to the rows on how the run ended; return whether there are any."""
        has_rows = self.has_class("-ended") and self.card.rows.display
        if has_rows:
            self.card.rows.focus()
        return has_rows

    def go_back(self) -> bool:
        """Go back from the files to the transcript, from there to the card, and hide the card.

        Returns False if there was nothing to go back from.
        """
        if self.has_class("-side"):
            self.remove_class("-side")
            self.view.focus()
        elif self.query_one("#writes").has_focus:
            self.view.focus()
        elif self.has_class("-ended") and (self.card.rows.has_focus or not self.to_card()):
            self._ending_closed = True
            self.remove_class("-ended")
            self.view.focus()
        elif not self.has_class("-ended"):
            return False
        return True

    @on(WriteList.CallRequested)
    def _call(self, event: WriteList.CallRequested) -> None:
        run = self.run_shown
        cursor = None if run is None else _cursor_of(event.call, run.transcript())
        if cursor is None:
            return
        self.remove_class("-side")
        page = self.view.page
        page.go(cursor)
        page.fold(False)
        self.view.refresh_page()
        self.view.focus()

    def refused(self) -> Call | None:
        """Return the denied call under the cursor, or else the run's last denied call."""
        run, rows = self.run_shown, self.card.rows
        block = rows.chosen if rows.has_focus else self.view.page.block
        denied = block if _is_denied(block) else None
        if denied is None and run is not None:
            denied = _last_denied_call(run.own_transcript)
        if denied is None:
            return None
        agent = Agent.GEMINI if run is None else run.run.request.agent
        return spelled(agent, denied.name, denied.args)


class RunPane(FullScreen[None]):
    """The run pane, which shows one run at a time, or none."""

    @property
    def panes(self) -> RunPanes:
        """The widget that shows the run's transcript and changed files."""
        return self.query_one(RunPanes)

    @property
    def view(self) -> TranscriptView:
        """The view of the run's transcript."""
        return self.panes.view

    @property
    def question(self) -> QuestionPane:
        """The pane that shows the run's questions."""
        return self.query_one(QuestionPane)

    @property
    def run_shown(self) -> LiveRun | None:
        """The run on screen, or None."""
        return self.panes.run_shown

    @property
    def prompt(self) -> PromptArea:
        """The prompt field."""
        return self.query_one(PromptArea)

    @abstractmethod
    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show a run.

        `fresh`: False if the run continues the one on screen, so that the view stays as it is.
        """

    @abstractmethod
    def paint(self) -> None:
        """Draw the changes in the run on screen since the last frame."""

    @abstractmethod
    def show_state(self, run: LiveRun) -> None:
        """Show a run's state: status line, changed files and, if it has ended, how."""

    @abstractmethod
    def show_options(self) -> None:
        """Show the next run's options, and what pressing enter in the prompt will do."""


class RunPart(ScreenPart[RunPane]):
    """A part of the run pane: the state and the key actions for one topic."""


def _cursor_of(call: str, transcript: Transcript) -> Cursor | None:
    """Return the position of the tool call with this id; None if there is none."""
    for index, outline in enumerate(transcript.outlines):
        if outline.calls:
            for number, block in enumerate(transcript.read(index).blocks):
                if isinstance(block, ToolCall) and block.id == call:
                    return Cursor(index, number)
    return None


def _is_denied(block: Block | EndRow | None) -> TypeGuard[ToolCall]:
    """Return whether this block or row is a denied tool call."""
    return isinstance(block, ToolCall) and block.status is ToolStatus.DENIED


def _last_denied_call(transcript: Transcript) -> ToolCall | None:
    """Return the transcript's last denied call, or None."""
    for message in reversed(tuple(transcript)):
        for block in reversed(message.blocks):
            if _is_denied(block):
                return block
    return None
