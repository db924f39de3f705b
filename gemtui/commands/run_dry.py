"""`gemtui run --dry-run`: the exact command of a run and its files, as for a shell."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

from gemtui.agent.command import Command, quoted
from gemtui.agent.gemini import GeminiAdapter
from gemtui.agent.options import AgentOptions
from gemtui.commands.output import lines_to_stdout, to_stdout
from gemtui.jsonout import encode
from gemtui.paths import current_folder
from gemtui.text import Clean, clean_line


def show(adapter: GeminiAdapter, prompt: str, options: AgentOptions, *, as_json: bool) -> None:
    """Print what `adapter` would run. Raises CliNotFound, OptionError."""
    id = str(uuid.uuid4())
    command = adapter.command(prompt, options, id=id)
    folder, cwd = adapter.runs / id, options.cwd or current_folder()
    if as_json:
        to_stdout([encode(report(command, prompt, folder, cwd)), b"\n"])
    else:
        lines_to_stdout(script(command, prompt, folder, cwd))


def report(command: Command, prompt: str | None, folder: Path, cwd: Path) -> dict[str, object]:
    """Return the command for JSON; `prompt` None = it is not known yet."""
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


def script(command: Command, prompt: str | None, folder: Path, cwd: Path) -> Iterator[Clean]:
    """A script for bash or zsh that does what the run would do, but for watching over it.

    Without a prompt it takes one from `prompt.txt` in the folder where it runs.
    """
    for words in command.notes:
        yield Clean(f"# {clean_line(words)}")
    files = dict(command.files)
    if command.stdin and prompt is not None:
        files["prompt.txt"] = prompt
    if files:
        yield Clean(f"mkdir -p -m 700 {quoted(str(folder))}")
    for name, text in files.items():
        yield Clean(f"printf %s {quoted(text)} > {quoted(str(folder / name))}")
    added = [f"{name}={quoted(value)}" for name, value in command.environ.items()]
    stdin = quoted(_prompt(folder, prompt)) if command.stdin else "/dev/null"
    yield Clean(f"cd {quoted(str(cwd))} &&")
    yield Clean(" ".join((*added, *map(quoted, command.argv), "<", stdin)))


def _prompt(folder: Path, prompt: str | None) -> str:
    return "prompt.txt" if prompt is None else str(folder / "prompt.txt")
