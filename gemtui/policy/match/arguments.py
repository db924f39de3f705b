"""Serialise a call's arguments to the string that rules' patterns must match.

The string is JSON as JavaScript writes it, with sorted keys and no whitespace, and with a NUL
before and after every key-value pair of the outermost object (assets/gemini-cli.md#args-text).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

MARK = "\0"
_SURROGATE = re.compile("[\ud800-\udfff]")


def arguments_text(args: Mapping[str, Any]) -> str:
    """Serialise a call's arguments; `args` must be as the model sent them."""
    pairs = [f"{MARK}{json_string(key)}:{_text(args[key])}{MARK}" for key in _sorted(args)]
    return "{" + ",".join(pairs) + "}"


def _text(value: Any) -> str:
    return json_string(value) if isinstance(value, str) else json_text(value)


class _Written(str):
    """A finished piece of the output, to distinguish it from a value not yet written."""

    __slots__ = ()


def json_text(value: Any) -> str:
    """Return a value as JSON as JavaScript writes it, with sorted keys and no NULs.

    Nesting may be arbitrarily deep.
    """
    pieces: list[str] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Written):
            pieces.append(item)
        elif isinstance(item, Mapping):
            todo.append(_Written("}"))
            for at, key in reversed(list(enumerate(_sorted(item)))):
                todo += [item[key], _Written(f"{',' if at else ''}{json_string(key)}:")]
            pieces.append("{")
        elif isinstance(item, list | tuple):
            todo.append(_Written("]"))
            for at, each in reversed(list(enumerate(item))):
                todo += [each, _Written("," if at else "")]
            pieces.append("[")
        else:
            pieces.append(_plain(item))
    return "".join(pieces)


def _plain(value: Any) -> str:
    """Return the JSON of a value that is neither an object nor an array."""
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, int | float) else "null"


def json_string(text: str) -> str:
    """Return text as a JSON string, with quotes, backslashes and so on escaped.

    Control characters and lone surrogates are escaped as well, as in JavaScript.
    """
    encoded = encode_basestring(text)
    if encoded.isascii():
        return encoded
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", encoded)


def _sorted(table: Mapping[str, Any]) -> list[str]:
    """Return the keys sorted by their UTF-16 code units, as JavaScript sorts strings."""
    keys = list(table)
    if all(map(str.isascii, keys)):
        return sorted(keys)
    return sorted(keys, key=lambda key: key.encode("utf-16-be", "surrogatepass"))


def _number(value: float) -> str:
    """Return a number as JavaScript prints it: as a double, so that 1.0 becomes `1`."""
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if not math.isfinite(number):
        return "null"
    if number == int(number) and abs(number) < 1e21:
        return _whole(number)
    digits, _, exponent = repr(number).partition("e")
    if not exponent:
        return digits
    power = int(exponent)
    if -6 <= power < 0:
        return f"{number:.{len(digits.replace('.', '').lstrip('-')) - 1 - power}f}"
    digits = digits.removesuffix(".0")
    return f"{digits}e{'+' if power > 0 else '-'}{abs(power)}"


def _whole(number: float) -> str:
    """Return an integer below 1e21 in JavaScript's spelling, never with an exponent."""
    digits, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = digits.removesuffix(".0").partition(".")
    zeros = "0" * (int(exponent or 0) - len(fraction))
    return f"{'-' if number < 0 else ''}{whole}{fraction}{zeros}"
