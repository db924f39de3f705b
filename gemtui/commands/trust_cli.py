"""The command line of `gemtui trust`: parsed by click, passed to the module that does it."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from gemtui.commands.shared_options import json_option


def _folders(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gemtui.agent.trust import trusted_folders

    paths = (each.path for each in trusted_folders())
    return [CompletionItem(path) for path in paths if path.startswith(incomplete)]


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def trust(ctx: click.Context, as_json: bool) -> None:
    """List the folders that you told gemtui to trust, or stop trusting one.

    Runs in these folders are trusted as with --trust. Without a command, list them.
    """
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    from gemtui.commands import trust as command

    command.list_all(as_json=as_json)


@trust.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the trusted folders."""
    from gemtui.commands import trust as command

    command.list_all(as_json=as_json)


@trust.command()
@click.argument("folder", metavar="DIR", shell_complete=_folders, type=click.Path(path_type=Path))
@json_option
def remove(folder: Path, as_json: bool) -> int:
    """Stop trusting DIR. Exit code 1 if it was not trusted."""
    from gemtui.commands import trust as command

    return command.remove(folder, as_json=as_json)
