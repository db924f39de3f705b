"""Slash commands: gemtui's own, and the user's custom commands for Gemini CLI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gemtui.agent.custom_commands import custom_commands
from gemtui.text import Clean, clean_line
from gemtui.ui.kit.keys import BY_ID

_WORD = re.compile(r"/(\S*)")


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """One of gemtui's slash commands.

    `action`: the name of an action of the run pane or, with the prefix "app.", of the app.
    """

    name: str
    help: str
    action: str


def _own(name: str, action: str, help: str = "") -> OwnCommand:
    """Return one of gemtui's slash commands.

    `action`: the action's name (see `OwnCommand`). `help`: a sentence; "" uses the help text of the
    action's key binding.
    """
    key = action if "." in action else f"run.{action}"
    return OwnCommand(name, help or BY_ID[key].help, action)


OWN = (
    _own("clear", "new", "Open an empty pane (same as /new)"),
    _own("command", "command"),
    _own("exit", "app.quit", "Quit gemtui (same as /quit)"),
    _own("extension", "app.extension"),
    _own("fork", "fork"),
    _own("help", "app.help"),
    _own("mode", "mode", "Switch the mode: ask, auto_edit, plan, yolo"),
    _own("model", "model", "Set the model: auto, pro, flash or a full name"),
    _own("new", "new"),
    _own("options", "options"),
    _own("policy", "app.policies"),
    _own("queue", "queue"),
    _own("quit", "app.quit"),
    _own("redo", "redo"),
    _own("resume", "app.sessions", "Go to the stored sessions; c there continues one"),
    _own("retry", "again"),
    _own("review", "review"),
    _own("runs", "runs"),
    _own("sessions", "app.sessions"),
    _own("stats", "app.stats", "Show tokens, calls, files and cost of sessions"),
    _own("stderr", "stderr"),
    _own("stop", "stop", "Stop the run"),
    _own("theme", "app.change_theme"),
    _own("undo", "undo_to"),
    _own("worktree", "worktree"),
    _own("worktrees", "app.worktrees"),
)
_BY_NAME = {each.name: each for each in OWN}


@dataclass(frozen=True, slots=True)
class Offer:
    """A completion to offer: the text to insert, and a description."""

    text: str
    words: Clean


def own_command(prompt: str) -> tuple[OwnCommand, str] | None:
    """Return gemtui's own command at the start of a prompt, and its argument.

    Returns None if the prompt starts with no such command. A project's files can't redefine these
    commands, and a command such as /stop is never sent to a model.
    """
    first, _, rest = prompt.rstrip().partition(" ")
    command = _BY_NAME.get(first.removeprefix("/")) if first.startswith("/") else None
    return None if command is None else (command, rest.strip())


def slash_word(line: str) -> str | None:
    """Return the command name that is being typed after a slash, or None.

    `line`: the prompt's first line up to the cursor.
    """
    found = _WORD.fullmatch(line)
    return found[1] if found else None


def slash_offers(folder: Path) -> tuple[Offer, ...]:
    """Return all slash commands for a run in `folder`, gemtui's and custom ones.

    Blocking: reads files.
    """
    own = (Offer(each.name, Clean(each.help)) for each in OWN)
    return (*own, *_custom(folder))


def _custom(folder: Path) -> Iterator[Offer]:
    for each in custom_commands(folder):
        if each.name not in _BY_NAME:
            whose = "project" if each.project else "yours"
            shell = ", runs shell commands" * each.runs_shell
            said = clean_line(each.description)
            yield Offer(each.name, Clean(f"{said} ({whose}{shell})".strip()))
