"""The only door for foreign text: what a model, a tool or a file says is hostile until it is clean.

Escape sequences in content would reach the terminal (title, clipboard by OSC 52, colours), bidi
controls reorder what a person reads, and a lone surrogate can't be encoded at all. A renderer takes
`Clean`, so that a raw string can't slip in.

Cleaning hides nothing: but for colours, what can't be drawn leaves a mark in its place, and what
stands around it stays. ESC becomes `␛` and the text after it remains, as a shell would run it; what
has no picture is named, as `⟨U+202E⟩`. The marks mean nothing to a shell or to Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import NewType
from unicodedata import category, east_asian_width

Clean = NewType("Clean", str)
"""Text without control characters other than newline and tab, without bidi controls."""

HOLDS_CONTROLS = "holds control characters"
"""What is said of a command for which `holds_controls` is true."""

BLANKS = " \t\r\n"
"""What may be left out at the ends of a text: `str.strip()` takes controls for blanks, too."""

_LINE_ENDS = "\r\x85\u2028\u2029"
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e007f"
_SURROGATES = "\ud800-\udfff"
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
# a colour or style, 7-bit and 8-bit, with the "erase to the right" that grep and gcc send along
_COLOUR = r"(?:\x1b\[|\x9b)[0-9:;]*+m(?:(?:\x1b\[|\x9b)0?K)?"
_HARMFUL = (
    f"(?P<line_end>\r\n|[{_LINE_ENDS}])|(?P<kept>{_FLAG})|[{_CONTROLS}{_BIDI}{_TAGS}{_SURROGATES}]"
)
_TROUBLE = re.compile(_HARMFUL)
_TROUBLE_OR_COLOUR = re.compile(f"(?P<dropped>{_COLOUR})|{_HARMFUL}")


def clean(text: str) -> Clean:
    """Text that is safe to draw, export and copy; idempotent.

    For what is said and printed: colours are removed; CR, CR LF, NEL, U+2028 and U+2029 become
    newlines. All other C0 and C1 controls but newline and tab, bidi controls, and tag characters
    outside a flag become marks, lone surrogates U+FFFD. Names and titles are for `clean_line()`,
    what is run for `visible()`.
    """
    return _cleaned(text, _TROUBLE_OR_COLOUR)


def _cleaned(text: str, trouble: re.Pattern[str]) -> Clean:
    # every character that is trouble is unprintable: a scan at C speed for the usual case
    if text.replace("\n", "").replace("\t", "").isprintable():
        return Clean(text)
    return Clean(trouble.sub(_replacement, text))


def _replacement(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "kept":
            return match[0]
        case "dropped":
            return ""
        case "line_end":
            return "\n"
        case _:
            return _mark(match[0])


def _mark(char: str) -> str:
    """What is drawn for a character that can't be seen."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"


# what Unicode calls default ignorable: it has no shape of its own
_IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
# joiners inside emoji and between letters of scripts that join; the forms of emoji; keycaps
_JOINED = f"\u0600-\u061b\u061d-\u10ff{_EMOJI}"
_SHAPES = (
    f"{_FLAG}|(?:(?<=[{_JOINED}])|(?<=[{_EMOJI}]\ufe0f))[\u200c\u200d](?=[{_JOINED}])"
    f"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
_UNSEEN = re.compile(f"(?P<kept>{_SHAPES})|[{_CONTROLS}{_IGNORABLE}{_LINE_ENDS}{_SURROGATES}]")


def visible(text: str) -> Clean:
    """Text in which every character can be seen, for commands and arguments; clean, idempotent.

    As `clean()`, but nothing is removed and nothing becomes a newline: colours, line ends other
    than newline, and all characters that have no shape of their own (zero-width ones, soft
    hyphens) become marks, but for those that shape emoji and joined scripts.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return Clean(text)
    return Clean(_UNSEEN.sub(_replacement, text))


def visible_line(text: str) -> Clean:
    """`visible()` on one line, its blanks as they are: a newline becomes `␊`, a tab a blank.

    Newlines at the end are left out.
    """
    line = visible(text.rstrip("\n")).replace("\n", "\u240a")
    return Clean(line.replace("\t", " "))


def holds_controls(command: str) -> bool:
    """Whether a command or an argument holds characters that a person would not see.

    These are the ones that `visible()` marks: controls other than newline and tab, bidi controls,
    zero-width characters. Say `HOLDS_CONTROLS` where such a command is shown.
    """
    return visible(command) != command


def command_line(command: str) -> Clean:
    """`visible_line()` of a command or an argument; one that holds controls says so before it."""
    line = visible_line(command)
    return Clean(f"[{HOLDS_CONTROLS}] {line}") if holds_controls(command) else line


def clean_line(text: str) -> Clean:
    """Names, titles and paths on one line; safe as `clean()`, but colours leave marks as well.

    Each run of white space becomes one blank, none at the ends.
    """
    return Clean(" ".join(_cleaned(text, _TROUBLE).split()))


def one_line(text: str) -> Clean:
    """`clean_line()` with its blanks as they are: each line break and each tab becomes one.

    For sentences that quote patterns, where two blanks are not one.
    """
    return Clean(_cleaned(text, _TROUBLE).replace("\n", " ").replace("\t", " "))


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


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 file`, `1,204 files`; `plural`: where that is not noun + `s`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: `a, b or c`; at least one."""
    *head, last = names
    return f"{', '.join(head)} or {last}" if head else last


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


def short_path(path: Path, home: Path | None = None) -> Clean:
    """A path as people write it: `~` for the home directory (`home`, else that of the system)."""
    home = home or Path.home()
    inside = path.is_relative_to(home) and path != home
    return clean_line(f"~/{path.relative_to(home)}" if inside else str(path))
