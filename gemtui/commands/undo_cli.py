"""The command line of `gemtui undo`, `redo`, `review` and `checkpoints`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gemtui.commands.shared_options import HELP, dry_run_option, json_option, yes_option


def _option(*names: str, help: str, **more: Any) -> Callable[..., Any]:
    return click.option(*names, is_flag=True, help=help, **more)


_paths = click.option(
    "--path",
    "paths",
    metavar="PATH",
    multiple=True,
    type=click.Path(),
    help="Only this file, or the files below this folder; repeatable.",
)


def undo_commands(session_ids: Callable[..., Any]) -> tuple[click.Command, ...]:
    """Return the commands; `session_ids` completes ids in a shell."""
    session = click.argument("session", default="latest", shell_complete=session_ids)

    @click.command(context_settings=HELP)
    @session
    @click.option(
        "--to",
        metavar="N",
        type=click.IntRange(min=1),
        help="Undo to just before prompt N (1 is the first); by default the last prompt.",
    )
    @_option("--files", help="Undo only the files.")
    @_option("--chat", help="Undo only the chat.")
    @_paths
    @dry_run_option
    @yes_option
    @json_option
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
        """Return the files and the chat of a session to just before a prompt.

        SESSION is what `gemtui show` takes, by default the newest of this folder. Files are
        restored from the checkpoints of its runs, which include what shell commands did; without
        checkpoints from what the session recorded. Your own later edits stay: they are merged if
        they don't overlap, otherwise the file is left alone. The chat continues in a fork; the
        original stays. `gemtui redo` reverts an undo. Exit code 1 if a file was left alone.
        """
        if files and chat:
            raise click.UsageError(
                "--files and --chat can't be used together; for both, omit both options"
            )
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

    @click.command(context_settings=HELP)
    @_paths
    @dry_run_option
    @yes_option
    @json_option
    def redo(paths: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> int:
        """Revert the newest undo in the current folder.

        Files become what they were before the undo; your later edits stay, as with `gemtui undo`.
        The original chat was never changed. Exit code 1 if a file was left alone, or nothing was
        undone here.
        """
        from gemtui.commands import undo as command

        return command.redo(paths=paths or None, dry_run=dry_run, yes=yes, as_json=as_json)

    @click.command(context_settings=HELP)
    @session
    @_option(
        "--prune",
        help="Delete checkpoints of all projects beyond the limits in the settings.",
    )
    @json_option
    def checkpoints(session: str, prune: bool, as_json: bool) -> int:
        """List the checkpoints of a session with time, prompt, call, and number of files.

        SESSION is what `gemtui show` takes, by default the newest of this folder. Exit code 1 if
        there are none.
        """
        from gemtui.commands import undo as command

        return command.checkpoints(session, prune=prune, as_json=as_json)

    @click.command(context_settings=HELP)
    @session
    @click.option(
        "--revert",
        "reverted",
        metavar="ID",
        multiple=True,
        help="Revert this hunk, all of this file, or all that this call changed; repeatable.",
    )
    @yes_option
    @json_option
    def review(session: str, reverted: tuple[str, ...], yes: bool, as_json: bool) -> int:
        """Print what a session changed, hunk by hunk: which call did it, or you; revert some.

        SESSION is what `gemtui show` takes, by default the newest of this folder. The files are
        compared as they were before its first change and as they are now, by the checkpoints of
        its runs, else by what the session recorded. The ids of hunks, files and calls stay the same
        while the files do. A revert leaves all else as it is, needs that no run works in the
        folder, and `gemtui redo` takes it back. Exit code 1 where something was left alone: the
        hunk is no longer in its file, or can't be reverted.
        """
        from gemtui.commands import review as command

        return command.review(session, reverted=reverted, yes=yes, as_json=as_json)

    return undo, redo, review, checkpoints
