"""The arguments of `gemtui run`: declared, parsed, and converted to a prompt and options.

Invalid arguments raise usage errors.
"""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from gemtui.agent.options import (
    AgentOptions,
    OptionKind,
    RunOption,
    dollars,
    parse_seconds,
    run_options,
    with_values,
)
from gemtui.agent.run_folder import LARGEST_PROMPT, PROMPT_TOO_LARGE, is_too_large
from gemtui.agent.trust import FolderTrust, trust_of
from gemtui.agents import Agent, Can, why_not
from gemtui.commands.output import note
from gemtui.commands.session_choice import choose, index_of_user
from gemtui.commands.shared_options import existing_folder_here, session_ids
from gemtui.errors import OptionError
from gemtui.files import is_folder, resolved
from gemtui.kept.restoring import put_back_first
from gemtui.paths import gemini_home
from gemtui.policy.file.policy_files import find_policy
from gemtui.runs.undo.fork import fork_session
from gemtui.sessions.catalog.index import latest_to_resume
from gemtui.sessions.catalog.selection import LATEST, is_path
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind

_OF_ONE_RUN = ("resume", "ask", "timeout", "idle_timeout", "budget", "wait_for_quota")
"""Options that concern a single run, and so aren't offered for a reusable setup."""
SILENCE = 3.0
"""How many seconds to wait for input on stdin before a note is printed."""
_BEFORE = re.compile(r"(.+):([1-9]\d{0,8})", re.DOTALL)
"""Matches a session followed by a prompt's number, as in `ID:3`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The arguments of `gemtui run`, after parsing.

    `options`: the values of the options for the run that were given, by name.
    """

    prompt: str | None = None
    prompt_file: Path | None = None
    fork: str | None = None
    each_model: tuple[str, ...] = ()
    each_policy: tuple[str, ...] = ()
    fail_on_denied: bool = False
    as_json: bool = False
    dry_run: bool = False
    quiet: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> RunArguments:
        """Create an instance from all arguments that click has parsed, by name."""
        own = {name: words[name] for name in cls.__slots__ if name in words}
        values = {name: value for name, value in words.items() if name not in own}
        return cls(**own, options={name: value for name, value in values.items() if _is_set(value)})


def _is_set(value: object) -> bool:
    return value is not None and value is not False and value != ()


class SetupCommand(click.Command):
    """A click command with the options that set up a run."""

    left_out: tuple[str, ...] = _OF_ONE_RUN
    """The names of the options that the command doesn't have."""

    @cached_property
    def _declared(self) -> list[click.Option]:
        return [
            _click_option(option)
            for option in run_options()
            if option.flags and option.name not in self.left_out
        ]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's parameters: the options for the run come first."""
        return [*self._declared, *super().get_params(ctx)]


_GEMINI_OPTIONS = {
    "-i": "gemtui opens the app, where you can write the prompt",
    "--prompt-interactive": "gemtui opens the app, where you can write the prompt",
    "-o": "use --json for events as JSON, one per line",
    "--output-format": "use --json for events as JSON, one per line",
    "-e": "gemtui runs use all extensions that are enabled in Gemini CLI",
    "--extensions": "gemtui runs use all extensions that are enabled in Gemini CLI",
    "-l": "use gemini --list-extensions",
    "--list-extensions": "use gemini --list-extensions",
    "--list-sessions": "use gemtui sessions",
    "--delete-session": "press d in the list of sessions that gemtui opens",
    "--session-id": "gemtui chooses the id of a new session; use --resume ID to continue one",
    "--allowed-tools": "use --allow-tool T, once for each tool",
    "--allowed-mcp-server-names": "use --only-tool or --deny-tool with the tools of the servers",
    "--include-directories": "use --include-directory DIR, once for each folder",
    "--admin-policy": "use --policy NAME|FILE",
    "-w": "use --worktree, which takes no name",
    "-d": "gemtui keeps what Gemini CLI prints on stderr: see gemtui runs show",
    "--debug": "gemtui keeps what Gemini CLI prints on stderr: see gemtui runs show",
}
"""Options of Gemini CLI that `gemtui run` doesn't have, and what to use instead."""


class RunCommand(SetupCommand):
    """The click command `gemtui run`, with all options for a run."""

    left_out = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does; for an option of Gemini CLI, say what to use."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            instead = _GEMINI_OPTIONS.get(error.option_name)
            if instead is None:
                raise
            message = f"gemtui run has no option {error.option_name}: {instead}"
            raise click.UsageError(message, ctx) from None


def _click_option(option: RunOption) -> click.Option:
    more: dict[str, Any] = {"metavar": option.metavar, "help": option.help}
    match option.kind:
        case OptionKind.SWITCH:
            more["is_flag"] = True
        case OptionKind.CHOICE:
            more["type"] = click.Choice([str(value) for value in option.values])
        case OptionKind.NUMBER:
            more["type"] = int
        case OptionKind.SECONDS:
            more["type"] = _Parsed("time", parse_seconds)
        case OptionKind.DOLLARS:
            more["type"] = _Parsed("dollars", dollars)
        case OptionKind.PATH:
            more["type"] = click.Path()
        case OptionKind.PATHS:
            more |= {"type": click.Path(), "multiple": True}
        case OptionKind.NAMES:
            more["multiple"] = True
    if option.name == "resume":
        more["shell_complete"] = session_ids
    return click.Option([*option.flags, option.name], **more)


class _Parsed(click.ParamType[float]):
    """Parses a number with a unit, such as a time limit; an invalid value is a usage error."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name, self._parse = name, parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number of seconds or dollars."""
        try:
            return self._parse(str(value))
        except OptionError as error:
            self.fail(f"{error}.", param, ctx)


# --- the prompt ----------------------------------------------------------------------------------


def prompt_of(words: RunArguments) -> str:
    """Return the prompt: as typed, from a file, or from stdin.

    If a prompt is typed and input is piped in, the input is appended to the prompt. Raises
    click.UsageError, OSError.
    """
    if words.prompt is not None and words.prompt_file is not None:
        raise click.UsageError("PROMPT and --prompt-file can't be combined: use only one of them")
    if words.prompt_file is not None:
        with words.prompt_file.open("rb") as file:  # may be a pipe, such as a shell's <(…)
            text = _decoded(file.read(LARGEST_PROMPT + 1), str(words.prompt_file))
    elif words.prompt == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(
                "- reads the prompt from stdin, but stdin is a terminal: pipe the prompt in"
            )
        text = _decoded(sys.stdin.buffer.read(LARGEST_PROMPT + 1), "stdin")
    elif words.prompt is not None:
        piped = _decoded(_piped(), "stdin")
        text = f"{words.prompt}\n\n{piped}" if piped.strip() else words.prompt
    else:
        raise click.UsageError("no prompt: give PROMPT, - for stdin, or --prompt-file")
    if not text.strip():
        raise click.UsageError("the prompt is empty: say what Gemini should do")
    if is_too_large(text):
        raise click.UsageError(PROMPT_TOO_LARGE)
    return text


def _piped() -> bytes:
    """Return all input from a pipe, socket or file on stdin; otherwise nothing.

    If nothing arrives on a pipe, this prints a note and keeps waiting. If nothing arrives on a
    socket, it gives up, because programs may leave a socket open and never write to it.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # stdin is closed
        return b""
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISREG(kind)):
        return b""
    if not select.select([0], [], [], SILENCE)[0]:
        if stat.S_ISSOCK(kind):
            note(
                "nothing arrived on stdin, so only the prompt is sent; to avoid this wait, add < "
                "/dev/null"
            )
            return b""
        note("waiting for input on stdin; to skip this, add < /dev/null")
    with open(0, "rb", closefd=False) as file:
        return file.read(LARGEST_PROMPT + 1)


def _decoded(data: bytes, place: str) -> str:
    if len(data) > LARGEST_PROMPT:
        raise click.UsageError(PROMPT_TOO_LARGE)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"the prompt in {place} is not valid UTF-8 (byte {error.start}): convert it"
        ) from None


# --- the options ---------------------------------------------------------------------------------


def options_of(given: Mapping[str, Any]) -> AgentOptions:
    """Convert options given on a command line, by name, to a run's options.

    Names of sessions and policies are resolved. Raises click.UsageError, OptionError,
    SessionNotFound, SessionAmbiguous, PolicyNotFound.
    """
    typed = given.get("cwd")
    folder = existing_folder_here() if typed is None else Path(typed)
    if not is_folder(folder):
        raise click.UsageError(f"{folder} is not a folder: give another one with --cwd")
    folder = resolved(folder)
    values = {
        **given,
        "policies": tuple(map(find_policy, given.get("policies", ()))),
        "include_directories": tuple(
            resolved(Path(path)) for path in given.get("include_directories", ())
        ),
        "agent": Agent(given.get("agent", Agent.GEMINI)),
    }
    if "resume" in given:
        session = _session(given["resume"], given.get("agent"), folder)
        values |= {"resume": session.id, "agent": session.agent}
    if values["agent"] is Agent.GEMINI:
        values["trust"] = "trust" in given or trust_of(folder) is FolderTrust.GEMTUI
    try:
        return with_values(AgentOptions(), {**values, "cwd": folder})
    except OptionError as error:
        raise _with_flag(error) from error


def _with_flag(error: OptionError) -> Exception:
    """Return the error with the option as typed on the command line instead of its name."""
    for option in run_options():
        if option.name == error.option and option.flags:
            return click.UsageError(f"{option.flags[0]}: {error.what}")
    return error


def forked(options: AgentOptions, wanted: str) -> AgentOptions:
    """Fork a session, and return the options for a run that continues the fork.

    `wanted`: a session, optionally followed by `:N`, where N is the number of the prompt before
    which to fork. Raises click.UsageError, OptionError, ForkFailed, SessionNotFound,
    SessionAmbiguous, OSError.
    """
    folder = options.cwd or Path()
    cut = _BEFORE.fullmatch(wanted.strip())
    session = _found(wanted if cut is None else cut[1], folder)
    _require_here(session, folder)
    is_gemini = session.agent is Agent.GEMINI
    options = replace(options, agent=session.agent, trust=options.trust and is_gemini)
    options.check()
    fork = fork_session(session, gemini_home(), before=None if cut is None else int(cut[2]))
    if fork.session_id is not None:
        note(f"copied everything before prompt {fork.before} of {session.id} to {fork.session_id}")
    return replace(options, resume=fork.session_id)


def _found(wanted: str, folder: Path) -> Summary:
    with index_of_user() as index:
        if wanted.strip() != LATEST:
            return choose(wanted, index, here=folder)
        return index.find(wanted, project=folder)


def _to_resume(wanted: str, agent: str | None, folder: Path) -> Summary:
    if wanted.strip() == LATEST:
        with index_of_user() as index:
            return latest_to_resume(index, folder, None if agent is None else Agent(agent))
    named = wanted if agent is None or is_path(wanted) else f"{agent}:{wanted.strip()}"
    return _found(named, folder)


def _require_here(session: Summary, folder: Path) -> None:
    """Raise click.UsageError if a session doesn't belong to the project of `folder`."""
    if session.project is None or resolved(Path(session.project)) == folder:
        return
    if not is_folder(Path(session.project)):
        raise click.UsageError(
            f"session {session.id} belongs to {session.project}, which is not there any more, and "
            "Gemini CLI continues "
            "a session only in its own folder: if it was renamed, use gemtui sessions move "
            f"{session.project} NEW, "
            f"otherwise create or restore that folder, then add --cwd {session.project}, or start "
            "a new session"
        )
    raise click.UsageError(
        f"session {session.id} belongs to {session.project} and can only be continued there: "
        f"add --cwd {session.project}"
    )


def _session(wanted: str, agent: str | None, folder: Path) -> Summary:
    """Return the session to continue in `folder`, of this agent unless it is None.

    Raises click.UsageError if it can't be continued there.
    """
    session = _to_resume(wanted, agent, folder)
    if reason := why_not(session.agent, Can.RESUME):
        raise click.UsageError(reason)
    if Flag.KEPT in session.flags:
        raise click.UsageError(put_back_first(session.id))
    if session.kind is not SessionKind.MAIN:
        raise click.UsageError(
            f"{session.id} is a {session.kind}, which can't be continued: name a main session"
        )
    if not session.resumable:
        raise click.UsageError(
            f"{session.id} has nothing to resume, only commands or blank messages, so Gemini CLI "
            "skips it: "
            "leave out --resume to start a new session"
        )
    _require_here(session, folder)
    return session
