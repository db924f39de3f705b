"""The run pane as its parts know it: the run that is shown, the prompt, the question."""

from __future__ import annotations

from gemtui.ui.kit.full_screen import DialogGuardScreen, ScreenPart
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.panes import RunPanes
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.run.question_pane import QuestionPane
from gemtui.ui.transcript.view import TranscriptView


class RunPane(DialogGuardScreen[None]):
    """One run at a time is shown, or none yet."""

    @property
    def panes(self) -> RunPanes:
        """What there is to read."""
        return self.query_one(RunPanes)

    @property
    def view(self) -> TranscriptView:
        """The transcript."""
        return self.panes.view

    @property
    def question(self) -> QuestionPane:
        """What the run that is shown asks."""
        return self.query_one(QuestionPane)

    @property
    def run_shown(self) -> LiveRun | None:
        """The run that is shown; None while there is none."""
        return self.panes.run_shown

    @property
    def prompt(self) -> PromptArea:
        """The prompt editor."""
        return self.query_one(PromptArea)

    def show_run(self, run: LiveRun, *, fresh: bool = True) -> None:
        """Show this run from now on; not `fresh`: it continues what is shown."""
        raise NotImplementedError

    def paint(self) -> None:
        """Show what has come of the run since the last frame."""
        raise NotImplementedError

    def say_state(self, run: LiveRun) -> None:
        """Write what the run does now: status line, files, how it ended."""
        raise NotImplementedError

    def say_options(self) -> None:
        """Write at the prompt what the next one may do, and where it goes."""
        raise NotImplementedError


class RunPart(ScreenPart):
    """One subject of the run pane."""

    screen: RunPane

    def __init__(self, screen: RunPane) -> None:
        self.screen = screen
