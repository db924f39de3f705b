"""The adapter that protects resumed sessions and asks for approval."""

from __future__ import annotations

import time
import uuid
from contextlib import closing, suppress
from dataclasses import replace
from typing import Unpack

from gemtui.agent import adapter
from gemtui.agent.agent_run import AgentRun
from gemtui.agent.options import AgentOptions
from gemtui.agent.process_tree import this_process
from gemtui.agent.ready import ReadyCli
from gemtui.agent.run_folder import About, Request, RunFolder, Waiting
from gemtui.agents import Agent
from gemtui.errors import ConfigError, GemtuiError, OptionError, message_of
from gemtui.kept.restoring import require_stored
from gemtui.kept.resume_guard import ResumeGuard
from gemtui.paths import cache_dir, config_file, current_folder, gemini_home
from gemtui.runs.budget import check_budget, day_budget
from gemtui.runs.effective_policy import RunPolicy
from gemtui.runs.gate.checks import check_gate
from gemtui.runs.gate.user_commands import (
    SETTINGS_FAILURE,
    CommandFailure,
    UserCommands,
    forget_failure,
    keep_failure,
    look_for_programs,
)
from gemtui.runs.loaded_files import LoadedFiles, can_wait
from gemtui.runs.worktrees import enter_worktree, leave_worktree
from gemtui.sessions.catalog.index import Index, latest_to_resume
from gemtui.sessions.catalog.selection import LATEST


class GeminiAdapter(adapter.UnguardedAdapter):
    """Runs Gemini CLI, or the agent that a run's options name.

    A session of Gemini CLI is copied before a run resumes it, and watched during the run. If a
    run's options say so, the user is asked to approve its tool calls. `cli`: the program; None
    means the one found on this machine. `runs`: the folder that contains all runs' folders; None
    means gemtui's own.
    """

    _guard = ResumeGuard()

    def start(
        self, prompt: str, options: AgentOptions, **how: Unpack[adapter.HowToStart]
    ) -> AgentRun:
        """Start a run, in a new git worktree if the options request one.

        In addition to the base class's errors, raises WorktreeError; GateError if the run should
        ask the user but can't; and OptionError if the session to resume is only in the vault
        (gemtui's own store of sessions), if it can't continue in a new worktree, or if a budget
        doesn't allow the run; SessionNotFound and StoreUnreadable if "latest" is to be resumed.
        """
        options = self._with_session(options)
        entered = enter_worktree(prompt, options)
        if entered is None:
            self._check(options)
            return super().start(prompt, options, **how)
        more: About = {"worktree": entered.worktree.about(), "notes": list(entered.notes)}
        try:
            self._check(entered.options)
            about: About = {**(how.get("about") or {}), **more}
            return super().start(prompt, entered.options, id=how.get("id"), about=about)
        except BaseException:
            leave_worktree(entered)
            raise

    def prepare(self, first: str, options: AgentOptions, *, seconds: float) -> ReadyCli | None:
        """Start a CLI that waits for a prompt, to be passed to `start` with the same options.

        It belongs to this process: it ends with it. Returns None for options with which a CLI can't
        wait, or if memory is scarce. May block for seconds. `first`: the first character of the
        prompt. `seconds`: after how long the CLI is ended if no prompt has been sent. Raises the
        same errors as `start`.
        """
        options = self._with_session(options)
        waits = options.agent is Agent.GEMINI
        if not waits or not can_wait(options, self.detect().version, self._environ):
            return None
        self._check(options)
        machine = self.machine(options.cwd)
        request, files = self._plan("", options, machine, id=str(uuid.uuid4()))
        loaded = LoadedFiles(request, options, machine)
        waiting = Waiting(
            request=request,
            first=first,
            sender=this_process(),
            until=time.time() + seconds,
        )
        folder = self._make_folder(request, files)
        folder.write_waiting(waiting)
        self._prepare(folder, request)
        supervisor = adapter.supervise(folder, self._environ, self._guard)
        return ReadyCli(folder, waiting, files, loaded.changed, supervisor)

    def _with_session(self, options: AgentOptions) -> AgentOptions:
        """Return the options with the id of the session that `latest` means, if they say that.

        Gemini CLI would take the session that was started last, and no backup would be made of it.
        """
        if options.resume != LATEST:
            return options
        home = gemini_home({**self._environ, **options.environment})
        with closing(Index(home, cache=cache_dir())) as index:
            session = latest_to_resume(index, options.cwd or current_folder(), options.agent)
        if not session.continuable:
            raise OptionError(f"{session.id} can't be resumed: name another one", option="resume")
        return replace(options, resume=session.id)

    def _check(self, options: AgentOptions) -> None:
        """Raise an error if a run with these options can't be started."""
        gemini = options.agent is Agent.GEMINI
        if options.resume is not None and gemini:
            require_stored(options.resume, gemini_home({**self._environ, **options.environment}))
        if options.asks and gemini:
            found = self.detect()
            found.program()
            check_gate(options, self._environ, version=found.version)
        check_budget(options, day_budget(), self._environ)

    def _prepare(self, folder: RunFolder, request: Request) -> None:
        """Prepare the run's folder, and store the user's notification commands in it."""
        keep_commands(folder)
        super()._prepare(folder, request)

    def _with_hidden(self, request: Request) -> Request:
        """Return the request with the daily budget and the tools hidden by the policy.

        If the policy can't be read, the tools are left out.
        """
        about: About = {**request.about}
        day = day_budget()
        if day is not None:
            about["day_budget"] = day
        if about.get("ask"):
            about["answer_within"] = _answer_within()
        request = replace(request, about=about)
        if request.agent is not Agent.GEMINI:
            return request
        with suppress(GemtuiError, OSError):
            hidden = RunPolicy.of(request, self._environ).hidden()
            return replace(request, about={**about, "hidden": hidden})
        return request


def _answer_within() -> int:
    """Return how many seconds a question waits; the default if the settings can't be read."""
    from gemtui.config import Config, load_config

    with suppress(ConfigError):
        return load_config(config_file()).answer_within
    return Config().answer_within


def keep_commands(folder: RunFolder) -> None:
    """Store the notification commands from the settings in a run's folder.

    If the settings are unreadable, no commands are stored. The problem is then reported in the same
    way as a notification command that fails.
    """
    from gemtui.config import load_config

    try:
        config = load_config(config_file())
        commands = UserCommands(
            on_ask=config.on_ask, on_ask_after=config.on_ask_after, on_end=config.on_end
        )
        commands.keep(folder)
        look_for_programs(commands)
    except (ConfigError, OSError) as error:
        with suppress(OSError):
            keep_failure(CommandFailure(setting=SETTINGS_FAILURE, words=(), why=message_of(error)))
    else:
        forget_failure(SETTINGS_FAILURE)
