"""The prompts that wait until the turn before them has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult

from gemtui.agent.steering import NextPrompt
from gemtui.text import clean_line
from gemtui.ui.draw.lines import own
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList
from gemtui.ui.kit.dialog_guard import DialogScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.run.change_screen import ChangeScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun


class Wanted(NamedTuple):
    """What to do with which prompt: "edit", "drop", "up", "down" or "send"."""

    what: str
    at: int


class QueueScreen(DialogScreen[Wanted]):
    """Closes with a `Wanted`, or with None; the cursor begins at number `at`.

    `over`: the run has ended, so that one can be sent.
    """

    BINDINGS = bindings(Where.QUEUE)
    AUTO_FOCUS = "OptionList"

    def __init__(self, prompts: Sequence[NextPrompt], *, over: bool, at: int = 0) -> None:
        super().__init__()
        self._prompts, self._over, self._at = prompts, over, at

    def compose(self) -> ComposeResult:
        """One row each, the next one first."""
        keys = own(f"J/K moves   e changes   d drops   {'s sends   ' * self._over}esc closes")
        with Dialog(own("What is sent next"), keys, id="queue"):
            rows = (
                clean_line(f"{at}  {each.text[:200]}") for at, each in enumerate(self._prompts, 1)
            )
            yield OptionList(*map(Option, rows))

    def on_mount(self) -> None:
        """Begin where the cursor was."""
        self.query_one(OptionList).highlighted = min(self._at, len(self._prompts) - 1)

    def _do(self, what: str) -> None:
        at = self.query_one(OptionList).highlighted
        if at is not None:
            self.dismiss(Wanted(what, at))

    def action_change(self) -> None:
        """Write it anew."""
        self._do("edit")

    def action_drop(self) -> None:
        """Send it never."""
        self._do("drop")

    def action_send(self) -> None:
        """Send it now."""
        self._do("send")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A prompt is sent to a session in which no run goes on."""
        return self._over if action == "send" else super().check_action(action, parameters)

    def action_move_up(self) -> None:
        """Send it earlier."""
        self._do("up")

    def action_move_down(self) -> None:
        """Send it later."""
        self._do("down")

    def action_close(self) -> None:
        """Leave them as they are."""
        self.dismiss(None)


async def show_queue(app: AppBase, run: LiveRun) -> str | None:
    """Let the person change what is sent next, as long as they want.

    Returns the id of a prompt that is to be sent now; None = none.
    """
    at = 0
    while prompts := await asyncio.to_thread(run.latest.run.steering.prompts):
        run = run.latest
        over = run.over and run.can_go_on
        wanted = await app.push_screen_wait(QueueScreen(prompts, over=over, at=at))
        await run.look_at_steering()
        if wanted is None:
            return None
        if wanted.what == "send":
            return prompts[wanted.at].id
        run = run.latest
        try:
            at, done = await _done(app, run, prompts, wanted)
        except OSError as error:
            app.say(f"Nothing is changed: {error}", problem=True)
            return None
        if not done:
            app.say("It has just been sent.")
    await run.look_at_steering()
    app.say("Nothing waits to be sent.")
    return None


async def _done(
    app: AppBase, run: LiveRun, prompts: Sequence[NextPrompt], wanted: Wanted
) -> tuple[int, bool]:
    """Do it; where the cursor is then, and whether the prompt still waited."""
    steering, prompt, at = run.run.steering, prompts[wanted.at], wanted.at
    if wanted.what == "drop":
        return at, await asyncio.to_thread(steering.drop, prompt.id)
    if wanted.what == "edit":
        screen = ChangeScreen(
            own("The next prompt"),
            prompt.text,
            problem=lambda text: "" if text.strip() else "It is empty: d drops it.",
            enter_takes=False,
        )
        text = await app.push_screen_wait(screen)
        if text is None:
            return at, True
        return at, await asyncio.to_thread(steering.edit, prompt.id, text)
    to = max(0, min(at + (1 if wanted.what == "down" else -1), len(prompts) - 1))
    return to, await asyncio.to_thread(steering.move, prompt.id, to)
