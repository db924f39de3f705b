r"""Parse JavaScript's regular expressions; rewrite them for the package `regress`.

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
from dataclasses import dataclass
from typing import Final, NoReturn

from gemtui.errors import GemtuiError

HALVES: Final = 0x10F800
_FIRST_HALF: Final = 0xD800
_LAST_HALF: Final = 0xDFFF
_LAST: Final = 0xFFFF
_BEYOND: Final = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")

Ranges = tuple[tuple[int, int], ...]


class PatternError(GemtuiError):
    """Raised for a pattern that isn't valid JavaScript; `str(error)` is the reason."""


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """Matches one UTF-16 code unit in any of these ranges, ends included."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Matches all of its items, one after another."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Matches any one of its options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Quantifier:
    """Matches its body from `least` to `most` times; None means any number of times."""

    body: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Assertion:
    r"""One of `^`, `$`, `\b` and `\B`; `start` is True for `^`."""

    start: bool


@dataclass(frozen=True, slots=True)
class Lookaround:
    """A lookahead, or a lookbehind if `behind` is True; either may be negated."""

    body: Node
    behind: bool


@dataclass(frozen=True, slots=True)
class BackReference:
    """Matches again what an earlier group has matched."""


Node = (
    CharacterClass
    | Concatenation
    | Alternation
    | Quantifier
    | Assertion
    | Lookaround
    | BackReference
)

_DIGITS: Final[Ranges] = ((0x30, 0x39),)
_LETTERS: Final[Ranges] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACES: Final[Ranges] = (
    *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_LINE_ENDS: Final[Ranges] = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))


def inverted(ranges: Ranges) -> Ranges:
    """Return the ranges of all code units outside the given ranges."""
    found, after = [], 0
    for low, high in sorted(ranges):
        if low > after:
            found.append((after, low - 1))
        after = max(after, high + 1)
    return (*found, (after, _LAST)) if after <= _LAST else tuple(found)


ANY: Final[Ranges] = ((0, _LAST),)
_CLASSES: Final[dict[str, Ranges]] = {
    "d": _DIGITS,
    "D": inverted(_DIGITS),
    "w": _LETTERS,
    "W": inverted(_LETTERS),
    "s": _SPACES,
    "S": inverted(_SPACES),
}
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}

_BRACES: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_GROUP_NAME: Final = re.compile(r"\?<([^>=!][^>]*)>")
_CODE: Final = re.compile(
    r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|c([A-Za-z])|([0-3][0-7]{0,2}|[4-7][0-7]?)"
)
_SKIPPED: Final = re.compile(
    r"\\(?s:.)|\[(?:\\(?s:.)|[^\]\\])*\]?|\((?!\?)|\(\?<(?![=!])", re.DOTALL
)


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


class RegexParser:
    """Parses one pattern with `read`, and rewrites it for `regress`."""

    def __init__(self, source: str) -> None:
        self._text = in_halves(source)
        self._at = 0
        self._depth = 0
        self._out: list[str] = []
        openings = [found for found in _SKIPPED.findall(self._text) if found.startswith("(")]
        self._groups = len(openings)
        self._named = "(?<" in openings
        self._names: set[str] = set()

    @property
    def rewritten(self) -> str:
        """The pattern for `regress`; complete once `read` has returned."""
        return "".join(self._out)

    def read(self) -> Node:
        """Parse the whole pattern and return its tree. Raises PatternError if invalid."""
        tree = self._choice()
        if self._at < len(self._text):
            _fail("a `)` has no matching `(`")
        return tree

    def _consume(self, length: int = 1) -> str:
        piece = self._text[self._at : self._at + length]
        self._at += length
        self._out.append(piece)
        return piece

    def _next(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _choice(self) -> Node:
        options = [self._row()]
        while self._next() == "|":
            self._consume()
            options.append(self._row())
        return options[0] if len(options) == 1 else Alternation(tuple(options))

    def _row(self) -> Node:
        items: list[Node] = []
        while self._next() not in ("", "|", ")"):
            item = self._item()
            items.append(self._repeated(item))
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def _item(self) -> Node:
        char = self._next()
        if char in "*+?" or (char == "{" and _BRACES.match(self._text, self._at)):
            _fail(f"there is nothing before the `{char}` to repeat")
        if char == "(":
            return self._group()
        if char == "[":
            return CharacterClass(self._class())
        if char == "\\":
            return self._escaped()
        self._consume()
        if char in "^$":
            return Assertion(char == "^")
        return CharacterClass(
            inverted(_LINE_ENDS) if char == "." else ((_unit(char), _unit(char)),)
        )

    def _repeated(self, item: Node) -> Node:
        char = self._next()
        if not char or char not in "*+?{":
            return item
        braces = _BRACES.match(self._text, self._at)
        if char == "{" and not braces:
            return item
        if isinstance(item, Assertion) or (isinstance(item, Lookaround) and item.behind):
            _fail(f"there is nothing before the `{char}` to repeat")
        least, most = (1 if char == "+" else 0), (1 if char == "?" else None)
        if braces:
            least = int(braces[1])
            most = (int(braces[3]) if braces[3] else None) if braces[2] else least
            if most is not None and most < least:
                _fail(f"the numbers of `{braces[0]}` are in the wrong order")
        self._consume(len(braces[0]) if braces else 1)
        if self._next() == "?":
            self._consume()
        return Quantifier(item, least, most)

    def _group(self) -> Node:
        named = _GROUP_NAME.match(self._text, self._at + 1)
        opening = next(
            (
                o
                for o in ("(?:", "(?=", "(?!", "(?<=", "(?<!")
                if self._text.startswith(o, self._at)
            ),
            "(" + named[0] if named else "(",
        )
        if opening == "(" and self._next(1) == "?":
            _fail("`(?` is followed by something that JavaScript does not support")
        if named:
            if named[1] in self._names:
                _fail(f"the group name {named[1]} is used twice")
            self._names.add(named[1])
        self._depth += 1
        if self._depth > 100:
            _fail("the groups are nested too deeply")
        self._consume(len(opening))
        body = self._choice()
        if self._next() != ")":
            _fail("a `(` has no matching `)`")
        self._consume()
        self._depth -= 1
        return Lookaround(body, "<" in opening) if opening[-1] in "=!" else body

    def _escaped(self) -> Node:
        after = self._next(1)
        if not after:
            _fail("the pattern ends with a `\\`")
        if after in "bB":
            self._consume(2)
            return Assertion(False)
        if after in _CLASSES:
            self._consume(2)
            return CharacterClass(_CLASSES[after])
        if after == "k" and self._named:
            name = re.compile(r"\\k<[^>]*>").match(self._text, self._at)
            if not name:
                _fail("`\\k` refers to no group")
            self._consume(len(name[0]))
            return BackReference()
        number = re.compile(r"[1-9][0-9]*").match(self._text, self._at + 1)
        if number and int(number[0]) <= self._groups:
            self._consume(1 + len(number[0]))
            return BackReference()
        unit = self._code()
        return CharacterClass(((unit, unit),))

    def _code(self) -> int:
        """Consume a literal or escape for a single code unit, and return the code unit."""
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

    def _class(self) -> Ranges:
        self._consume()
        negated = self._next() == "^"
        if negated:
            self._consume()
        found: list[tuple[int, int]] = []
        while self._next() != "]":
            if not self._next():
                _fail("a `[` has no matching `]`")
            found.extend(self._class_item())
        self._consume()
        return inverted(tuple(found)) if negated else tuple(found)

    def _class_item(self) -> Ranges:
        """Consume a member of a `[…]` class, or a range such as `a-z`; return its ranges."""
        low, mark = self._member(), len(self._out)
        if self._next() != "-" or self._next(1) in ("", "]"):
            return low
        self._consume()
        high = self._member()
        if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
            return (*low, (0x2D, 0x2D), *high)
        first, last = low[0][0], high[0][0]
        if first > last:
            _fail("the ends of a range in `[]` are in the wrong order")
        if last >= _FIRST_HALF and (first < _FIRST_HALF or last > _LAST_HALF):
            del self._out[mark - 1 :]
            self._out.extend(f"{_written(a)}-{_written(b)}" for a, b in _split(first, last))
        return ((first, last),)

    def _member(self) -> Ranges:
        if self._next() != "\\":
            unit = _unit(self._consume())
            return ((unit, unit),)
        after = self._next(1)
        if not after:
            _fail("a `[` has no matching `]`")
        if after in _CLASSES:
            self._consume(2)
            return _CLASSES[after]
        if after == "k" and self._named:
            _fail("`\\k` is not allowed inside `[]`")
        if after == "c" and re.compile("[0-9_]").match(self._text, self._at + 2):
            unit = ord(self._consume(3)[2]) % 32
        elif after == "b":
            self._consume(2)
            unit = 8
        else:
            unit = self._code()
        return ((unit, unit),)


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


def char_of(node: CharacterClass) -> str:
    """Return the only character that a class matches, or "" if it matches several.

    A surrogate is returned as the placeholder that `in_halves` replaces it with.
    """
    if len(node.ranges) != 1 or node.ranges[0][0] != node.ranges[0][1]:
        return ""
    unit = node.ranges[0][0]
    return _half(unit) if _FIRST_HALF <= unit <= _LAST_HALF else chr(unit)
