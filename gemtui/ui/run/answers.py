"""Carrying out the user's answers to a run's questions.

Each question is whether to allow a tool call. Some answers need a further dialog.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gemtui.agent.approval import ELSEWHERE
from gemtui.errors import GemtuiError
from gemtui.runs.gate.proposal import Form, Proposal
from gemtui.runs.gate.questions import AnswerOutcome, Asked, Conversation
from gemtui.runs.gate.similar_calls import ALWAYS, similar_calls
from gemtui.text import Clean, visible, visible_line
from gemtui.transcript.model import Beyond
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.editor import edit_text
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.text_view import RawScreen
from gemtui.ui.run.change_screen import ChangeScreen
from gemtui.ui.run.question_drawing import whole_text
from gemtui.ui.run.question_pane import YES, QuestionPane

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


async def carry_out_answer(app: AppBase, pane: QuestionPane, talk: Conversation, action: str, shown: Asked) -> None:
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
        title = Clean("Deny with a reason (the model reads it)")
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
        given = await asyncio.to_thread(give)
    except ValueError as error:
        app.show_message(f"This call can't be allowed: {error}.", problem=True)
        return False
    except OSError as error:
        app.show_message(f"Your answer could not be saved: {error}", problem=True)
        return False
    if not given:
        app.show_message(ELSEWHERE)
    elif given.problem:
        words = f"Allowed for this run; the rule could not be saved: {given.problem}"
        app.show_message(words, problem=True)
    return bool(given) and not given.problem


_KEPT = {
    "all_run": "Similar calls are now allowed in this run. {back}.",
    "always": f"Always allowed from now on, by policy {ALWAYS} (3, then f, to open it). {{back}}.",
}


def _back() -> str:
    keys = (BY_ID[each].footer() for each in ("question.leave", "run.take_back"))
    return f"To revoke this, press {', then '.join(keys)}"


async def revoke_newest_answer(app: AppBase, talk: Conversation) -> None:
    """Revoke the user's newest answer that still allows similar calls.

    Later calls of that kind are asked about again.
    """
    try:
        question = await asyncio.to_thread(talk.revoke)
    except (GemtuiError, OSError) as error:
        app.show_message(f"Revoked for this run, but the saved rule could not be removed: {error}")
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
                title = "New contents of the file" if now.form is Form.FILE else "Arguments of the call"
                text = await _typed(app, now, title, subject, enter_takes=False)
        if text is None or (text == now.text and now.form is not Form.COMMAND):
            return
        changed = await asyncio.to_thread(talk.change, shown, text)
    except (GemtuiError, OSError, ValueError) as error:
        app.show_message(f"The call was not changed: {error}", problem=True)
        return
    if now.form is Form.COMMAND:
        await _give(app, partial(talk.allow, changed))
    else:
        pane.redraw(shown, changed)


def _subject(talk: Conversation, shown: Asked) -> str:
    """Return a string that identifies a question, to keep edits of calls apart."""
    return f"{talk.cwd} {shown.question.number}"


async def _typed(app: AppBase, now: Proposal, title: str, subject: str, *, enter_takes: bool) -> str | None:
    def problem(text: str) -> str:
        try:
            now.changed(text)
        except ValueError as error:
            return str(error)
        return ""

    screen = ChangeScreen(Clean(title), now.text, problem=problem, enter_takes=enter_takes, subject=subject)
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
