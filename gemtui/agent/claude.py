"""The driver of Claude Code (assets/agents.md#the-gate-of-claude-code)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gemtui.agent.claude_settings import trusts
from gemtui.agent.claude_stream import ClaudeStream
from gemtui.agent.command import (
    Command,
    Machine,
    policy_warnings,
    rule_files,
)
from gemtui.agent.detect import (
    Capabilities,
    Cli,
    Detected,
    FoundBy,
    is_older,
    version_of,
)
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import PROMPT_TOO_LARGE, Request, is_too_large
from gemtui.agents import WORDS, Agent
from gemtui.errors import OptionError
from gemtui.paths import cache_dir, current_folder
from gemtui.policy.file.levels import rules
from gemtui.processes import find_program

PACKAGE = "npm install -g @anthropic-ai/claude-code"
NO_HOOKS = (
    "hooks of Claude Code's settings and plugins don't run, because they could change a call after "
    "your answer; nor do the commands in its skills"
)
LEFT_OUT = (
    "Claude Code does not trust this folder, so the project's settings, CLAUDE.md, skills and "
    "agents are left out, and all MCP servers: to use them, start claude here once and trust the "
    "folder"
)
_SETTINGS = {"disableAllHooks": True, "disableSkillShellExecution": True}
STREAM = (
    "--print",
    "--verbose",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--include-partial-messages",
    "--replay-user-messages",
)
_GATE = (
    "--permission-prompt-tool=stdio",
    "--permission-mode=default",
    f"--settings={json.dumps(_SETTINGS)}",
    "--disallowedTools=AskUserQuestion",
)
_UNTRUSTED = ("--setting-sources=user", "--strict-mcp-config")
STARTS_NOTHING = (*_GATE, *_UNTRUSTED)
"""Options with which no program starts besides Claude Code, and no call is made."""
_ADDED = "--add-dir="
_ALL = Capabilities(flags=frozenset(("resume", "session-id", "model", "add-dir")))


def added_folders(argv: Iterable[str]) -> Iterator[Path]:
    """Yield the folders that a command adds to the working folder."""
    for word in argv:
        if word.startswith(_ADDED):
            yield Path(word.removeprefix(_ADDED))


class OwnCommand(NamedTuple):
    """What the commands of all runs of an agent have in common; the fields are as in `Command`."""

    argv: tuple[str, ...]
    notes: tuple[str, ...]
    environ: Mapping[str, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})


class ClaudeDriver:
    """Starts Claude Code and reads its output; see `gemtui/agent/driver.py: Driver`."""

    agent = Agent.CLAUDE
    not_found = f"Claude Code is not on PATH; install it with: {PACKAGE}"
    newest = _ALL
    newest_version = "2.1.332"
    oldest = (2, 1)
    """The first version that is known to ask as gemtui expects."""
    version_file = "claude-version.json"
    turn_limit = "--max-turns"
    streams = ClaudeStream

    def find(self, environ: Mapping[str, str]) -> Cli | None:
        """Return the program on this machine, without starting it; None if there is none."""
        path = find_program(WORDS[self.agent].command, environ)
        return None if path is None else Cli(path=Path(path), found_by=FoundBy.PATH)

    def version(self, cli: Path, environ: Mapping[str, str]) -> str | None:
        """Return the program's version; None if it doesn't answer."""
        return version_of(cli, cache=cache_dir(), environ=environ, name=self.version_file).text

    def detect(self, environ: Mapping[str, str], cli: Path | None) -> Detected:
        """Return the program, its version and features."""
        caller = None if cli is None else Cli(path=cli.absolute(), found_by=FoundBy.CALLER)
        found = caller or self.find(environ)
        if found is None:
            nothing = Capabilities(flags=frozenset())
            return Detected(cli=None, version=None, capabilities=nothing, problem=self.not_found)
        version = self.version(found.path, environ)
        problem = None
        if is_older(version, self.oldest) is not False:
            oldest = ".".join(map(str, self.oldest))
            program = f"{WORDS[self.agent].program} {version or 'of an unknown version'}"
            problem = f"{program}: {oldest} is required"
        return Detected(cli=found, version=version, capabilities=_ALL, problem=problem)

    def machine(
        self,
        cli: Path,
        capabilities: Capabilities,
        version: str | None,  # noqa: ARG002
        *,
        environ: Mapping[str, str],
        cwd: Path,  # noqa: ARG002
        runs: Path,  # noqa: ARG002
    ) -> Machine:
        """Return everything that a command depends on, apart from the options."""
        return Machine(cli=cli, capabilities=capabilities, environ=environ)

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
        options.check()
        if is_too_large(prompt):
            raise OptionError(PROMPT_TOO_LARGE)
        cwd = (options.cwd or current_folder()).absolute()
        own = self._own_command({**machine.environ, **options.environment}, cwd, folder)
        argv = [str(machine.cli), *own.argv]
        argv += [f"--model={options.model}"] if options.model else []
        if options.max_turns is not None:
            if options.max_turns < 1:
                raise OptionError("max_turns must be at least 1", option="max_turns")
            argv.append(f"{self.turn_limit}={options.max_turns}")
        argv += [f"{_ADDED}{path}" for path in options.include_directories]
        named = f"--resume={options.resume}" if options.resume else f"--session-id={session_id}"
        return Command(
            argv=(*argv, named),
            environ={**options.environment, **own.environ},
            files={**rule_files(rules(options.tools)), **own.files},
            secrets=(),
            stdin=True,
            pipe=True,
            session_id=options.resume or session_id,
            notes=(
                *own.notes,
                *policy_warnings(options.policies, options.approval_mode, self.agent),
            ),
            ask=options.asks,
        )

    def _own_command(
        self,
        environ: Mapping[str, str],
        cwd: Path,
        folder: Path,  # noqa: ARG002
    ) -> OwnCommand:
        """Return what a command has whatever the options say."""
        trusted = trusts(cwd, environ)
        return OwnCommand(
            argv=(*STREAM, *_GATE, *(() if trusted else _UNTRUSTED)),
            notes=(NO_HOOKS, *(() if trusted else (LEFT_OUT,))),
        )

    def stream(self, request: Request, hides: Callable[[str], bool]) -> ClaudeStream:
        """Return what converts a run's output to events."""
        about = request.about
        return self.streams(
            cwd=request.cwd,
            model=about.get("model"),
            session_id=about.get("session_id"),
            resumed=about.get("resume"),
            asks=bool(about.get("ask")),
            hides=hides,
        )
