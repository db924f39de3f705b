"""The dialog for a run's queue of prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.content import Content

from gemtui.agent.options import AgentOptions
from gemtui.agent.prompt_queue import NextPrompt
from gemtui.errors import OptionError, message_of
from gemtui.text import clean_line
from gemtui.ui.kit.app_base import DialogScreen
from gemtui.ui.kit.clean_widgets import Dialog, Option, OptionList, Static
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.text_area import ChangeScreen
from gemtui.ui.run.labels import option_words
from gemtui.ui.run.live_run import LOOK

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun


class ChosenPrompt(NamedTuple):
    """A prompt in the queue, and what to do with it.

    `what`: "change", "drop", "move_up", "move_down" or "send"; "look" only opens the dialog again.
    `at`: the prompt's index in the queue.
    """

    what: str
    prompt: NextPrompt
    at: int


class QueueScreen(DialogScreen[ChosenPrompt]):
    """A dialog that shows a run's queue and returns a `ChosenPrompt`.

    It returns None if the user closes it or the queue becomes empty. If the queue has been moved to
    a later run, that run's queue is shown. `options`: the options to show, with which the queued
    prompts will be sent. `at`: the index at which the cursor starts.
    """

    BINDINGS = bindings(Where.QUEUE)
    AUTO_FOCUS = "OptionList"

    def __init__(self, run: LiveRun, options: AgentOptions | None, *, at: int = 0) -> None:
        super().__init__()
        self._run, self._options, self._at = run, options, at
        self._prompts = run.queue_state.prompts
        self._sends = run.over

    def compose(self) -> ComposeResult:
        """Yield one row per prompt, in the order in which they will be sent."""
        keys = f"J/K move   e edit   d remove   {'s send   ' * self._sends}esc close"
        with Dialog("Queue", keys, id="queue"):
            yield OptionList(*self._rows())
            if self._options is not None:
                yield Static(Content.assemble(" with  ", option_words(self._options)))

    def _rows(self) -> list[Option]:
        return [
            Option(clean_line(f"{at}  {prompt.text[:200]}"))
            for at, prompt in enumerate(self._prompts, start=1)
        ]

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = min(self._at, len(self._prompts) - 1)
        self.set_interval(LOOK, self._look)

    def _look(self) -> None:
        """Update the rows if the queue has changed, keeping the cursor on its prompt.

        The dialog closes if the queue is empty, or if sending has become possible or impossible.
        """
        prompts = self._run.latest.queue_state.prompts
        if self._sends != self._run.latest.over or not prompts:
            self.dismiss(None if not prompts else ChosenPrompt("look", prompts[0], self._here))
        elif prompts != self._prompts:
            ids, current = [prompt.id for prompt in prompts], self._prompts[self._here].id
            rows = self.query_one(OptionList)
            self._prompts = prompts
            rows.clear_options()
            rows.add_options(self._rows())
            rows.highlighted = ids.index(current) if current in ids else 0

    @property
    def _here(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable sending a prompt while the run is active."""
        sends = action == "act" and parameters == ("send",)
        return self._sends if sends else super().check_action(action, parameters)

    def action_act(self, what: str) -> None:
        """Close and return the prompt under the cursor, with what to do with it."""
        self.dismiss(ChosenPrompt(what, self._prompts[self._here], self._here))


async def show_queue(
    app: AppBase, run: LiveRun, *, edited: Callable[[LiveRun], Awaitable[None]]
) -> str | None:
    """Let the user edit a run's queue until they close the dialog.

    Returns a prompt's id if the user wants to send it now, or else None. `edited`: called with the
    run after the user has edited a prompt. Because nothing is sent from the queue during the edit,
    `edited` must send the next prompt if the run has ended by then.
    """
    at = 0
    await run.refresh_queue()
    while run.queue_state.prompts:
        options = await asyncio.to_thread(_options, run)
        wanted = await app.push_screen_wait(QueueScreen(run, options, at=at))
        run = run.latest
        if wanted is None:
            break
        if wanted.what == "send":
            return wanted.prompt.id
        try:
            at, result = await _done(app, run, wanted)
        except OSError as error:
            app.show_message(f"The queue was not changed: {message_of(error)}", problem=True)
            return None
        if wanted.what == "change":
            await edited(run)
            run = run.latest
        await run.refresh_queue()
        if not result:
            app.show_message("Too late: this prompt has already been sent.")
    if not run.queue_state.prompts:
        app.show_message("The queue is empty.")
    return None


def _options(run: LiveRun) -> AgentOptions | None:
    with suppress(OptionError):
        return run.next_options()
    return None


async def _done(app: AppBase, run: LiveRun, wanted: ChosenPrompt) -> tuple[int, bool]:
    """Carry out what the user has chosen for a prompt in the queue.

    Returns the cursor's new index, and whether the prompt was still in the queue.
    """
    what, prompt, at = wanted
    if what == "look":
        return at, True
    if what == "drop":
        return at, await asyncio.to_thread(run.run.queue.drop, prompt.id)
    if what == "change":
        screen = ChangeScreen(
            "Edit the queued prompt",
            prompt.text,
            problem=lambda text: (
                ""
                if text.strip()
                else "An empty prompt can't be queued. To remove it, close this and press d."
            ),
            enter_takes=False,
            subject=prompt.id,
        )
        with ExitStack() as stack:
            queue = run.run.queue
            await asyncio.to_thread(stack.enter_context, queue.editing())
            text = await app.push_screen_wait(screen)
            if text is None:
                return at, True
            return at, await asyncio.to_thread(run.latest.run.queue.edit, prompt.id, text)
    to = max(0, min(at + (1 if what == "move_down" else -1), len(run.queue_state.prompts) - 1))
    return to, await asyncio.to_thread(run.run.queue.move, prompt.id, to)
