"""Decide whether a command only reads files of the project.

The CLI looks for options that are known to do more than read. This module does the opposite: it
accepts the options that the table of programs lists for programs that only read, and anything else
is a reason to ask the user. assets/gemini-cli.md#safe-commands lists what each program could do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gemtui.calls.shell.command_safety import Workspace
from gemtui.calls.shell.program_table import CommandFolders, outside, program_table, why_unknown
from gemtui.calls.shell.words import PlainWord

_SED_LINES: Final = re.compile(r"[0-9]+(?:,[0-9]+)?p")
_SED: Final = (
    "sed can write files and run programs; gemtui recognises only `sed -n 1,5p FILE` as read-only"
)


def program(words: Sequence[PlainWord]) -> str:
    """Return the program that a command starts, under the name that the tables use.

    This is the command's first word, or "" if that is a file pattern. An absolute path is shortened
    only for ripgrep, because the CLI considers ripgrep safe only with its absolute path.
    """
    first = words[0]
    if first.glob is not None:
        return ""
    return "rg" if first.text.startswith("/") and first.text.endswith("/rg") else first.text


def git_subcommand(words: Sequence[PlainWord]) -> str:
    """Return git's subcommand; "" if an option other than `--no-pager` comes first."""
    left = [word.text for word in words[1:] if word.text != "--no-pager"]
    return left[0] if left and not left[0].startswith("-") else ""


def why_acts(words: Sequence[PlainWord], folders: CommandFolders) -> str | None:
    """Return why a command may do more than read project files; None if it only reads.

    The reason is a phrase such as "it writes a file". Programs that git starts because of its
    configuration are not considered here.
    """
    name = program(words)
    if name == "rg" and not Workspace.of(folders.project, "").trusts(words[0].text):
        return "its program is not in a system folder"
    if name == "sed":
        return _why_sed_acts(words[1:], folders)
    rest = [word for word in words[1:] if name != "git" or word.text != "--no-pager"]
    row = program_table().find([name, *(word.text for word in rest)])
    if row is None or not row[1].reads:
        what = "git command" if name == "git" else "command"
        return f"gemtui does not recognise it as a read-only {what}"
    length, usage = row
    return why_unknown(usage, rest[length - 1 :], folders)


def _why_sed_acts(words: Sequence[PlainWord], folders: CommandFolders) -> str | None:
    texts = [word.text for word in words]
    lines = len(texts) in (2, 3) and texts[0] == "-n" and _SED_LINES.fullmatch(texts[1])
    if not lines or any(word.glob is not None for word in words):
        return _SED
    for word in words[2:]:
        if word.text.startswith("-"):
            return _SED
        if folders.is_outside(word.text):
            return outside(word)
    return None
