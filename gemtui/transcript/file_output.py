"""The output of a file-reading call, without lines added by Gemini CLI.

See assets/gemini-cli.md#tool-calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_HEAD = re.compile(
    r"\n?IMPORTANT: The file content has been truncated\.\n"
    r"Status: Showing lines (?P<lines>(?P<first>\d{1,9})-\d{1,9} of (?P<total>\d{1,9})) total lines"
    r"\.\n"
    r"[^\n]*\n\n--- FILE CONTENT \(truncated\) ---\n"
)
_OLD_HEAD = re.compile(
    r"\[File content (?:partially )?truncated: showing lines "
    r"(?P<lines>(?P<first>\d{1,9})-\d{1,9} of (?P<total>\d{1,9})) total lines[^\n]*\]\n"
)
_SHOWN = ("Read lines ", "Read all ", "Read SVG as text")
_SHORTENED = "... [truncated]"
_PROJECT_CONTEXT = "\n\n--- Newly Discovered Project Context ---\n"
_HOOK = "<hook_context>"
_SEPARATOR = re.compile(r"(?:\A|\n)--- (.+) ---\n\n")


class FileLines(NamedTuple):
    """Lines of a file, and the 1-based number of the first line."""

    first: int
    text: str


def lines_read(output: str, shown: str, args: Mapping[str, Any]) -> FileLines | None:
    """Return the lines of a file that a read call returned; None for any other output.

    `output`: the output that the model received, which may also be merely a message. `shown`: what
    the CLI displayed. `args`: the call's arguments. If a read returns only part of a file, the CLI
    puts a notice for the model before the lines; this notice is removed. Because the file may
    itself begin with such a notice, the result is None unless `shown` has the same line numbers as
    the notice.
    """
    if shown.strip() and not shown.startswith("Read lines "):
        return None
    head = _HEAD.match(output)
    if head is not None:
        own = shown.startswith(f"Read lines {head['lines']} from ")
        return FileLines(int(head["first"]), output[head.end() :]) if own else None
    return FileLines(max(1, requested_lines(args)[0] or 1), output)


class FilePart(NamedTuple):
    """Lines of a file in the output of a read.

    `first`: the 1-based number of the first line. `total`: the number of lines in the file,
    counting the empty string after a final line feed as a line; None if unknown. `certain`: whether
    the file had exactly these lines, apart from line endings.
    """

    first: int
    text: str
    total: int | None
    certain: bool


def part_read(output: str, shown: str, args: Mapping[str, Any]) -> FilePart | None:
    """Return what a read call shows of a file, and whether that is certain.

    Returns None for any other output. The arguments are the same as for `lines_read`. The part is
    not certain if Gemini CLI or a hook added something or if lines were shortened
    (assets/gemini-cli.md#tool-calls).
    """
    if shown.strip() and not shown.startswith(_SHOWN):
        return None
    text, added, _ = output.partition(_PROJECT_CONTEXT)
    certain = not added and _HOOK not in output
    first, total = max(1, requested_lines(args)[0] or 1), None
    for head in (_HEAD, _OLD_HEAD):
        if (found := head.match(text)) is not None:
            certain &= found["lines"] in shown
            first, total = int(found["first"]), int(found["total"])
            text = text[found.end() :]
            break
    lines = text.split("\n")
    certain &= not any(line.endswith(_SHORTENED) for line in lines)
    return FilePart(first, text, first - 1 + len(lines) if total is None else total, certain)


def files_read(output: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file in the output of `read_many_files`.

    A file that itself contains a separator line is split incorrectly.
    """
    inner = output.removesuffix("\n--- End of content ---").removesuffix("\n")
    _, *pieces = _SEPARATOR.split(inner)
    for name, text in zip(pieces[::2], pieces[1::2], strict=True):
        yield name, text.removesuffix("\n").removesuffix("\n")


def requested_lines(args: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the first and last line (1-based) that a read call requested.

    A number is None if it is unspecified.
    """
    first, last, offset, limit = map(_number, map(args.get, ("start_line", "end_line", "offset", "limit")))
    if offset is not None or limit is not None:
        start = (offset or 0) + 1
        return start, None if limit is None else start + limit - 1
    return first, last


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 10**9 else None
