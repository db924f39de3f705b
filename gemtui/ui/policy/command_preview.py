"""Preview the command line of a run that uses the policy being edited."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from gemtui.agent.command import Machine, command_of, policy_warnings
from gemtui.agent.options import AgentOptions
from gemtui.errors import GemtuiError
from gemtui.policy.edit.store import Origin
from gemtui.ui.rules.draft import Draft

NAMED = (Origin.OURS, Origin.FILE)
"""The origins of policy files that gemtui passes to a run with `--policy`.

Gemini CLI loads policy files of other origins by itself.
"""
RUN = "RUN"
"""Stands for the folder and the id of the run in the preview; there is no run yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPreview:
    """The command of a run that would use the policy, or why there is none.

    `script`: the command as lines to paste into bash or zsh; it reads the prompt from the file
    `prompt.txt`. `recipient`: the program that receives the arguments. `environ`: the environment
    variables to set, as NAME=VALUE. `argv`: the program and its arguments. `problem`: why there is
    no command. `notes`: what the user should know about the command.
    """

    script: str = ""
    recipient: str = ""
    environ: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    problem: str = ""
    notes: tuple[str, ...] = ()


def command_preview(draft: Draft, machine: Machine, recipient: str, *, runs: Path, cwd: Path) -> CommandPreview:
    """Return the command of a run in `cwd` with the draft's policy and mode.

    `draft`: the policy being edited. `machine`: facts about the installed Gemini CLI. `recipient`:
    the program that would receive the arguments. `runs`: the folder that contains one subfolder for
    each run's own files. Blocking: checks which files exist.
    """
    file = None if draft.opened is None else draft.opened.file
    if file is None:
        return CommandPreview(problem="Save the policy to see its command here.")
    given = (file.path,) if file.origin in NAMED else ()
    options = AgentOptions(cwd=cwd, approval_mode=draft.mode, policies=given)
    folder = runs / str(uuid.uuid4())
    try:
        command = command_of("", options, machine, folder=runs / RUN, session_id=RUN)
        pasted = command_of("", options, machine, folder=folder, session_id=None)
    except GemtuiError as error:
        return CommandPreview(problem=str(error))
    notes = []
    if draft.changed:
        notes.append("uses the saved file, without your unsaved changes")
    if not given:
        notes.append("Gemini CLI loads this file itself, in every session")
    shown = set(policy_warnings(given, draft.mode))
    notes += [note for note in command.notes if note not in shown]
    return CommandPreview(
        script="\n".join(pasted.script(None, folder, cwd)),
        recipient=recipient,
        environ=tuple(f"{name}={value}" for name, value in command.environ.items()),
        argv=command.argv,
        notes=tuple(notes),
    )
