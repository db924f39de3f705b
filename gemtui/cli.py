"""The `gemtui` command: its arguments, options and subcommands.

Click is imported only here and in `gemtui.commands`. Each command imports its other dependencies
when it runs, and it imports the app only if there is a terminal. Exit codes: 0 success; 1 an error,
or nothing was found; 2 invalid usage, or an id that is unknown or ambiguous; 130 interrupted. `run`
also uses 53 for the turn limit, 79 for a budget, and 124 for a time limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.commands.run_cli import RunArguments, run_arguments, run_command
from gemtui.commands.shared_options import (
    HELP,
    Moment,
    cursor_option,
    everywhere_option,
    force_option,
    json_option,
    output_option,
    project_option,
    require_one,
    session_ids,
    since_option,
)
from gemtui.commands.undo_cli import undo_commands
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
Exit codes: 0 done; 1 failed, or nothing found; 2 wrong usage, or an unknown or
ambiguous ID; 130 interrupted.
\b
Shell completion, including session ids: add the line for your shell to its file.
  ~/.bashrc   eval "$(_GEMTUI_COMPLETE=bash_source gemtui)"
  ~/.zshrc    eval "$(_GEMTUI_COMPLETE=zsh_source gemtui)"
  ~/.config/fish/completions/gemtui.fish
              _GEMTUI_COMPLETE=fish_source gemtui | source
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    `args`: the arguments without the program's name; None uses this process's arguments.
    """
    try:
        Path.home()
    except RuntimeError:
        return _complain(None, 2, "your home folder is unknown: set the variable HOME")
    try:
        code = root.main(args, prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        return _complain(error, error.exit_code, _with_help(error))
    except GemtuiError as error:
        return _complain(error, 2 if isinstance(error, _USAGE) else 1, str(error))
    except OSError as error:
        return _complain(error, 1, _system_words(error))
    except (click.Abort, KeyboardInterrupt):
        return 130
    return code if isinstance(code, int) else 0


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
    words = error.format_message().rstrip(".")
    if not isinstance(error, click.UsageError) or ": " in words:
        return words
    path = error.ctx.command_path if error.ctx is not None else PROGRAM
    return f"{words}: see {path} --help"


def _system_words(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


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


class LaterCommand(click.Command):
    """A command whose module is imported only when it is used.

    The list of commands shows only each command's name and one-line help, which are known without
    importing the module.
    """

    def __init__(self, place: str, name: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._place = place

    def load(self) -> click.Command:
        """Import the command."""
        module = import_module(f"gemtui.commands.{self._place}")
        command: click.Command = getattr(module, str(self.name))
        return command


class Root(click.Group):
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
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LaterCommand) else command, rest

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
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
        click.option("--demo", is_flag=True, help="Try gemtui on sample sessions; nothing is saved."),
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
        from importlib.metadata import version

        click.echo(f"{PROGRAM} {version(PROGRAM)}")
        ctx.exit()


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings=HELP,
    subcommand_metavar="[PATH | COMMAND [ARGS]...]",
    epilog=EPILOG,
)
@_app_options
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
@click.pass_context
def root(ctx: click.Context, session: str | None, demo: bool, ascii: bool) -> int:
    """Read, search, and continue Gemini CLI sessions, and decide what a run may do.

    Without a command, open the app on the project of PATH, by default the current folder.
    """
    if ctx.invoked_subcommand is None:
        return _open(None, session, demo, ascii)
    if ctx.invoked_subcommand != PROGRAM and (session or demo or ascii):
        raise click.UsageError("--session, --demo and --ascii work only for the app, not with a command")
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


@click.command(cls=Folder, context_settings=HELP)
@click.argument("path", type=click.Path(path_type=Path))
@_app_options
@click.pass_context
def folder(ctx: click.Context, path: Path, session: str | None, demo: bool, ascii: bool) -> int:
    """Open the app on the project of PATH."""
    before = ctx.parent.params if ctx.parent is not None else {}
    return _open(path, session or before["session"], demo or before["demo"], ascii or before["ascii"])


def _no_folder(path: Path) -> str:
    if is_file(path):
        return f"{path} is a file: to open a session file, use gemtui --session {path}"
    from difflib import get_close_matches

    near = get_close_matches(str(path), root.commands, n=1)
    hint = f"did you mean gemtui {near[0]}?" if near else "see gemtui --help"
    return f"no command or folder is named '{path}': {hint}"


def _open(path: Path | None, session: str | None, demo: bool, ascii: bool) -> int:
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
        if stream is None or not stream.isatty():
            raise click.UsageError(f"{name} is not a terminal: without one, use gemtui sessions and gemtui show ID")
    from gemtui.commands import app

    return app.run(path, session=session, demo=demo, ascii=ascii)


@root.command()
@project_option()
@everywhere_option
@click.option(
    "--hidden",
    is_flag=True,
    help="Include archived and empty sessions, subagents, checkpoints, copies, and the empty files "
    "that resuming a session can leave behind.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Show only the newest N.")
@cursor_option
@since_option("Show only sessions used since DATE, such as 2026-11-20 or 7d.")
@click.option("--until", metavar="DATE", type=Moment(end=True), help="Show only sessions last used on or before DATE.")
@click.option("--live", is_flag=True, help="Show only sessions that are open now, in any terminal.")
@json_option
def sessions(
    project: Path | None,
    everywhere: bool,
    hidden: bool,
    limit: int | None,
    cursor: str | None,
    since: datetime | None,
    until: datetime | None,
    live: bool,
    as_json: bool,
) -> int:
    """List the stored sessions, newest first.

    By default, the list contains the sessions of the current folder's project, or all sessions if
    it has none. Pass an ID to `gemtui show`. In a narrow terminal, some columns are left out, and
    labels such as [live] are shown as *; --json prints everything. Exit code 1 if DIR does not
    exist and has no sessions.

    With --live, list the sessions that are working, waiting for you, or idle, in all projects or in
    DIR. This requires gemtui's extension.
    """
    require_one("--project", project is not None, "--everywhere", everywhere)
    if live:
        require_one("--live", live, "--hidden", hidden)
        require_one("--live", live, "--limit", limit is not None)
        require_one("--live", live, "--cursor", cursor is not None)
        require_one("--live", live, "--since and --until", since or until)
        from gemtui.commands import live as live_command

        return live_command.run(project=project, as_json=as_json)
    from gemtui.commands import sessions as command

    return command.run(
        project=project,
        everywhere=everywhere,
        hidden=hidden,
        limit=limit,
        cursor=cursor,
        since=since,
        until=until,
        as_json=as_json,
    )


@root.command()
@click.argument("query", nargs=-1, required=True)
@project_option()
@everywhere_option
@click.option(
    "--dropped", is_flag=True, help="Search rewound, replaced, and failed messages instead of the current ones."
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Show only the best N matches.",
)
@cursor_option
@click.option("--index", is_flag=True, help="Update the index first; useful if you never open the app.")
@json_option
def search(
    query: tuple[str, ...],
    project: Path | None,
    everywhere: bool,
    dropped: bool,
    limit: int,
    cursor: str | None,
    index: bool,
    as_json: bool,
) -> int:
    """Search prompts, answers, thoughts, and tool calls.

    QUERY is best given in single quotes. It can contain words that must all occur in one message or
    tool call, "phrases", -excluded words, and fields: project: tool: file: model: tag: before:
    after: is:failed is:thought is:pinned is:archived in:prompt. The last word may be incomplete.
    Names in code match as a whole and by their parts. If there are few matches, similar words
    match, too. By default, the sessions of the current folder's project are searched, or all
    sessions if it has none, including their subagents. Exit code 1 if nothing is found.
    """
    require_one("--project", project is not None, "--everywhere", everywhere)
    from gemtui.commands import search as command

    return command.run(
        " ".join(query),
        project=project,
        everywhere=everywhere,
        dropped=dropped,
        limit=limit,
        cursor=cursor,
        update_index=index,
        as_json=as_json,
    )


@root.command()
@click.argument("id", shell_complete=session_ids)
@click.option(
    "--format",
    type=click.Choice(["text", "markdown", "html", "json", "unified", "replay"]),
    default="text",
    show_default=True,
    help="json: the stored records; unified: messages in a Claude-compatible format; replay: a "
    "web page that plays back the session.",
)
@output_option()
@force_option
@click.option(
    "--redact",
    is_flag=True,
    help="Replace keys, tokens, passwords, e-mail addresses and home folders with placeholders.",
)
@click.option(
    "--dropped", is_flag=True, help="Include rewound, replaced, and failed messages; json always includes them."
)
@project_option("Choose only among the sessions of this folder.")
def show(
    id: str, format: str, output: Path | None, project: Path | None, dropped: bool, redact: bool, force: bool
) -> None:
    """Print one session.

    ID is a session's id, a unique prefix of it, `latest` (the newest session of the current
    folder's project, or of all if it has none), or the file of a session, subagent, or checkpoint.
    """
    from gemtui.commands import show as command
    from gemtui.export_formats import Format

    if dropped and format == Format.UNIFIED:
        raise click.UsageError("--dropped: the unified format can't represent dropped messages: use --format json")
    command.run(
        id, format=Format(format), output=output, project=project, dropped=dropped, redacted=redact, force=force
    )


@root.command()
@click.argument("dir", type=click.Path(file_okay=False, path_type=Path))
@since_option("Include only sessions used since DATE, such as 2026-11-20 or 7d.")
@click.option(
    "--redact",
    is_flag=True,
    help=(
        "Replace keys, tokens, passwords, e-mail addresses and home folders with placeholders; don't write raw files."
    ),
)
@json_option
def push(dir: Path, since: datetime | None, redact: bool, as_json: bool) -> int:
    """Write all sessions to a folder, for programs that collect sessions from many machines.

    DIR receives compressed JSON lines, one file per project and day, and the session files, named
    by the SHA-256 hash of their contents. Only changes are written, and nothing is deleted. Copy or
    sync DIR to wherever you need it. Exit code 1 if a session could not be read.
    """
    from gemtui.commands import push as command

    return command.run(dir, since=since, redact=redact, as_json=as_json)


@root.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@project_option()
@everywhere_option
@click.option("--session", metavar="ID", shell_complete=session_ids, help="Use only this session, with its subagents.")
@since_option("Leave out writes before DATE, such as 2026-11-20 or 7d.")
@click.option("--patch", "as_patch", is_flag=True, help="Print the changes as one patch for `git apply`.")
@json_option
def files(
    path: Path | None,
    project: Path | None,
    everywhere: bool,
    session: str | None,
    since: datetime | None,
    as_patch: bool,
    as_json: bool,
) -> int:
    """List the files that sessions wrote, most recent first.

    PATH limits the list to a file, to the files in a folder, or to files whose path ends with PATH.
    Only writes by file tools are recorded, not those by shell commands. By default, the sessions of
    the current folder's project are used, or all sessions if it has none. --patch combines the
    changes from before the first write to after the last, and lists what it can't include. Exit
    code 1 if there are no files.
    """
    require_one("--project", project is not None, "--everywhere", everywhere)
    require_one("--session", session is not None, "--project or --everywhere", project or everywhere)
    require_one("--patch", as_patch, "--json", as_json)
    from gemtui.commands import files as command

    return command.run(
        path, project=project, everywhere=everywhere, session=session, since=since, as_patch=as_patch, as_json=as_json
    )


@root.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--at", metavar="TIME", type=Moment(), help="Rebuild the file as of TIME, such as 2026-11-20T12:00 or 7d."
)
@output_option()
@force_option
@json_option
def recover(path: Path, at: datetime | None, output: Path | None, force: bool, as_json: bool) -> int:
    """Rebuild a lost file from everything that sessions wrote, edited, read, or printed of it.

    For each line, stderr says whether it is known or guessed, and which call it comes from. A known
    line is one that the newest record shows at this position; a guessed line comes from an older
    record, or from terminal output that may have changed it. On stdout, control characters are made
    visible; in FILE they are unchanged. Exit code 1 if no session contains any text of the file.
    """
    require_one("--output", output is not None, "--json", as_json)
    if force and output is None:
        raise click.UsageError("--force works only with --output")
    from gemtui.commands import recover as command

    return command.run(path, at=at, output=output, force=force, as_json=as_json)


@root.command()
@project_option("Use only the sessions of this folder and its git worktrees.")
@everywhere_option
@since_option("Leave out everything before DATE, such as 2026-11-20 or 7d.")
@json_option
def stats(project: Path | None, everywhere: bool, since: datetime | None, as_json: bool) -> int:
    """Show tokens, prompts, tool calls, and files by project, model, day, and tool.

    By default, the sessions of the current folder's project are counted, or all sessions if it has
    none. Costs are estimated from list prices, which a file prices.toml next to the settings file
    can override. Exit code 1 if no session matches.
    """
    require_one("--project", project is not None, "--everywhere", everywhere)
    from gemtui.commands import stats as command

    return command.run(project=project, everywhere=everywhere, since=since, as_json=as_json)


@root.command()
@click.argument("id", metavar="[ID]", default="latest", shell_complete=session_ids)
@click.option(
    "--before",
    metavar="N",
    type=click.IntRange(min=1),
    help="Copy only what comes before prompt N (1 is the first); by default everything.",
)
@project_option("Choose only among the sessions of this folder.")
@json_option
def fork(id: str, before: int | None, project: Path | None, as_json: bool) -> None:
    """Copy a session, or its beginning, into a new session, and print the new id.

    ID accepts the same values as `gemtui show`; the default is the newest session. Sessions that
    only the vault has can be copied, too. The original session and the project's files don't
    change. Gemini CLI lists and resumes the new session like its own. With --before 1, there is
    nothing to copy, so no session is created.
    """
    from gemtui.commands import fork as command

    command.run(id, before=before, project=project, as_json=as_json)


@root.command(cls=run_command(session_ids))
@run_arguments
def run(**words: Any) -> int:
    """Run Gemini CLI on PROMPT without opening the app.

    Piped input is appended to PROMPT: `git diff | gemtui run "review this"`. With PROMPT -, only
    stdin is used. The answer is printed to stdout as it arrives, and progress to stderr. ctrl+c
    stops the run with all its processes; a second ctrl+c kills them immediately. Exit codes: 0
    done, even if calls were denied (see --fail-on-denied); 1 failed or incomplete; 53 turn limit;
    79 budget; 124 time limit; 130 interrupted.
    """
    arguments = RunArguments.of(words)
    if arguments.each_model or arguments.each_policy:
        from gemtui.commands import run_each

        return run_each.run(arguments)
    from gemtui.commands import run as command

    return command.run(arguments)


for _place, _name, _words in (
    ("runs", "runs", "List, show, answer, and stop runs."),
    ("worktrees", "worktrees", "List, compare, and remove worktrees of runs, or apply their changes."),
    ("trust", "trust", "List trusted folders, or stop trusting one."),
    ("extension", "extension", "Install or remove gemtui's extension for Gemini CLI."),
    ("vault", "vault", "Keep sessions that Gemini CLI deletes."),
    ("marks", "mark", "Name, tag, pin, annotate, or archive a session."),
    ("marks", "marks", "Export and import names, tags, notes, and pins."),
    ("policy_cli", "policy", "Show, check, and test rules for what runs may do."),
):
    root.add_command(LaterCommand(_place, _name, _words))
for _each in undo_commands(session_ids):
    root.add_command(_each)


@root.command()
@project_option("Serve only the sessions of this folder; the default is the current folder.")
@everywhere_option
def mcp(project: Path | None, everywhere: bool) -> int:
    """Serve stored sessions to agents, read-only, as an MCP server over stdin and stdout.

    Its tools are search, list_sessions, read_session, and files. Their answers are marked as quoted
    text, not to be followed as instructions. The options decide which sessions can be read; the
    agent can't change that. `gemtui extension install --mcp` adds the server to Gemini CLI.
    """
    require_one("--project", project is not None, "--everywhere", everywhere)
    from gemtui.commands import mcp as command

    return command.run(project=project, everywhere=everywhere)


@root.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check sessions, Gemini CLI, the terminal, and gemtui's own files.

    Each problem comes with a solution. Exit code 1 if something is broken.
    """
    from gemtui.commands import doctor as command

    return command.run(as_json=as_json)
