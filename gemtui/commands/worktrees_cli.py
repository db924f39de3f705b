"""The command line of `gemtui worktrees`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from gemtui.commands.shared_options import json_option, yes_option

_help = {"help_option_names": ["-h", "--help"]}


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from gemtui.text import clean_line
    from gemtui.worktree_records import LATEST, list_worktrees

    offered = [(LATEST, "the newest worktree")]
    offered += [(each.name, clean_line(each.prompt)) for each in list_worktrees()]
    return [
        CompletionItem(name, help=words) for name, words in offered if name.startswith(incomplete)
    ]


_name = click.argument("name", shell_complete=_names)


@click.group(invoke_without_command=True, context_settings=_help)
@json_option
@click.pass_context
def worktrees(ctx: click.Context, as_json: bool) -> None:
    """List, compare, apply, and remove the git worktrees of runs.

    `gemtui run --worktree` creates a worktree for each run. Without a command, list them. NAME is
    the name of a worktree or its branch, a unique prefix of either, or `latest`.
    """
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return
    from gemtui.commands import worktrees as command

    command.list_all(as_json=as_json)


@worktrees.command(name="list", context_settings=_help)
@json_option
def list_(as_json: bool) -> None:
    """List the worktrees with their branch, repository, run, and number of changed files."""
    from gemtui.commands import worktrees as command

    command.list_all(as_json=as_json)


@worktrees.command(context_settings=_help)
@_name
@click.argument("other", metavar="[OTHER]", required=False, shell_complete=_names)
@json_option
def diff(name: str, other: str | None, as_json: bool) -> int:
    """Print what changed in a worktree, as a patch; with OTHER, compare the two.

    A comparison first lists the files that changed in either worktree, then the differences from
    NAME to OTHER. Exit code 1 if nothing changed, or if there are no differences.
    """
    from gemtui.commands import worktrees as command

    if other is not None:
        return command.compare_two(name, other, as_json=as_json)
    return command.diff(name, as_json=as_json)


@worktrees.command(context_settings=_help)
@_name
@click.option(
    "--path",
    "paths",
    metavar="PATH",
    multiple=True,
    help="Only this file, given by its path in the repository; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@yes_option
@json_option
def apply(name: str, paths: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> int:
    """Apply the changes in a worktree to the files of its repository; nothing is committed.

    Your own edits there are kept: they are merged if they don't overlap; otherwise the file is left
    alone. `gemtui redo` in the repository's top folder reverts this. Exit code 1 if a file was left
    alone.
    """
    from gemtui.commands import worktrees as command

    return command.apply(name, paths=paths or None, dry_run=dry_run, yes=yes, as_json=as_json)


@worktrees.command(context_settings=_help)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_names)
@yes_option
@json_option
def remove(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove worktrees with their files, after asking for confirmation.

    The question lists changes that have not been applied.

    The branch is removed as well, unless it has commits that no other branch has.
    """
    from gemtui.commands import worktrees as command

    command.remove(names, yes=yes, as_json=as_json)
