"""The words of `gemtui runs`: read by click, handed on to the module that does it."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

_help = {"help_option_names": ["-h", "--help"]}
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _run_ids(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gemtui.runs.listing import LATEST, list_runs, runs_dir
    from gemtui.text import clean_line

    offered = [(LATEST, "the newest run")]
    offered += [(run.id, clean_line(run.prompt)) for run in list_runs(runs_dir())]
    return [CompletionItem(id, help=words) for id, words in offered if id.startswith(incomplete)]


_id = click.argument("id", shell_complete=_run_ids)


@click.group(invoke_without_command=True, context_settings=_help)
@_json
@click.option("--clear", "clear_all", is_flag=True, help="The same as the command clear.")
@click.pass_context
def runs(ctx: click.Context, as_json: bool, clear_all: bool) -> None:
    """The runs that gemtui has started, and the copies of sessions that they keep.

    Without a command, lists them. ID is a run's id, the id of the session that it stored, a unique
    prefix of either, or `latest`.
    """
    if ctx.invoked_subcommand is not None:
        if clear_all:
            raise click.UsageError("--clear goes without a command")
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    from gemtui.commands import runs as command

    (command.clear if clear_all else command.list_all)(as_json=as_json)


@runs.command("list")
@_json
def list_(as_json: bool) -> None:
    """List the runs, newest first, and those that go on."""
    from gemtui.commands import runs as command

    command.list_all(as_json=as_json)


@runs.command()
@_id
@_json
def show(id: str, as_json: bool) -> None:
    """Say all that is known of one run, its whole prompt included."""
    from gemtui.commands import runs as command

    command.show(id, as_json=as_json)


@runs.command()
@_id
@_json
def stop(id: str, as_json: bool) -> int:
    """End a run that goes on, with everything that it started.

    That includes background commands of a run that has ended, and all that is left where its
    supervisor was killed. Exit code 1 where there was nothing to end.
    """
    from gemtui.commands import runs as command

    return command.stop(id, as_json=as_json)


@runs.command()
@_id
@_json
def restore(id: str, as_json: bool) -> int:
    """Put the copy of a session back that a run of it has kept.

    ID is that of the session or of the run. Only files that are gone are put back, in the newest
    state that is kept; otherwise as gemtui vault restore does it. Exit code 1 where nothing was.
    """
    from gemtui.commands import vault as command

    return command.restore(id, by_run=True, as_json=as_json)


@runs.command()
@click.option("--prompts", is_flag=True, help="Also the prompts that the run pane remembers.")
@_json
def clear(prompts: bool, as_json: bool) -> None:
    """Remove what is kept of runs that have ended.

    A run that keeps the only copy of a session stays, and is named.
    """
    from gemtui.commands import runs as command

    if prompts:
        command.clear_prompts()
    command.clear(as_json=as_json)
