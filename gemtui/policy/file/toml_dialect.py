"""Parse TOML as the CLI's reader does, which follows neither TOML 0.5 nor 1.0.

See assets/gemini-cli.md#toml.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gemtui.errors import GemtuiError


class TomlError(GemtuiError):
    """Raised if the CLI can't parse the TOML.

    `line`, `column`: 1-based; 0 if unknown. `key`: the key whose value is invalid; "" if the error
    isn't in a value.
    """

    def __init__(self, message: str, *, line: int = 0, column: int = 0, key: str = "") -> None:
        super().__init__(message)
        self.line, self.column, self.key = line, column, key


@dataclass(frozen=True, slots=True)
class TomlDate:
    """A date or a time, kept as it is written."""

    text: str

    def __str__(self) -> str:
        return self.text


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document as the CLI reads it. Raises TomlError if the CLI drops it."""
    if text.startswith("\ufeff"):
        raise TomlError("the file begins with a byte order mark", line=1, column=1)
    try:
        return _Reader(text).document()
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    except ValueError:  # Python refuses integers of more than about 4,000 digits
        raise TomlError("a number in it has too many digits") from None


class _Table(dict[str, Any]):
    """A table that later lines may extend.

    `declared`: whether a `[…]` header has opened it; a second such header is an error.
    """

    declared = False


class _Tables(list[_Table]):
    """A list of tables, created by `[[…]]` headers."""


class _Value(NamedTuple):
    """A value with its type, because all items in a list must have the same type."""

    type: str
    value: Any


_BLANKS = re.compile(r"[ \t]*")
_BETWEEN_ITEMS = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BETWEEN_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*\n?)*")
_LINE_END = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

_CONTENT = {
    '"': re.compile(r'[^"\\\x00-\x08\x0a-\x1f\x7f]*'),
    "'": re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*"),
    '"""': re.compile(r'(?:[^"\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|"(?!""))*'),
    "'''": re.compile(r"(?:[^'\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|'(?!''))*"),
}
"""The content allowed in a string, by its opening quotes.

A multi-line string ends at the first three closing quotes.
"""
_FIRST_LINE_END = re.compile(r"\r*\n?")
_JOINED_LINES = re.compile(r"\\[ \t]*[\r\n][ \t\r\n]*")
_ESCAPE = re.compile(r'\\(?:([btnfr"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))')
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}

_END_OF_WORD = r"(?=[ \t\r\n#]|\Z)"
_MORE = r"(?=[^_.eE# \t\r\n])"
"""Matches before the digit that must follow `_`, `.` or an exponent's sign."""
_DIGITS = rf"(?:[0-9]|_{_MORE})*"
_EXPONENT = rf"[eE](?:(?=[0-9])|[+-]{_MORE}){_DIGITS}"
_NUMBER = re.compile(
    rf"(?P<float>(?:[+-]?[1-9]{_DIGITS}|[+-]?0)\.{_MORE}{_DIGITS}(?:{_EXPONENT})?"
    rf"|(?:[+-]?[1-9]{_DIGITS}|[+-]0){_EXPONENT})"
    r"|0b(?P<b>[01](?:[01]|_(?=[^_.# \t\r\n]))*)"
    r"|0o(?P<o>[0-7](?:[0-7]|_(?=[^_.# \t\r\n]))*)"
    r"|0x(?P<x>[0-9A-Fa-f](?:[0-9A-Fa-f]|_(?=[^_.# \t\r\n]))*)"
    rf"|(?P<integer>[+-]?[1-9]{_DIGITS}|[+-]?0)"
)
_BASES = {"b": 2, "o": 8, "x": 16}
_WORD = re.compile(r"true|false|[+-]?(?:inf|nan)")
_DATE = re.compile(
    r"[0-9]{4}-(?P<month>[0-9]{2,})-(?:"
    r"(?P<day>[0-9]{2})[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    rf"(?:\.(?P<part>[0-9]+))?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]|{_END_OF_WORD})"
    rf"|(?P<only_day>[0-9]{{2,}})[T ]{_END_OF_WORD}"
    rf"|(?P<any_day>[0-9]*)(?=[\t\r\n#]|\Z))"
)
_TIME = re.compile(
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
    rf"(?:\.(?P<part>[0-9]+){_END_OF_WORD}|[^.\U00010000-\U0010ffff]|\Z)"
)
"""Matches a time of day and, as in the CLI, the character after it.

This may even be a line ending.
"""


class _Reader:
    """Parses a TOML document from its beginning to its end.

    All methods raise TomlError for invalid TOML.
    """

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._root = _Table()
        self._key = ""

    def document(self) -> dict[str, Any]:
        """Parse the whole document and return its outermost table."""
        table = self._root
        while self._skip(_BETWEEN_LINES):
            self._key = ""
            if self._accepts("["):
                table = self._header()
            else:
                self._assign(table)
            if not (end := _LINE_END.match(self._text, self._at)):
                self._skip(_BLANKS)
                raise self._error("unexpected text at the end of the line")
            self._at = end.end()
        return self._root

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Move past a match at the current position, if any.

        Returns the character that comes next; "" at the end.
        """
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _accepts(self, text: str) -> bool:
        """Move past `text` if it comes next; return whether it did."""
        here = self._text.startswith(text, self._at)
        self._at += len(text) if here else 0
        return here

    def _expect(self, text: str, what: str) -> None:
        if not self._accepts(text):
            raise self._error(f"{what} expected")

    def _error(self, message: str) -> TomlError:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - self._text.rfind("\n", 0, self._at)
        end = ", at the end of the file" if self._at >= len(self._text) else ""
        return TomlError(f"{message}{end}", line=line, column=column, key=self._key)

    # --- tables ------------------------------------------------------------------------------

    def _header(self) -> _Table:
        """Parse the rest of a header after its first `[`; return the table it opens."""
        many = self._accepts("[")
        *above, last = self._keys()
        self._expect("]]" if many else "]", "]] at the end" if many else "] at the end")
        table = self._root
        for key in above:
            below = table.setdefault(key, _Table())
            table = below[-1] if isinstance(below, _Tables) else self._table(below, key)
        if many:
            tables = table.setdefault(last, _Tables())
            if not isinstance(tables, _Tables):
                raise self._there_already(last)
            tables.append(_Table())
            return tables[-1]
        found = self._undeclared(table.setdefault(last, _Table()), last)
        found.declared = True
        return found

    def _table(self, value: Any, key: str) -> _Table:
        if not isinstance(value, _Table):
            raise self._there_already(key)
        return value

    def _undeclared(self, value: Any, key: str) -> _Table:
        """Return the table `value` if it can still be opened; otherwise raise TomlError.

        A table that has its own header can't be opened again; one created by dotted keys can.
        """
        table = self._table(value, key)
        if table.declared:
            raise self._there_already(key)
        return table

    def _there_already(self, key: str) -> TomlError:
        return self._error(f"{key} is defined twice")

    def _assign(self, table: dict[str, Any]) -> None:
        """Parse `key = value`, and add the value to a table."""
        *above, last = keys = self._keys()
        self._expect("=", "=")
        self._key = self._key or keys[0]
        self._skip(_BLANKS)
        value = self._value().value
        for key in above:
            table = self._undeclared(table.setdefault(key, _Table()), key)
        if last in table:
            raise self._there_already(last)
        table[last] = value

    def _keys(self) -> list[str]:
        """Parse a key, and return its parts, which are separated by dots."""
        self._skip(_BLANKS)
        found = [self._one_key()]
        while self._skip(_BLANKS) == ".":
            self._at += 1
            self._skip(_BLANKS)
            found.append(self._one_key())
        return found

    def _one_key(self) -> str:
        for quote in ('"', "'"):
            if self._accepts(quote):
                return self._string(quote)
        start = self._at
        self._skip(_BARE_KEY)
        if start == self._at:
            raise self._error("a key is missing")
        return self._text[start : self._at]

    # --- values ------------------------------------------------------------------------------

    def _value(self) -> _Value:
        for quote in ('"', "'"):
            if self._accepts(3 * quote):
                self._skip(_FIRST_LINE_END)
                return _Value("string", self._string(3 * quote))
            if self._accepts(quote):
                return _Value("string", self._string(quote))
        if self._accepts("["):
            return _Value("list", self._list())
        if self._accepts("{"):
            return _Value("table", self._inline_table())
        return self._word()

    def _word(self) -> _Value:
        text, start = self._text, self._at
        for pattern in (_DATE, _TIME):
            if (found := pattern.match(text, start)) and _exists(found):
                self._at = found.end()
                return _Value("date or time", TomlDate(found[0].strip()))
        if found := _WORD.match(text, start):
            self._at = found.end()
            if found[0] in ("true", "false"):
                return _Value("truth", found[0] == "true")
            return _Value("infinity or nan", float(found[0]))
        if found := _NUMBER.match(text, start):
            self._at = found.end()
            return _number(found)
        raise self._error("a value is missing")

    def _list(self) -> list[Any]:
        """Parse a list after its opening bracket. All items must have the same type."""
        found: list[Any] = []
        type = ""
        while self._skip(_BETWEEN_ITEMS) != "]":
            item = self._value()
            if found and item.type != type:
                raise self._error(f"a list of mixed types, {type} and {item.type}")
            type = item.type
            found.append(item.value)
            if self._skip(_BETWEEN_ITEMS) != "]":
                self._expect(",", ", or ]")
        self._at += 1
        return found

    def _inline_table(self) -> dict[str, Any]:
        """Parse an inline table after its opening brace. A trailing comma is allowed."""
        found: dict[str, Any] = {}
        while self._skip(_BLANKS) != "}":
            self._assign(found)
            if self._skip(_BLANKS) != "}":
                self._expect(",", ", or }")
        self._at += 1
        return found

    def _string(self, end: str) -> str:
        """Parse a string after its opening quotes, up to the closing quotes `end`."""
        found: list[str] = []
        while True:
            start = self._at
            self._skip(_CONTENT[end])
            found.append(self._text[start : self._at])
            if self._accepts(end):
                return "".join(found)
            if not self._text.startswith("\\", self._at):
                raise self._error(
                    "the string has no closing quote, or contains a control character"
                )
            found.append(self._escape(end))

    def _escape(self, end: str) -> str:
        if len(end) > 1 and (joined := _JOINED_LINES.match(self._text, self._at)):
            self._at = joined.end()
            return ""
        found = _ESCAPE.match(self._text, self._at)
        code = int(found[2] or found[3] or "0", 16) if found else -1
        if found is None or 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            raise self._error("an invalid escape sequence")
        self._at = found.end()
        return _ESCAPED[found[1]] if found[1] else chr(code)


def _number(found: re.Match[str]) -> _Value:
    for base in _BASES:
        if found[base]:
            return _Value("whole number", int(found[base].replace("_", ""), _BASES[base]))
    digits = found[0].replace("_", "")
    if found["integer"]:
        return _Value("whole number", int(digits))
    return _Value("number", math.nan if digits[-1] in "+-" else float(digits))


def _exists(found: re.Match[str]) -> bool:
    """Return whether a date or time is valid for the CLI.

    Every month has 31 days there, and 24:00:00 is a valid time.
    """
    parts = found.groupdict()
    day = parts.get("day") or parts.get("only_day") or parts.get("any_day")
    if day is not None and not (1 <= int(parts["month"]) <= 12 and 1 <= int(day or 1) <= 31):
        return False
    if parts.get("day") and len(parts["month"]) > 2:
        return False
    clock = [int(parts[name] or 0) for name in ("hour", "minute", "second") if parts.get(name)]
    return not clock or _on_a_clock(clock, parts["part"] or "")


def _on_a_clock(clock: Sequence[int], part: str) -> bool:
    hour, minute, second = clock
    if hour == 24:
        return not (minute or second or part[:3].strip("0"))
    return hour < 24 and minute < 60 and second < 60
