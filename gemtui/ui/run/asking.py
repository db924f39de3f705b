"""The questions of the run on screen: when they are focused, and their answers."""

from __future__ import annotations

from textual.message import Message

from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.screens import dialog
from gemtui.ui.run import answers
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.pane_base import RunPane, RunPart
from gemtui.ui.run.question_pane import QuestionPane

_PAUSE = 0.7
"""Seconds without a key press after which a new question gets the focus.

It takes the focus only from an empty prompt, or from a transcript that follows new output.
"""


class Asking(RunPart):
    """Shows a run's questions and handles the user's answers."""

    def __init__(self, screen: RunPane) -> None:
        super().__init__(screen)
        self._answered_by = ""
        """The characters that pressing the keys of the last answer would type."""
        self._pointed_at: int | None = None
        """The number of the question that last had the focus, even if it has lost it."""

    def can(self, action: str) -> bool:
        """Return whether the key for an action has something to act on.

        `action`: "differing" needs a file that differs from what the user approved; any other
        action revokes an approval, so it needs one that can be revoked.
        """
        run = self.screen.run_shown
        if run is None:
            return False
        return bool(run.differing if action == "differing" else self._held(run))

    @staticmethod
    def _held(run: LiveRun) -> bool:
        return any(each.holds for each in run.questions)

    # --- focus ---------------------------------------------------------------------------------

    def clear(self) -> None:
        """Remove the questions, because a different run (or none) is about to be shown."""
        self._pointed_at = None
        self.screen.question.show(())

    def show(self, run: LiveRun) -> None:
        """Show a run's unanswered questions, and focus them unless the user is busy.

        While the user is typing or reading, the focus stays where it is, so that a key meant for
        something else doesn't answer a question.
        """
        screen, pane = self.screen, self.screen.question
        asked, had_focus = pane.asks, pane.view.has_focus
        pane.show(run.waiting, run.conversation)
        if pane.asks != asked:
            screen.show_options()
            screen.refresh_bindings()
        if not pane.asks:
            self._pointed_at = None
            if had_focus:
                screen.prompt.focus()
        elif pane.shown is not None and self._pointed_at != pane.shown.question.number:
            if had_focus:
                self._pointed_at = pane.shown.question.number
            elif self._idle():
                self._point()

    def focus_question(self) -> bool:
        """Focus the unanswered question; return False if there is none."""
        if self.screen.question.asks:
            self._point()
        return self.screen.question.asks

    def _point(self) -> None:
        pane = self.screen.question
        if not self._written():
            self.screen.prompt.set_text("")
        if pane.shown is not None:
            self._pointed_at = pane.shown.question.number
        pane.view.focus()

    def _idle(self) -> bool:
        """Return whether the user is neither typing nor reading, so the focus may move."""
        screen = self.screen
        still = Message().time - screen.gemtui.last_key > _PAUSE
        free = not self._written() if screen.focused is screen.prompt else screen.view.following
        known = screen.focused in (None, screen.prompt, screen.view)
        return still and free and known and not screen.asking

    def _written(self) -> str:
        """Return the typed prompt without repeats of the key that gave the last answer.

        If the user holds that key down, its repeats end up in the prompt, but they aren't typing.
        """
        text = self.screen.prompt.text
        return text.strip(self._answered_by) if self._answered_by else text

    # --- answers -------------------------------------------------------------------------------

    def answered(self, event: QuestionPane.Answered) -> None:
        """Carry out the answer whose key was pressed, after any dialog that it needs."""
        self._answered_by = BY_ID[f"question.{event.action}"].keys
        self._settle(event)

    @dialog
    async def _settle(self, event: QuestionPane.Answered) -> None:
        if (run := self.screen.run_shown) is not None:
            app, talk = self.screen.gemtui, run.conversation
            await answers.carry_out_answer(app, self.screen.question, talk, event.action, event.shown)
            await self._look(run)

    @dialog
    async def action_take_back(self) -> None:
        if (run := self.screen.run_shown) is not None:
            await answers.revoke_newest_answer(self.screen.gemtui, run.conversation)
            await self._look(run)

    async def _look(self, run: LiveRun) -> None:
        await run.refresh_questions()
        self.screen.paint()

    @dialog
    async def action_differing(self) -> None:
        from gemtui.ui.run.difference_screen import show_differing

        if self.screen.run_shown is not None:
            await show_differing(self.screen.gemtui, self.screen.run_shown)
