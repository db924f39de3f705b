"""Which commands may run without a question."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gemtui.calls.shell.parser import parse_command
from gemtui.calls.shell.quote import words

_ODD = re.compile(r"[^\S \t\n]|\ufeff")


def why_ask(
    command: str,
    *,
    project: Path,
    dir_path: str | None,
    environ: Mapping[str, str],
) -> str | None:
    """Return why a person is to be asked about a command, a clause; None = nobody need be."""
    del project, environ
    if _ODD.search(command):
        return "it has blanks that bash does not take for blanks"
    if dir_path not in (None, "", "."):
        return "it runs in another folder"
    for part in parse_command(command).parts:
        try:
            program, *_ = (word.text for word in words(part.text))
        except ValueError:
            return "it can't be taken apart"
        if program not in ("ls", "cat", "pwd", "echo", "head", "tail", "wc"):
            return f"{program} may write a file or run a program"
    return None
