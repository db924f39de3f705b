"""The driver of Gemini CLI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gemtui.agent.command import Command, Machine, command_of
from gemtui.agent.detect import (
    NEWEST,
    NOT_FOUND,
    Capabilities,
    Cli,
    Detected,
    detect_cli,
    find_cli,
    version_of,
)
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import SETTINGS_FILE, Request
from gemtui.agent.settings import settings_problems, settings_unread, system_settings
from gemtui.agent.stream import Stream
from gemtui.agent.trust import folder_settings
from gemtui.agents import Agent
from gemtui.paths import cache_dir
from gemtui.policy.model.rules import CHECKED_AGAINST


class GeminiDriver:
    """Starts Gemini CLI and reads its output; see `gemtui/agent/driver.py: Driver`."""

    agent = Agent.GEMINI
    not_found = NOT_FOUND
    newest = NEWEST
    newest_version = CHECKED_AGAINST

    def find(self, environ: Mapping[str, str]) -> Cli | None:
        """Return the program on this machine, without starting it; None if there is none."""
        return find_cli(environ)

    def version(self, cli: Path, environ: Mapping[str, str]) -> str | None:
        """Return the program's version; None if it doesn't answer.

        Waits for the answer for up to five seconds, or up to thirty while the CLI is using the CPU,
        as on a slow machine.
        """
        return version_of(cli, cache=cache_dir(), environ=environ).text

    def detect(self, environ: Mapping[str, str], cli: Path | None) -> Detected:
        """Return the program, its version and features."""
        return detect_cli(environ, cli=cli)

    def machine(
        self,
        cli: Path,
        capabilities: Capabilities,
        version: str | None,
        *,
        environ: Mapping[str, str],
        cwd: Path,
        runs: Path,
    ) -> Machine:
        """Return everything that a command in `cwd` depends on, apart from the options."""
        settings = folder_settings(cwd, environ, for_run=True)
        return Machine(
            cli=cli,
            capabilities=capabilities,
            environ=environ,
            user_policies=settings.user_policies(cwd),
            settings=settings,
            system_settings=system_settings(environ, version=version),
            settings_unread=settings_unread(runs / SETTINGS_FILE, version=version),
            problems=settings_problems(environ, cwd),
        )

    def command(
        self,
        prompt: str,
        options: AgentOptions,
        machine: Machine,
        *,
        folder: Path,
        session_id: str | None,
    ) -> Command:
        """Return the command that runs `prompt` with `options`."""
        return command_of(prompt, options, machine, folder=folder, session_id=session_id)

    def stream(self, request: Request, hides: Callable[[str], bool]) -> Stream:
        """Return what converts a run's output to events."""
        about = request.about
        return Stream(
            cwd=request.cwd,
            model=about.get("model"),
            capabilities=about.get("capabilities"),
            session_id=about.get("session_id"),
            resumed=about.get("resume"),
            turn_limit=request.turn_limit,
            asks=bool(about.get("ask")),
            hides=hides,
        )
