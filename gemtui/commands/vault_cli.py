"""The words of `gemtui vault`: read by click, handed on to the module that does it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gemtui.commands.since import Moment

_help = {"help_option_names": ["-h", "--help"]}
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _kept_ids(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from gemtui.commands.vault import kept_sessions
    from gemtui.text import clean_line

    found = [(each.id, clean_line(each.title)) for each in kept_sessions()]
    return [CompletionItem(id, help=title) for id, title in found if id.startswith(incomplete)]


@click.group(invoke_without_command=True, context_settings=_help)
@_json
@click.pass_context
def vault(ctx: click.Context, as_json: bool) -> None:
    """Keep sessions that Gemini CLI removes.

    It removes sessions that were not used for 30 days, and more than that. With the vault on, each
    session file has a second name in gemtui's own folder, so that it stays readable here and can be
    put back. Without a command, says what is kept and what would be removed next.
    """
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    from gemtui.commands import vault as command

    command.status(as_json=as_json)


@vault.command()
@_json
def status(as_json: bool) -> None:
    """Say what is kept, and what the next start of Gemini CLI removes, and why."""
    from gemtui.commands import vault as command

    command.status(as_json=as_json)


@vault.command()
@_json
def on(as_json: bool) -> None:
    """Keep all sessions, those that there are and those to come."""
    from gemtui.commands import vault as command

    command.on(as_json=as_json)


@vault.command()
@_json
def off(as_json: bool) -> None:
    """Keep no more sessions. What is kept stays."""
    from gemtui.commands import vault as command

    command.off(as_json=as_json)


@vault.command()
@click.argument("id", shell_complete=_kept_ids)
@_json
def restore(id: str, as_json: bool) -> int:
    """Put a session back into Gemini CLI's store, which then lists and resumes it.

    It comes from the vault, else from a run that kept the only copy. Nothing is written over. A
    session that Gemini CLI would find too old again is marked as used today. Exit code 1 where
    nothing was put back.
    """
    from gemtui.commands import vault as command

    return command.restore(id, as_json=as_json)


@vault.command()
@click.option(
    "--before", metavar="DATE", type=Moment(), help="Only what was last used before: a date, 90d."
)
@click.option(
    "--project",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Only the sessions of this folder.",
)
@click.option("--yes", is_flag=True, help="Ask nothing.")
@_json
def prune(before: datetime | None, project: Path | None, yes: bool, as_json: bool) -> int:
    """Remove kept sessions for good, after a question.

    That is, of the files that Gemini CLI has removed; other names of its own cost nothing. Without
    an option, all of them. Exit code 1 where there are none.
    """
    from gemtui.commands import vault as command

    return command.prune(before=before, project=project, yes=yes, as_json=as_json)
