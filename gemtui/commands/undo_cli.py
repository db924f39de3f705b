"""The words of `gemtui undo`, `gemtui redo` and `gemtui checkpoints`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_help = {"help_option_names": ["-h", "--help"]}


def _option(*names: str, help: str, **more: Any) -> Callable[..., Any]:
    return click.option(*names, is_flag=True, help=help, **more)


_paths = click.option(
    "--path",
    "paths",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Only this file, or the files below this folder; can be given more than once.",
)
_dry_run = _option("--dry-run", help="Only say what would be done.")
_yes = _option("--yes", help="Ask nothing.")
_json = _option("--json", "as_json", help="Print JSON.")


def undo_commands(session_ids: Callable[..., Any]) -> tuple[click.Command, ...]:
    """Return the commands; `session_ids` completes ids in a shell."""
    session = click.argument("session", default="latest", shell_complete=session_ids)

    @click.command(context_settings=_help)
    @session
    @click.option(
        "--to",
        metavar="N",
        type=click.IntRange(min=1),
        help="To just before its N-th prompt; 1 is the first, the default the last.",
    )
    @_option("--files", help="Only the files.")
    @_option("--chat", help="Only the chat.")
    @_paths
    @_dry_run
    @_yes
    @_json
    def undo(
        session: str,
        to: int | None,
        files: bool,
        chat: bool,
        paths: tuple[str, ...],
        dry_run: bool,
        yes: bool,
        as_json: bool,
    ) -> int:
        """Take files and chat of a session back to just before a prompt.

        SESSION is what `gemtui show` takes, by default the newest of this folder. Files go back by
        the checkpoints of its runs, what shell commands did included; without checkpoints by what
        the session recorded. Your own later edits stay: they are merged where they don't touch
        what is undone, and otherwise the file is left alone. The chat goes on in a fork, and the
        original stays. `gemtui redo` takes it back. Exit code 1 where a file was left alone.
        """
        if files and chat:
            raise click.UsageError("--files and --chat exclude each other: give neither for both")
        if chat and paths:
            raise click.UsageError("--path is about files: leave --chat out")
        from gemtui.commands import undo as command

        return command.undo(
            session,
            to=to,
            files=not chat,
            chat=not files and not paths,
            paths=paths or None,
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        )

    @click.command(context_settings=_help)
    @_paths
    @_dry_run
    @_yes
    @_json
    def redo(paths: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> int:
        """Take back the newest undo in the current folder.

        Files become what they were before it; what you edited since stays as with `gemtui undo`.
        The chat before it is still there: its session was not touched. Exit code 1 where a file was
        left alone, or nothing was undone here.
        """
        from gemtui.commands import undo as command

        return command.redo(paths=paths or None, dry_run=dry_run, yes=yes, as_json=as_json)

    @click.command(context_settings=_help)
    @session
    @_option(
        "--prune",
        help="Remove those of all projects that are too old, or too much, by the settings.",
    )
    @_json
    def checkpoints(session: str, prune: bool, as_json: bool) -> int:
        """List the checkpoints of a session: when, of which prompt and call, how many files.

        SESSION is what `gemtui show` takes, by default the newest of this folder. Exit code 1 where
        there are none.
        """
        from gemtui.commands import undo as command

        return command.checkpoints(session, prune=prune, as_json=as_json)

    return undo, redo, checkpoints
