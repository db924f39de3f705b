"""Split the contents of a policy file into rules and the text between them.

No text is lost. Only `[[rule]]` lines outside multi-line strings and arrays are searched for, so
this works even for a file with errors elsewhere. Within a rule, values and fields are located so
that they can be replaced in place. tomlkit is not used for that: it rejects text that contains an
error, although such text must be editable as well, and it can't insert a field after a given one.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from gemtui.policy.file.rule_codec import key_text
from gemtui.policy.file.toml_dialect import TomlError, parse_toml

_TOKEN = re.compile(
    r"(?P<open>\"\"\"|''')"
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|'[^'\n]*'?"
    r"|(?P<comment>#.*)"
    r"|(?P<deeper>[\[{])"
    r"|(?P<higher>[\]}])"
    r"|[^\"'#\[\]{}]+"
)
_ENDS = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*'''", re.DOTALL),
}


def toml_lines(text: str) -> list[str]:
    """Split text into lines with their endings; as in TOML, only LF and CRLF end one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


class Scanner:
    """Scans TOML line by line, to find out whether a value continues on the next line.

    `inside` and `in_string` describe the state after the last line scanned.
    """

    def __init__(self) -> None:
        self._string = ""
        self._depth = 0

    @property
    def inside(self) -> bool:
        """Whether a string, an array or an inline table is still open."""
        return bool(self._string or self._depth)

    @property
    def in_string(self) -> bool:
        """Whether a multi-line string is still open."""
        return bool(self._string)

    def reset(self) -> None:
        """Forget any open value, so that the next line is scanned as outside of values."""
        self._string, self._depth = "", 0

    def feed(self, line: str) -> int:
        """Scan a line; return its length without its comment and trailing whitespace."""
        at = end = 0
        while at < len(line):
            if self._string:
                closed = _ENDS[self._string].match(line, at)
                at = end = closed.end() if closed else len(line)
                self._string = "" if closed else self._string
                continue
            token = _TOKEN.match(line, at)
            if token is None or token["comment"]:
                break
            at = token.end()
            self._string = token["open"] or ""
            self._depth = max(0, self._depth + bool(token["deeper"]) - bool(token["higher"]))
            end = at if token[0].strip() else end
        return len(line[:end].rstrip())


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlField:
    """A rule's `key = value` line, or a table header within the rule.

    `key`: the first part of a dotted key, such as `toolAnnotations` for
    `toolAnnotations.readOnlyHint`. `start`, `end`: the offsets of the field's whole lines in the
    rule's text. `value`: the start and end of the value in the rule's text; None if the field has a
    dotted key or is a table, so that no single value can be replaced.
    """

    key: str
    start: int
    end: int
    value: tuple[int, int] | None


_NAME = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"\s*({_NAME})\s*(\.|=)\s*")
_PART = re.compile(rf"\s*\[+\s*{_NAME}\s*\.\s*({_NAME})")


def fields_of(text: str) -> list[TomlField]:
    """Return the fields in a rule's text, in order, without the `[[rule]]` line."""
    scanner = Scanner()
    fields: list[TomlField] = []
    part: str | None = None
    at = 0
    for line in toml_lines(text):
        start = at
        at += len(line)
        if scanner.inside:
            end = start + scanner.feed(line)
            fields[-1] = _longer(fields[-1], at, end)
        elif line.lstrip().startswith("["):
            header = _PART.match(line)
            part = _name(header[1]) if header else None
            if part is not None:
                fields.append(TomlField(key=part, start=start, end=at, value=None))
        elif part is not None and line.strip() and not line.lstrip().startswith("#"):
            scanner.feed(line)
            fields[-1] = _longer(fields[-1], at, at)
        elif key := _KEY.match(line):
            end = start + scanner.feed(line)
            value = (start + key.end(), end) if key[2] == "=" else None
            fields.append(TomlField(key=_name(key[1]), start=start, end=at, value=value))
    return fields


def _longer(field: TomlField, end: int, value_end: int) -> TomlField:
    value = None if field.value is None else (field.value[0], value_end)
    return replace(field, end=end, value=value)


def _name(text: str) -> str:
    """Return a key without quotes and escapes, given its spelling in TOML."""
    return next(iter(parse_toml(f"{text} = 0")))


def value_of(text: str, key: str) -> str | None:
    """Return a field's value as it is written in a rule's text.

    Returns None if there is no such field, or its value can't be replaced separately.
    """
    values = [field.value for field in fields_of(text) if field.key == key]
    if len(values) != 1 or values[0] is None:
        return None
    start, end = values[0]
    return text[start:end]


def with_field(text: str, key: str, value: str | None, before: Container[str] = ()) -> str:
    """Return a rule's text with one field set, or with that field removed.

    `value`: the new value as TOML; None removes the field. `before`: the keys that come before this
    one; a new field is inserted after the last of them that the rule has, or else after the
    `[[rule]]` line. The comment next to a removed field is kept on a line of its own.
    """
    old = [field for field in fields_of(text) if field.key == key]
    if value is not None and len(old) == 1 and old[0].value is not None:
        start, end = old[0].value
        return f"{text[:start]}{value}{text[end:]}"
    for field in reversed(old):
        text = text[: field.start] + _comment_of(text, field) + text[field.end :]
    if value is None:
        return text
    at = _place(text, before)
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    head = text[:at] if text[:at].endswith("\n") else text[:at] + end_of_line
    return f"{head}{key_text(key)} = {value}{end_of_line}{text[at:]}"


def _comment_of(text: str, field: TomlField) -> str:
    """Return the comment after a field's value, as a whole line; "" if there is none."""
    rest = "" if field.value is None else text[field.value[1] : field.end].lstrip()
    return rest if rest.startswith("#") else ""


def _place(text: str, before: Container[str]) -> int:
    """Return the offset at which to insert a new field (see `with_field` for `before`)."""
    above = [field.end for field in fields_of(text) if field.value and field.key in before]
    if above:
        return max(above)
    at = 0
    for line in toml_lines(text):
        at += len(line)
        if not line.lstrip().startswith("#"):
            break
    return at


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
    off = {
        at for body in bodies if body.kind is BlockKind.OFF for at in range(body.start, body.end)
    }
    extended: list[_Body] = []
    for body in bodies:
        above = extended[-1].end if extended else 0
        start = body.start
        while start > above and _is_comment(lines[start - 1]):
            start -= 1
        extended.append(_Body(body.kind, start, _with_comments_below(lines, body.end, off)))
    return tuple(_between(lines, extended))


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


def _between(lines: Sequence[str], bodies: Sequence[_Body]) -> Iterator[LineBlock]:
    at = 0
    for kind, start, end in bodies:
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


class _LineKind(StrEnum):
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
        if what is _LineKind.RULE:
            current = _Body(kind, at, at + 1)
        elif current is not None and kind is current.kind and (what or kind is BlockKind.OFF):
            current = current._replace(end=at + 1)
    if current is not None:
        yield current


def _ends(rule: BlockKind, kind: BlockKind, what: _LineKind) -> bool:
    """Return whether a line ends the rule above it.

    `rule`: whether that rule is enabled (RULE) or disabled (OFF). `kind`: the same for the line.
    `what`: what the line contains. A `[[rule]]` line always ends the rule, and so does the header
    of any other table. A disabled rule also ends at the first line that isn't disabled. A line
    marked `#off` that belongs to no disabled rule ends nothing.
    """
    return (
        what is _LineKind.RULE
        or (kind is rule and what is _LineKind.OTHER)
        or (rule is BlockKind.OFF and kind is BlockKind.RULE)
    )


def _kinds(lines: Sequence[str]) -> Iterator[tuple[BlockKind, _LineKind]]:
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


def _kind(line: str, scanner: Scanner) -> _LineKind:
    header = _header(line)
    if header is _LineKind.RULE and not scanner.in_string:
        scanner.reset()  # no value contains such a line, so an array was left unclosed above
    if scanner.inside:
        scanner.feed(line)
        return _LineKind.FIELD
    if header is not None:
        return header
    if not line.strip() or line.lstrip().startswith("#"):
        return _LineKind.EMPTY
    scanner.feed(line)
    return _LineKind.FIELD


def _header(line: str) -> _LineKind | None:
    """Return a header line's kind; None if the line doesn't begin with a bracket.

    A header is a line such as `[[rule]]` or `[rule.toolAnnotations]`.
    """
    if line.rstrip() == "[[rule]]":
        return _LineKind.RULE
    if not line.lstrip().startswith("["):
        return None
    try:
        table = parse_toml(line)
    except TomlError:
        return _LineKind.OTHER
    if table == {"rule": [{}]}:
        return _LineKind.RULE
    return _LineKind.PART if table.get("rule") else _LineKind.OTHER
