"""Key actions on a run: stop, undo, review, output and command."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.actions import SkipAction

from gemtui.agent.command import rerun_line
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.messages import AllowCallRequested
from gemtui.ui.kit.screens import dialog
from gemtui.ui.run import actions
from gemtui.ui.run.live_run import ToolEnd
from gemtui.ui.run.next_run import NextRun
from gemtui.ui.run.pane_base import RunPane, RunPart
from gemtui.ui.run.registry import RunRegistry
from gemtui.ui.undo.checkpoint_marks import find_stored, prompt_at

if TYPE_CHECKING:
    from gemtui.sessions.catalog.summary import Summary
    from gemtui.ui.undo.checkpoint_marks import Number


class RunKeys(RunPart):
    """Key actions on the run on screen or, if there is none, on the prompt."""

    def __init__(self, screen: RunPane, registry: RunRegistry, next_run: NextRun) -> None:
        super().__init__(screen)
        self._registry, self._next = registry, next_run

    def can(self, action: str) -> bool:
        """Return whether an action is available for what is on screen."""
        run = self.screen.run_shown
        match action:
            case "stop":
                return (run is not None and run.alive) or bool(self.screen.selections)
            case "stderr" | "copy_command" | "files" | "review":
                return run is not None
            case "undo_to" | "fork":
                return run is not None or self._next.options.resume is not None
            case "allow":
                return run is not None and run.ends()[ToolEnd.DENIED] > 0
        return True

    @property
    def folder(self) -> Path:
        """The folder of the run on screen, or else of the next run."""
        run = self.screen.run_shown
        return self._next.folder if run is None else run.cwd

    def action_stop(self) -> None:
        """Copy the selected text or, if there is none, stop the run.

        Stopping a run twice sends SIGKILL.
        """
        screen, run = self.screen, self.screen.run_shown
        if screen.get_selected_text() is not None:
            screen.action_copy_text()
        elif run is None or not run.alive:
            raise SkipAction
        else:
            run.stop()
            screen.show_state(run)

    def action_files(self) -> None:
        """Move the focus to the list of changed files.

        On a narrow screen, show the list or hide it again.
        """
        self.screen.panes.to_files()

    # --- going back to a prompt ----------------------------------------------------------------

    @dialog
    async def action_undo_to(self) -> None:
        from gemtui.ui.undo.undo_screen import UndoRequest, UndoScreen

        app = self.screen.gemtui
        if (found := self._stored_place()) is not None:
            find, number = found
            request = UndoRequest(folder=self.folder, home=app.start.home, find=find, number=number)
            await app.push_screen_wait(UndoScreen(request))

    @dialog
    async def action_fork(self) -> None:
        from gemtui.ui.undo.undo_screen import show_fork

        app = self.screen.gemtui
        if (found := self._stored_place()) is not None:
            await show_fork(app, *found, self.folder, app.start.home)

    @dialog
    async def action_redo(self) -> None:
        from gemtui.ui.undo.undo_screen import UndoRequest, UndoScreen

        app = self.screen.gemtui
        await app.push_screen_wait(UndoScreen(UndoRequest(folder=self.folder, home=app.start.home)))

    def _stored_place(self) -> tuple[Callable[[], Summary], Number] | None:
        """Return functions that find the session on screen and the prompt at the cursor.

        They are functions because finding the two takes a while. If there is no session, or its run
        is still active, a message says so and None is returned.
        """
        app, view, run = self.screen.gemtui, self.screen.view, self.screen.run_shown
        if run is not None and run.alive:
            key = BY_ID["run.stop"].footer()
            app.show_message(f"The run is still working. Press {key} to stop it, or wait until it ends.")
            return None
        session = self._next.options.resume if run is None else run.session or run.resumes
        if session is None:
            app.show_message("There is no session here yet.")
            return None
        return partial(find_stored, app, session), prompt_at(view.page.transcript, view.index)

    @dialog
    async def action_review(self) -> None:
        """Let the user review the run's changes hunk by hunk.

        The comments that the user writes there become the text of the prompt field.
        """
        from gemtui.ui.review.screen import review_run

        if (run := self.screen.run_shown) is not None:
            calls, prompt = run.own_transcript.calls(), run.prompt
            subject = review_run(run.cwd, run.session or "", run.id, calls, prompt)
            if text := await self.screen.gemtui.push_screen_wait(subject):
                self._write(text)

    # --- details -------------------------------------------------------------------------------

    def action_allow(self) -> None:
        if (call := self.screen.panes.refused()) is not None:
            self.screen.post_message(AllowCallRequested(call, self._next.options.policies))

    def action_stderr(self) -> None:
        if self.screen.run_shown is not None:
            actions.show_stderr(self.screen.gemtui, self.screen.run_shown)

    def action_copy_command(self) -> None:
        app, run = self.screen.gemtui, self.screen.run_shown
        if run is None:
            return
        new = " (starts a new session)" if run.resumes else ""
        app.copy(rerun_line(run.run.request, run.run.folder), f"the command line{new}")

    @dialog
    async def action_command(self) -> None:
        await self._next.wait_loaded()
        app, prompt = self.screen.gemtui, self.screen.prompt.text
        await actions.show_command(app, self._registry, prompt, self._next.options)

    @dialog
    async def action_from_file(self) -> None:
        text = await actions.prompt_from_file(self.screen.gemtui, self._next.folder)
        if text is not None:
            self._write(text)

    def _write(self, text: str) -> None:
        """Put text into the prompt field, and focus the field."""
        self.screen.prompt.set_text(text)
        self.screen.prompt.focus()
