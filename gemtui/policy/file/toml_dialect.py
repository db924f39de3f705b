"""Parse policy files as `tomllib` does, and refuse what the CLI's TOML reader refuses.

See assets/gemini-cli.md#toml. Files are refused, too, that only the CLI's reader accepts. The only
exception is a comma at the end of an inline table.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from datetime import date, time
from typing import Any

from gemtui.errors import GemtuiError


class TomlError(GemtuiError):
    """Raised if a policy file can't be parsed.

    `line`, `column`: 1-based; 0 if unknown. `rule`: the 1-based number of the rule with an invalid
    value; 0 if unknown. `key`: that value's key; "" if unknown. `is_ignored`: whether Gemini CLI
    ignores the file as well; False if it may read the file.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int = 0,
        column: int = 0,
        rule: int = 0,
        key: str = "",
        is_ignored: bool = True,
    ) -> None:
        super().__init__(message)
        self.line, self.column, self.rule, self.key = line, column, rule, key
        self.is_ignored = is_ignored

    @property
    def position(self) -> str:
        """The position, to be put before the message; "" if unknown."""
        if self.line:
            return f"line {self.line}, column {self.column}: "
        return f"rule {self.rule}, {self.key}: " if self.rule else ""


_TOKEN = re.compile(
    r'(?:"""(?:[^"\\]|\\.|"(?!""))*"""|' + r"'''(?:[^']|'(?!''))*''')(?P<fourth_quote>[\"'])?"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|\{[ \t]*,"
    r"|(?P<last_comma>,)(?=[ \t]*\})"
    r"|(?P<zero>(?<![\w.+-])0[eE])",
    re.DOTALL,
)
"""Matches the parts of a file in which commas mean nothing, and what the CLI reads differently."""
_POSITION = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document as the CLI reads it. Raises TomlError if it can't be read."""
    if text.startswith("\ufeff"):
        raise TomlError("the file begins with a byte order mark", line=1, column=1)
    try:
        document = tomllib.loads(_TOKEN.sub(_without_last_comma, text))
        _check_tokens(text)
        for key, value in document.items():
            if key == "rule" and isinstance(value, list):
                _check_rules(value)
            _check(value, 0, key)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(error, text) from None
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    except ValueError:  # Python refuses integers of more than about 4,000 digits
        raise TomlError("a number in it has too many digits") from None
    return document


def _without_last_comma(token: re.Match[str]) -> str:
    return " " if token["last_comma"] else token[0]


def _syntax_error(error: tomllib.TOMLDecodeError, text: str) -> TomlError:
    position = _POSITION.fullmatch(str(error))
    if position is None:
        return TomlError(str(error))
    message = position[1][:1].lower() + position[1][1:]
    if position[2] is None:
        message += ", at the end of the file"
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    else:
        line, column = int(position[2]), int(position[3])
    return TomlError(message, line=line, column=column, key=_key_in_line(text, line))


def _key_in_line(text: str, line: int) -> str:
    key = _KEY.match(text.split("\n")[line - 1])
    return key[1] if key else ""


def _check_tokens(text: str) -> None:
    for token in _TOKEN.finditer(text):
        if token["fourth_quote"]:
            message = "a string over several lines ends with more than three quotes"
            at = -1
        elif token["zero"]:
            message, at = "a number begins with 0 before its exponent", 0
        else:
            continue
        offset = token.end() - 1 if at else token.start()
        line = text.count("\n", 0, offset) + 1
        column = offset - text.rfind("\n", 0, offset)
        raise TomlError(message, line=line, column=column, key=_key_in_line(text, line))


def _check_rules(rules: Sequence[Any]) -> None:
    for number, rule in enumerate(rules, 1):
        if isinstance(rule, dict):
            for key, value in rule.items():
                _check(value, number, key)


def _check(value: Any, rule: int, key: str) -> None:
    """Raise TomlError if a value contains a date, or a list of values of different types.

    `rule`, `key`: where the value is.
    """
    if isinstance(value, date | time):
        message = "gemtui reads no dates and times in policies"
        raise TomlError(message, rule=rule, key=key, is_ignored=False)
    if isinstance(value, dict):
        for inner in value.values():
            _check(inner, rule, key)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, rule, key)
            first, other = _type(value[0]), _type(inner)
            if first != other:
                raise TomlError(f"a list of mixed types, {first} and {other}", rule=rule, key=key)


def _type(value: object) -> str:
    """Return a value's type by the CLI's distinctions, as a word."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole number"
    if isinstance(value, float):
        return "number" if math.isfinite(value) else "infinity or nan"
    if isinstance(value, str):
        return "string"
    return "list" if isinstance(value, list) else "table"
