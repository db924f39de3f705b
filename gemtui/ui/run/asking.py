"""The questions of the run on screen: when they are focused, and what answers do.

Each question is whether to allow a tool call. Some answers need a further dialog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from gemtui.agent.approval import ELSEWHERE
from gemtui.errors import GemtuiError, InsideRunError, message_of
from gemtui.runs.gate.proposal import Form, Proposal
from gemtui.runs.gate.questions import AnswerOutcome, Asked, Conversation
from gemtui.runs.gate.similar_calls import ALWAYS, similar_calls
from gemtui.text import visible, visible_line
from gemtui.transcript.model import Beyond
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.editor import edit_text
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.screens import dialog
from gemtui.ui.kit.text_area import ChangeScreen
from gemtui.ui.kit.text_view import RawScreen
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.panes import RunPane, RunPart
from gemtui.ui.run.question_pane import YES, QuestionPane, whole_text

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


CHANGED = "A file has changed since this call was shown. Check the call again."
_ANSWERS: Mapping[str, Callable[[Conversation, Asked], AnswerOutcome]] = {
    "yes": Conversation.allow,
    "all_run": Conversation.allow_similar,
    "always": Conversation.always,
    "no": Conversation.deny,
    "stop_run": Conversation.stop,
}
"""The method of `Conversation` to call for each answer, by the answer's action."""


async def _carry_out(
    app: AppBase, pane: QuestionPane, talk: Conversation, action: str, shown: Asked
) -> None:
    """Carry out the user's answer to a run's question.

    `shown`: the question that was on screen, and the call as it was shown there. `action`: the
    chosen answer. `talk`: the run's questions and their answers. If the user closes a dialog with
    esc, the question stays unanswered. A call is not allowed if it would no longer do what was on
    screen; instead, the question is redrawn with what the call would do now.
    """
    if action in YES and (now := await asyncio.to_thread(talk.still_true, shown)) is not None:
        pane.redraw(shown, now)
        app.show_message(CHANGED, problem=True)
    elif action == "no_because":
        title = "Deny with a reason (the model reads it)"
        subject = _subject(talk, shown)
        asked = AskScreen(title, value="", problem=_reason, subject=subject)
        reason = await app.push_screen_wait(asked)
        if reason is not None:
            await _give(app, partial(talk.deny, shown, reason.strip()))
    elif action == "change":
        await _change(app, pane, talk, shown)
    elif await _give(app, partial(_ANSWERS[action], talk, shown)) and action in _KEPT:
        app.show_message(_KEPT[action].format(back=_back()))


def _reason(text: str) -> str:
    return "" if text.strip() else "Enter a reason. To deny without one, press esc, then n."


async def _give(app: AppBase, give: Callable[[], AnswerOutcome]) -> bool:
    """Record an answer; return whether it takes full effect.

    If it doesn't, the reason is shown. `give`: the function that records the answer.
    """
    try:
        outcome = await asyncio.to_thread(give)
    except ValueError as error:
        app.show_message(f"This call can't be allowed: {error}.", problem=True)
        return False
    except InsideRunError as error:
        app.show_message(f"Not answered: {error}.", problem=True)
        return False
    except OSError as error:
        app.show_message(f"Your answer could not be saved: {message_of(error)}", problem=True)
        return False
    if not outcome:
        app.show_message(ELSEWHERE)
    elif outcome.problem:
        text = f"Allowed for this run; the rule could not be saved: {outcome.problem}"
        app.show_message(text, problem=True)
    return bool(outcome) and not outcome.problem


_KEPT = {
    "all_run": "Similar calls are now allowed in this run. {back}.",
    "always": f"Always allowed from now on, by policy {ALWAYS} (3, then f, to open it). {{back}}.",
}


def _back() -> str:
    keys = (BY_ID[key].footer() for key in ("question.leave", "run.take_back"))
    return f"To revoke this, press {', then '.join(keys)}"


async def _revoke_newest(app: AppBase, talk: Conversation) -> None:
    """Revoke the user's newest answer that still allows similar calls.

    Later calls of that kind are asked about again.
    """
    try:
        question = await asyncio.to_thread(talk.revoke)
    except (GemtuiError, OSError) as error:
        app.show_message(
            f"Revoked for this run, but the saved rule could not be removed: {message_of(error)}"
        )
        return
    if question is not None:
        like = await asyncio.to_thread(similar_calls, question.request, talk.cwd)
        where = "this run and later ones" if question.beyond is Beyond.ALWAYS else "this run"
        app.show_message(f"No longer allowed in {where}: {like.words}")


# --- changing a call -----------------------------------------------------------------------------


async def _change(app: AppBase, pane: QuestionPane, talk: Conversation, shown: Asked) -> None:
    """Let the user edit a tool call before it is allowed.

    An edited command runs right away. Any other edited call is shown again, still unanswered.
    """
    now, subject = shown.runs, _subject(talk, shown)
    try:
        if now.form is Form.COMMAND:
            text = await _typed(app, now, "Run this instead", subject, enter_takes=True)
        else:
            text = edit_text(app, now.text, now.name)
            if text is None:
                title = (
                    "New contents of the file" if now.form is Form.FILE else "Arguments of the call"
                )
                text = await _typed(app, now, title, subject, enter_takes=False)
        if text is None or (text == now.text and now.form is not Form.COMMAND):
            return
        changed = await asyncio.to_thread(talk.change, shown, text)
    except (GemtuiError, OSError, ValueError) as error:
        app.show_message(f"The call was not changed: {message_of(error)}", problem=True)
        return
    if now.form is Form.COMMAND:
        await _give(app, partial(talk.allow, changed))
    else:
        pane.redraw(shown, changed)


def _subject(talk: Conversation, shown: Asked) -> str:
    """Return a string that identifies a question, to keep edits of calls apart."""
    return f"{talk.cwd} {shown.question.number}"


async def _typed(
    app: AppBase, now: Proposal, title: str, subject: str, *, enter_takes: bool
) -> str | None:
    def problem(text: str) -> str:
        try:
            now.changed(text)
        except ValueError as error:
            return str(error)
        return ""

    screen = ChangeScreen(
        title, now.text, problem=problem, enter_takes=enter_takes, subject=subject
    )
    return await app.push_screen_wait(screen)


def show_whole(app: AppBase, pane: QuestionPane, shown: Asked) -> None:
    """Show the whole call on its own screen, with control characters made visible.

    If the user scrolls to its end there, the call counts as read, so it can be allowed.
    """
    title = visible_line(f"{shown.runs.tool[:200]}: what will run if you allow it")
    text = visible(whole_text(shown.runs, shown.cautions))
    screen = RawScreen(title, text, what="the call")

    def closed(_result: None) -> None:
        if screen.reached_end:
            pane.note_read(shown)

    app.push_screen(screen, closed)


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
        return any(question.holds for question in run.questions)

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
        is_reading = screen.focused in (None, screen.prompt, screen.view)
        return still and free and is_reading and not screen.asking

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
        run = self.screen.run_shown
        if run is not None:
            app, talk = self.screen.gemtui, run.conversation
            await _carry_out(app, self.screen.question, talk, event.action, event.shown)
            await self._look(run)

    @dialog
    async def action_take_back(self) -> None:
        run = self.screen.run_shown
        if run is not None:
            await _revoke_newest(self.screen.gemtui, run.conversation)
            await self._look(run)

    async def _look(self, run: LiveRun) -> None:
        await run.refresh_questions()
        self.screen.paint()

    @dialog
    async def action_differing(self) -> None:
        from gemtui.ui.run.difference_screen import show_differing

        if self.screen.run_shown is not None:
            await show_differing(self.screen.gemtui, self.screen.run_shown)
