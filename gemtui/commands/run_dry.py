"""`gemtui run --dry-run`, `gemtui policy flags`: print a run's command and files."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

from gemtui.agent.command import Command, command_of
from gemtui.agent.gemini import UnguardedAdapter, planned_machine
from gemtui.agent.options import AgentOptions
from gemtui.commands.output import json_to_stdout, lines_to_stdout
from gemtui.commands.run_cli import RunArguments
from gemtui.commands.run_options import options_of
from gemtui.paths import current_folder
from gemtui.runs.before_run import before_run_report
from gemtui.text import clean_line
from gemtui.worktree_records import NEW_WORKTREE, worktree_of


def print_dry_run(adapter: UnguardedAdapter, prompt: str, options: AgentOptions, *, as_json: bool) -> None:
    """Print the command and files with which `adapter` would run the prompt.

    Raises CliNotFound, OptionError.
    """
    id = str(uuid.uuid4())
    command = adapter.command(prompt, options, id=id)
    folder, cwd = adapter.runs / id, options.cwd or current_folder()
    told = before_run_report(options)
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

    `prompt`: None if it is not known yet. `folder`: the folder for the run's own files. `cwd`: the
    folder in which the run would work.
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


def print_flags(name: str, words: RunArguments) -> int:
    """Print the command and files that `gemtui run --policy NAME` would use.

    `name`: the policy. `words`: the other options. If no CLI is installed, the newest version that
    gemtui knows is assumed. Raises click.UsageError, OptionError.
    """
    policies = (name, *words.options.get("policies", ()))
    options = options_of({**words.options, "policies": policies})
    adapter = UnguardedAdapter()
    machine, missing = planned_machine(adapter, options.cwd)
    folder, cwd = adapter.runs / str(uuid.uuid4()), options.cwd or current_folder()
    command = command_of("", options, machine, folder=folder, session_id=None)
    command = replace(command, notes=(*([missing] if missing else []), *command.notes))
    if words.as_json:
        found = {**report(command, None, folder, cwd), "policy": str(options.policies[0])}
        json_to_stdout(found)
    else:
        lines_to_stdout(command.script(None, folder, cwd))
    return 0
