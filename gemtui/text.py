"""The only door for foreign text: what a model, a tool or a file says is hostile until `clean()`.

Escape sequences in content would reach the terminal (title, clipboard by OSC 52, colours), bidi
controls reorder what a person reads, and a lone surrogate can't be encoded at all. A renderer takes
`Clean`, so that a raw string can't slip in.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NewType
from unicodedata import category, east_asian_width

Clean = NewType("Clean", str)
"""Text without control characters other than newline and tab, without bidi controls."""

_LINE_ENDS = "\r\x85\u2028\u2029"
_TROUBLE = re.compile(
    # CSI, whole or cut short; 7-bit and 8-bit introducer
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    # OSC, DCS, SOS, PM, APC up to their terminator; without one, to the end of the line
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])"
    f"[^\x07\x18\x1a\x1b\x9c\n{_LINE_ENDS}]*(?:\x07|\x1b\\\\|\x9c)?"
    # any other escape sequence, whole or cut short
    "|\x1b[ -/]*[0-~]?"
    f"|\r\n|[{_LINE_ENDS}]"
    "|[\ud800-\udfff]"
    # other controls, and the marks, embeddings, overrides and isolates of the bidi algorithm
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
)


def clean(text: str) -> Clean:
    """Text that is safe to draw, export and copy; idempotent.

    Removes escape sequences (7-bit and C1 forms, unterminated ones up to the end of their line),
    all other C0 and C1 controls but newline and tab, and bidi controls; CR, CR LF, NEL, U+2028 and
    U+2029 become newlines, lone surrogates U+FFFD.
    """
    # every character that `_TROUBLE` matches is unprintable: a scan at C speed for the usual case
    if text.replace("\n", "").replace("\t", "").isprintable():
        return Clean(text)
    return Clean(_TROUBLE.sub(_replacement, text))


def _replacement(match: re.Match[str]) -> str:
    found = match[0]
    if found == "\r\n" or found in _LINE_ENDS:
        return "\n"
    return "\ufffd" if "\ud800" <= found <= "\udfff" else ""


def clean_line(text: str) -> Clean:
    """`clean()` on one line: each run of white space becomes one blank, none at the ends."""
    return Clean(" ".join(clean(text).split()))


def one_line(text: str) -> Clean:
    """`clean()` on one line, its blanks as they are: each line break and each tab becomes one.

    For commands and patterns, where two blanks are not one.
    """
    return Clean(clean(text).replace("\n", " ").replace("\t", " "))


_JOINING = re.compile("[\U0001f3fb-\U0001f3ff\u1160-\u11ff\ud7b0-\ud7ff]")
"""Skin tones, and the vowels and finals of Hangul: part of the character before them."""


def cells(text: Clean) -> int:
    """Terminal cells that one line takes: wide characters 2, combining and control ones 0."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(_widths(text))


def _widths(text: str) -> list[int]:
    """Cells each character adds; a joined emoji counts once, U+FE0F widens what it follows."""
    widths: list[int] = []
    joined = False
    for char in text:
        if char == "\ufe0f":
            width = int(bool(widths) and widths[-1] == 1)
        else:
            width = 0 if joined else _width(char)
        widths.append(width)
        joined = char == "\u200d"
    return widths


def _width(char: str) -> int:
    kind = category(char)
    if kind in ("Mn", "Me", "Mc", "Cc", "Cf") and char != "\xad":
        return 0
    if _JOINING.match(char):
        return 0
    if kind == "Cn":  # younger than Python's tables, which call it wide: only emoji are
        return 2 if "\U0001f300" <= char <= "\U0001faff" else 1
    return 2 if east_asian_width(char) in "WF" else 1


def ellipsis(text: Clean, width: int, *, mark: str = "…") -> Clean:
    """The text if it fits into `width` cells, else its beginning and `mark`, never wider."""
    if cells(text) <= width:
        return text
    room = width - cells(Clean(mark))
    if room < 0:
        return Clean("")
    ends = accumulate(_widths(text))
    kept = next((index for index, end in enumerate(ends) if end > room), len(text))
    return Clean(text[:kept].rstrip() + mark)


_AGES = (
    (timedelta(days=365), "y"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "m"),
)


def relative(when: datetime, now: datetime) -> str:
    """How long ago in at most four characters: `now`, `2m`, `1h`, `3d`, `5w`, `2y`.

    Both datetimes aware. A time ahead of `now` (a clock that is off) is `now`.
    """
    age = now - when
    for unit, letter in _AGES:
        if age >= unit:
            return f"{age // unit}{letter}"
    return "now"


_DASHES = re.compile("-+")
_WINDOWS_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$")
_NAME_BYTES = 150


def file_name(text: str) -> str:
    """Text as a file name without a folder, safe on every system; `untitled` if nothing is left.

    Letters and digits of every script, `.`, `_` and single dashes for all else, which a shell
    takes as they are; no device names of Windows, no leading dots or dashes; at most 150 bytes of
    UTF-8, which leaves room for a suffix.
    """
    kept = (char if _fits_in_name(char) else "-" for char in clean_line(text))
    name = _DASHES.sub("-", "".join(kept))
    name = name.encode()[:_NAME_BYTES].decode(errors="ignore").lstrip(".-").rstrip(". -")
    if _WINDOWS_DEVICES.match(name):
        return f"_{name}"
    return name or "untitled"


def _fits_in_name(char: str) -> bool:
    return char.isalnum() or char in "._" or (category(char) in ("Mc", "Mn") and char != "\ufe0f")


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `1,204 files`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size(bytes: int) -> str:
    """A number of bytes for people, in decimal units: `812 B`, `1.2 MB`."""
    if bytes < 1000:
        return f"{bytes} B"
    value, unit = bytes / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"
