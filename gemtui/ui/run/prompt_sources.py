"""Suggestions for the prompt field: earlier and unsent prompts, files, and slash commands.

Slash commands are gemtui's own, and the user's custom commands for Gemini CLI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from gemtui.agent.custom_commands import custom_commands
from gemtui.files import read_small, write_whole
from gemtui.paths import make_own_folder
from gemtui.text import clean, clean_line
from gemtui.ui.kit.keys import BY_ID

if TYPE_CHECKING:
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry


MOST_PROMPTS = 200
LONGEST = 20_000
"""Maximum length in characters of a prompt to remember."""
MOST_BYTES = 8 * MOST_PROMPTS * LONGEST
"""Maximum size in bytes of the file with the remembered prompts."""
MOST_FILES = 20_000
_PASSED_OVER = {"node_modules", "__pycache__", "target", "dist", "build", "venv"}


class History:
    """Earlier prompts, oldest first, stored in a file that only the user can read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.prompts = list(_read(path))

    def add(self, prompt: str) -> None:
        """Remember a prompt.

        If the file can't be written, the prompt is only remembered until gemtui exits. The file is
        read again first: another gemtui may have added prompts to it, and prompts that the user has
        deleted from it must not come back. Very long prompts aren't remembered.
        """
        if not prompt.strip() or len(prompt) > LONGEST:
            return
        others = (earlier for earlier in _read(self.path) if earlier != prompt)
        self.prompts = [*others, prompt][-MOST_PROMPTS:]
        try:
            make_own_folder(self.path.parent)
            lines = (orjson.dumps(saved) + b"\n" for saved in self.prompts)
            write_whole(self.path, lines, durable=True)
        except OSError:
            return


def _read(path: Path) -> Iterator[str]:
    try:
        lines = read_small(path, MOST_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines[-MOST_PROMPTS - 1 :]:
        try:
            prompt = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(prompt, str):
            yield clean(prompt)


def paths_below(folder: Path) -> tuple[str, ...]:
    """Return the paths of files and folders under `folder`, least deeply nested first.

    Folders end in a slash. At most 20,000 paths are returned. Hidden files, build folders such as
    `node_modules`, and names that can't be typed are left out.
    """
    return tuple(path for path, _ in zip(_walk(folder), range(MOST_FILES), strict=False))


def _walk(folder: Path) -> Iterator[str]:
    waiting = [""]
    while waiting:
        below: list[str] = []
        for parent in waiting:
            for entry in _entries(folder / parent):
                path = parent + entry.name
                if path != clean(path):
                    continue
                if _is_folder(entry):
                    below.append(f"{path}/")
                    yield f"{path}/"
                else:
                    yield path
        waiting = below


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            kept = [e for e in entries if not e.name.startswith(".") and e.name not in _PASSED_OVER]
    except (OSError, ValueError):  # ValueError: the path contains a NUL
        return []
    return sorted(kept, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False)
    return False


def matching_paths(wanted: str, paths: Iterable[str], *, most: int) -> tuple[str, ...]:
    """Return up to `most` paths that match what the user has typed, best first.

    The best matches are those whose path or name starts with `wanted`. Next come those that contain
    it, and then those that contain its letters in order. Case matters only if `wanted` contains a
    capital letter.
    """
    exact = wanted != wanted.lower()
    ranked: list[tuple[int, int, str]] = []
    for path in paths:
        rank = _rank(wanted, path if exact else path.lower())
        if rank is not None:
            ranked.append((rank, len(path), path))
    return tuple(path for *_, path in sorted(ranked)[:most])


def _rank(wanted: str, path: str) -> int | None:
    name = path.rstrip("/").rpartition("/")[2]
    if path.startswith(wanted) or name.startswith(wanted):
        return 0
    if wanted in path:
        return 1
    letters = iter(path)
    return 2 if all(letter in letters for letter in wanted) else None


class PromptDrafts:
    """Unsent prompts: one per run, one per session to continue, and one for a new run.

    Runs that were started from one another's queue share their unsent prompts.
    """

    def __init__(self, registry: RunRegistry) -> None:
        self._registry = registry
        self._texts: dict[str | None, str] = {}

    def exchange(self, here: str | None, text: str, to: LiveRun | None, resume: str | None) -> str:
        """Store an unsent prompt, and return the stored one for what is shown next.

        `here`: the id of the run or session that `text` was typed for, or None for a new run. `to`:
        the run that is shown next, or None. `resume`: if `to` is None, the id of the session that
        is shown next, or None for a new run. If `here` is the same as what is shown next, `text`
        itself is returned.
        """
        places = [resume] if to is None else self._places(to)
        if here in places:
            return text
        self._texts[here] = text
        drafts = [self._texts.pop(run_id, "") for run_id in places]
        return "\n\n".join(filter(None, drafts))

    def _places(self, run: LiveRun) -> list[str | None]:
        """Return the ids of the runs that share unsent prompts with this one.

        The oldest comes first.
        """
        return [attempt.id for attempt in self._registry.runs if attempt.latest is run.latest]


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
_BY_NAME |= {"rewind": _BY_NAME["undo"], "cost": _BY_NAME["stats"]}  # as other agents call them
SENT_AT_ONCE = {f"/{command.name}" for command in OWN} - {"/mode", "/model"}
"""Commands that enter completes and sends in one step; the others are followed by a word."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A completion to offer: the text to insert, and a description."""

    text: str
    words: str


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
    match = _WORD.fullmatch(line)
    return match[1] if match else None


def slash_offers(folder: Path) -> tuple[Offer, ...]:
    """Return all slash commands for a run in `folder`, gemtui's and custom ones.

    Blocking: reads files.
    """
    own = (Offer(command.name, command.help) for command in OWN)
    return (*own, *_custom(folder))


def _custom(folder: Path) -> Iterator[Offer]:
    for command in custom_commands(folder):
        if command.name not in _BY_NAME:
            whose = "project" if command.project else "yours"
            shell = ", runs shell commands" * command.runs_shell
            description = clean_line(command.description)
            yield Offer(command.name, f"{description} ({whose}{shell})".strip())
