"""Extract a file's contents from the output of shell commands.

Only commands without variables, substitutions and the like are considered, because only their
arguments are certain. A terminal changes tabs and trailing spaces, so the contents are never
certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gemtui.calls.shell.words import Unclear, plain_commands
from gemtui.recover.rebuilt import Diff, RecordedLines, Shown, Whole

_LINES = re.compile(r"(\d{1,9})(?:,(\d{1,9}))?p")
_COUNT = re.compile(r"-(?:n)?(\d{1,9})|--lines=(\d{1,9})")
_DEFAULT = 10
"""The number of lines that head and tail print by default."""


def shown_by(command: str, output: str, names: Callable[[str], bool]) -> Shown | None:
    """Return the part of a file that a command's output shows; None if there is none.

    `names`: returns whether a word of the command names the file, relative to the command's folder.
    """
    try:
        (words,) = [[word.text for word in each] for each in plain_commands(command)]
    except (Unclear, ValueError):
        return None
    if not output.strip() or len(words) < 2:
        return None
    lines = tuple(output.removesuffix("\n").split("\n"))
    program, *rest = words
    if program == "git":
        return _of_git(rest, output, lines, names)
    if not names(rest[-1]):
        return None
    options = rest[:-1]
    match program:
        case "cat" if not options:
            return Whole(text="\n".join((*lines, "")))
        case "head" if (many := _count(options)) is not None:
            if len(lines) < many:
                return Whole(text="\n".join((*lines, "")))
            return RecordedLines(first=1, lines=lines)
        case "tail" if (many := _count(options)) is not None:
            if len(lines) < many:
                return Whole(text="\n".join((*lines, "")))
            return RecordedLines(first=0, lines=(*lines, ""))
        case "sed" if len(options) == 2 and options[0] == "-n":
            found = _LINES.fullmatch(options[1])
            return None if found is None else RecordedLines(first=max(1, int(found[1])), lines=lines)
    return None


def _count(options: Sequence[str]) -> int | None:
    """Return the number of lines that head or tail print; None for other options."""
    if not options:
        return _DEFAULT
    text = "".join(options) if options[0] == "-n" and len(options) == 2 else options[0]
    found = _COUNT.fullmatch(text) if len(options) == 1 or options[0] == "-n" else None
    return None if found is None else int(found[1] or found[2])


def _of_git(words: Sequence[str], output: str, lines: Sequence[str], names: Callable[[str], bool]) -> Shown | None:
    match [*words]:
        case ["show", wanted]:
            _, colon, name = wanted.partition(":")
            if colon and names(name.removeprefix("./")):
                return Whole(text="\n".join((*lines, "")))
        case ["diff", name] | ["diff", "--", name] if names(name):
            return Diff(text=output.rstrip("\n") + "\n")
    return None
