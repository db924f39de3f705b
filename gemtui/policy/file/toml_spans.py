"""Locate values and fields in a TOML rule's text, to replace them in place.

tomlkit is not used: it rejects text that contains an error, although such text must be editable as
well, and it can't insert a field after a given one.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, replace

from gemtui.policy.file.rule_codec import key_text
from gemtui.policy.file.toml_dialect import parse_toml

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
    found: list[TomlField] = []
    part: str | None = None
    at = 0
    for line in toml_lines(text):
        start, at = at, at + len(line)
        if scanner.inside:
            end = start + scanner.feed(line)
            found[-1] = _longer(found[-1], at, end)
        elif line.lstrip().startswith("["):
            header = _PART.match(line)
            part = _name(header[1]) if header else None
            if part is not None:
                found.append(TomlField(key=part, start=start, end=at, value=None))
        elif part is not None and line.strip() and not line.lstrip().startswith("#"):
            scanner.feed(line)
            found[-1] = _longer(found[-1], at, at)
        elif key := _KEY.match(line):
            end = start + scanner.feed(line)
            value = (start + key.end(), end) if key[2] == "=" else None
            found.append(TomlField(key=_name(key[1]), start=start, end=at, value=value))
    return found


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
    above = [each.end for each in fields_of(text) if each.value and each.key in before]
    if above:
        return max(above)
    at = 0
    for line in toml_lines(text):
        at += len(line)
        if not line.lstrip().startswith("#"):
            break
    return at
