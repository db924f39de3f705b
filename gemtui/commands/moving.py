"""`gemtui sessions move`: give a project's sessions to the folder that the project has now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gemtui.commands.output import json_to_stdout, lines_to_stdout, require_yes
from gemtui.errors import MoveFailed
from gemtui.extension.live import GONE, LiveFolder
from gemtui.files import stat_if_possible
from gemtui.jsonout import fields
from gemtui.paths import gemini_home, runs_dir
from gemtui.runs.listing import list_runs
from gemtui.sessions.store.moved_project import ProjectMove, carry_out, plan_move
from gemtui.text import clean_line, counted

_MINUTE = 60.0


def move_sessions(old: Path, new: Path, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Show how sessions get from one folder to another, ask, and make the changes.

    Raises MoveFailed, and click.UsageError if the user would have to be asked without a terminal.
    """
    plan = partial(_planned, gemini_home(), old, new)
    move = plan()
    if not (dry_run or yes):
        require_yes(_lines(move), f"Give these sessions to {move.new}?")
    if not dry_run:
        move = carry_out(gemini_home(), plan)
    if as_json:
        json_to_stdout(
            {
                **fields(move, to="new", folder="key", files="chats", **{"from": "old"}),
                "steps": [step.words for step in move.steps],
                "moved": not dry_run,
            }
        )
    elif dry_run:
        lines_to_stdout(_lines(move))
    else:
        lines_to_stdout([clean_line(f"{_files(move)} of {move.old} now belong to {move.new}")])
    return 0


def _planned(home: Path, old: Path, new: Path) -> ProjectMove:
    """Plan a move. Raises MoveFailed, also while a session of the project may be open."""
    move = plan_move(home, old, new)
    folders = {move.old, move.new}
    for live in LiveFolder().read():
        if live.state not in GONE and live.project in folders:
            raise MoveFailed(f"session {live.session} is open (process {live.pid}): end it first")
    for run in list_runs(runs_dir()):
        if run.alive and run.cwd in folders:
            raise MoveFailed(
                f"run {run.id} works in {run.cwd}: stop it first, or wait until it ends"
            )
    for path in move.chats:
        facts = stat_if_possible(path)
        if facts is not None and facts.st_mtime > time.time() - _MINUTE:
            raise MoveFailed(
                f"{path} was written within the last minute: end its session first, and wait a "
                "minute"
            )
    return move


def _files(move: ProjectMove) -> str:
    return counted(len(move.chats), "session file")


def _lines(move: ProjectMove) -> Iterator[str]:
    yield clean_line(f"{_files(move)} of {move.old}")
    yield clean_line(f"will belong to {move.new}, by these changes in Gemini CLI's folder:")
    for step in move.steps:
        yield clean_line(f"  {step.words}")
    yield "End Gemini CLI in this project first."
