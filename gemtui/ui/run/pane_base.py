"""The run pane as its parts see it, with the run on screen, prompt and question."""

from __future__ import annotations

from gemtui.ui.kit.full_screen import DialogGuardScreen, ScreenPart
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.panes import RunPanes
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.run.question_pane import QuestionPane
from gemtui.ui.transcript.view import TranscriptView


class RunPane(DialogGuardScreen[None]):
    """The run pane, which shows one run at a time, or none."""

    @property
    def panes(self) -> RunPanes:
        """The panes that show the run."""
        return self.query_one(RunPanes)

    @property
    def view(self) -> TranscriptView:
        """The transcript."""
        return self.panes.view

    @property
    def question(self) -> QuestionPane:
        """The question pane."""
        return self.query_one(QuestionPane)

    @property
    def run_shown(self) -> LiveRun | None:
        """The run on screen, or None."""
        return self.panes.run_shown

    @property
    def prompt(self) -> PromptArea:
        """The prompt field."""
        return self.query_one(PromptArea)

    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show a run.

        `fresh`: False if the run continues the one that is already on screen.
        """
        raise NotImplementedError

    def paint(self) -> None:
        """Show what has changed in the run since the last frame."""
        raise NotImplementedError

    def show_state(self, run: LiveRun) -> None:
        """Show the run's state: status line, changed files and, after it, how it ended."""
        raise NotImplementedError

    def show_options(self) -> None:
        """Show the next run's options, and what enter will do with the prompt."""
        raise NotImplementedError


class RunPart(ScreenPart[RunPane]):
    """A part of the run pane."""
