"""Clean untrusted text before it is drawn, printed, exported or copied.

Until then, text is treated as hostile: escape sequences would act on the terminal (change its
title, write to the clipboard by OSC 52, or set colours), bidi controls reorder text, and a lone
surrogate can't be encoded. All functions that draw or print take `Clean`, so a type checker finds
text that hasn't been cleaned.

Except for colours, nothing is removed: a character that can't be shown is replaced by a visible
mark, and the text around it stays. ESC becomes `␛`, and the text after it remains, just as a shell
would receive it. Characters without a glyph are named, as in `⟨U+202E⟩`. The marks have no meaning
in a shell or in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path, PurePath
from typing import NewType
from unicodedata import category, east_asian_width, name, normalize

Clean = NewType("Clean", str)
"""Text without bidi controls or any control characters except newline and tab."""

HOLDS_CONTROLS = "contains control characters"
"""The warning shown with a command if `holds_controls` returns True for it."""

BLANKS = " \t\r\n"
"""Whitespace that may be stripped; `str.strip()` would strip control characters."""

_LINE_ENDS = "\r\x85\u2028\u2029"
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TAGS = "\U000e0000-\U000e007f"
_SURROGATES = "\ud800-\udfff"
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
# a colour or style, 7-bit or 8-bit, with the "erase to the right" that grep and gcc append
_COLOUR = r"(?:\x1b\[|\x9b)[0-9:;]*+m(?:(?:\x1b\[|\x9b)0?K)?"
COLOUR = re.compile(_COLOUR)
"""Matches the colour codes that `clean` removes."""
_LINE_END = re.compile(f"\r\n|[{_LINE_ENDS}]")
_HARMFUL = (
    f"(?P<line_end>{_LINE_END.pattern})|(?P<kept>{_FLAG})|[{_CONTROLS}{_BIDI}{_TAGS}{_SURROGATES}]"
)
# these large patterns are compiled when they are first used; most commands need none of them
_HARMFUL_OR_COLOUR = f"(?P<dropped>{_COLOUR})|{_HARMFUL}"


def clean(text: str) -> Clean:
    """Make text safe to draw, print, export and copy.

    Colours are removed. CR, CR LF, NEL, U+2028 and U+2029 become newlines. All other C0 and C1
    controls except newline and tab, bidi controls, and tag characters outside of flag emoji become
    marks. Lone surrogates become U+FFFD. Clean text stays as it is. Use `clean_line()` for names
    and titles, and `visible()` for commands.
    """
    return _cleaned(text, _HARMFUL_OR_COLOUR)


def newlines(text: str) -> str:
    """Convert all line endings to newlines, as `clean` does."""
    if any(end in text for end in _LINE_ENDS):
        return _LINE_END.sub("\n", text)
    return text


def _cleaned(text: str, trouble: str) -> Clean:
    # all characters to replace are unprintable, so the usual case takes only one fast scan
    if text.replace("\n", "").replace("\t", "").isprintable():
        return Clean(text)
    return Clean(re.sub(trouble, _replacement, text))


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
    """Return the visible mark for a character that can't be shown."""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"⟨U+{code:04X}⟩"


# Unicode's default ignorable characters, which are invisible
_IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
# spaces that look like U+0020 but don't separate words in a shell
_ODD_BLANKS = "\xa0\u1680\u2000-\u200a\u202f\u205f\u3000"
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u27bf\u2900-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# joiners inside emoji and between letters of joining scripts; emoji variants; keycaps
_JOINED = f"\u0600-\u061b\u061d-\u10ff{_EMOJI}"
_SHAPES = (
    f"{_FLAG}|(?:(?<=[{_JOINED}])|(?<=[{_EMOJI}]\ufe0f))[\u200c\u200d](?=[{_JOINED}])"
    f"|(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)"
)
_UNSEEN = f"(?P<kept>{_SHAPES})|[{_CONTROLS}{_IGNORABLE}{_ODD_BLANKS}{_LINE_ENDS}{_SURROGATES}]"


def visible(text: str) -> Clean:
    """Make every character of a command or an argument visible; the result is clean.

    Idempotent. Unlike `clean()`, this removes nothing and converts nothing to newlines. Colours,
    line endings other than newline, spaces other than U+0020 and tab, and characters without a
    glyph (zero-width characters, soft hyphens) become marks, unless they are part of an emoji or of
    a joining script.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return Clean(text)
    return Clean(re.sub(_UNSEEN, _replacement, text))


def visible_line(text: str) -> Clean:
    """Apply `visible()` and put the result on one line.

    Newlines become `␊`, and tabs become spaces. Trailing newlines are removed.
    """
    line = visible(text.rstrip("\n")).replace("\n", "\u240a")
    return Clean(line.replace("\t", " "))


def holds_controls(command: str) -> bool:
    """Return whether a command or argument contains characters a user can't see.

    These are the characters that `visible()` replaces: controls except newline and tab, bidi
    controls, zero-width characters, and spaces such as U+00A0. Show the warning `HOLDS_CONTROLS`
    with such a command.
    """
    return visible(command) != command


_WORD = re.compile(r"\w+")
_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK")


def look_alikes(text: str) -> tuple[Clean, ...]:
    """Describe the words that mix Latin letters with Cyrillic or Greek ones.

    Many of these letters look alike, so such a word may name a different file or program from the
    one it seems to name. Each word is described once, for example "`pаypal` mixes Latin and
    Cyrillic letters".
    """
    if text.isascii():
        return ()
    mixtures = (_mixture(word) for word in dict.fromkeys(_WORD.findall(text)))
    return tuple(filter(None, mixtures))


def _mixture(word: str) -> Clean | None:
    if word.isascii():
        return None
    names = {name(char, "").partition(" ")[0] for char in word}
    scripts = [script.capitalize() for script in _SCRIPTS if script in names]
    if "LATIN" not in names or len(scripts) < 2:
        return None
    return Clean(f"`{visible_line(word)}` mixes {' and '.join(scripts)} letters")


def command_line(command: str) -> Clean:
    """Return a command on one line, as by `visible_line`, after a warning if needed.

    The warning is needed if the command contains characters a user can't see (`holds_controls`).
    """
    line = visible_line(command)
    return Clean(f"[{HOLDS_CONTROLS}] {line}") if holds_controls(command) else line


def clean_line(text: str) -> Clean:
    """Clean a name, title or path, and put it on one line.

    Unlike `clean()`, this replaces colour codes with visible characters. Whitespace is collapsed to
    single spaces and stripped from both ends.
    """
    return Clean(" ".join(_cleaned(text, _HARMFUL).split()))


def one_line(text: str) -> Clean:
    """Clean a string like `clean_line()`, but without collapsing spaces.

    Line breaks and tabs become spaces. Use this for sentences that quote patterns, where the number
    of spaces matters.
    """
    return Clean(_cleaned(text, _HARMFUL).replace("\n", " ").replace("\t", " "))


_JOINING = re.compile("[\U0001f3fb-\U0001f3ff\u1160-\u11ff\ud7b0-\ud7ff]")
"""Matches characters that combine with the preceding one.

These are skin tones, and Hangul vowels and finals.
"""


def cells(text: str) -> int:
    """Return a line's width in terminal cells.

    Wide characters take two cells, and combining characters take none.
    """
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(_widths(text))


def _widths(text: str) -> list[int]:
    """Return the width of each character in cells.

    In an emoji of several joined characters, only the first has a width. U+FE0F makes the character
    before it two cells wide.
    """
    widths: list[int] = []
    joined = False
    for char in text:
        if char == "\ufe0f":
            widths.append(int(bool(widths) and widths[-1] == 1))
        else:
            widths.append(0 if joined else _width(char))
        joined = char == "\u200d"
    return widths


def _width(char: str) -> int:
    kind = category(char)
    if kind in ("Mn", "Me", "Mc", "Cc", "Cf") and char != "\xad":
        return 0
    if _JOINING.match(char):
        return 0
    if kind == "Cn":  # newer than Python's Unicode tables, which treat it as wide; only emoji are
        return 2 if "\U0001f300" <= char <= "\U0001faff" else 1
    return 2 if east_asian_width(char) in "WF" else 1


def ellipsis(text: str, width: int, *, mark: str = "…") -> str:
    """Truncate text that is wider than `width` cells, appending `mark`.

    Returns "" if even the mark is too wide.
    """
    if cells(text) <= width:
        return text
    room = width - cells(mark)
    if room < 0:
        return ""
    ends = accumulate(_widths(text))
    kept = next((index for index, end in enumerate(ends) if end > room), len(text))
    return text[:kept].rstrip() + mark


_AGES = (
    (timedelta(days=365), "y"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "m"),
)


def relative(when: datetime, now: datetime) -> str:
    """Format an age in at most four characters: `now`, `2m`, `1h`, `3d`, `2y`.

    Both datetimes must be timezone-aware. If `when` is after `now`, because a clock is wrong, the
    result is `now`.
    """
    age = now - when
    for unit, letter in _AGES:
        if age >= unit:
            return f"{age // unit}{letter}"
    return "now"


_DASHES = re.compile("-+")
_WINDOWS_DEVICES = r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$"
_NAME_BYTES = 150


def file_name(text: str) -> str:
    """Turn a string into a file name, without a folder, that is valid on all systems.

    Letters and digits of all scripts, `.` and `_` are kept; anything else becomes a single dash, so
    that no quoting is needed in a shell. The result is never a Windows device name and never starts
    with a dot or dash. It has at most 150 bytes of UTF-8, which leaves room for a suffix. If
    nothing is left, the result is `untitled`.
    """
    kept = (char if _fits_in_name(char) else "-" for char in clean_line(text))
    plain = _DASHES.sub("-", "".join(kept))
    plain = plain.encode()[:_NAME_BYTES].decode(errors="ignore").lstrip(".-").rstrip(". -")
    if re.match(_WINDOWS_DEVICES, plain):
        return f"_{plain}"
    return plain or "untitled"


def _fits_in_name(char: str) -> bool:
    return char.isalnum() or char in "._" or (category(char) in ("Mc", "Mn") and char != "\ufe0f")


_SELECTORS = "\ufe0e\ufe0f"
_SELECTOR = f"[{_SELECTORS}]?"


def composed(text: str) -> str:
    """Return a text in the form in which searches compare it.

    The same letter may be one character, or a base letter with combining marks after it: accented
    letters are composed (NFC). The same symbol may have a variation selector after it, which
    chooses between a drawing and a picture: these are removed.
    """
    text = normalize("NFC", text)
    for selector in _SELECTORS:
        text = text.replace(selector, "")
    return text


def either_form(text: str) -> str:
    """Return a regular expression for a text, with accented letters composed or not.

    Symbols may have a variation selector after them.
    """
    return "".join(map(_either_form, composed(text)))


def _either_form(char: str) -> str:
    apart = normalize("NFD", char)
    escaped = re.escape(char)
    if apart != char:
        return f"(?:{escaped}|{re.escape(apart)})"
    return escaped if char.isascii() or char.isalnum() else f"{_SELECTOR}{escaped}{_SELECTOR}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: `1 file`, `1,204 files`.

    `plural`: the plural noun; None means `noun` + `s`.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def or_list(names: Iterable[str]) -> str:
    """Join names for a sentence: `a, b or c`. There must be at least one name."""
    *head, last = names
    return f"{', '.join(head)} or {last}" if head else last


def size(bytes: int) -> str:
    """Format a number of bytes in decimal units: `812 B`, `1.2 MB`."""
    if bytes < 1000:
        return f"{bytes} B"
    value, unit = bytes / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


def duration(time: timedelta) -> str:
    """Format a duration for reading: `12 ms`, `2.1 s`, `1 m 12 s`, `1 h 3 m`."""
    seconds = time.total_seconds()
    if seconds < 0.9995:
        return f"{max(0, seconds) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60) if seconds >= 3600 else int(seconds + 0.5) // 60
    if minutes < 60:
        return f"{minutes} m {int(seconds + 0.5) % 60} s"
    return f"{minutes // 60} h {minutes % 60} m"


def short_path(path: PurePath, home: Path | None = None) -> Clean:
    """Return a path with `~` for the home directory (`home`; None means the user's)."""
    home = home or Path.home()
    inside = path.is_relative_to(home) and path != home
    return clean_line(f"~/{path.relative_to(home)}" if inside else str(path))
