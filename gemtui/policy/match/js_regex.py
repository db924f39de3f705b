r"""Rewrite JavaScript's regular expressions for the package `regress`.

Flags are not supported. Without the `u` flag, JavaScript matches UTF-16 code units: a character
beyond U+FFFF counts as two surrogates, and a surrogate may also occur alone. `regress`, however,
matches whole characters. So in patterns and in the strings to search, each surrogate is replaced by
a character from the range that begins at `HALVES`. This range is free because characters beyond
U+FFFF are replaced as well. The CLI was observed on Node 20. Anything that Node 20 rejects is an
error here, even if `regress` accepts it: `(?i:x)`, `\b+` and duplicate group names. As in
JavaScript without the `u` flag, `\u{61}` means the letter u, 61 times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn

from gemtui.errors import GemtuiError

HALVES: Final = 0x10F800
_FIRST_HALF: Final = 0xD800
_LAST_HALF: Final = 0xDFFF
_LAST: Final = 0xFFFF
_BEYOND: Final = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")

_CLASSES: Final = frozenset("dDwWsS")
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_OPENINGS: Final = ("(?:", "(?=", "(?!", "(?<=", "(?<!")

_BRACES: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP_NAME: Final = re.compile(r"\?<([^>=!][^>]*)>")
_NAMED_REFERENCE: Final = re.compile(r"\\k<[^>]*>")
_NUMBERED_REFERENCE: Final = re.compile(r"\\([1-9][0-9]*)")
_CODE: Final = re.compile(
    r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|c([A-Za-z])|([0-3][0-7]{0,2}|[4-7][0-7]?)"
)
_SKIPPED: Final = re.compile(
    r"\\(?s:.)|\[(?:\\(?s:.)|[^\]\\])*\]?|\((?!\?)|\(\?<(?![=!])", re.DOTALL
)


class PatternError(GemtuiError):
    """Raised for a pattern that isn't valid JavaScript; `str(error)` is the reason."""


def in_halves(text: str) -> str:
    """Replace each surrogate with the character that represents it in `regress`.

    A character beyond U+FFFF is replaced by two such characters, because JavaScript sees a pair of
    surrogates.
    """
    if text.isascii() or not _BEYOND.search(text):
        return text
    return _BEYOND.sub(_halves_of, text)


def _halves_of(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code > _LAST:
        code -= 0x10000
        return _half(_FIRST_HALF + (code >> 10)) + _half(0xDC00 + (code & 0x3FF))
    return _half(code)


def _half(unit: int) -> str:
    return chr(unit - _FIRST_HALF + HALVES)


def _unit(char: str) -> int:
    code = ord(char)
    return code - HALVES + _FIRST_HALF if code >= HALVES else code


def _written(unit: int) -> str:
    return _half(unit) if _FIRST_HALF <= unit <= _LAST_HALF else f"\\u{unit:04x}"


def rewritten_for_regress(source: str) -> str:
    """Return a JavaScript pattern as `regress` has to read it. Raises PatternError if invalid."""
    return _Rewriter(source).pattern()


class _Rewriter:
    """Goes through one pattern, and writes it anew for `regress`."""

    def __init__(self, source: str) -> None:
        self._text = in_halves(source)
        self._at = 0
        self._depth = 0
        self._out: list[str] = []
        openings = [piece for piece in _SKIPPED.findall(self._text) if piece.startswith("(")]
        self._groups = len(openings)
        self._named = "(?<" in openings
        self._names: set[str] = set()

    def pattern(self) -> str:
        """Rewrite the whole pattern. Raises PatternError if it is invalid."""
        self._alternatives()
        if self._at < len(self._text):
            _fail("a `)` has no matching `(`")
        return "".join(self._out)

    def _consume(self, length: int = 1) -> str:
        piece = self._text[self._at : self._at + length]
        self._at += length
        self._out.append(piece)
        return piece

    def _next(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _alternatives(self) -> None:
        while self._next() not in ("", ")"):
            if self._next() == "|":
                self._consume()
                continue
            can_repeat = self._item()
            self._repetition(can_repeat)

    def _item(self) -> bool:
        """Consume one item, and return whether it may be repeated."""
        char = self._next()
        if char in "*+?" or (char == "{" and _BRACES.match(self._text, self._at)):
            _fail(f"there is nothing before the `{char}` to repeat")
        if char == "(":
            return self._group()
        if char == "[":
            self._class()
            return True
        if char == "\\":
            return self._escaped()
        self._consume()
        return char not in "^$"

    def _repetition(self, can_repeat: bool) -> None:
        """Consume what says how often the last item is repeated, if anything does."""
        char = self._next()
        if not char or char not in "*+?{":
            return
        braces = _BRACES.match(self._text, self._at)
        if char == "{" and not braces:
            return
        if not can_repeat:
            _fail(f"there is nothing before the `{char}` to repeat")
        if braces and braces[3] and float(braces[3]) < float(braces[1]):  # of any length
            _fail(f"the numbers of `{braces[0]}` are in the wrong order")
        self._consume(len(braces[0]) if braces else 1)
        if self._next() == "?":
            self._consume()

    def _group(self) -> bool:
        """Consume a group, and return whether it may be repeated."""
        opening = self._opening()
        self._depth += 1
        if self._depth > 100:
            _fail("the groups are nested too deeply")
        self._consume(len(opening))
        self._alternatives()
        if self._next() != ")":
            _fail("a `(` has no matching `)`")
        self._consume()
        self._depth -= 1
        return opening not in ("(?<=", "(?<!")

    def _opening(self) -> str:
        """Return the beginning of the group that comes next, such as `(?:`."""
        for opening in _OPENINGS:
            if self._text.startswith(opening, self._at):
                return opening
        named = _GROUP_NAME.match(self._text, self._at + 1)
        if named is None:
            if self._next(1) == "?":
                _fail("`(?` is followed by something that JavaScript does not support")
            return "("
        if named[1] in self._names:
            _fail(f"the group name {named[1]} is used twice")
        self._names.add(named[1])
        return f"({named[0]}"

    def _escaped(self) -> bool:
        """Consume an escape, and return whether it may be repeated."""
        after = self._next(1)
        if not after:
            _fail("the pattern ends with a `\\`")
        if after in "bB":
            self._consume(2)
            return False
        if after in _CLASSES:
            self._consume(2)
            return True
        if after == "k" and self._named:
            name = _NAMED_REFERENCE.match(self._text, self._at)
            if not name:
                _fail("`\\k` refers to no group")
            self._consume(len(name[0]))
            return True
        number = _NUMBERED_REFERENCE.match(self._text, self._at)
        if number and int(number[1]) <= self._groups:
            self._consume(len(number[0]))
        else:
            self._code()
        return True

    def _code(self) -> int:
        """Consume an escape for a single code unit, and return the code unit."""
        after = self._next(1)
        code = _CODE.match(self._text, self._at + 1)
        if after == "c" and not code:
            self._consume()
            return 0x5C
        if not code:
            if after == "u":
                self._at += 1
                return ord(self._consume())
            self._consume(2)
            return _CONTROLS.get(after, _unit(after))
        unit = _value(code)
        self._at += 1 + len(code[0])
        self._out.append(_written(unit) if code[2] else "\\" + code[0])
        return unit

    def _class(self) -> None:
        self._consume()
        if self._next() == "^":
            self._consume()
        while self._next() != "]":
            if not self._next():
                _fail("a `[` has no matching `]`")
            self._class_item()
        self._consume()

    def _class_item(self) -> None:
        """Consume a member of a `[…]` class, or a range such as `a-z`."""
        first = self._member()
        mark = len(self._out)
        if self._next() != "-" or self._next(1) in ("", "]"):
            return
        self._consume()
        last = self._member()
        if first is None or last is None:
            return
        if first > last:
            _fail("the ends of a range in `[]` are in the wrong order")
        if last >= _FIRST_HALF and (first < _FIRST_HALF or last > _LAST_HALF):
            del self._out[mark - 1 :]
            self._out.extend(f"{_written(a)}-{_written(b)}" for a, b in _split(first, last))

    def _member(self) -> int | None:
        """Consume a member of a class. Return its code unit; None for several, such as `\\d`."""
        if self._next() != "\\":
            return _unit(self._consume())
        after = self._next(1)
        if not after:
            _fail("a `[` has no matching `]`")
        if after in _CLASSES:
            self._consume(2)
            return None
        if after == "k" and self._named:
            _fail("`\\k` is not allowed inside `[]`")
        if after == "c" and re.compile("[0-9_]").match(self._text, self._at + 2):
            return ord(self._consume(3)[2]) % 32
        if after == "b":
            self._consume(2)
            return 8
        return self._code()


def _fail(why: str) -> NoReturn:
    raise PatternError(why)


def _value(code: re.Match[str]) -> int:
    if code[3]:
        return ord(code[3]) % 32
    return int(code[4], 8) if code[4] else int(code[1] or code[2], 16)


def _split(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Split a range of code units into the parts below, in and above the surrogates."""
    for low, high in ((0, _FIRST_HALF - 1), (_FIRST_HALF, _LAST_HALF), (_LAST_HALF + 1, _LAST)):
        if first <= high and last >= low:
            yield max(first, low), min(last, high)
