"""JavaScript's string operations, where Python's behave differently."""

from __future__ import annotations

import re

BLANKS = (
    "\t\n\x0b\x0c\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
r"""The characters that `\s` matches and `trim()` removes in JavaScript."""
_BLANK = re.compile(f"[{BLANKS}]")
_LINE = re.compile("[^\n\r\u2028\u2029]*(?:\n|\\Z)")
_CRLF = re.compile("\r?\n")


def without_blanks(text: str) -> str:
    r"""Return a string without the characters that `\s` matches."""
    return _BLANK.sub("", text)


def lines(text: str) -> list[str]:
    r"""Return what JavaScript's `text.match(/.*(?:\n|$)/g).slice(0, -1)` returns.

    Characters before a lone CR, U+2028 or U+2029 belong to no line, so they are lost when the lines
    are joined.
    """
    return _LINE.findall(text)[:-1]


def with_crlf(text: str) -> str:
    r"""Return a string with each line ending as `\r\n`."""
    return _CRLF.sub("\r\n", text)


def units(text: str) -> str | tuple[int, ...]:
    """Return a string as a sequence of UTF-16 code units, JavaScript's unit of length.

    A string without characters above U+FFFF already is such a sequence and is returned unchanged.
    """
    if text.isascii() or max(text) < "\U00010000":
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return tuple(memoryview(data).cast("H"))


def length(text: str) -> int:
    """Return the length of a string in UTF-16 code units."""
    return len(text) + sum(char > "\uffff" for char in text)


def encoded(text: str) -> bytes:
    """Encode a string as UTF-8 like Node.js: a lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        data = text.encode("utf-16-le", "surrogatepass")
        return data.decode("utf-16-le", "replace").encode()


def decode_utf8(data: bytes) -> str:
    """Decode UTF-8 like Node.js: invalid bytes become U+FFFD."""
    return data.decode("utf-8", "replace")
