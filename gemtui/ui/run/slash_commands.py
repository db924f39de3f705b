"""Slash commands: gemtui's own, and the user's custom commands for Gemini CLI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gemtui.agent.custom_commands import custom_commands
from gemtui.text import Clean, clean_line

_WORD = re.compile(r"/(\S*)")


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """One of gemtui's slash commands; `action` is an action of the run pane or app."""

    name: str
    help: str
    action: str


OWN = (
    OwnCommand("clear", "Open an empty pane (same as /new)", "new"),
    OwnCommand("command", "Show the exact command that enter will run", "command"),
    OwnCommand("exit", "Quit gemtui (same as /quit)", "app.quit"),
    OwnCommand("extension", "Install or remove the Gemini CLI extension", "app.extension"),
    OwnCommand("fork", "Start a new chat from just before this prompt", "fork"),
    OwnCommand("help", "Show the keys for this screen", "app.help"),
    OwnCommand("mode", "Switch the mode: ask, auto_edit, plan, yolo", "mode"),
    OwnCommand("model", "Set the model: auto, pro, flash or a full name", "model"),
    OwnCommand("new", "Open an empty pane; current runs continue", "new"),
    OwnCommand("options", "Set approval, mode, model, tools and limits", "options"),
    OwnCommand("policy", "Go to the policies, which limit what runs may do", "app.policies"),
    OwnCommand("queue", "Reorder, edit or send queued prompts", "queue"),
    OwnCommand("quit", "Quit gemtui", "app.quit"),
    OwnCommand("redo", "Reverse the last undo (preview first)", "redo"),
    OwnCommand("resume", "Go to the stored sessions (c continues one)", "app.sessions"),
    OwnCommand("retry", "Run this prompt again", "again"),
    OwnCommand("review", "Review this run's changes hunk by hunk", "review"),
    OwnCommand("runs", "List all runs, to open or stop one", "runs"),
    OwnCommand("sessions", "Go to the stored sessions", "app.sessions"),
    OwnCommand("stats", "Show tokens, calls, files and cost of sessions", "app.stats"),
    OwnCommand("stderr", "Show Gemini CLI's stderr", "stderr"),
    OwnCommand("stop", "Stop the run", "stop"),
    OwnCommand("theme", "Preview and choose a theme", "app.change_theme"),
    OwnCommand("undo", "Undo to just before this prompt (preview first)", "undo_to"),
    OwnCommand("worktree", "Toggle a new git worktree for the next run", "worktree"),
    OwnCommand("worktrees", "Compare, apply or remove runs' git worktrees", "app.worktrees"),
)
_BY_NAME = {each.name: each for each in OWN}


@dataclass(frozen=True, slots=True)
class Offer:
    """A completion: the text to insert, and a description."""

    text: str
    words: Clean


def own_command(prompt: str) -> tuple[OwnCommand, str] | None:
    """Return the gemtui command in a prompt and the command's argument, or None.

    A project's file can't redefine these commands, so a command such as /stop is never sent to a
    model.
    """
    first, _, rest = prompt.rstrip().partition(" ")
    command = _BY_NAME.get(first.removeprefix("/")) if first.startswith("/") else None
    return None if command is None else (command, rest.strip())


def slash_word(line: str) -> str | None:
    """Return the command name being typed on the prompt's first line, or None."""
    found = _WORD.fullmatch(line)
    return found[1] if found else None


def slash_offers(folder: Path) -> tuple[Offer, ...]:
    """Return all slash commands for a run in `folder`. Blocking: reads files."""
    own = (Offer(each.name, Clean(each.help)) for each in OWN)
    return (*own, *_custom(folder))


def _custom(folder: Path) -> Iterator[Offer]:
    for each in custom_commands(folder):
        if each.name not in _BY_NAME:
            whose = "project" if each.project else "yours"
            shell = ", runs shell commands" * each.runs_shell
            said = clean_line(each.description)
            yield Offer(each.name, Clean(f"{said} ({whose}{shell})".strip()))
