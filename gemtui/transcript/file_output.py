"""What a read of one file gave, without what Gemini CLI writes before it for the model.

See assets/gemini-cli.md#tool-calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_HEAD = re.compile(
    r"\n?IMPORTANT: The file content has been truncated\.\n"
    r"Status: Showing lines (?P<lines>(?P<first>\d{1,9})-\d{1,9} of \d{1,9}) total lines\.\n"
    r"[^\n]*\n\n--- FILE CONTENT \(truncated\) ---\n"
)


class FileLines(NamedTuple):
    """Lines of a file, and the number of the first one, from 1."""

    first: int
    text: str


def lines_read(output: str, shown: str, args: Mapping[str, Any]) -> FileLines | None:
    """Return the lines that a read gave; None if it gave something else, such as a remark.

    `output`: what the model got. `shown`: what the CLI showed. A file may begin with the words that
    the CLI puts before a part of one: they are its own if it showed the same numbers.
    """
    if shown.strip() and not shown.startswith("Read lines "):
        return None
    head = _HEAD.match(output)
    if head is not None:
        own = shown.startswith(f"Read lines {head['lines']} from ")
        return FileLines(int(head["first"]), output[head.end() :]) if own else None
    return FileLines(max(1, asked_lines(args)[0] or 1), output)


def asked_lines(args: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the first and last line that a read asked for, as far as its arguments tell."""
    first, last, offset, limit = map(
        _number, map(args.get, ("start_line", "end_line", "offset", "limit"))
    )
    if offset is not None or limit is not None:
        start = (offset or 0) + 1
        return start, None if limit is None else start + limit - 1
    return first, last


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 10**9 else None
