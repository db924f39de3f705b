"""The command line of `gemtui vault`: parsed by click, passed to the module that does it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gemtui.commands.shared_options import Moment, json_option, project_option, yes_option


def _kept_ids(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from gemtui.commands.vault import kept_sessions
    from gemtui.text import clean_line

    found = [(each.id, clean_line(each.title)) for each in kept_sessions()]
    return [CompletionItem(id, help=title) for id, title in found if id.startswith(incomplete)]


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def vault(ctx: click.Context, as_json: bool) -> None:
    """Keep sessions that Gemini CLI deletes.

    Gemini CLI deletes sessions that were not used for 30 days, and some others. With the vault on,
    each session file is also saved in gemtui's own folder, so that it can still be read here and be
    restored. Without a command, show what is kept and what would be deleted next.
    """
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    from gemtui.commands import vault as command

    command.status(as_json=as_json)


@vault.command()
@json_option
def status(as_json: bool) -> None:
    """Show what is kept, what Gemini CLI will delete at its next start, and why."""
    from gemtui.commands import vault as command

    command.status(as_json=as_json)


@vault.command()
@json_option
def on(as_json: bool) -> None:
    """Turn the vault on: keep all current and future sessions."""
    from gemtui.commands import vault as command

    command.on(as_json=as_json)


@vault.command()
@json_option
def off(as_json: bool) -> None:
    """Turn the vault off. Kept sessions stay."""
    from gemtui.commands import vault as command

    command.off(as_json=as_json)


@vault.command()
@click.argument("id", shell_complete=_kept_ids)
@json_option
def restore(id: str, as_json: bool) -> int:
    """Restore a session, so that Gemini CLI lists and resumes it again.

    It comes from the vault, or from a run that holds the only copy. Existing files are never
    overwritten. A session that Gemini CLI would delete again as too old is marked as used today.
    Exit code 1 if nothing was restored.
    """
    from gemtui.commands import vault as command

    return command.restore(id, as_json=as_json)


@vault.command()
@click.option(
    "--before",
    metavar="DATE",
    type=Moment(),
    help="Delete only sessions last used before DATE, such as 90d.",
)
@project_option("Delete only sessions of this folder.")
@yes_option
@json_option
def prune(before: datetime | None, project: Path | None, yes: bool, as_json: bool) -> int:
    """Delete kept sessions permanently, after a question.

    Sessions that Gemini CLI still has are not affected. By default all others are deleted.
    Exit code 1 if there are none.
    """
    from gemtui.commands import vault as command

    return command.prune(before=before, project=project, yes=yes, as_json=as_json)
