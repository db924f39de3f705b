"""`gemtui run --dry-run`: the exact command and its files, as a shell would take them."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path

from gemtui.agent.command import Command
from gemtui.agent.gemini import GeminiAdapter
from gemtui.agent.options import AgentOptions
from gemtui.commands.answer import lines_to_stdout, to_stdout
from gemtui.jsonout import encode
from gemtui.text import Clean, clean, clean_line

_OUTSIDE_ASCII = re.compile(r"[^ -~]")


def show(adapter: GeminiAdapter, prompt: str, options: AgentOptions, *, as_json: bool) -> None:
    """Print what `adapter` would run. Raises CliNotFound, OptionError."""
    id = str(uuid.uuid4())
    command = adapter.command(prompt, options, id=id)
    folder, cwd = adapter.runs / id, options.cwd or Path.cwd()
    if as_json:
        to_stdout([encode(_report(command, prompt, folder, cwd)), b"\n"])
    else:
        lines_to_stdout(_script(command, prompt, folder, cwd))


def _report(command: Command, prompt: str, folder: Path, cwd: Path) -> dict[str, object]:
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


def _script(command: Command, prompt: str, folder: Path, cwd: Path) -> Iterator[Clean]:
    """A script for bash or zsh that does what the run would do, but for watching over it."""
    for words in command.notes:
        yield Clean(f"# {clean_line(words)}")
    yield Clean(f"mkdir -p -m 700 {quoted(str(folder))}")
    files = {**command.files, **({"prompt.txt": prompt} if command.stdin else {})}
    for name, text in files.items():
        yield Clean(f"printf %s {quoted(text)} > {quoted(str(folder / name))}")
    added = [f"{name}={quoted(value)}" for name, value in command.environ.items()]
    stdin = quoted(str(folder / "prompt.txt")) if command.stdin else "/dev/null"
    yield Clean(f"cd {quoted(str(cwd))} &&")
    yield Clean(" ".join((*added, *map(quoted, command.argv), "<", stdin)))


def quoted(word: str) -> Clean:
    """One word for a shell; what a terminal would obey stands in it as `$'…'` escapes."""
    if clean(word) == word:
        return Clean(shlex.quote(word))
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return Clean("$'" + _OUTSIDE_ASCII.sub(_escape, escaped) + "'")


def _escape(found: re.Match[str]) -> str:
    """The character by its bytes, which every locale reads alike."""
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", "surrogatepass"))
