"""The `gemtui` command: its words and options, and which command they call.

Click is imported here and in `gemtui.commands` only. A command imports what else it needs when it
runs, and the app only if there is a terminal. Exit codes: 0 done; 1 something is wrong or nothing
was found; 2 wrong usage, or an id that is unknown or ambiguous; 130 interrupted. `run` also has 53
for the turn limit and 124 for a time limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.commands.extension_cli import extension
from gemtui.commands.marks_cli import mark_command, marks
from gemtui.commands.policy_cli import policy
from gemtui.commands.run_cli import RunArguments, run_arguments, run_command
from gemtui.commands.runs_cli import runs
from gemtui.commands.since import Moment
from gemtui.commands.trust_cli import trust
from gemtui.commands.undo_cli import undo_commands
from gemtui.commands.vault_cli import vault
from gemtui.errors import (
    ConfigError,
    ForkFailed,
    GemtuiError,
    MarkError,
    NotASession,
    OptionError,
    PolicyNotFound,
    RunAmbiguous,
    RunNotFound,
    SessionAmbiguous,
    SessionNotFound,
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
    RunNotFound,
    RunAmbiguous,
)
"""Errors caused by what was asked for: exit code 2."""

EPILOG = """\b
Sessions are read from ~/.gemini ($GEMINI_CLI_HOME/.gemini if that is set).
Settings are for the app alone; gemtui doctor names their file.
Exit codes: 0 done, 1 something is wrong, 2 usage or an unknown or ambiguous
ID, 130 interrupted.
\b
Shell completion, session ids included; put the line into the file named:
  ~/.bashrc   eval "$(_GEMTUI_COMPLETE=bash_source gemtui)"
  ~/.zshrc    eval "$(_GEMTUI_COMPLETE=zsh_source gemtui)"
  ~/.config/fish/completions/gemtui.fish
              _GEMTUI_COMPLETE=fish_source gemtui | source
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    `args`: its words without the program's name; None = those of this process.
    """
    try:
        Path.home()
    except RuntimeError:
        return _complain(None, 2, "the system knows no home folder for you: set HOME")
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
    """Print the error on one line to stderr, and the candidates if it has some."""
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


# --- the words -----------------------------------------------------------------------------------


@contextmanager
def _quiet_when_stdout_closes() -> Iterator[None]:
    """End with exit code 0 when stdout is closed (`| head`); click would make it 1."""
    try:
        yield
    except BrokenPipeError:
        from gemtui.commands.output import let_stdout_go

        let_stdout_go()
        raise click.exceptions.Exit(0) from None


class Root(click.Group):
    """A command group that also accepts a folder: `gemtui [PATH]`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of that name if there is one, else the app on that folder."""
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
        """Create the context as click does; `--help` and `--version` are printed here."""
        with _quiet_when_stdout_closes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke as click does; the commands run here."""
        with _quiet_when_stdout_closes():
            return super().invoke(ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options, or folders if none match."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="dir")]


def _session_ids(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from gemtui.commands.pick_session import completions

    try:
        found = completions(incomplete)
    except (GemtuiError, OSError):
        found = []
    items = [CompletionItem(id, help=title) for id, title in found]
    return items or [CompletionItem(incomplete, type="file")]


def _app_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--ascii", is_flag=True, help="Draw with plain ASCII signs only."),
        click.option(
            "--demo", is_flag=True, help="Try gemtui on invented sessions; nothing is kept."
        ),
        click.option(
            "--session",
            metavar="ID",
            shell_complete=_session_ids,
            help="Open this session: an id, its first letters, `latest`, or a file.",
        ),
    ):
        command = option(command)
    return command


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"{PROGRAM} {version(PROGRAM)}")
        ctx.exit()


_help = {"help_option_names": ["-h", "--help"]}
_everywhere = click.option("--everywhere", is_flag=True, help="The sessions of all projects.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _project_option(help: str = "Only the sessions of this folder.") -> Callable[..., Any]:
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--project", metavar="DIR", type=folder, help=help)


def _require_one(one: str, is_given: object, other: str, other_is_given: object) -> None:
    """Raises click.UsageError where both are given."""
    if is_given and other_is_given:
        raise click.UsageError(f"{one} and {other} exclude each other: give one of them")


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings=_help,
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
    """Read Gemini CLI sessions, and run new ones.

    Without a command, opens the app on the project of PATH or of the current folder.
    """
    if ctx.invoked_subcommand is None:
        return _open(None, session, demo, ascii)
    if ctx.invoked_subcommand != PROGRAM and (session or demo or ascii):
        raise click.UsageError("--session, --demo and --ascii are for the app, not for a command")
    return 0


class FolderContext(click.Context):
    """Of `gemtui PATH`, which has no name of its own."""

    @property
    def command_path(self) -> str:
        """What help and errors name."""
        return PROGRAM


class Folder(click.Command):
    """The command without a name."""

    context_class = FolderContext


@click.command(cls=Folder, context_settings=_help)
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
        return f"{path} is a file: to read a session file, gemtui --session {path}"
    from difflib import get_close_matches

    near = get_close_matches(str(path), root.commands, n=1)
    hint = f"did you mean gemtui {near[0]}?" if near else "see gemtui --help"
    return f"there is no command and no folder '{path}': {hint}"


def _open(path: Path | None, session: str | None, demo: bool, ascii: bool) -> int:
    for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout)):
        if stream is None or not stream.isatty():
            raise click.UsageError(
                f"{name} is no terminal: without one, use gemtui sessions and gemtui show ID"
            )
    from gemtui.commands import app

    return app.run(path, session=session, demo=demo, ascii=ascii)


@root.command()
@_project_option()
@_everywhere
@click.option(
    "--hidden",
    is_flag=True,
    help="Also what is archived, ghosts, empty starts, subagents, checkpoints, copies.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most N, the newest.")
@click.option(
    "--since", metavar="DATE", type=Moment(), help="Only those used since: 2026-11-20, 7d."
)
@click.option(
    "--until",
    metavar="DATE",
    type=Moment(end=True),
    help="Only those last used until then, that day included.",
)
@click.option(
    "--live", is_flag=True, help="What works, waits for you or idles now, in any terminal."
)
@_json
def sessions(
    project: Path | None,
    everywhere: bool,
    hidden: bool,
    limit: int | None,
    since: datetime | None,
    until: datetime | None,
    live: bool,
    as_json: bool,
) -> int:
    """List the stored sessions, newest first.

    Without an option, those of the current folder's project, or all where it has none. ID is what
    `gemtui show` takes. A narrow terminal gets fewer columns, and a * for marks such as [live];
    --json has everything. Exit code 1 where DIR is not there and has no sessions.

    With --live those of all projects that go on now, or of DIR, which gemtui's extension tells.
    """
    _require_one("--project", project is not None, "--everywhere", everywhere)
    if live:
        _require_one("--live", live, "--hidden", hidden)
        _require_one("--live", live, "--limit", limit is not None)
        _require_one("--live", live, "--since and --until", since or until)
        from gemtui.commands import live as live_command

        return live_command.run(project=project, as_json=as_json)
    from gemtui.commands import sessions as command

    return command.run(
        project=project,
        everywhere=everywhere,
        hidden=hidden,
        limit=limit,
        since=since,
        until=until,
        as_json=as_json,
    )


@root.command()
@click.argument("query", nargs=-1, required=True)
@_project_option()
@_everywhere
@click.option(
    "--dropped",
    is_flag=True,
    help="Search messages that were rewound, buried or failed, instead of those that stand.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="At most N hits, the best.",
)
@click.option(
    "--index",
    is_flag=True,
    help="First bring the index up to date, as the app does all the time: for who never starts it.",
)
@_json
def search(
    query: tuple[str, ...],
    project: Path | None,
    everywhere: bool,
    dropped: bool,
    limit: int,
    index: bool,
    as_json: bool,
) -> int:
    """Search all that was said: prompts, answers, thoughts, tools.

    QUERY, best in single quotes: words that must all occur in one message or tool call, "phrases",
    -not, and fields: project: tool: file: model: tag: before: after: is:failed is:thought is:pinned
    is:archived in:prompt. The last word may be a beginning. Words of code are found whole and in
    parts. Where there are few hits, words that are alike count as well. Without an option, the
    sessions of the current folder's project are searched, or all where it has none, each with its
    subagents. Exit code 1 where nothing is found.
    """
    _require_one("--project", project is not None, "--everywhere", everywhere)
    from gemtui.commands import search as command

    return command.run(
        " ".join(query),
        project=project,
        everywhere=everywhere,
        dropped=dropped,
        limit=limit,
        update_index=index,
        as_json=as_json,
    )


@root.command()
@click.argument("id", shell_complete=_session_ids)
@click.option(
    "--format",
    type=click.Choice(["text", "markdown", "html", "json", "unified"]),
    default="text",
    show_default=True,
    help="json: all that is stored; unified: messages in a Claude-compatible form.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to FILE instead, whole or not at all; a new one is readable by you alone.",
)
@click.option(
    "--dropped",
    is_flag=True,
    help="Also messages that were rewound, buried or failed; json always has them.",
)
@_project_option("Only among the sessions of this folder.")
def show(id: str, format: str, output: Path | None, project: Path | None, dropped: bool) -> None:
    """Print one session.

    ID is a full id, a unique prefix of one, `latest` (of the current folder's project, or of all
    where it has none), or a file: a session, a subagent's or a checkpoint.
    """
    from gemtui.commands import show as command
    from gemtui.export_formats import Format

    if dropped and format == Format.UNIFIED:
        raise click.UsageError("--dropped: unified messages have no mark for it: take json")
    command.run(id, format=Format(format), output=output, project=project, dropped=dropped)


@root.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@_project_option()
@_everywhere
@click.option(
    "--session",
    metavar="ID",
    shell_complete=_session_ids,
    help="Only this session, with its subagents.",
)
@click.option("--since", metavar="DATE", type=Moment(), help="No writes before: 2026-11-20, 7d.")
@click.option("--patch", "as_patch", is_flag=True, help="Print what `git apply` takes.")
@_json
def files(
    path: Path | None,
    project: Path | None,
    everywhere: bool,
    session: str | None,
    since: datetime | None,
    as_patch: bool,
    as_json: bool,
) -> int:
    """Say which sessions wrote which files, the file written last first.

    PATH: only this file, the files below this folder, or those whose path ends so. Only what file
    tools wrote is recorded; what commands wrote is not. Without an option, the sessions of the
    current folder's project, or all where it has none. --patch has all of it as one change, from
    before the first write to after the last one, and says what it can't tell. Exit code 1 where
    there is nothing.
    """
    _require_one("--project", project is not None, "--everywhere", everywhere)
    _require_one(
        "--session", session is not None, "--project or --everywhere", project or everywhere
    )
    _require_one("--patch", as_patch, "--json", as_json)
    from gemtui.commands import files as command

    return command.run(
        path,
        project=project,
        everywhere=everywhere,
        session=session,
        since=since,
        as_patch=as_patch,
        as_json=as_json,
    )


@root.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--at", metavar="TIME", type=Moment(), help="The newest text until then: 2026-11-20T12:00, 7d."
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to FILE instead; a new one is readable by you alone.",
)
@click.option("--force", is_flag=True, help="Replace FILE where it is there.")
@_json
def recover(
    path: Path, at: datetime | None, output: Path | None, force: bool, as_json: bool
) -> int:
    """Rebuild a lost file from what all sessions wrote, edited, read and printed of it.

    Each line is known or guessed, and stderr says from where: known is what the newest record shows
    at its place, guessed what older ones do, or what a terminal may have changed. On stdout control
    characters are marked; FILE gets them as they are. Exit code 1 where no session has any of its
    text.
    """
    _require_one("--output", output is not None, "--json", as_json)
    if force and output is None:
        raise click.UsageError("--force is for --output: name a file")
    from gemtui.commands import recover as command

    return command.run(path, at=at, output=output, force=force, as_json=as_json)


@root.command()
@_project_option("Only the sessions of this folder, and of its git worktrees.")
@_everywhere
@click.option("--since", metavar="DATE", type=Moment(), help="Nothing before: 2026-11-20, 7d.")
@_json
def stats(project: Path | None, everywhere: bool, since: datetime | None, as_json: bool) -> int:
    """Sum up tokens, prompts, tool calls and files: by project, model, day and tool.

    Without an option, the sessions of the current folder's project, or all where it has none. Costs
    are an estimate by list prices, which a file prices.toml beside the settings replaces. Exit code
    1 where no session counts.
    """
    _require_one("--project", project is not None, "--everywhere", everywhere)
    from gemtui.commands import stats as command

    return command.run(project=project, everywhere=everywhere, since=since, as_json=as_json)


@root.command()
@click.argument("id", metavar="[ID]", default="latest", shell_complete=_session_ids)
@click.option(
    "--before",
    metavar="N",
    type=click.IntRange(min=1),
    help="Only what was said before prompt N, 1 = the first; without it all.",
)
@_project_option("Only among the sessions of this folder.")
@_json
def fork(id: str, before: int | None, project: Path | None, as_json: bool) -> None:
    """Make a new chat with the past of a session, and print its id.

    ID as for `gemtui show`, without it the newest session; one that only the vault has will do. The
    session itself stays as it is, and so do the files of the project. The new chat is stored as
    Gemini CLI's own are, which lists and resumes it. Before the first prompt nothing was said, and
    no chat is made.
    """
    from gemtui.commands import fork as command

    command.run(id, before=before, project=project, as_json=as_json)


@root.command(cls=run_command(_session_ids))
@run_arguments
def run(**words: Any) -> int:
    """Run Gemini CLI on PROMPT, without a screen.

    What is piped in follows PROMPT in the same message: `git diff | gemtui run "review this"`.
    PROMPT - means stdin alone. The answer goes to stdout as it comes, progress to stderr. ctrl+c
    ends the run with all its processes, a second one at once. Exit codes: 0 done, 1 failed or
    incomplete, 53 turn limit, 124 time limit, 130 interrupted.
    """
    from gemtui.commands import run as command

    return command.run(RunArguments.of(words))


root.add_command(runs)
root.add_command(trust)
root.add_command(extension)
root.add_command(vault)
root.add_command(mark_command(_session_ids))
root.add_command(marks)
root.add_command(policy)
for _each in undo_commands(_session_ids):
    root.add_command(_each)


@root.command()
@_project_option("Only the sessions of this folder; without it, of the current one.")
@_everywhere
def mcp(project: Path | None, everywhere: bool) -> int:
    """Serve stored sessions to agents, read-only, as an MCP server over stdin and stdout.

    Its tools are search, list_sessions, read_session and files. What they return is marked as old
    text that holds no instructions. Which sessions may be read is said here, not by the agent.
    `gemtui extension install --mcp` offers it to Gemini CLI.
    """
    _require_one("--project", project is not None, "--everywhere", everywhere)
    from gemtui.commands import mcp as command

    return command.run(project=project, everywhere=everywhere)


@root.command()
@_json
def doctor(as_json: bool) -> int:
    """Check sessions, Gemini CLI, terminal and gemtui's own files.

    Each problem comes with its way out. Exit code 1 if something is broken.
    """
    from gemtui.commands import doctor as command

    return command.run(as_json=as_json)
