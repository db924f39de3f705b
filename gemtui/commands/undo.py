"""`gemtui undo`, `redo` and `checkpoints`: undo and redo sessions' changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from gemtui.checkpoints.plan import Action
from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, require_terminal, slow_note
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.paths import checkpoints_dir, current_folder
from gemtui.runs.undo.checkpointing import prune_checkpoints
from gemtui.runs.undo.undo import Undone, checkpoint_list, redo_project, undo_session
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean_line, counted, ellipsis, size

_COMMAND = 60
COMPARING = "comparing files; the first time, this can take a few seconds in a large folder"


def undo(
    wanted: str,
    *,
    to: int | None,
    files: bool,
    chat: bool,
    paths: Sequence[str] | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Undo a session's changes; return 1 if a change could not be undone.

    `to`: the number of the prompt before which to go back; None means the last one. `files`,
    `chat`: whether to undo the changes to files, and the chat. `paths`: only these files; None
    means all. `dry_run`: only report what would be done. `yes`: don't ask for confirmation.
    """
    session = _session(wanted)

    def act(*, dry_run: bool) -> Undone:
        return undo_session(session, to, files=files, chat=chat, paths=paths, dry_run=dry_run)

    what = " and ".join(["files"] * files + ["chat"] * chat)
    return _act(act, f"Undo {what}", dry_run=dry_run, yes=yes, as_json=as_json)


def redo(*, paths: Sequence[str] | None, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Reverse the newest undo in this folder; return 1 if a file was left unchanged."""
    folder = current_folder()

    def act(*, dry_run: bool) -> Undone:
        return redo_project(folder, paths=paths, dry_run=dry_run)

    return _act(act, "Reverse the undo", dry_run=dry_run, yes=yes, as_json=as_json)


def checkpoints(wanted: str, *, prune: bool, as_json: bool) -> int:
    """List a session's checkpoints; return 1 if there are none.

    `prune`: remove old checkpoints of all projects instead, and return 0.
    """
    if prune:
        freed = prune_checkpoints()
        if as_json:
            json_to_stdout({"version": 1, **freed.to_dict()})
        else:
            freed_words = counted(freed.projects, "project")
            note(f"removed old checkpoints of {freed_words}: {size(freed.bytes)}")
        return 0
    session = _session(wanted)
    found = checkpoint_list(session)
    if as_json:
        json_to_stdout({"version": 1, "session": session.id, "project": session.project, "checkpoints": found})
    elif found:
        lines_to_stdout(_rows(found))
    else:
        note(f"{checkpoints_dir()} has no checkpoints of this session")
    return 0 if found else 1


def _session(wanted: str) -> Summary:
    with index_of_user() as index:
        return choose(wanted, index)


def _act(act: Callable[..., Undone], question: str, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    if not dry_run and not yes:
        require_terminal()
        with slow_note(COMPARING):
            planned = act(dry_run=True)
        for line in _words(planned, "would be "):
            click.echo(line, err=True)
        where = f" to before prompt {planned.to}" if planned.to else " made in a review"
        click.confirm(clean_line(f"{question}{where}?"), abort=True, err=True)
    with slow_note(COMPARING):
        done = act(dry_run=dry_run)
    if as_json:
        json_to_stdout(done.to_dict())
    else:
        lines_to_stdout(_words(done, "would be " if dry_run else ""))
    return 1 if done.kept else 0


_DONE = {Action.RESTORE: "restored", Action.REMOVE: "removed", Action.MERGE: "merged with later edits"}


def _words(done: Undone, would: str) -> Iterator[Clean]:
    kept = [(os.fsdecode(step.path), step.why) for step in done.kept]
    yield from step_lines({would + _DONE[action]: done.paths(action) for action in _DONE}, kept)
    if done.files is not None and not done.files.steps:
        yield Clean("No files need to be changed.")
    for each in done.notes:
        yield clean_line(each)
    if done.fork is not None and done.to and not would:
        yield clean_line(f"To continue from there, use session {done.fork}")


def step_lines(done: Mapping[str, Iterable[str]], kept: Iterable[tuple[str, str]]) -> Iterator[Clean]:
    """Yield a line for each path, with what was done to it.

    `done`: maps a word such as "restored" to the paths to which it applies. `kept`: (path, reason)
    for each path that was left unchanged.
    """
    for words, paths in done.items():
        for path in paths:
            yield clean_line(f"{words}: {path}")
    for path, why in kept:
        yield clean_line(f"left alone: {path}: {why}")


def _rows(checkpoints: Sequence[dict[str, Any]]) -> Iterator[Clean]:
    """Yield a line for each checkpoint, followed by its notes.

    Notes that are the same as those of the checkpoint before are not repeated.
    """
    before: list[str] = []
    for each in checkpoints:
        yield _row(each)
        for words in each["notes"] if each["notes"] != before else ():
            yield clean_line(f"{'':>5}  {words}")
        before = each["notes"]


def _row(each: dict[str, Any]) -> Clean:
    when = datetime.fromisoformat(each["time"]).strftime("%Y-%m-%d %H:%M:%S")
    prompt = "" if each["prompt"] is None else f"prompt {each['prompt']}"
    what = each["reason"] if each["tool"] is None else each["tool"]
    command = "" if not each["command"] else f" {ellipsis(clean_line(each['command']), _COMMAND)}"
    files = counted(len(each["files"]), "file") if each["files"] else "no changes"
    return clean_line(f"{each['id']:>5}  {when}  {prompt:<10}  {files:<9}  {what}{command}")
