"""Sending prompts: to a new run, to the active run, or to its queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from textual.actions import SkipAction
from textual.content import Content

from gemtui.agent.prompt_queue import hand_on, send_next
from gemtui.errors import message_of
from gemtui.text import clean_line
from gemtui.transcript.model import Transcript
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.run.labels import QUEUED, SAID_NOW, UNHEARD, held_prompts_text
from gemtui.ui.run.live_run import LiveRun, would_take
from gemtui.ui.run.next_run import CARRY_OUT, NextRun, begins_worktree
from gemtui.ui.run.panes import RunPane, RunPart
from gemtui.ui.run.prompt_sources import OwnCommand, own_command
from gemtui.ui.run.queue_dialog import show_queue
from gemtui.ui.run.registry import RunRegistry
from gemtui.ui.run.starting import start_run


class Sending(RunPart):
    """The key actions that send prompts.

    `may_start`: called with a run's policy files before the run starts; returns False to cancel it.
    """

    def __init__(
        self,
        screen: RunPane,
        registry: RunRegistry,
        next_run: NextRun,
        may_start: Callable[[Sequence[Path]], Awaitable[bool]],
    ) -> None:
        super().__init__(screen)
        self._registry, self._next, self._may_start = registry, next_run, may_start

    def can(self, action: str) -> bool:
        """Return whether an action on the run on screen, or on its queue, is available."""
        run = self.screen.run_shown
        if run is None:
            return False
        match action:
            case "carry_out":
                return run.planned and not self.screen.prompt.text.strip()
            case "queue":
                return bool(run.queue_state.prompts)
        return not run.alive

    # --- text ----------------------------------------------------------------------------------

    def submit(self, text: str) -> None:
        """Send a prompt, or carry it out if it is one of gemtui's slash commands.

        While the run on screen is active, the prompt is added to its queue.
        """
        prompt = self.screen.prompt
        own = own_command(text)
        if own is not None:
            prompt.sent(text)
            self._obey(*own)
        elif (run := self.screen.run_shown) is None or run.over:
            self._go_on(text)
        elif run.works or would_take(run, self._next.options):
            prompt.sent(text)
            self._tell_run(run, text, now=False)
        else:
            prompt.sent(text)
            self._end_and_send(run, text)

    @background("telling")
    async def _end_and_send(self, run: LiveRun, text: str) -> None:
        """End an agent that waits with other options, so that a new run takes the prompt."""
        await asyncio.to_thread(run.run.abort)
        await run.run.wait()
        self._tell_run(run, text, now=False)

    def send_now(self, text: str) -> None:
        """Send a message to the active run, or explain that the run accepts none."""
        run = self.screen.run_shown
        if run is None:
            return
        if run.reports.kept_until is not None:
            self.submit(text)
        elif run.accepts_messages:
            self.screen.prompt.sent(text)
            self._tell_run(run, text, now=True)
        else:
            self.screen.gemtui.show_message(UNHEARD)

    @background("obey")
    async def _obey(self, command: OwnCommand, words: str) -> None:
        """Carry out one of gemtui's own slash commands.

        `words`: the text after the command's name.
        """
        app = self.screen.gemtui
        match command.name:
            case "model" if words:
                self._next.use_model(words)
            case "model":
                model = clean_line(self._next.options.model or f"chosen by {self._next.program}")
                app.show_message(f"Model: {model}. Type /model NAME to change it.")
            case "mode" if words:
                if not self._next.use_mode(words):
                    app.show_message("There is no such mode. Use ask, auto_edit, plan or yolo.")
            case "mode":
                self._next.use_next_mode()
            case "stop" if (run := self.screen.run_shown) is not None and run.alive:
                run.stop()
                self.screen.show_state(run)
            case _:
                if not await app.run_action(command.action, self.screen):
                    app.show_message(f"/{command.name} can't be used now.")

    @background("telling")
    async def _tell_run(self, run: LiveRun, text: str, *, now: bool) -> None:
        """Send a message to a run, or add a prompt to the run's queue.

        `now`: send a message instead of adding a prompt. Calls are handled one at a time, so that
        messages and prompts keep their order.
        """
        app, prompt = self.screen.gemtui, self.screen.prompt
        async with self._next.queueing:
            await self._next.wait_loaded()
            try:
                await (run.send_message(text) if now else run.queue(text, self._next.options))
            except OSError as error:
                prompt.set_text("\n\n".join(filter(None, (text, prompt.text))))
                app.show_message(
                    f"Not queued: {message_of(error)}. Your text is back in the prompt.",
                    problem=True,
                )
            else:
                self.screen.show_options()
                if run.works:
                    app.show_message(SAID_NOW if now else QUEUED)
                await self._send_what_waits(run)

    # --- starting runs -------------------------------------------------------------------------

    def _go_on(self, prompt: str) -> None:
        """Start a run with this prompt that continues the session on screen.

        If there is no session, or if the run gets a new worktree, the run starts a new session.
        """
        run, resume = self.screen.run_shown, self.session()
        before = None if resume is None else self.screen.panes.before
        if run is not None and resume is not None and self._next.options.resume is None:
            before = run.settled_transcript()
        self._send(prompt, resume=resume, before=before)

    def session(self) -> str | None:
        """Return the id of the session that the next prompt continues; None for a new one."""
        run, options = self.screen.run_shown, self._next.options
        if begins_worktree(options):
            return None
        if options.resume is None and run is not None and run.goes_on_with(options):
            return run.session
        return options.resume

    @dialog
    async def _send(self, prompt: str, *, resume: str | None, before: Transcript | None) -> None:
        screen = self.screen
        shown = screen.run_shown
        run = await self._started(prompt, resume=resume, before=before)
        if run is None:
            return
        screen.prompt.sent(prompt)
        if shown is not None and shown.queue_state.prompts:
            with screen.gemtui.reporting("The queue could not be moved to the new run"):
                await asyncio.to_thread(hand_on, shown.run.folder, run.run.folder)
            await shown.refresh_queue()
        screen.show_run(run, fresh=before is None)

    async def _started(
        self, prompt: str, *, resume: str | None, before: Transcript | None, id: str | None = None
    ) -> LiveRun | None:
        """Start a run with the next run's options; on failure, show why and return None.

        `resume`: the id of the session to continue; None for a new one. `before`: the session's
        conversation, or None. `id`: the run's id; None creates one.
        """
        with self._registry.beginning(prompt, resume), self._says_starting():
            await self._next.wait_loaded()
            if not await self._may_start(self._next.options.policies):
                return None
            options = replace(self._next.options, resume=resume)
            app = self.screen.gemtui
            run = await start_run(app, self._registry, prompt, options, before, id=id)
        if run is not None:
            self.screen.panes.before = None
            await self._next.run_begun(asks=run.run.asks)
        return run

    @contextmanager
    def _says_starting(self) -> Iterator[None]:
        """Say in the status line that a run is being started, until it has started or failed."""
        screen, status = self.screen, self.screen.status
        status.show_parts(
            [Content(f"starting {self._next.program}{screen.gemtui.glyphs.ellipsis}")]
        )
        try:
            yield
        finally:
            status.show_parts([])
            if screen.is_open and screen.run_shown is not None:
                screen.show_state(screen.run_shown)

    # --- the queue -----------------------------------------------------------------------------

    def show_next(self, run: LiveRun) -> None:
        """Show the run that was started from this run's queue.

        If there is none, a message says that the queue wasn't sent.
        """
        if run.next is not None:
            if run is self.screen.run_shown:
                self.screen.show_run(run.next, fresh=False)
        elif run.queue_state.prompts and not run.past:
            self.screen.gemtui.show_message(held_prompts_text(run), problem=True)

    async def _send_what_waits(self, run: LiveRun) -> None:
        """Send the next prompt from a run's queue, if the run has ended in the meantime."""
        if run.over:
            await self._registry.send_what_waits(run)
            self.show_next(run)

    async def _send_waiting(self, run: LiveRun, prompt: str) -> None:
        """Send a prompt that was still queued when its run ended.

        The new run uses the options stored with the queue. `prompt`: the prompt's id.
        """
        before = run.settled_transcript() if run.can_continue else run.before

        async def begin(text: str, id: str) -> LiveRun | None:
            return await self._started(text, resume=options.resume, before=before, id=id)

        with self.screen.gemtui.reporting("The prompt is still queued"):
            options = await asyncio.to_thread(run.next_options) or self._next.options
            self._next.options = replace(options, resume=None)
            run.next = await send_next(run.run.folder, begin, prompt=prompt)
        await run.refresh_queue()
        self.show_next(run)

    @dialog
    async def action_queue(self) -> None:
        run = self.screen.run_shown
        if run is not None:
            app = self.screen.gemtui
            wanted = await show_queue(app, run, edited=self._send_what_waits)
            if wanted is not None:
                await self._send_waiting(run.latest, wanted)
            self.screen.show_options()

    # --- after a run ---------------------------------------------------------------------------

    def action_again(self) -> None:
        """Send the finished run's prompt again, in the session that the run continued."""
        run = self._ended()
        if run is not None:
            self._send(run.prompt, resume=run.resumes, before=run.before)

    def action_edit(self) -> None:
        run = self._ended()
        if run is not None:
            self.screen.prompt.set_text(run.prompt)
            self.screen.prompt.focus()

    def action_carry_out(self) -> None:
        if self.screen.asking or not self.can("carry_out"):
            raise SkipAction
        self._next.carry_out()
        self._go_on(CARRY_OUT)

    def _ended(self) -> LiveRun | None:
        run = self.screen.run_shown
        if run is None or run.alive:
            self.screen.gemtui.show_message("There is no finished run here.")
            return None
        return run
