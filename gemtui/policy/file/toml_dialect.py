"""Read TOML as the CLI's reader does, which is not quite TOML 1.0.

It accepts a comma at the end of an inline table, and refuses a list of mixed types.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gemtui.errors import GemtuiError

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*"
    r"|,(?:\s|#[^\n]*)*\}"
    r"|[^\"'#,]+|,",
    re.DOTALL,
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class TomlError(GemtuiError):
    """The CLI can't read the text; `line` and `column` from 1, 0 where the place is not known.

    `path`: where in the document a list of mixed types stands; () for all other errors.
    """

    def __init__(
        self, message: str, *, line: int = 0, column: int = 0, path: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(message)
        self.line, self.column, self.path = line, column, path


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document as the CLI reads it; raise TomlError where the CLI drops the file."""
    if text.startswith("\ufeff"):
        raise TomlError("the file begins with a byte order mark", line=1, column=1)
    try:
        return _parsed(text)
    except RecursionError:
        raise TomlError("it is nested too deeply") from None
    except ValueError:  # Python reads no whole number of more than some 4,000 digits
        raise TomlError("a number in it has too many digits") from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        relaxed = _relaxed(text)
        if relaxed == text:
            raise _located(error, text) from None
        try:
            found = tomllib.loads(relaxed)
        except tomllib.TOMLDecodeError as second:
            raise _located(second, text) from None
    for path in _mixed(found, ()):
        raise TomlError("a list of mixed types", path=path)
    return found


def _relaxed(text: str) -> str:
    """The same in TOML 1.0, each character at its place."""
    return _TOKEN.sub(_relaxed_token, text)


def _relaxed_token(token: re.Match[str]) -> str:
    found = token[0]
    if found.startswith("#"):
        body = found.rstrip("\r")
        return _CONTROL.sub(" ", body) + found[len(body) :]
    if found.startswith(",") and found.endswith("}"):
        return " " + found[1:]
    return found


def _located(error: tomllib.TOMLDecodeError, text: str) -> TomlError:
    said = str(error)
    place = _POSITION.search(said)
    message = said[: place.start()] if place else said
    if place and place[1]:
        return TomlError(message, line=int(place[1]), column=int(place[2]))
    lines = text.split("\n")
    return TomlError(f"{message}, at its end", line=len(lines), column=len(lines[-1]) + 1)


def _mixed(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The places of lists whose items differ in type."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _mixed(each, (*path, key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        if len({type(each) for each in value}) > 1:
            yield path
        for at, each in enumerate(value):
            yield from _mixed(each, (*path, at))
