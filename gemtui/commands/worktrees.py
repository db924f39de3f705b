"""`gemtui worktrees`: the git worktrees in which runs work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import click
from click.shell_completion import CompletionItem

from gemtui.checkpoints.plan import Action
from gemtui.commands.output import (
    columns,
    json_to_stdout,
    lines_to_stdout,
    note,
    require_terminal,
    require_yes,
)
from gemtui.commands.shared_options import (
    by_default,
    completions,
    dry_run_option,
    json_option,
    yes_option,
)
from gemtui.commands.undo import exit_code, interruptible, interruption, step_lines
from gemtui.errors import GemtuiError
from gemtui.jsonout import fields
from gemtui.paths import runs_dir
from gemtui.runs.listing import Run, list_runs
from gemtui.runs.worktrees import (
    AppliedWorktree,
    WorktreeChange,
    apply_worktree,
    losses_of,
    remove_worktree,
    runs_of,
    worktree_changes,
)
from gemtui.text import clean_line, ellipsis, relative, short_path, visible
from gemtui.transcript.diffs import NoPatch
from gemtui.worktree_records import (
    LATEST,
    Worktree,
    find_worktree,
    list_worktrees,
    made_at,
    unreadable_worktrees,
)

_HEAD = ("NAME", "AGE", "FILES", "RUN", "MODEL", "REPOSITORY", "PROMPT")
_PROMPT = 60


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    offered = [(LATEST, "the newest worktree")]
    offered += [(worktree.name, clean_line(worktree.prompt)) for worktree in list_worktrees()]
    return completions(offered, incomplete)


_name = click.argument("name", shell_complete=_names)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def worktrees(ctx: click.Context, as_json: bool) -> None:
    """List and remove the git worktrees of runs, or apply their changes.

    `gemtui run --worktree` creates a worktree for each run. Without a command, list the worktrees.
    NAME is the name of a worktree or its branch, a unique prefix of either, or `latest`.
    """
    by_default(ctx, list_, as_json=as_json)


@worktrees.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List the worktrees with their branch, repository, run, and number of changed files."""
    listed, damaged, runs = list_worktrees(), unreadable_worktrees(), list_runs(runs_dir())
    for folder in damaged:
        note(
            f"{folder}: its record is damaged, but its files are there: save what you need, then "
            "delete the folder"
        )
    if as_json:
        rows = [_row(worktree, runs_of(worktree, runs)) for worktree in listed]
        json_to_stdout({"worktrees": rows})
        return
    if listed:
        lines_to_stdout(
            columns([_HEAD, *(_cells(worktree, runs_of(worktree, runs)) for worktree in listed)])
        )
    elif not damaged:
        note("no worktrees: create one with gemtui run --worktree")


def _row(worktree: Worktree, runs: Sequence[Run]) -> dict[str, Any]:
    changes = _changes(worktree)
    return {
        **fields(worktree, *_FIELDS, there="exists"),
        "runs": [fields(run, "id", "state", "model") for run in runs],
        "files": None if changes is None else len(changes),
        "not_applied": None
        if changes is None
        else sum(not change.is_applied for change in changes),
    }


_FIELDS = ("name", "branch", "repository", "folder", "commit", "made", "prompt")


def _changes(worktree: Worktree) -> tuple[WorktreeChange, ...] | None:
    """Return the changes in a worktree; None if they can't be determined."""
    try:
        return worktree_changes(worktree)
    except (GemtuiError, OSError):
        return None


def _cells(worktree: Worktree, runs: Sequence[Run]) -> tuple[str, ...]:
    made, changes = made_at(worktree), _changes(worktree)
    applied = changes is not None and changes and all(change.is_applied for change in changes)
    files = "?" if changes is None else f"{len(changes)}{' applied' if applied else ''}"
    run = runs[0] if runs else None
    return (
        clean_line(worktree.name),
        ("?" if made is None else relative(made, datetime.now(UTC))),
        (files if worktree.exists else "gone"),
        clean_line("" if run is None else run.word),
        clean_line("" if run is None else run.model or ""),
        short_path(worktree.repository),
        ellipsis(clean_line(worktree.prompt), _PROMPT),
    )


# --- changes -------------------------------------------------------------------------------------


@worktrees.command()
@_name
@json_option
def diff(name: str, as_json: bool) -> int:
    """Print what changed in a worktree, as a patch.

    Exit code 1 if nothing changed.
    """
    worktree = find_worktree(name)
    changes = worktree_changes(worktree)
    if as_json:
        files = [change.to_dict() | {"patch": _patch(change)} for change in changes]
        json_to_stdout({"worktree": worktree.name, "branch": worktree.branch, "files": files})
    else:
        for change in changes:
            _print_patch(change)
        if not changes:
            note(f"no changes in {worktree.name}")
    return 0 if changes else 1


def _patch(change: WorktreeChange) -> str | None:
    try:
        return change.patch()
    except NoPatch:
        return None


def _print_patch(change: WorktreeChange) -> None:
    try:
        patch = change.patch()
    except NoPatch as error:
        note(f"{change.name}: {error}")
        return
    lines_to_stdout(map(visible, patch.removesuffix("\n").split("\n") if patch else ()))


# --- apply and remove -----------------------------------------------------------------------------


@worktrees.command()
@_name
@click.option(
    "--path",
    "paths",
    metavar="PATH",
    multiple=True,
    help="Only this file, given by its path from the repository's top folder; repeatable.",
)
@dry_run_option
@yes_option
@json_option
def apply(name: str, paths: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool) -> int:
    """Apply the changes of a worktree to the files of its repository; nothing is committed.

    Your own edits in the repository are kept: they are merged if they don't overlap; otherwise the
    file is left alone. To reverse this, run `gemtui redo` in the repository's top folder. Exit code
    1 if a file was left alone.
    """
    with interruptible() as stop:
        worktree = find_worktree(name)
        if not dry_run and not yes:
            require_terminal()
            planned = _applied(apply_worktree(worktree, paths or None, dry_run=True), "would be ")
            require_yes(planned, f"Apply {worktree.name} to {short_path(worktree.repository)}?")
        applied = apply_worktree(worktree, paths or None, dry_run=dry_run, stop=stop)
        count = len(applied.steps) - len(applied.kept)
        applied = replace(applied, interrupted=interruption(stop, applied.interrupted, count))
        if as_json:
            json_to_stdout(applied.to_dict())
        else:
            lines_to_stdout(_applied(applied, "would be " if dry_run else ""))
        return exit_code(stop, applied.interrupted, 1 if applied.kept else 0)


_DONE = {
    Action.RESTORE: "written",
    Action.REMOVE: "removed",
    Action.MERGE: "merged with edits in the repository",
}


def _applied(done: AppliedWorktree, would: str) -> Iterator[str]:
    of_action = {would + _DONE[action]: done.paths(action) for action in _DONE}
    yield from step_lines(of_action, done.kept)
    if not done.steps:
        yield "No files need to be changed."


@worktrees.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_names)
@yes_option
@json_option
def remove(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Remove worktrees and their files; the confirmation names changes not yet applied.

    The branch is removed as well, unless it has commits that no other branch has.
    """
    unique = list(dict.fromkeys(find_worktree(name).name for name in names))
    removed = []
    for worktree in map(find_worktree, unique):
        if not yes:
            require_terminal()
            require_yes(
                map(clean_line, losses_of(worktree).lines()), f"Remove worktree {worktree.name}?"
            )
        removal = remove_worktree(worktree)
        for remark in removal.notes:
            note(remark)
        removed.append(
            {"name": worktree.name, "branch": worktree.branch, "branch_left": removal.branch_left}
        )
        if not as_json:
            lines_to_stdout([clean_line(f"removed: {worktree.name}")])
    if as_json:
        json_to_stdout({"removed": removed})
