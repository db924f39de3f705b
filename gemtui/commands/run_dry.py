"""`gemtui run --dry-run`: print the exact command of a run, and its files."""

from __future__ import annotations

import uuid
from pathlib import Path

from gemtui.agent.command import Command
from gemtui.agent.gemini import UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.commands.output import json_to_stdout, lines_to_stdout
from gemtui.paths import current_folder
from gemtui.runs.before_run import told_before
from gemtui.text import clean_line
from gemtui.worktree_records import NEW_WORKTREE, worktree_of


def show(adapter: UnguardedAdapter, prompt: str, options: AgentOptions, *, as_json: bool) -> None:
    """Print what `adapter` would run. Raises CliNotFound, OptionError."""
    id = str(uuid.uuid4())
    command = adapter.command(prompt, options, id=id)
    folder, cwd = adapter.runs / id, options.cwd or current_folder()
    told = told_before(options)
    where = (NEW_WORKTREE,) if options.worktree and worktree_of(cwd) is None else ()
    if as_json:
        found = {**report(command, prompt, folder, cwd), "before": told.to_dict()}
        found["notes"] = [*where, *command.notes]
        json_to_stdout(found)
    else:
        lines_to_stdout(clean_line(f"# {words}") for words in (*where, *told.lines()))
        lines_to_stdout(command.script(prompt, folder, cwd))


def report(command: Command, prompt: str | None, folder: Path, cwd: Path) -> dict[str, object]:
    """Return the command as JSON values.

    `prompt`: None if it is not known yet.
    """
    return {
        "version": 1,
        "argv": command.argv,
        "cwd": str(cwd),
        "environment": dict(command.environ),
        "folder": str(folder),
        "files": dict(command.files),
        "stdin": prompt if command.stdin else None,
        "session": command.session_id,
        "notes": command.notes,
    }
