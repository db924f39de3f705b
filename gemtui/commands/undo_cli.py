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
    help="Only this file, or the files in this folder; repeatable.",
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
    @_option("--files", help="Undo only the files; the chat doesn't change.")
    @_option("--chat", help="Undo only the chat; files don't change.")
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
        """Revert the files and the chat of a session to just before a prompt.

        SESSION accepts the same values as `gemtui show`; the default is the newest session of this
        folder. Files are restored from the checkpoints of the session's runs, which include the
        effects of shell commands, or, without checkpoints, from what the session recorded. Your own
        later edits are kept: they are merged if they don't overlap; otherwise the file is left
        alone. The chat continues in a fork, and the original is not changed. `gemtui redo` reverts
        an undo. Exit code 1 if a file was left alone.
        """
        if files and chat:
            raise click.UsageError("--files and --chat can't be used together; for both, omit both options")
        if chat and paths:
            raise click.UsageError("--path applies only to files: leave out --chat")
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

        Files return to their state before the undo. Your later edits are kept, as with `gemtui
        undo`. The original chat was never changed. Exit code 1 if a file was left alone, or if
        nothing was undone here.
        """
        from gemtui.commands import undo as command

        return command.redo(paths=paths or None, dry_run=dry_run, yes=yes, as_json=as_json)

    @click.command(context_settings=HELP)
    @session
    @_option("--prune", help="Delete checkpoints beyond the limits in the settings, in all projects.")
    @json_option
    def checkpoints(session: str, prune: bool, as_json: bool) -> int:
        """List the checkpoints of a session with their time, prompt, call, and number of files.

        SESSION accepts the same values as `gemtui show`; the default is the newest session of this
        folder. Exit code 1 if there are none.
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
        help="Revert this hunk, this whole file, or everything that this call changed; repeatable.",
    )
    @yes_option
    @json_option
    def review(session: str, reverted: tuple[str, ...], yes: bool, as_json: bool) -> int:
        """Print what a session changed, hunk by hunk, or revert some of the changes.

        For each hunk, the output names the tool call that made it.

        SESSION accepts the same values as `gemtui show`; the default is the newest session of this
        folder. The current files are compared with their contents before the session's first
        change, using the checkpoints of its runs or, without checkpoints, what the session
        recorded. Your own changes are marked as yours. Hunks, files and calls keep their ids as
        long as the files don't change. A revert changes nothing else, is not possible while a run
        is working in the folder, and can be undone with `gemtui redo`. Exit code 1 if a hunk was
        left alone because it is no longer in its file or can't be reverted.
        """
        from gemtui.commands import review as command

        return command.run(session, reverted=reverted, yes=yes, as_json=as_json)

    return undo, redo, review, checkpoints
