"""The run pane as its parts see it: the run on screen, the prompt and the questions."""

from __future__ import annotations

from gemtui.ui.kit.screens import DialogGuardScreen, ScreenPart
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.panes import RunPanes
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.run.question_pane import QuestionPane
from gemtui.ui.transcript.view import TranscriptView


class RunPane(DialogGuardScreen[None]):
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

    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show a run.

        `fresh`: False if the run continues the one on screen, so that the view stays as it is.
        """
        raise NotImplementedError

    def paint(self) -> None:
        """Draw the changes in the run on screen since the last frame."""
        raise NotImplementedError

    def show_state(self, run: LiveRun) -> None:
        """Show a run's state: status line, changed files and, if it has ended, how."""
        raise NotImplementedError

    def show_options(self) -> None:
        """Show the next run's options, and what pressing enter in the prompt will do."""
        raise NotImplementedError


class RunPart(ScreenPart[RunPane]):
    """A part of the run pane: the state and the key actions for one topic."""
