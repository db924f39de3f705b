"""Split the contents of a policy file into rules and the text between them.

No text is lost. Only `[[rule]]` lines outside multi-line strings and arrays are searched for, so
this works even for a file with errors elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from gemtui.policy.file.toml_spans import Scanner, toml_lines

OFF = "#off"
"""The mark before each line of a disabled rule.

A space follows the mark, unless the line is empty.
"""


_OFF = re.compile(rf"{OFF}(?:\s|$)")


class BlockKind(StrEnum):
    """The kinds of blocks in a policy file.

    RULE: an enabled rule. OFF: a disabled rule. GAP: anything else, such as blank lines, loose
    comments, other tables and top-level keys.
    """

    RULE = "rule"
    OFF = "off"
    GAP = "gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBlock:
    """Consecutive lines of a policy file that form a rule, or lie between two rules.

    A rule's block begins with the comments directly above the rule, and ends with its last field or
    the comments directly below that; it never ends with a blank line.
    """

    kind: BlockKind
    text: str

    @property
    def toml(self) -> str:
        """The lines as TOML, without the `#off ` marks of a disabled rule."""
        return uncommented(self.text) if self.kind is BlockKind.OFF else self.text


def blocks_of(text: str) -> tuple[LineBlock, ...]:
    """Split a policy file's contents into blocks; joined, they give the same contents."""
    lines = toml_lines(text)
    bodies = tuple(_bodies(lines))
    off = {at for body in bodies if body.kind is BlockKind.OFF for at in range(body.start, body.end)}
    found: list[_Body] = []
    for body in bodies:
        above = found[-1].end if found else 0
        start = body.start
        while start > above and _is_comment(lines[start - 1]):
            start -= 1
        found.append(_Body(body.kind, start, _with_comments_below(lines, body.end, off)))
    return tuple(_between(lines, found))


def comment_out(text: str) -> str:
    """Return a rule's lines with `#off ` marks, except those of comments above it."""
    lines = toml_lines(text)
    first = next((at for at, line in enumerate(lines) if not _is_comment(line)), 0)
    off = (f"{OFF} {line}" if line.strip("\r\n") else f"{OFF}{line}" for line in lines[first:])
    return "".join((*lines[:first], *off))


@lru_cache(maxsize=16_384)
def uncommented(text: str) -> str:
    """Return a disabled rule's lines without their `#off ` marks."""
    return "".join(_without_mark(line) for line in toml_lines(text))


class _Body(NamedTuple):
    """The lines of a rule without the comments around it.

    `start`: the index of its first line. `end`: the index of the line after its last one.
    """

    kind: BlockKind
    start: int
    end: int


def _between(lines: Sequence[str], found: Sequence[_Body]) -> Iterator[LineBlock]:
    at = 0
    for kind, start, end in found:
        if start > at:
            yield LineBlock(kind=BlockKind.GAP, text="".join(lines[at:start]))
        yield LineBlock(kind=kind, text="".join(lines[start:end]))
        at = end
    if at < len(lines):
        yield LineBlock(kind=BlockKind.GAP, text="".join(lines[at:]))


# --- lines ---------------------------------------------------------------------------------------


def _without_mark(line: str) -> str:
    if not _is_off(line):
        return line
    return line[len(OFF) + line.startswith(f"{OFF} ") :]


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#") and not _is_off(line)


def _is_off(line: str) -> bool:
    return _OFF.match(line) is not None


def _with_comments_below(lines: Sequence[str], end: int, off: Container[int]) -> int:
    """Return the index of the line that follows a rule and its comments.

    `end`: the index of the line after the rule's last field. The comments directly below that field
    belong to the rule if a blank line or the end of the file follows them; otherwise they belong to
    whatever follows. `off`: the indexes of the lines of disabled rules. A line that is marked
    `#off` but isn't in `off` always belongs to the rule above it, so that disabling and enabling
    that rule leaves the line unchanged.
    """
    below = kept = end
    while below < len(lines):
        stray = _is_off(lines[below]) and below not in off
        if not stray and not _is_comment(lines[below]):
            break
        below += 1
        kept = below if stray else kept
    return below if below == len(lines) or not lines[below].strip() else kept


# --- boundaries of rules -------------------------------------------------------------------------


class _Line(StrEnum):
    """The kinds of lines in a policy file; a comment counts as EMPTY."""

    RULE = "[[rule]]"
    PART = "[rule.…]"
    OTHER = "[…]"
    FIELD = "a field, or more of one"
    EMPTY = ""


def _bodies(lines: Sequence[str]) -> Iterator[_Body]:
    """Yield the position of each rule in `lines`, without the comments around it."""
    current: _Body | None = None
    for at, (kind, what) in enumerate(_kinds(lines)):
        if current is not None and _ends(current.kind, kind, what):
            yield current
            current = None
        if what is _Line.RULE:
            current = _Body(kind, at, at + 1)
        elif current is not None and kind is current.kind and (what or kind is BlockKind.OFF):
            current = current._replace(end=at + 1)
    if current is not None:
        yield current


def _ends(rule: BlockKind, kind: BlockKind, what: _Line) -> bool:
    """Return whether a line ends the rule above it.

    `rule`: whether that rule is enabled (RULE) or disabled (OFF). `kind`: the same for the line.
    `what`: what the line contains. A `[[rule]]` line always ends the rule, and so does the header
    of any other table. A disabled rule also ends at the first line that isn't disabled. A line
    marked `#off` that belongs to no disabled rule ends nothing.
    """
    return (
        what is _Line.RULE
        or (kind is rule and what is _Line.OTHER)
        or (rule is BlockKind.OFF and kind is BlockKind.RULE)
    )


def _kinds(lines: Sequence[str]) -> Iterator[tuple[BlockKind, _Line]]:
    """Yield for each line whether it is disabled (OFF or RULE), and what it contains.

    Consecutive disabled lines are scanned separately, so that an unclosed value in them has no
    effect on the other lines.
    """
    on, off = Scanner(), Scanner()
    for line in lines:
        if not on.inside and _is_off(line):
            yield BlockKind.OFF, _kind(_without_mark(line), off)
        else:
            off = Scanner()
            yield BlockKind.RULE, _kind(line, on)


def _kind(line: str, scanner: Scanner) -> _Line:
    header = _header(line)
    if header is _Line.RULE and not scanner.in_string:
        scanner.reset()  # no value contains such a line, so an array was left unclosed above
    if scanner.inside:
        scanner.feed(line)
        return _Line.FIELD
    if header is not None:
        return header
    if not line.strip() or line.lstrip().startswith("#"):
        return _Line.EMPTY
    scanner.feed(line)
    return _Line.FIELD


def _header(line: str) -> _Line | None:
    """Return a header line's kind; None if the line doesn't begin with a bracket.

    A header is a line such as `[[rule]]` or `[rule.toolAnnotations]`.
    """
    if line.rstrip() == "[[rule]]":
        return _Line.RULE
    if not line.lstrip().startswith("["):
        return None
    try:
        table = parse_toml(line)
    except TomlError:
        return _Line.OTHER
    if table == {"rule": [{}]}:
        return _Line.RULE
    return _Line.PART if table.get("rule") else _Line.OTHER
