"""Turn the arguments of a run into its prompt and options; raise usage errors."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from dataclasses import replace
from pathlib import Path

import click

from gemtui.agent import trust
from gemtui.agent.options import AgentOptions
from gemtui.commands.output import note
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.commands.run_cli import RunArguments
from gemtui.files import is_folder, resolved
from gemtui.paths import folder_here, gemini_home
from gemtui.policy.edit.named_policies import find_policy
from gemtui.policy.file.levels import Level, PermissionPolicy, check_names
from gemtui.policy.model.rules import ApprovalMode
from gemtui.policy.model.tool_catalog import problem_with
from gemtui.runs.fork import fork_session
from gemtui.sessions.resolve import LATEST
from gemtui.sessions.store import SessionKind
from gemtui.sessions.summary import Flag, Summary
from gemtui.vault.restoring import put_back_first

LARGEST = 8 * 1024 * 1024
"""Bytes of a prompt; the CLI would cut a longer one."""
SILENCE = 3.0
"""Seconds that nothing may come on stdin before something is said."""
_BEFORE = re.compile(r"(.+):([1-9]\d{0,8})", re.DOTALL)
"""A session and a number of a prompt."""
TOO_LARGE = "the prompt is over 8 MiB: Gemini CLI would cut it; name files in it"


def prompt_of(words: RunArguments) -> str:
    """Return the prompt: as typed, from a file, or from stdin.

    What is piped in follows one that is typed. Raises click.UsageError, OSError.
    """
    if words.prompt is not None and words.prompt_file is not None:
        raise click.UsageError("PROMPT and --prompt-file exclude each other: give one of them")
    if words.prompt_file is not None:
        with words.prompt_file.open("rb") as file:  # a pipe, as a shell's <(…) is, will do
            text = _decoded(file.read(LARGEST + 1), str(words.prompt_file))
    elif words.prompt == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("- takes the prompt from stdin, which is a terminal: pipe it in")
        text = _decoded(sys.stdin.buffer.read(LARGEST + 1), "stdin")
    elif words.prompt is not None:
        piped = _decoded(_piped(), "stdin")
        text = f"{words.prompt}\n\n{piped}" if piped.strip() else words.prompt
    else:
        raise click.UsageError("there is no prompt: give PROMPT, - for stdin, or --prompt-file")
    if not text.strip():
        raise click.UsageError("the prompt is empty: say what is to be done")
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise click.UsageError(TOO_LARGE)
    return text


def _piped() -> bytes:
    """What comes by a pipe, a socket or from a file on stdin, to its end; else nothing.

    A pipe that stays silent is waited for, and that is said. A socket is not: programs leave one
    open that never say anything.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # stdin is closed
        return b""
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISREG(kind)):
        return b""
    if not select.select([0], [], [], SILENCE)[0]:
        if stat.S_ISSOCK(kind):
            note("nothing came on stdin, and the prompt goes without it: close stdin to save time")
            return b""
        note("waiting for what is piped in: < /dev/null says that there is nothing")
    with open(0, "rb", closefd=False) as file:
        return file.read(LARGEST + 1)


def _decoded(data: bytes, place: str) -> str:
    if len(data) > LARGEST:
        raise click.UsageError(TOO_LARGE)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"the prompt in {place} is not UTF-8 (byte {error.start}): convert it"
        ) from None


def options_of(words: RunArguments) -> AgentOptions:
    """Return the options.

    Raises click.UsageError, OptionError, SessionNotFound, SessionAmbiguous, PolicyNotFound.
    """
    folder = words.cwd or folder_here()
    if folder is None:
        raise click.UsageError("the current folder has been removed: change to another one")
    if not is_folder(folder):
        raise click.UsageError(f"{folder} is no folder: name another one with --cwd")
    folder = resolved(folder)
    options = AgentOptions(
        cwd=folder,
        model=words.model,
        max_turns=words.max_turns,
        approval_mode=None if words.approval_mode is None else ApprovalMode(words.approval_mode),
        permissions=_permissions(words),
        only_tools=words.only_tool or None,
        approved_tools=words.allow_tool,
        disallowed_tools=words.deny_tool,
        policies=tuple(map(find_policy, words.policy)),
        include_directories=tuple(resolved(path) for path in words.include_directory),
        sandbox=words.sandbox,
        resume=_session(words.resume, folder) if words.resume else None,
        timeout=words.timeout,
        idle_timeout=words.idle_timeout,
        trust=words.trust or trust.remembered(folder),
        ask=words.ask,
    )
    if words.fork and words.resume:
        raise click.UsageError("--resume and --fork exclude each other: give one of them")
    if words.fork and words.dry_run:
        raise click.UsageError("--fork makes a chat: with --dry-run, use gemtui fork and --resume")
    check_names(options.tools)
    _check_tools(words)
    return options


def _check_tools(words: RunArguments) -> None:
    """Raise click.UsageError for a tool that does not exist, by the option that names it."""
    for option, names in (
        ("--only-tool", words.only_tool),
        ("--allow-tool", words.allow_tool),
        ("--deny-tool", words.deny_tool),
    ):
        for name in names:
            if problem := problem_with(name):
                raise click.UsageError(f"{option}: {problem}")


def _permissions(words: RunArguments) -> PermissionPolicy | None:
    given = [
        None if level is None else Level(level)
        for level in (words.file_write, words.shell, words.network)
    ]
    if given == [None, None, None]:
        return None
    write, shell, network = given
    return PermissionPolicy(file_write=write, shell_execute=shell, network_access=network)


def forked(options: AgentOptions, wanted: str) -> AgentOptions:
    """Return the options of a run that continues in a fork, which is made.

    `wanted`: a session, and maybe `:N`, before which of its prompts. Raises click.UsageError,
    ForkFailed, SessionNotFound, SessionAmbiguous, OSError.
    """
    folder = options.cwd or Path()
    cut = _BEFORE.fullmatch(wanted)
    session = _found(wanted if cut is None else cut[1], folder)
    _require_here(session, folder)
    fork = fork_session(session, gemini_home(), before=None if cut is None else int(cut[2]))
    if fork.session_id is not None:
        note(f"forked {session.id} before prompt {fork.before}: {fork.session_id}")
    return replace(options, resume=fork.session_id)


def _found(wanted: str, folder: Path) -> Summary:
    with index_of_user() as index:
        if wanted == LATEST:
            return index.find(wanted, project=folder)
        return choose(wanted, index, here=folder)


def _require_here(session: Summary, folder: Path) -> None:
    """The CLI resumes a session in its own project only."""
    if session.project is not None and resolved(Path(session.project)) != folder:
        raise click.UsageError(
            f"session {session.id} belongs to {session.project}, and goes on only there: "
            f"add --cwd {session.project}"
        )


def _session(wanted: str, folder: Path) -> str:
    """The full id of the session to continue."""
    session = _found(wanted, folder)
    if Flag.KEPT in session.flags:
        raise click.UsageError(put_back_first(session.id))
    if session.kind is not SessionKind.MAIN:
        raise click.UsageError(f"{session.id} is a {session.kind}, and can't be continued")
    _require_here(session, folder)
    return session.id
