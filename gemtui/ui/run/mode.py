"""The app's run mode: starts and follows runs, and asks about them on quitting.

Modules for runs are imported only once there is a run, so that the app starts faster for users who
only look at sessions.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.signal import Signal

from gemtui.errors import GemtuiError
from gemtui.files import is_folder, path_exists, resolved
from gemtui.paths import failed_commands_dir
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.text import clean, clean_line, ellipsis
from gemtui.ui.kit.app_base import start_worker

if TYPE_CHECKING:
    from gemtui.policy.model.rules import ApprovalMode
    from gemtui.transcript.model import Transcript
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.kit.messages import ChatRequested
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry, Starting
    from gemtui.ui.run.screen import RunScreen

RUN_MODE = "run"


def _pane_class() -> type[RunScreen]:
    """Import the pane, which takes 0.3 s the first time."""
    from gemtui.ui.run.screen import RunScreen

    return RunScreen


class RunMode:
    """The app's run mode.

    `changed`: a signal that is published when a run has started or ended and, with None, when a run
    has asked a question or received an answer. `may_start`: called with a run's policy files before
    the run starts; returns False to cancel it.
    """

    def __init__(
        self, app: AppBase, *, may_start: Callable[[Sequence[Path]], Awaitable[bool]]
    ) -> None:
        self._app, self._may_start = app, may_start
        self._registry: RunRegistry | None = None
        self._made: RunScreen | None = None
        self._rung: set[tuple[str, int]] = set()
        """The run id and number of each question that the user has been notified of."""
        self.changed: Signal[LiveRun | None] = Signal(app, "runs changed")
        app.add_mode(RUN_MODE, self._screen)

    @property
    def registry(self) -> RunRegistry:
        """The registry that starts and follows runs, created on first use."""
        if self._registry is None:
            from gemtui.ui.run.registry import RunRegistry

            app = self._app
            spawn = partial(start_worker, app, group="runs")
            self._registry = RunRegistry(
                app.adapter,
                app.start.home,
                clock=app.clock,
                see_files=app.config.see_files,
                spawn=spawn,
                changed=self.run_changed,
                asked=self._asked,
            )
        return self._registry

    def _screen(self) -> RunScreen:
        self._made = _pane_class()(
            self.registry, self._app.start.folder, may_start=self._may_start, changed=self.changed
        )
        return self._made

    @property
    def alive(self) -> tuple[LiveRun, ...]:
        """The active runs that this app follows."""
        return () if self._registry is None else self._registry.alive

    @property
    def _starting(self) -> Sequence[Starting]:
        return () if self._registry is None else self._registry.starting

    def sign(self) -> str:
        """Return the symbol for the run mode's tab; "" if it needs none.

        It needs one if a run is active, or has ended without the user having seen its outcome.
        """
        if self._registry is None:
            return ""
        from gemtui.ui.run.labels import run_glyph

        news = [run for run in self._registry.runs if run.alive or not run.looked_at]
        news.sort(key=lambda run: bool(run.waiting))
        return run_glyph(news[-1], self._app.glyphs) if news else ""

    async def find(self) -> None:
        """Follow the active runs of other gemtui processes, and deal with finished ones.

        Finished runs may need cleaning up, may wait for their quota, or may have left prompts in
        their queue.
        """
        folder = self._app.runs_dir
        if await asyncio.to_thread(_may_run, folder):
            found_runs = await self.registry.attach_running()
            at_work = [run for run in found_runs if not await asyncio.to_thread(_asks, run)]
            if at_work:
                one = len(at_work) == 1
                runs = "A run is still active" if one else f"{len(at_work)} runs are still active"
                self._app.show_message(
                    f"{runs}: {self._way_to(at_work[-1])}, then ctrl+c twice to stop."
                )
            await self._say_orphans()
        await asyncio.to_thread(_tidy, folder)
        if await asyncio.to_thread(_waiting, folder):
            await self.registry.attach_waiting()
        await self._say_waiting()
        await self._say_failures()

    async def _say_failures(self) -> None:
        """Tell the user why programs named in the settings have failed.

        Each failure is reported only once.
        """
        for failure in await asyncio.to_thread(_untold):
            self._app.show_message(failure, problem=True)

    async def _say_waiting(self) -> None:
        """Tell the user about prompts that were still queued when their run ended."""
        folder = self._app.runs_dir
        waits = await asyncio.to_thread(_waiting, folder)
        if waits:
            what = "1 queued prompt" if waits == 1 else f"{waits} queued prompts"
            text = f"Finished runs left {what} unsent. Press ctrl+l in the run pane to find them."
            self._app.show_message(text)

    async def _say_orphans(self) -> None:
        orphans = [run for run in await self.registry.find() if run.state == "orphaned"]
        if orphans:
            whose = "A run" if len(orphans) == 1 else f"{len(orphans)} runs"
            text = (
                f"{whose} left processes behind. Press ctrl+l in the run pane, then x to stop them."
            )
            self._app.show_message(text, problem=True)

    async def show(self, folder: Path | None = None) -> None:
        """Show the run pane; if a folder is given, get ready for a new run there."""
        screen = await self._switched()
        if folder is not None:
            screen.new_run_in(folder)

    async def show_with_policies(
        self, policies: tuple[Path, ...], mode: ApprovalMode | None
    ) -> None:
        """Show the run pane, ready for a run with these policy files and this mode.

        `mode`: None means the one that is chosen there.
        """
        screen = await self._switched()
        await screen.use_policies(policies, mode)

    async def go_on(self, summary: Summary, prompt: str = "") -> None:
        """Show the run pane, ready to continue a stored session.

        If the session can't be continued, show why instead. `prompt`: the text to put into the
        prompt field.
        """
        folder = summary.folder
        if folder is None or not is_folder(folder):
            self._app.show_message(
                "This session can't be continued, because its folder no longer exists. If it was "
                "renamed, use gemtui "
                "sessions move in a shell."
            )
        elif Flag.LIVE in summary.flags:
            self._app.show_message(
                "This session can't be continued yet, because it is still being written."
            )
        else:
            before = await asyncio.to_thread(_stored, summary.path)
            screen = await self._switched()
            screen.prepare(
                folder, resume=summary.id, agent=summary.agent, before=before, prompt=prompt
            )

    async def show_chat(self, chat: ChatRequested) -> None:
        """Show the run pane, ready to continue a chat, with the prompt filled in.

        If the chat's folder no longer exists, show a message instead.
        """
        if not await asyncio.to_thread(is_folder, chat.folder):
            self._app.show_message(
                "This chat can't be continued, because its folder no longer exists."
            )
            return
        before = await asyncio.to_thread(self._past, chat)
        screen = await self._switched()
        screen.prepare(
            chat.folder, resume=chat.session, agent=chat.agent, before=before, prompt=chat.prompt
        )

    async def show_worktrees(self) -> None:
        """Show the worktrees screen, then the run pane if the user has chosen a worktree."""
        from gemtui.ui.run.worktrees_screen import WorktreesScreen

        wanted = await self._app.push_screen_wait(WorktreesScreen())
        if wanted is not None:
            from gemtui.ui.run.worktrees_screen import carry_out

            await carry_out(self._app, self.registry, await self._switched(), wanted)

    def _past(self, chat: ChatRequested) -> Transcript | None:
        """Return a chat's conversation, or None if it is new or can't be read.

        Blocking: call this on a background thread.
        """
        from gemtui.sessions.catalog.index import Index

        if chat.session is None:
            return None
        start, path = self._app.start, chat.path
        if path is None:
            with suppress(GemtuiError, OSError):
                path = Index(start.home, cache=start.cache).find(chat.session).path
        return None if path is None else _stored(path)

    async def _switched(self) -> RunScreen:
        if self._made is None:
            await asyncio.to_thread(_pane_class)
        await self._app.switch_mode(RUN_MODE)
        assert self._made is not None
        await self._made.ready.wait()
        return self._made

    def run_changed(self, run: LiveRun | None) -> None:
        """Update the app after a run has started or ended, and notify the user of an end.

        `run`: the run that has ended; None if a run has started.
        """
        app = self._app
        if run is not None and not run.past:
            run.looked_at = run.next is not None or self._shows(run)
            if run.next is None and not (run.looked_at and app.app_focus):
                from gemtui.ui.run.labels import end_notice

                app.ring(end_notice(run))
                app.show_message(f"A run has ended: {clean_line(run.prompt[:50])}")
            start_worker(app, self._say_failures)
        self.changed.publish(run)
        app.signs_changed.publish(None)

    def _asked(self, run: LiveRun) -> None:
        """Update the app after a run has received an answer or asked a question.

        The user is notified of a new question.
        """
        app, new = self._app, {(run.id, question.number) for question in run.waiting} - self._rung
        self._rung |= new
        if new and not (self._shows(run) and app.app_focus):
            from gemtui.ui.run.labels import question_notice

            app.ring(question_notice(run))
            app.show_message(
                f"A run needs your approval ({self._way_to(run)}): {clean_line(run.prompt[:50])}"
            )
        self.changed.publish(None)
        app.signs_changed.publish(None)

    def _way_to(self, run: LiveRun) -> str:
        """Return the keys that lead to a run, in words."""
        app, screen = self._app, self._made
        if app.current_mode == RUN_MODE:
            return "it is on screen" if self._shows(run) else "press ctrl+l"
        at_home = resolved(run.cwd) == resolved(app.start.folder)
        shown = at_home if screen is None else screen.shows(run)
        return "press 2" if shown else "press 2, then ctrl+l"

    def _shows(self, run: LiveRun) -> bool:
        app = self._app
        return app.current_mode == RUN_MODE and self._made is not None and self._made.shows(run)

    async def next_asks(self, folder: Path) -> bool:
        """Return whether the next run asks the user before calls, instead of denying them.

        `folder`: where it starts, if the run pane hasn't been shown yet.
        """
        if self._made is not None:
            await self._made.next_run.wait_loaded()
            return self._made.options.asks
        return await asyncio.to_thread(_asks_by_default, folder)

    async def is_working_in(self, session: str) -> bool:
        """Return whether a run is working in this session.

        This includes runs of other gemtui processes.
        """
        if await asyncio.to_thread(_may_run, self._app.runs_dir):
            await self.registry.attach_running()
        begun = any(session in (run.session, run.resumes) for run in self.alive)
        return begun or any(run.resumes == session for run in self._starting)

    async def may_leave(self) -> bool:
        """Return whether gemtui may quit; if so, end the agents that only wait for a prompt."""
        may_leave = await self._may_leave()
        if may_leave:
            for run in self.alive:
                if run.ours and not run.works:
                    run.stop()
        return may_leave

    async def _may_leave(self) -> bool:
        """Return whether gemtui may quit, asking about active runs that it started.

        The user can stay, leave the runs running, or stop them. The demo doesn't ask, because its
        runs end with it.
        """
        if self._app.start.demo or not (self._ours or self._starting):
            return True
        from gemtui.ui.kit.dialogs import Choice, ChooseScreen

        runs = self._ours
        prompts = [run.prompt for run in runs] + [starting.prompt for starting in self._starting]
        asks = [run for run in runs if run.waiting]
        which = (
            "A run is still active"
            if len(prompts) == 1
            else f"{len(prompts)} runs are still active"
        )
        asking = ""
        if asks:
            asking = (
                " and needs an answer" if len(prompts) == 1 else f"; {len(asks)} need an answer"
            )
        answer = await self._app.push_screen_wait(
            ChooseScreen(
                clean(f"{which}{asking}."),
                [ellipsis(clean(prompt.split("\n", 1)[0]), 66) for prompt in prompts[:5]],
                (
                    Choice("stay", "Stay", "don't quit"),
                    Choice("leave", "Leave it running", _left(runs, asks)),
                    Choice("stop", "Stop it and quit", "SIGTERM, then SIGKILL"),
                ),
            )
        )
        runs, starts = self._ours, [starting.task for starting in self._starting]
        if answer == "stop":
            self._app.show_message("Stopping (SIGTERM)")
            for start in starts:
                start.cancel()
            for run in runs:
                run.stop()
            await asyncio.gather(*(run.run.wait() for run in runs), *starts, return_exceptions=True)
        elif answer == "leave":
            await asyncio.gather(*starts, return_exceptions=True)
        return answer in ("stop", "leave")

    @property
    def _ours(self) -> list[LiveRun]:
        """The active runs that this gemtui process started."""
        return [run for run in self.alive if run.ours and run.works]


def _left(runs: Sequence[LiveRun], asks: Sequence[LiveRun]) -> str:
    """Return words on what happens to runs that keep running after gemtui quits.

    `asks`: those of the runs that have an unanswered question.
    """
    if not asks:
        waits = any(run.queue_state.prompts for run in runs)
        return f"open gemtui again to see it{'; the queue is kept' * waits}"
    from gemtui.agent.approval import Away

    refused = any(run.away is Away.REFUSE for run in asks)
    return "its question will be denied" if refused else "its question will keep waiting"


def _stored(path: Path) -> Transcript | None:
    """Return a stored conversation, with message bodies loaded only when needed.

    Returns None if the file can't be read.
    """
    from gemtui.sessions.read.conversation import transcript_of
    from gemtui.sessions.read.session_log import SessionLog

    log = SessionLog(path)
    try:
        log.refresh()
    except (GemtuiError, OSError):
        return None
    return transcript_of(log)


def _tidy(place: Path) -> None:
    """Clean up after interrupted runs that resumed a session; delete the oldest runs.

    Runs are deleted only if there are more than the limit. The clean-up must come first, because a
    run's folder records what needs cleaning up. `place`: the folder that contains the runs'
    folders.
    """
    if not is_folder(place):
        return
    from gemtui.kept.resume_guard import settle_abandoned
    from gemtui.runs.listing import prune_runs

    with suppress(OSError):
        settle_abandoned(place)
        prune_runs(place)


def _waiting(place: Path) -> int:
    """Return how many prompts were still queued when their run ended.

    Most modules are imported only if there is a run with a queue, so that the app starts fast.
    `place`: the folder that contains the runs' folders.
    """
    try:
        runs = [folder for folder in place.iterdir() if is_folder(folder / "steering")]
    except OSError:
        return 0
    if not runs:
        return 0
    from gemtui.agent.process_tree import is_supervised
    from gemtui.agent.prompt_queue import PromptQueue
    from gemtui.agent.run_folder import RunFolder

    folders = map(RunFolder, runs)
    ended = (run for run in folders if not is_supervised(run))
    return sum(PromptQueue.of(run).undelivered() for run in ended)


def _untold() -> tuple[str, ...]:
    """Return messages about failed programs that the user hasn't seen yet.

    If there are none, no further modules are imported, so that the app starts fast.
    """
    try:
        if not any(failed_commands_dir().iterdir()):
            return ()
    except OSError:
        return ()
    from gemtui.runs.gate.user_commands import report_failures

    return report_failures()


def _asks(run: LiveRun) -> bool:
    """Return whether a run is waiting for the user's answer to a question."""
    return bool(run.run.gate.waiting())


def _asks_by_default(folder: Path) -> bool:
    """Return whether a run asks if the user chooses no options in the run pane."""
    from gemtui.agent.folder_options import options_for
    from gemtui.extension.status import HookState, extension_state

    with suppress(OSError):
        if (kept := options_for(folder)) is not None:
            return kept.ask
    return extension_state(os.environ, folder, for_run=True).state is HookState.READY


def _may_run(place: Path) -> bool:
    """Return whether any run may still be active, because its end isn't recorded.

    `place`: the folder that contains the runs' folders.
    """
    try:
        return any(not path_exists(folder / "exit.json") for folder in place.iterdir())
    except OSError:
        return False
