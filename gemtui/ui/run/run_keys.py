"""Key actions on a run: stop, undo, review, output and command."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from textual.actions import SkipAction

from gemtui.agent import trust
from gemtui.agent.command import rerun_line
from gemtui.agent.options import AgentOptions, seconds_text
from gemtui.agent.run_folder import LARGEST_PROMPT
from gemtui.agents import WORDS
from gemtui.calls.paths import in_project
from gemtui.files import is_file, read_end, read_small
from gemtui.paths import current_folder, typed_path
from gemtui.runs.undo.review import ReviewSubject, subject_of_run
from gemtui.transcript.model import Block, ToolCall
from gemtui.transcript.tools import target
from gemtui.transcript.writes import FileWrite
from gemtui.ui.kit.app_base import AppBase
from gemtui.ui.kit.dialogs import AskScreen
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.messages import AllowCallRequested
from gemtui.ui.kit.screens import dialog
from gemtui.ui.kit.text_view import show_text
from gemtui.ui.run.end_card import EndRow
from gemtui.ui.run.live_run import LiveRun, Stage, ToolEnd
from gemtui.ui.run.next_run import NextRun
from gemtui.ui.run.panes import RunPane, RunPart
from gemtui.ui.run.registry import RunRegistry
from gemtui.ui.undo.checkpoint_marks import find_stored, prompt_at
from gemtui.worktree_records import NEW_WORKTREE, worktree_of

if TYPE_CHECKING:
    from gemtui.sessions.catalog.summary import Summary
    from gemtui.ui.undo.checkpoint_marks import Number


_TWICE = 2.0
"""Within how many seconds ctrl+c must be pressed again to stop a run."""
STOP_AGAIN = "Press ctrl+c again to stop the run."
GOES_ON = "The run goes on. Press ctrl+c twice to stop it."
"""Like `STOP_AGAIN`, a message that is true only until the run ends."""
_MOST_STDERR = 1_000_000
"""Maximum number of bytes of stderr to show; of longer output, the end is shown."""


class RunKeys(RunPart):
    """Key actions on the run on screen or, if there is none, on the prompt."""

    def __init__(self, screen: RunPane, registry: RunRegistry, next_run: NextRun) -> None:
        super().__init__(screen)
        self._registry, self._next = registry, next_run
        self._pressed = -_TWICE
        """When ctrl+c was last pressed while a run was working."""

    def can(self, action: str) -> bool:
        """Return whether an action is available for what is on screen."""
        run = self.screen.run_shown
        match action:
            case "stop":
                return (run is not None and run.alive) or bool(self.screen.selections)
            case "stderr" | "copy_command" | "files" | "review" | "comment":
                return run is not None
            case "revert":
                rows = self.screen.panes.card.rows.shown
                return self._row is not None and any(isinstance(row, FileWrite) for row in rows)
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
        """Copy the selected text or, if there is none, stop the run at the second press.

        A third press sends SIGKILL.
        """
        screen, run, now = self.screen, self.screen.run_shown, monotonic()
        if screen.get_selected_text() is not None:
            screen.action_copy_text()
        elif run is None or not run.alive:
            raise SkipAction
        elif run.stage is Stage.RUNNING and now - self._pressed > _TWICE:
            self._pressed = now
            screen.gemtui.show_message(STOP_AGAIN, seconds=_TWICE)
        else:
            self._pressed = -_TWICE
            screen.status.end_message(at_once=True)
            run.stop()
            screen.show_state(run)

    def action_files(self) -> None:
        """Move the focus to the list of changed files or, of a finished run, to its card.

        On a narrow screen, show the list or hide it again.
        """
        self.screen.panes.to_files()
        if self.screen.run_shown is not None:
            self.screen.show_state(self.screen.run_shown)

    # --- going back to a prompt ----------------------------------------------------------------

    @dialog
    async def action_undo_to(self) -> None:
        from gemtui.ui.undo.undo_screen import UndoRequest, UndoScreen

        app = self.screen.gemtui
        stored = self._stored_place()
        if stored is not None:
            find, number = stored
            request = UndoRequest(folder=self.folder, home=app.start.home, find=find, number=number)
            await app.push_screen_wait(UndoScreen(request))

    @dialog
    async def action_fork(self) -> None:
        from gemtui.ui.undo.undo_screen import show_fork

        app = self.screen.gemtui
        stored = self._stored_place()
        if stored is not None:
            await show_fork(app, *stored, self.folder, app.start.home)

    @dialog
    async def action_redo(self) -> None:
        from gemtui.ui.undo.undo_screen import UndoRequest, UndoScreen

        app = self.screen.gemtui
        await app.push_screen_wait(UndoScreen(UndoRequest(folder=self.folder, home=app.start.home)))
        if self.screen.run_shown is not None:
            await self.screen.run_shown.files.recompute()

    def _stored_place(self) -> tuple[Callable[[], Summary], Number] | None:
        """Return functions that find the session on screen and the prompt at the cursor.

        They are functions because finding the two takes a while. If there is no session, or its run
        is still active, a message says so and None is returned.
        """
        app, view, run = self.screen.gemtui, self.screen.view, self.screen.run_shown
        if run is not None and run.alive:
            key = BY_ID["run.stop"].footer()
            app.show_message(
                f"The run is still working. Press {key} to stop it, or wait until it ends."
            )
            return None
        session = self._next.options.resume if run is None else run.session or run.resumes
        if session is None:
            app.show_message("There is no session here yet.")
            return None
        return partial(find_stored, app, session), prompt_at(view.page.transcript, view.index)

    def action_review(self) -> None:
        self.review(None)

    @dialog
    async def review(self, write: FileWrite | None) -> None:
        """Let the user review the run's changes hunk by hunk, first those of a file.

        The comments that the user writes there become the text of the prompt field.
        """
        from gemtui.ui.review.screen import ReviewScreen

        run = self.screen.run_shown
        if run is not None:
            first = None if write is None else write.path
            screen = ReviewScreen(_subject(run), run.prompt, first=first)
            text = await self.screen.gemtui.push_screen_wait(screen)
            await run.files.recompute()
            if text:
                self._write(text)

    @dialog
    async def action_revert(self) -> None:
        """Revert the file under the cursor of the card, after asking."""
        from gemtui.ui.review.screen import revert_file

        app, run, row = self.screen.gemtui, self.screen.run_shown, self._row
        if not isinstance(row, FileWrite):
            app.show_message("Go to a file to revert it.")
        elif run is not None:
            await revert_file(app, _subject(run), Path(row.path))
            await run.files.recompute()

    @property
    def _row(self) -> EndRow | None:
        """The row under the cursor of the card of a finished run, if it is shown."""
        panes = self.screen.panes
        return panes.card.rows.chosen if panes.has_class("-ended") else None

    def after(self, run: LiveRun) -> Iterator[str]:
        """Yield the ids of the keys that may help after a run, in display order."""
        yield from ("run.carry_out", "run.differing", "run.allow")
        if self._row is not None:
            yield from (
                "choices.cursor_down",
                "writes.select",
                "run.revert",
                "run.comment",
                "run.review",
                "run.undo_to",
            )
        yield from ("run.again", "run.edit")
        if run.reports.stderr:
            yield "run.stderr"

    def action_comment(self) -> None:
        """Begin a line of the prompt that comments on the file or call under the cursor."""
        panes, text = self.screen.panes, self.screen.prompt.text
        row = panes.view.page.block if panes.view.has_focus else self._row
        self._write("\n".join(filter(None, (text, comment_on(row, self.folder)))))

    # --- details -------------------------------------------------------------------------------

    def action_allow(self) -> None:
        call = self.screen.panes.refused()
        if call is not None:
            self.screen.post_message(AllowCallRequested(call, self._next.options.policies))

    def action_stderr(self) -> None:
        if self.screen.run_shown is not None:
            _show_stderr(self.screen.gemtui, self.screen.run_shown)

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
        await _show_command(app, self._registry, prompt, self._next.options)

    @dialog
    async def action_from_file(self) -> None:
        text = await _prompt_from_file(self.screen.gemtui, self._next.folder)
        if text is not None:
            self._write(text)

    def _write(self, text: str) -> None:
        """Put text into the prompt field, and focus the field."""
        self.screen.prompt.set_text(text)
        self.screen.prompt.focus()


def comment_on(row: EndRow | Block | None, folder: Path) -> str:
    """Return the beginning of a comment on a file or a call; "" if the row is neither.

    `folder`: the folder of the run.
    """
    if isinstance(row, FileWrite):
        return f"{in_project(str(row.path), str(folder))}: "
    if not isinstance(row, ToolCall) or not target(row):
        return ""
    code = f" (exit code {row.exit_code})" if row.exit_code else ""
    return f"{target(row)}{code}: "


def _subject(run: LiveRun) -> ReviewSubject:
    calls = run.own_transcript.calls()
    return subject_of_run(run.cwd, run.session or "", run.id, calls, run.prompt)


async def _show_command(
    app: AppBase, registry: RunRegistry, prompt: str, options: AgentOptions
) -> None:
    """Show the command line and the files that a run would use, or why it can't start.

    `prompt`, `options`: those of the run.
    """
    adapter, id, folder = registry.adapter, str(uuid.uuid4()), options.cwd or current_folder()

    def script() -> tuple[str, ...]:
        is_trusted = trust.trust_of(folder) is trust.FolderTrust.GEMTUI
        wanted = replace(options, trust=options.trust or is_trusted)
        made = adapter.command(prompt, wanted, id=id)
        where = options.worktree and worktree_of(folder) is None
        first = [f"# {NEW_WORKTREE}"] if where else []
        return (*first, *_limits(options), *made.script(prompt, adapter.runs / id, folder))

    with app.reporting():
        lines = await asyncio.to_thread(script)
        show_text(app, "The command that enter will run", "\n".join(lines), what="the command")


def _limits(options: AgentOptions) -> Iterator[str]:
    """Yield shell comments on limits that gemtui enforces but a shell command can't."""
    if options.timeout is not None:
        yield f"# gemtui stops the run after {seconds_text(options.timeout)}"
    if options.idle_timeout is not None:
        silence = seconds_text(options.idle_timeout)
        yield f"# gemtui stops the run after {silence} without output"


async def _prompt_from_file(app: AppBase, folder: Path) -> str | None:
    """Ask for a file and return its contents as a prompt, or None if cancelled.

    If the file can't be read, the reason is shown and None is returned. `folder`: the folder that a
    relative path refers to.
    """

    def place(text: str) -> Path:
        return folder / typed_path(text.strip())

    def problem(text: str) -> str:
        return "" if text.strip() and is_file(place(text)) else "File not found."

    chosen = await app.push_screen_wait(AskScreen("Prompt from a file", value="", problem=problem))
    if chosen is None:
        return None
    with app.reporting():
        return await asyncio.to_thread(_read_prompt, place(chosen))
    return None


def _read_prompt(path: Path) -> str:
    return read_small(path, LARGEST_PROMPT).decode("utf-8", "replace")


def _show_stderr(app: AppBase, run: LiveRun) -> None:
    """Show a run's stderr output on a screen of its own; if it is long, only the end."""
    try:
        text = read_end(run.run.folder.stderr, _MOST_STDERR).decode("utf-8", "replace")
    except OSError:
        text = ""
    if text.strip():
        show_text(app, "stderr", text, what="stderr")
    else:
        program = WORDS[run.run.request.agent].program
        app.show_message(f"{program} has written nothing to stderr.")
