"""The `gemtui` command: its options, its list of commands, and what errors print.

Click is imported only here and in `gemtui.commands`. A command is declared and implemented in a
module of `gemtui.commands`, which is imported when the command is used. Exit codes: 0 success; 1 an
error, or nothing was found; 2 invalid usage, or an id that is unknown or ambiguous; 130
interrupted. `run` also uses 53 for the turn limit, 79 for a budget, and 124 for a time limit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.commands.shared_options import LaterCommand, LaterGroup, session_ids
from gemtui.errors import (
    ConfigError,
    ForkFailed,
    GemtuiError,
    MarkError,
    NotASession,
    OptionError,
    PolicyNotFound,
    PushError,
    RunAmbiguous,
    RunNotFound,
    SessionAmbiguous,
    SessionNotFound,
    WorktreeNotFound,
    message_of,
)
from gemtui.files import is_file, is_folder

PROGRAM = "gemtui"
_USAGE = (
    SessionNotFound,
    SessionAmbiguous,
    NotASession,
    MarkError,
    ConfigError,
    ForkFailed,
    OptionError,
    PolicyNotFound,
    PushError,
    RunNotFound,
    RunAmbiguous,
    WorktreeNotFound,
)
"""Errors caused by invalid input, which end the program with exit code 2."""

EPILOG = """\b
Sessions are read from ~/.gemini ($GEMINI_CLI_HOME/.gemini if that is set).
To find the settings file, run gemtui doctor.
Exit codes: 0 done; 1 failed, or, as a command's help says, nothing found (an empty
list of sessions is 0); 2 wrong usage, or an unknown or ambiguous ID; 130 interrupted.
\b
Shell completion, including session ids: add the line for your shell to its file.
  ~/.bashrc   eval "$(gemtui completion bash)"
  ~/.zshrc    eval "$(gemtui completion zsh)"
  ~/.config/fish/completions/gemtui.fish
              gemtui completion fish | source
  $PROFILE    gemtui completion powershell | Out-String | Invoke-Expression
The manual, offline: gemtui help
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    `args`: the arguments without the program's name; None uses this process's arguments.
    """
    try:
        Path.home()
    except RuntimeError:
        return _complain(None, 2, "your home folder is unknown: set the variable HOME")
    if os.environ.get("_GEMTUI_COMPLETE", "").startswith("powershell"):
        import gemtui.commands.help  # noqa: F401  (it has the class for PowerShell)
    try:
        code = root.main(args, prog_name=PROGRAM, standalone_mode=False, windows_expand_args=False)
    except click.ClickException as error:
        return _complain(error, error.exit_code, _with_help(error))
    except GemtuiError as error:
        return _complain(error, 2 if isinstance(error, _USAGE) else 1, str(error))
    except OSError as error:
        _discard_what_stdout_refuses()
        return _complain(error, 1, message_of(error))
    except UnicodeEncodeError as error:
        if sys.getfilesystemencoding() == "utf-8":
            raise
        return _complain(
            error,
            1,
            f"a path can't be written in the locale's encoding, {error.encoding}: set PYTHONUTF8=1",
        )
    except ModuleNotFoundError as error:
        if error.name != "tantivy":
            raise
        from gemtui.search import NO_ENGINE

        return _complain(error, 1, NO_ENGINE)
    except (click.Abort, KeyboardInterrupt):
        return 130
    return code if isinstance(code, int) else 0


def _discard_what_stdout_refuses() -> None:
    """Discard what click has printed, such as help, if stdout doesn't take it, as on a full
    disk.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        from gemtui.commands.output import discard_stdout

        discard_stdout()


def _complain(error: Exception | None, code: int, words: str) -> int:
    """Print an error message and the error's notes to stderr; return `code`.

    `words`: the message, which is printed on one line. The notes list, for example, the candidates
    for an ambiguous id.
    """
    from gemtui.text import clean_line

    click.echo(clean_line(f"{PROGRAM}: {words}"), err=True)
    for note in getattr(error, "__notes__", ()):
        click.echo(f"  {clean_line(note)}", err=True)
    return code


def _with_help(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    if not isinstance(error, click.UsageError) or ": " in message:
        return message
    path = error.ctx.command_path if error.ctx is not None else PROGRAM
    return f"{message}: see {path} --help"


# --- arguments -----------------------------------------------------------------------------------


@contextmanager
def _quiet_when_stdout_closes() -> Iterator[None]:
    """Exit with code 0 if stdout is closed early, as by `| head`; click would use 1."""
    try:
        yield
    except BrokenPipeError:
        from gemtui.commands.output import discard_stdout

        discard_stdout()
        raise click.exceptions.Exit(0) from None


class Root(LaterGroup):
    """The top-level command group, which also accepts a folder: `gemtui [PATH]`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        If there is none, the argument is a folder, and the command opens the app on it.
        """
        if self.get_command(ctx, args[0]) is None:
            if not (ctx.resilient_parsing or is_folder(Path(args[0]))):
                raise click.UsageError(_no_folder(Path(args[0])), ctx)
            return PROGRAM, folder, args
        return super().resolve_command(ctx, args)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Create the context as click does, but exit quietly if stdout is closed.

        This covers `--help` and `--version`, which click prints while creating the context.
        """
        with _quiet_when_stdout_closes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command as click does, but exit quietly if stdout is closed."""
        with _quiet_when_stdout_closes():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options; if none match, complete folders."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="dir")]


def _app_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--ascii", is_flag=True, help="Draw with ASCII characters only."),
        click.option(
            "--demo", is_flag=True, help="Try gemtui on sample sessions; nothing is saved."
        ),
        click.option(
            "--session",
            metavar="ID",
            shell_complete=session_ids,
            help="Open this session: an id, its first characters, `latest`, or a file.",
        ),
    ):
        command = option(command)
    return command


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from gemtui.version import VERSION

        click.echo(f"{PROGRAM} {VERSION}")
        ctx.exit()


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="[PATH | COMMAND [ARGS]...]",
    epilog=EPILOG,
)
@_app_options
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.pass_context
def root(ctx: click.Context, session: str | None, demo: bool, ascii: bool) -> int:
    """Read, search, and continue Gemini CLI sessions, and decide what a run may do.

    Without a command, open the app on the project of PATH, by default the current folder.
    """
    if ctx.invoked_subcommand is None:
        return _open(None, session, demo, ascii)
    if ctx.invoked_subcommand != PROGRAM and (session or demo or ascii):
        raise click.UsageError(
            "--session, --demo and --ascii work only for the app, not with a command"
        )
    return 0


class FolderContext(click.Context):
    """The context of `gemtui PATH`, which is a command without a name."""

    @property
    def command_path(self) -> str:
        """The command's name in help and error messages."""
        return PROGRAM


class Folder(click.Command):
    """The nameless command behind `gemtui PATH`, which opens the app on a folder."""

    context_class = FolderContext


@click.command(cls=Folder)
@click.argument("path", type=click.Path(path_type=Path))
@_app_options
@click.pass_context
def folder(ctx: click.Context, path: Path, session: str | None, demo: bool, ascii: bool) -> int:
    """Open the app on the project of PATH."""
    before = ctx.parent.params if ctx.parent is not None else {}
    return _open(
        path, session or before["session"], demo or before["demo"], ascii or before["ascii"]
    )


def _no_folder(path: Path) -> str:
    if is_file(path):
        return f"{path} is a file: to open a session file, use gemtui --session {path}"
    from difflib import get_close_matches

    near = get_close_matches(str(path), root.commands, n=1)
    hint = f"did you mean gemtui {near[0]}?" if near else "see gemtui --help"
    return f"no command or folder is named '{path}': {hint}"


def _open(path: Path | None, session: str | None, demo: bool, ascii: bool) -> int:
    from gemtui.processes import DRIVER

    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
        if stream is None or not (stream.isatty() or DRIVER in os.environ):
            raise click.UsageError(
                f"{name} is not a terminal: without one, use gemtui sessions and gemtui show ID"
            )
    from gemtui.commands.app import open_app

    return open_app(path, session=session, demo=demo, ascii=ascii)


@click.group(cls=LaterGroup, invoke_without_command=True)
@click.pass_context
def policy(ctx: click.Context) -> int:
    """Show, check, and test policies, which are rules for what an agent may do.

    NAME is one of gemtui's policies, which are in the folder `policies` next to its settings file.
    FILE is any Gemini CLI policy file.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    click.echo(ctx.get_help(), err=True)
    return 2


for _name, _module, _help in (
    ("list", "policy_files", "List all policies."),
    ("show", "policy_files", "Print the rules of a policy."),
    ("check", "policy_files", "Find mistakes in policy files."),
    ("words", "policy_words", "Turn sentences into rules."),
    ("flags", "run", "Print the command line for a run with a policy."),
    ("explain", "policy_calls", "Show how a tool call would be decided, and why."),
    ("replay", "policy_calls", "Replay recorded tool calls under a policy."),
    ("suggest", "policy_calls", "Suggest rules from recorded tool calls."),
):
    policy.add_command(LaterCommand(_name, _module, _help))

for _name, _module, _help in (
    ("sessions", "sessions", "List the stored sessions, newest first."),
    ("search", "search", "Search prompts, answers, thoughts, and tool calls."),
    ("show", "show", "Print one session."),
    ("push", "push", "Write all sessions to a folder, for other programs."),
    ("files", "files", "List the files that sessions wrote, most recent first."),
    ("recover", "recover", "Rebuild a lost file from what sessions contain of it."),
    ("stats", "stats", "Show tokens, prompts, tool calls, files, and costs."),
    ("fork", "undo", "Copy a session, or its beginning, into a new session."),
    ("run", "run", "Run an agent on PROMPT without opening the app."),
    ("chat", "chat", "Talk with an agent line by line, for screen readers."),
    ("runs", "runs", "List, show, answer, and stop runs."),
    (
        "worktrees",
        "worktrees",
        "List, compare, and remove worktrees of runs, or apply their changes.",
    ),
    ("trust", "trust", "List trusted folders, or stop trusting one."),
    ("extension", "extension", "Install or remove gemtui's extension for Gemini CLI."),
    ("vault", "vault", "Keep sessions that Gemini CLI deletes."),
    ("mark", "marks", "Name, tag, pin, annotate, or archive a session."),
    ("marks", "marks", "Export and import names, tags, notes, and pins."),
    ("undo", "undo", "Revert a session's files and chat to before a prompt."),
    ("redo", "undo", "Revert the newest undo in the current folder."),
    ("review", "undo", "Print what a session changed, or revert some of it."),
    ("checkpoints", "undo", "List the checkpoints of a session."),
    ("mcp", "mcp", "Serve stored sessions to agents, read-only (MCP)."),
    ("help", "help", "Print a page of the manual, or list the pages."),
    ("completion", "help", "Print the completion script of a shell."),
    ("doctor", "doctor", "Check sessions, Gemini CLI, and gemtui's own files."),
):
    root.add_command(LaterCommand(_name, _module, _help))
policy.short_help = "Show, check, and test rules for what runs may do."
root.add_command(policy)
