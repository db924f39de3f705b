"""The next run's options: chosen now, remembered for its folder, or the defaults."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.worker import WorkerCancelled, WorkerFailed

from gemtui.agent import folder_options
from gemtui.agent.drivers import agent_to_start_with, agents_to_choose
from gemtui.agent.options import AgentOptions
from gemtui.agent.trust import folder_settings
from gemtui.agents import WORDS, Agent
from gemtui.errors import reason_of
from gemtui.extension.status import HookState, extension_state
from gemtui.files import resolved
from gemtui.paths import current_folder
from gemtui.policy.edit import store
from gemtui.policy.model.rules import ApprovalMode
from gemtui.runs.before_run import before_run_report
from gemtui.runs.listing import agents_used
from gemtui.system import Unported, why_not
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.run.labels import ASK, remembered_text
from gemtui.ui.run.live_run import LiveRun
from gemtui.ui.run.panes import RunPane, RunPart
from gemtui.worktree_records import origin_of, worktree_of

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.options_dialog import ChosenOptions


_ORDER = (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.PLAN, ApprovalMode.YOLO)
CARRY_OUT = "Carry out the plan."
"""The prompt that makes a new run carry out a finished run's plan."""


def begins_worktree(options: AgentOptions) -> bool:
    """Return whether a run with these options will work in a new worktree."""
    return options.worktree and worktree_of(options.cwd or current_folder()) is None


def switched(app: AppBase, options: AgentOptions, home: Path) -> AgentOptions:
    """Return the options with the worktree option toggled, and tell the user.

    If the folder is itself a worktree, the options stay as they are, because runs there always work
    in it. `home`: the folder in which ctrl+n starts a run.
    """
    worktree = worktree_of(options.cwd or current_folder())
    if worktree is not None:
        leave = "" if worktree_of(home) == worktree else " Press ctrl+n to leave the worktree."
        app.show_message(f"Runs here use worktree {worktree.name}.{leave}")
        return options
    if options.worktree:
        app.show_message("The next run will work in the folder itself, not in a worktree.")
    elif reason := why_not(Unported.WORKTREES):
        app.show_message(reason)
        return options
    else:
        app.show_message(
            "The next run will work in a new git worktree. Type /worktrees to list them."
        )
    return replace(options, worktree=not options.worktree)


DEMO_DOES_NOT_ASK = "The demo plays a recording, so it can't ask. Quit it to be asked in real runs."


_KEPT = "kept"
"""The group of the worker that loads the remembered options."""
_USUAL = "usual"
"""The group of the worker that determines the defaults in a folder."""
_AGENT = "agent"
"""The group of the worker that finds an agent to start with."""


class NextRun(RunPart):
    """The options for the next run and for the queued prompts of the run on screen.

    `home`: the folder that gemtui was opened on or that the user has chosen since. A new run starts
    there, whichever run or session is on screen. `queueing`: a lock that is held while a run's
    queue is being written.
    """

    def __init__(self, screen: RunPane, folder: Path) -> None:
        super().__init__(screen)
        self.home = folder
        self.options = AgentOptions(cwd=self.home)
        self._first_agent = Agent.GEMINI
        """The agent of runs for which the user has chosen nothing."""
        self._left: dict[Path, AgentOptions] = {}
        """The options chosen in each project that the pane has left; its worktrees share them."""
        self._usual = ApprovalMode.DEFAULT
        self._taken_away = 0
        self.queueing = asyncio.Lock()
        self._kept = False
        """Whether the options are those remembered for the folder, without changes."""
        self._can_ask = False
        """Whether runs in this folder can ask the user, because gemtui's extension works."""
        self._lacks_extension = False
        """Whether runs can't ask, but could if gemtui's extension were installed."""
        self._chosen = False
        """Whether the user has chosen options; if not, runs ask wherever they can."""
        self._mode_chosen = False
        """Whether to remember the mode for the folder once a run has started with it."""

    @property
    def folder(self) -> Path:
        """The folder of the next run."""
        return self.options.cwd or current_folder()

    # --- folder --------------------------------------------------------------------------------

    def is_home(self, folder: Path) -> bool:
        """Return whether this is the folder in which new runs start, by whichever path."""
        return resolved(folder) == resolved(self.home)

    def go_to(self, folder: Path) -> None:
        """Use a different folder for the next run, with the options of its project.

        These are the options that the user has chosen there or, without such a choice, those
        remembered for the folder. Trust in a folder is never used for another one.
        """
        if folder == self.options.cwd:
            return
        resume = self.options.resume
        self._go_to_project(origin_of(folder))
        if self._kept:
            self.options, self._kept, self._chosen = self._unchosen(), False, False
        self.options = replace(self.options, cwd=folder, resume=resume, trust=False)
        self._mode_chosen = False
        if not self._chosen:
            self.load_remembered()
        self.detect_mode()

    def _go_to_project(self, project: Path) -> None:
        """Put the options of a project in the place of those of the previous one."""
        previous = origin_of(self.folder)
        if project == previous:
            return
        if self._chosen:
            self._left[previous] = self.options
        chosen = self._left.pop(project, None)
        self.options = chosen or self._unchosen()
        self._chosen, self._kept = chosen is not None, False

    def _unchosen(self) -> AgentOptions:
        agent = self._first_agent
        return AgentOptions(agent=agent, ask=agent is not Agent.GEMINI)

    @background(_AGENT)
    async def find_agent(self) -> None:
        """Start with the agent of the last run if it is installed, or else with one that is."""
        used = await asyncio.to_thread(agents_used, self.screen.gemtui.runs_dir)
        self._first_agent = await asyncio.to_thread(agent_to_start_with, used)
        is_decided = self._kept or self._chosen or self.options.resume or self.screen.run_shown
        if not is_decided:
            self.resume(None, self._first_agent)
            self.screen.show_options()

    def load_remembered(self) -> None:
        """Start loading the options remembered for the folder, if there are any."""
        self._take_kept(self.folder)

    @background(_KEPT, exclusive=True)
    async def _take_kept(self, folder: Path) -> None:
        app = self.screen.gemtui
        kept = await _remembered_options(app, folder)
        if kept is not None and self.options.cwd == folder and not self._chosen:
            self.options, self._kept = replace(kept, resume=self.options.resume), True
            app.show_message(remembered_text(kept))
            self.screen.show_options()

    @background(_USUAL, exclusive=True)
    async def detect_mode(self) -> None:
        """Determine the default mode, and make runs ask the user if they can.

        Also count the settings here that turn off confirmations.
        """
        folder, environ = self.folder, os.environ
        settings = await asyncio.to_thread(folder_settings, folder, environ, for_run=True)
        extension = await asyncio.to_thread(extension_state, environ, folder, for_run=True)
        with suppress(OSError):
            report = await asyncio.to_thread(before_run_report, AgentOptions(cwd=self.folder))
            self._taken_away = report.taken_away
        self._usual, self._can_ask = settings.default_run_mode, extension.state is HookState.READY
        self._lacks_extension = extension.state is HookState.MISSING
        if self._can_ask and not (self._kept or self._chosen):
            self.options = replace(self.options, ask=True)
        self.screen.show_options()

    async def wait_loaded(self) -> None:
        """Wait until the options remembered for the folder and its defaults are loaded."""
        for worker in list(self.screen.workers):
            if worker.group in (_KEPT, _USUAL, _AGENT):
                with suppress(WorkerCancelled, WorkerFailed):  # a failure has been reported
                    # without the shield, a cancelled start would pass for a cancelled worker
                    await asyncio.shield(worker.wait())

    # --- permissions ---------------------------------------------------------------------------

    def like(self, run: LiveRun) -> None:
        """Use a run's folder for the prompts that continue it.

        If the run is active and asks the user for approval, the next run asks in the same way.
        """
        self.go_to(run.cwd)
        self.resume(None, run.run.request.agent)
        if run.alive and run.run.asks:
            self.options = replace(self.options, ask=True, away=run.away)

    def resume(self, session: str | None, agent: Agent | None = None) -> None:
        """Make the next run continue this session; None makes it start a new one.

        `agent`: the one that runs; None keeps it. Another agent than Gemini CLI asks.
        """
        agent = agent or self.options.agent
        asks = self.options.ask or agent not in (self.options.agent, Agent.GEMINI)
        self.options = replace(self.options, resume=session, agent=agent, ask=asks)

    def use_policies(self, policies: tuple[Path, ...], mode: ApprovalMode | None) -> None:
        """Use these policy files for the next run, and this mode unless it is None."""
        if mode is None:
            if policies != self.options.policies:
                self._choose(replace(self.options, policies=policies))
            return
        self.options = replace(self.options, policies=policies, approval_mode=mode)
        self._chosen, self._kept, self._mode_chosen = True, False, False
        self.screen.show_options()

    def use_model(self, model: str) -> None:
        """Use this model for the next run."""
        self._choose(replace(self.options, model=model))

    def use_mode(self, name: str) -> bool:
        """Use the mode with this name for the next run; return False for an unknown name."""
        chosen = mode_named(self.options, name, can_ask=self._asks)
        if chosen is not None:
            self._mode_chosen = True
            self._choose(chosen)
        return chosen is not None

    def use_next_mode(self) -> None:
        """Switch to the next mode.

        Once a run has been started with this mode, the mode is remembered for the folder.
        """
        self._mode_chosen = True
        options = self.options
        if self.screen.gemtui.start.demo:
            options = replace(options, ask=True)  # the mode after `ask` follows
        self._choose(with_next_mode(options, self.usual, can_ask=self._asks))

    def carry_out(self) -> None:
        """Switch to the options for a run that carries out the plan of the previous one."""
        self._choose(options_for_plan(self.options, can_ask=self._asks))

    async def run_begun(self, *, asks: bool) -> None:
        """Update the options after a run has been started with them.

        `asks`: whether the run asks the user. If it can't, the next one doesn't ask either. If the
        user has chosen the mode, it is now remembered for the folder. The session and the trust
        option applied to that run only, so they are reset.
        """
        self.options = replace(self.options, ask=asks)
        if self._mode_chosen:
            self._mode_chosen = False
            await _keep_mode(self.screen.gemtui, self.options)
        self.options = replace(self.options, resume=None, trust=False)

    @property
    def _is_gemini(self) -> bool:
        return self.options.agent is Agent.GEMINI

    @property
    def _asks(self) -> bool:
        """Whether the next run can ask; for Gemini CLI, that takes gemtui's extension."""
        return self._can_ask or not self._is_gemini

    @property
    def offers_extension(self) -> bool:
        """Whether gemtui's extension would let the next run ask, but is not installed."""
        return self._lacks_extension and self._is_gemini

    @property
    def usual(self) -> ApprovalMode:
        """The mode that applies if the options set none."""
        return self._usual if self._is_gemini else ApprovalMode.DEFAULT

    @property
    def taken_away(self) -> int:
        """How many of the project's settings turn off confirmations."""
        return self._taken_away if self._is_gemini else 0

    @property
    def program(self) -> str:
        """The name of the program that the next run starts."""
        return WORDS[self.options.agent].program

    @dialog
    async def action_options(self) -> None:
        await self.wait_loaded()
        chosen = await _choose_options(self.screen.gemtui, self.options)
        if chosen is not None:
            if chosen.options.cwd is not None and chosen.options.cwd != self.folder:
                self.home = chosen.options.cwd
            self._mode_chosen = False
            self._choose(chosen.options)

    def action_worktree(self) -> None:
        self._choose(switched(self.screen.gemtui, self.options, self.home))

    def _choose(self, options: AgentOptions) -> None:
        """Use these options for the next run and for the queue of the run on screen.

        A run of another agent that has just been chosen asks.
        In the demo, no run asks, because its stand-in for Gemini CLI has no hooks.
        """
        if options.agent not in (self.options.agent, Agent.GEMINI):
            options = replace(options, ask=True)
        if options.ask and self.screen.gemtui.start.demo:
            options = replace(options, ask=False)
            self.screen.gemtui.show_message(DEMO_DOES_NOT_ASK)
        self.options, self._chosen, self._kept = options, True, False
        self.screen.show_options()
        run = self.screen.run_shown
        if run is not None and run.queue_state.prompts:
            self._keep(run)

    @background("telling")
    async def _keep(self, run: LiveRun) -> None:
        async with self.queueing:
            with self.screen.gemtui.reporting("Queued prompts keep their old options"):
                await run.keep_options(self.options)


def with_next_mode(options: AgentOptions, usual: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options with the next mode.

    `usual`: the mode of a run whose options set none. `can_ask`: whether the extension works, so
    that runs can ask the user. Even if it doesn't work, `ask` is one of the modes, because starting
    such a run offers to install the extension.
    """
    mode = options.approval_mode or usual
    if mode is ApprovalMode.DEFAULT and not options.ask:
        return replace(options, approval_mode=mode, ask=True)
    return in_mode(options, _ORDER[(_ORDER.index(mode) + 1) % len(_ORDER)], can_ask=can_ask)


def mode_named(options: AgentOptions, name: str, *, can_ask: bool) -> AgentOptions | None:
    """Return the options with the mode of this name, or None if there is no such mode.

    The names are those that `mode_word` returns. `can_ask`: whether runs can ask the user.
    """
    wanted = ApprovalMode.DEFAULT.value if name == ASK else name
    for mode in _ORDER:
        if mode.value == wanted:
            return in_mode(options, mode, can_ask=can_ask)
    return None


def in_mode(options: AgentOptions, mode: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options with this mode, asking the user where possible.

    In the default mode, the run asks in any case. In the other modes, it asks if `can_ask` is true:
    that is, if the extension works.
    """
    asks = can_ask or (mode is ApprovalMode.DEFAULT and not why_not(Unported.ASK))
    return replace(options, approval_mode=mode, ask=asks)


def options_for_plan(options: AgentOptions, *, can_ask: bool) -> AgentOptions:
    """Return the options for a run that carries out a plan.

    The run uses the folder in which the plan was made, because it continues the same session. It
    asks for approval if it can; otherwise it may edit files without asking. `can_ask`: whether runs
    can ask the user.
    """
    mode = ApprovalMode.DEFAULT if can_ask else ApprovalMode.AUTO_EDIT
    return replace(in_mode(options, mode, can_ask=can_ask), worktree=False)


async def _choose_options(app: AppBase, options: AgentOptions) -> ChosenOptions | None:
    """Let the user edit the next run's options; return None if they cancel.

    In the dialog, the user can also choose whether the options are remembered for the folder.
    """
    from gemtui.ui.run.options_dialog import OptionsScreen

    folder = options.cwd or current_folder()
    policies = await asyncio.to_thread(store.list_policies)
    kept = await _remembered_options(app, folder) is not None
    ours = [file for file in policies if file.origin is store.Origin.OURS]
    agents = dict.fromkeys([*await asyncio.to_thread(agents_to_choose), options.agent])
    screen = OptionsScreen(options, ours, tuple(agents), remembers=kept)
    chosen = await app.push_screen_wait(screen)
    if chosen is None:
        return None
    with app.reporting("The options remembered for this folder could not be changed"):
        if chosen.remember:
            await asyncio.to_thread(folder_options.remember_options, chosen.options)
            but = ", ".join(folder_options.not_rememberable(chosen.options))
            app.show_message(f"Remembered for this folder{f', except {but}' if but else ''}.")
        elif kept and chosen.options.cwd == folder:
            await asyncio.to_thread(folder_options.forget_options, folder)
            app.show_message("Options are no longer remembered for this folder.")
    return chosen


async def _keep_mode(app: AppBase, options: AgentOptions) -> None:
    """Remember the approval mode for these options' folder, unless that is unsafe."""
    with app.reporting("The mode could not be remembered for this folder"):
        await asyncio.to_thread(folder_options.remember_mode, options)


async def _remembered_options(app: AppBase, folder: Path) -> AgentOptions | None:
    """Return the options that are remembered for a folder, or None.

    If they can't be read, the reason is shown and None is returned.
    """
    try:
        return await asyncio.to_thread(_remembered, folder)
    except OSError as error:
        text = f"The options remembered for this folder can't be used: {reason_of(error)}"
        text = f"{text} ({error.filename}). Press ctrl+o to set them again."
        app.show_message(text, problem=True)
        return None


def _remembered(folder: Path) -> AgentOptions | None:
    """Return the options that are remembered for a folder, or None.

    For a worktree without any, those of the folder it was created from are returned.
    """
    kept, origin = folder_options.options_for(folder), origin_of(folder)
    if kept is None and origin != folder:
        kept = folder_options.options_for(origin)
    return None if kept is None else replace(kept, cwd=folder)
