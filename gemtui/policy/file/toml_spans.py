"""TOML by lines: where values that span several end, and where each field of a rule stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container
from dataclasses import dataclass, replace

from gemtui.policy.file.rule_codec import key_text

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
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
}


def lines_of(text: str) -> list[str]:
    """Lines with their ends; only LF ends one in TOML, alone or after CR."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


class Scanner:
    """Fed line by line, knows whether the next one goes on with a value."""

    def __init__(self) -> None:
        self._string = ""
        self._depth = 0

    @property
    def inside(self) -> bool:
        """Whether a string, an array or an inline table is open."""
        return bool(self._string or self._depth)

    @property
    def in_string(self) -> bool:
        """Whether a string over several lines is open."""
        return bool(self._string)

    def reset(self) -> None:
        """Begin anew, as outside of all values."""
        self._string, self._depth = "", 0

    def feed(self, line: str) -> int:
        """Take a line in; where its comment begins, or its end, blanks before that left out."""
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
class Field:
    """One `key = value` of a rule, or one header of a table in it.

    `key`: the first part of its name: `toolAnnotations` for `toolAnnotations.readOnlyHint`.
    `start`, `end`: its whole lines in the rule's text, as offsets. `value`: where the value stands,
    without a comment behind it; None = there is none that could be changed alone, as it is a part
    of the field.
    """

    key: str
    start: int
    end: int
    value: tuple[int, int] | None


_NAME = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"\s*({_NAME})\s*(\.|=)\s*")
_PART = re.compile(rf"\s*\[+\s*{_NAME}\s*\.\s*({_NAME})")


def fields_of(text: str) -> list[Field]:
    """The fields of one rule's lines, in their order; the `[[rule]]` line is none."""
    scanner = Scanner()
    found: list[Field] = []
    part: str | None = None
    at = 0
    for line in lines_of(text):
        start, at = at, at + len(line)
        if scanner.inside:
            end = start + scanner.feed(line)
            found[-1] = _longer(found[-1], at, end)
        elif line.lstrip().startswith("["):
            header = _PART.match(line)
            part = _name(header[1]) if header else None
            if part is not None:
                found.append(Field(key=part, start=start, end=at, value=None))
        elif part is not None and line.strip() and not line.lstrip().startswith("#"):
            scanner.feed(line)
            found[-1] = _longer(found[-1], at, at)
        elif key := _KEY.match(line):
            end = start + scanner.feed(line)
            value = (start + key.end(), end) if key[2] == "=" else None
            found.append(Field(key=_name(key[1]), start=start, end=at, value=value))
    return found


def _longer(field: Field, end: int, value_end: int) -> Field:
    value = None if field.value is None else (field.value[0], value_end)
    return replace(field, end=end, value=value)


def _name(text: str) -> str:
    """A key as it is written -> as it is meant."""
    return next(iter(tomllib.loads(f"{text} = 0")))


def value_of(text: str, key: str) -> str | None:
    """The TOML of one field's value; None where it has none that stands by itself."""
    values = [field.value for field in fields_of(text) if field.key == key]
    if len(values) != 1 or values[0] is None:
        return None
    start, end = values[0]
    return text[start:end]


def with_value(text: str, key: str, value: str | None, before: Container[str] = ()) -> str:
    """A rule's lines with one field set to this TOML, or without it.

    A new field comes after the last of those keys in `before` that the rule has.
    """
    old = [field for field in fields_of(text) if field.key == key]
    if value is not None and len(old) == 1 and old[0].value is not None:
        start, end = old[0].value
        return f"{text[:start]}{value}{text[end:]}"
    for field in reversed(old):
        text = text[: field.start] + text[field.end :]
    if value is None:
        return text
    at = _place(text, before)
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    head = text[:at] if text[:at].endswith("\n") else text[:at] + end_of_line
    return f"{head}{key_text(key)} = {value}{end_of_line}{text[at:]}"


def _place(text: str, before: Container[str]) -> int:
    """Where a new field goes: after the last of those before it, or the rule's first line."""
    above = [each.end for each in fields_of(text) if each.value and each.key in before]
    if above:
        return max(above)
    at = 0
    for line in lines_of(text):
        at += len(line)
        if not line.lstrip().startswith("#"):
            break
    return at
