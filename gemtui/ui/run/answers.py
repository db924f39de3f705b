"""What a person answers to a run: the dialogs it takes, and the answer written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gemtui.agent.approval import Approval
from gemtui.errors import GemtuiError
from gemtui.runs.conversation import Asked
from gemtui.runs.granted import ALWAYS, keep_always
from gemtui.runs.like_this import like_this
from gemtui.runs.proposal import Form, Proposal
from gemtui.text import Clean, visible, visible_line
from gemtui.transcript.model import Beyond
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.editor import edit_text
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.text_screen import RawScreen
from gemtui.ui.run.change_screen import ChangeScreen
from gemtui.ui.run.question_drawing import whole_text
from gemtui.ui.run.question_pane import YES, QuestionPane, Said, Shown

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun

CHANGED = "A file has changed since this was shown: look at it again."
ELSEWHERE = "Already answered in another gemtui; your answer was ignored."


async def answer(app: AppBase, pane: QuestionPane, run: LiveRun, said: Said, shown: Shown) -> None:
    """Do what the person wants with a question; esc in a dialog leaves it as it is."""
    if said in YES and not await pane.is_as_shown(shown):
        app.say(CHANGED, problem=True)
        return
    if said in YES and (why := _refused(shown)) is not None:
        app.say(f"This can't be allowed: {why}.", problem=True)
        return
    match said:
        case Said.YES:
            await _send(app, run, shown, _allowed(shown))
        case Said.ALL_RUN:
            if await _send(app, run, shown, _similar(shown, always=False)):
                app.say(f"Similar calls are allowed in this run: {_back()}.")
        case Said.ALWAYS:
            await _always(app, run, shown)
        case Said.NO:
            await _send(app, run, shown, Approval.deny())
        case Said.BECAUSE:
            reason = await app.push_screen_wait(
                AskScreen(
                    Clean("Deny with a reason (the model reads it)"), value="", problem=_reason
                )
            )
            if reason is not None:
                await _send(app, run, shown, Approval.deny(reason.strip()))
        case Said.CHANGE:
            await _change(app, pane, run, shown)
        case Said.STOP:
            await _send(app, run, shown, Approval.stop())


def _allowed(shown: Shown) -> Approval:
    arguments = None if shown.changed is None else shown.changed.arguments
    return Approval.allow(arguments, shown=shown.runs.effect.mark)


def _similar(shown: Shown, *, always: bool) -> Approval:
    mark = shown.runs.effect.mark
    return Approval.allow(rules=shown.like.toml, always=always, shown=mark)


def _refused(shown: Shown) -> str | None:
    return Asked(shown.question, shown.proposal, shown.like, shown.changed).refusal


def _reason(text: str) -> str:
    return "" if text.strip() else "Enter a reason; or press esc, then n to deny without one."


async def _send(app: AppBase, run: LiveRun, shown: Shown, approval: Approval) -> bool:
    """Write the answer; False, after a word, where it did not count."""
    try:
        first = await run.answer(shown.question.number, approval)
    except OSError as error:
        app.say(f"The answer could not be saved: {error}", problem=True)
        return False
    if not first:
        app.say(ELSEWHERE)
    return first


async def _always(app: AppBase, run: LiveRun, shown: Shown) -> None:
    """Allow it, and keep the rule; where it can't be kept, this once is still meant."""
    like = shown.like
    assert like.rule is not None
    if not await _send(app, run, shown, _similar(shown, always=True)):
        return
    try:
        await asyncio.to_thread(keep_always, like.rule)
    except (GemtuiError, OSError) as error:
        app.say(f"Allowed for this run; the rule could not be saved: {error}", problem=True)
    else:
        app.say(f"Always allowed, by the policy {ALWAYS}: {_back()}; 3 f opens it.")


def _back() -> str:
    keys = (BY_ID[each].footer() for each in ("question.leave", "run.take_back"))
    return f"{' '.join(keys)} revokes that"


async def take_back(app: AppBase, run: LiveRun) -> None:
    """Revoke the newest answer that allowed similar calls."""
    try:
        question = await run.take_back()
    except (GemtuiError, OSError) as error:
        app.say(f"Revoked for this run, but the saved rule could not be removed: {error}")
        return
    if question is not None:
        like = await asyncio.to_thread(like_this, question.request, run.cwd)
        where = "this run and later ones" if question.beyond is Beyond.ALWAYS else "this run"
        app.say(f"Revoked in {where}: {like.words}")


# --- changing it first ---------------------------------------------------------------------------


async def _change(app: AppBase, pane: QuestionPane, run: LiveRun, shown: Shown) -> None:
    """A command runs as soon as it is taken; anything else is shown once more before."""
    now = shown.runs
    if now.form is Form.COMMAND:
        text = await _typed(app, now, "Run this instead", enter_takes=True)
        if text is not None:
            await _send(app, run, shown, _changed(shown, now.changed(text)))
        return
    try:
        text = edit_text(app, now.text, now.name)
        if text is None:
            title = "The file's new text" if now.form is Form.FILE else "The arguments"
            text = await _typed(app, now, title, enter_takes=False)
        if text is not None and text != now.text:
            await pane.change(shown, now.changed(text), text)
    except (GemtuiError, OSError, ValueError) as error:
        app.say(f"Not changed: {error}", problem=True)


def _changed(shown: Shown, arguments: Mapping[str, Any]) -> Approval:
    same = arguments == shown.proposal.arguments
    return Approval.allow(None if same else arguments)


async def _typed(app: AppBase, now: Proposal, title: str, *, enter_takes: bool) -> str | None:
    def problem(text: str) -> str:
        try:
            now.changed(text)
        except ValueError as error:
            return str(error)
        return ""

    screen = ChangeScreen(Clean(title), now.text, problem=problem, enter_takes=enter_takes)
    return await app.push_screen_wait(screen)


def show_whole(app: AppBase, pane: QuestionPane, shown: Shown) -> None:
    """Show all of a call over the whole screen, every character of it visible."""
    title = visible_line(f"{shown.runs.tool[:200]}: what runs if you allow it")
    text = visible(whole_text(shown.runs, shown.cautions))
    screen = RawScreen(title, text, what="the call", ascii=app.config.ascii)

    def closed(_result: None) -> None:
        if screen.reached_end:
            pane.was_read(shown)

    app.push_screen(screen, closed)
