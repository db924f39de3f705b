"""Parse the colours in a tool's output: convert SGR sequences to coloured spans.

All other control characters are made harmless by `gemtui.text.clean` when the text is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec.structs import replace

from gemtui.text import COLOUR, newlines
from gemtui.transcript.display_model import AnsiSpan, ScreenDisplay

BASIC = (
    "#000000", "#800000", "#008000", "#808000", "#000080", "#800080", "#008080", "#c0c0c0",
    "#808080", "#ff0000", "#00ff00", "#ffff00", "#0000ff", "#ff00ff", "#00ffff", "#ffffff",
)  # fmt: skip
"""The sixteen basic terminal colours, with the values Gemini CLI stores."""
LIMIT = 1_000_000
"""Maximum length, in characters, of a string whose colours are parsed."""
SEQUENCES = 5_000
"""Maximum number of colour changes in a string whose colours are parsed.

Each of them takes as long as hundreds of characters.
"""
_MOST = 32
_PLAIN = AnsiSpan(text="")
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",)}


def coloured(text: str) -> ScreenDisplay | None:
    """Return a string as a coloured terminal screen.

    Returns None if the string has no colours, is too long, or has too many colour changes.
    """
    if len(text) > LIMIT or not 0 < _sequences(text) <= SEQUENCES:
        return None
    style, lines = _PLAIN, []
    for line in newlines(text).rstrip("\n").split("\n"):
        spans: list[AnsiSpan] = []
        at = 0
        for found in COLOUR.finditer(line):
            spans.append(replace(style, text=line[at : found.start()]))
            style, at = _styled(style, found[0]), found.end()
        spans.append(replace(style, text=line[at:]))
        lines.append(tuple(span for span in spans if span.text))
    return ScreenDisplay(lines=tuple(lines))


def _styled(style: AnsiSpan, sequence: str) -> AnsiSpan:
    """Return `style` as changed by an SGR sequence (an escape sequence for colours).

    Unsupported codes are ignored.
    """
    codes = _codes(sequence.partition("m")[0].lstrip("\x1b\x9b["))
    changes: dict[str, Any] = {}
    for code in codes:
        if code == 0:
            style, changes = _PLAIN, {}
        elif code in _ON:
            changes[_ON[code]] = True
        elif code in _OFF:
            changes |= dict.fromkeys(_OFF[code], False)
        elif (ground := _GROUNDS.get(code // 10)) is not None:
            changes |= {ground: _colour(code, codes)}
    return replace(style, **changes)


def _codes(parameters: str) -> Iterator[int]:
    """Yield the codes in an SGR sequence's parameters, such as 1 and 31 in `1;31`.

    Colours in colon notation (`38:5:n`) yield the same codes as those in semicolon notation.
    """
    for group in parameters.split(";")[:_MOST]:
        code, *more = (int(each[:4] or 0) for each in group.split(":")[:_MOST])
        match more:
            case [5, number, *_] if code in (38, 48):
                yield from (code, 5, number)
            case [2, _, red, green, blue, *_] | [2, red, green, blue] if code in (38, 48):
                yield from (code, 2, red, green, blue)
            case [0, *_] if code == 4:
                yield 24
            case _ if not more or code == 4:
                yield code


def _sequences(text: str) -> int:
    """Count the colour changes in a string, stopping once there are too many.

    The result is at most one more than is permitted.
    """
    return sum(1 for _ in islice(COLOUR.finditer(text), SEQUENCES + 1))


_GROUNDS = {3: "fg", 9: "fg", 4: "bg", 10: "bg"}
"""The field that a colour code sets, by the code without its last digit."""


def _colour(code: int, codes: Iterator[int]) -> str:
    """Return the colour for a code, or "" for the default colour.

    After the codes 38 and 48, the colour is given by further codes, which are taken from `codes`.
    """
    if code % 10 < 8:
        return BASIC[code % 10 + (8 if code >= 90 else 0)]
    return _extended(codes) if code in (38, 48) else ""


def _extended(codes: Iterator[int]) -> str:
    """Return the colour after 38 or 48: `5;n` for one of 256, or `2;r;g;b`."""
    match next(codes, None):
        case 5:
            return _of_256(next(codes, 0))
        case 2:
            red, green, blue = (min(next(codes, 0), 255) for _ in range(3))
            return f"#{red:02x}{green:02x}{blue:02x}"
        case _:
            return ""


def _of_256(number: int) -> str:
    if number < 16:
        return BASIC[number]
    if number < 232:
        levels = (0, 95, 135, 175, 215, 255)
        cube = number - 16
        parts = levels[cube // 36], levels[cube // 6 % 6], levels[cube % 6]
        return "#{:02x}{:02x}{:02x}".format(*parts)
    return "#" + f"{8 + 10 * (min(number, 255) - 232):02x}" * 3
