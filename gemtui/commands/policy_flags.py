"""`gemtui policy flags`: print the complete command of a run with a policy, for copying."""

from __future__ import annotations

import uuid
from dataclasses import replace

from gemtui.agent.command import command_of
from gemtui.agent.gemini import UnguardedAdapter, planned_machine
from gemtui.commands.output import json_to_stdout, lines_to_stdout
from gemtui.commands.run_cli import RunArguments
from gemtui.commands.run_dry import report
from gemtui.commands.run_options import options_of
from gemtui.paths import current_folder


def flags(name: str, words: RunArguments) -> int:
    """Print the files and the command that `gemtui run --policy NAME` would use.

    If no CLI is installed, the newest known version is assumed. Raises click.UsageError,
    OptionError.
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
