"""JavaScript's regular expressions, as used in the CLI's rules.

See assets/gemini-cli.md#args-text. The package `regress` runs the expressions. It backtracks and
can't be interrupted, so a search that may take long is run in a separate process, which is killed
after `LIMIT` seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf
from typing import Final, NamedTuple

from regress import Regex, RegressError

from gemtui.errors import GemtuiError
from gemtui.policy.match import pattern_process
from gemtui.policy.match.js_regex import (
    ANY,
    Alternation,
    Assertion,
    BackReference,
    CharacterClass,
    Concatenation,
    Lookaround,
    Node,
    PatternError,
    Quantifier,
    Ranges,
    RegexParser,
    char_of,
    in_halves,
)

__all__ = [
    "LIMIT",
    "Pattern",
    "PatternError",
    "PatternTimeout",
    "compile_pattern",
    "slow",
    "unsafe",
]

LIMIT: Final = 2.0
"""The maximum CPU seconds for one search with a possibly slow pattern.

Each time the same pattern exceeds its limit, the limit becomes smaller.
"""

_LEAST: Final = 0.05
HARMLESS_STEPS: Final = 5e6
_LONGEST: Final = 2048
_LONG: Final = 1000
_LONG_STEPS: Final = 1e8
"""A pattern is slow if it may take more steps than this from one position.

The string to search is assumed to have `_LONG` characters. A pattern with two consecutive
repetitions stays below this limit.
"""


class PatternTimeout(GemtuiError):
    """Raised if searching a string for a pattern took longer than `seconds`."""

    def __init__(self, source: str, seconds: float) -> None:
        super().__init__(f"matching the pattern {source!r} took longer than {seconds:g} s")
        self.source, self.seconds = source, seconds


class Pattern:
    """A compiled pattern; `source` is the pattern as the rule spells it.

    `prefix`: the literal text with which every match begins; it is spelled as in strings returned
    by `in_halves`.
    """

    def __init__(self, source: str) -> None:
        reader = RegexParser(source)
        self._tree = reader.read()
        self.source = source
        self._rewritten = reader.rewritten
        try:
            self._regex = Regex(reader.rewritten)
        except RegressError as error:
            raise PatternError(str(error)[:1].lower() + str(error)[1:]) from None
        self._literals = _literals(self._tree)
        self.prefix = self._literals.prefix
        self._steps: dict[int, float] = {}
        self._stopped = 0

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a string. Raises PatternTimeout."""
        if not text.isascii():
            text = _in_halves(text)
        if self.prefix not in text:
            return False
        if self._literals.whole:
            return True
        if self.steps(text) <= HARMLESS_STEPS:
            return self._regex.find(text) is not None
        if any(literal not in text for literal in self._literals.needed):
            return False
        return self._watched(text)

    def steps(self, text: str) -> float:
        """Return the maximum number of character comparisons needed to search a string."""
        size = len(text).bit_length()
        if size not in self._steps:
            self._steps[size] = most_steps(self._tree, 1 << size)
        return self._literals.places(text) * self._steps[size]

    def _watched(self, text: str) -> bool:
        seconds = max(LIMIT / (1 + self._stopped), _LEAST)
        found = pattern_process.found(self._rewritten, text, seconds)
        if found is None:
            self._stopped += 1
            raise PatternTimeout(self.source, seconds)
        return found


_in_halves = lru_cache(maxsize=2)(in_halves)


# --- cost of a search ----------------------------------------------------------------------------


class _Effort(NamedTuple):
    """The maximum work of a backtracking engine on a part of a pattern.

    The work starts at one position in a string. `ways`: the number of ways to match there; the rest
    of the pattern is tried after each. `steps`: the number of steps needed to try all ways. Neither
    number is ever too low. If the work grows exponentially, they may be infinite or NaN.
    """

    ways: float
    steps: float


def most_steps(tree: Node, length: int) -> float:
    """Return the maximum number of steps to try a pattern at one position in a string.

    `length`: the string's length.
    """
    items = list(_row(tree))
    at_the_end = 0.0
    try:
        while items and isinstance(items[-1], Quantifier) and not items[-1].least:
            at_the_end += _effort(items.pop(), length).steps  # the rest has matched: no retries
        return _effort(Concatenation(tuple(items)), length).steps + at_the_end
    except OverflowError:
        return inf


def _effort(node: Node, length: int) -> _Effort:
    match node:
        case Concatenation(items):
            ways, steps = 1.0, 0.0
            for each in (_effort(item, length) for item in items):
                steps += ways * each.steps
                ways *= each.ways
            return _Effort(ways, steps)
        case Alternation(options):
            efforts = [_effort(option, length) for option in options]
            ways = (max if _apart(options) else sum)(each.ways for each in efforts)
            return _Effort(ways, sum(each.steps for each in efforts))
        case Quantifier(body, least, most):
            each = _effort(body, length)
            most = max(least, length) if most is None else most
            ways = each.ways**most
            return _Effort((most - least + 1) * ways, most * each.steps * ways)
        case Lookaround(body):
            return _Effort(1.0, _effort(body, length).steps)
        case BackReference():
            return _Effort(1.0, length)
    return _Effort(1.0, 1.0)


def _apart(options: Sequence[Node]) -> bool:
    """Return whether no two of these options can match the same first character."""
    return not any(
        low <= other_high and other_low <= high
        for one, other in combinations(map(_first, options), 2)
        for low, high in one
        for other_low, other_high in other
    )


def _first(node: Node) -> Ranges:
    """Return the characters with which a match can begin; all if a match can be empty."""
    match node:
        case CharacterClass(ranges):
            return ranges
        case Concatenation((first, *_)) | Quantifier(first, 1):
            return _first(first)
        case Alternation(options):
            return tuple(each for option in options for each in _first(option))
    return ANY


# --- literals in every match ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Literals:
    """The literal text that every match of a pattern contains.

    `prefix`: the text with which every match begins. `needed`: strings that every match contains.
    `anchored`: whether a match can only be at the start of the string. `whole`: whether the pattern
    is nothing but `prefix`.
    """

    prefix: str
    needed: tuple[str, ...]
    anchored: bool
    whole: bool

    def places(self, text: str) -> int:
        """Return the maximum number of positions in a string at which a match may begin."""
        if self.anchored:
            return 1
        return text.count(self.prefix) * len(self.prefix) if self.prefix else len(text) + 1


def _literals(tree: Node) -> _Literals:
    runs, anchored, whole = [""], False, True
    for at, node in enumerate(_row(tree)):
        if isinstance(node, Assertion):
            anchored = anchored or (at == 0 and node.start)
        elif isinstance(node, CharacterClass) and (char := char_of(node)):
            runs[-1] += char
            continue
        else:
            runs.append("")
        whole = False
    return _Literals(runs[0], tuple(run for run in runs if run), anchored, whole)


def _row(node: Node) -> Iterator[Node]:
    """Yield the items of a sequence, replacing unrepeated groups by their items."""
    if isinstance(node, Concatenation):
        for item in node.items:
            yield from _row(item)
    elif isinstance(node, Quantifier) and node.least == node.most == 1:
        yield from _row(node.body)
    else:
        yield node


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> Pattern:
    """Return the compiled pattern; results are cached. Raises PatternError if invalid."""
    return Pattern(source)


@lru_cache(maxsize=4096)
def unsafe(source: str) -> str | None:
    """Return why the CLI drops a rule with this valid pattern; None if it keeps it.

    The CLI drops patterns that look slow, but only looks at characters: at a `*`, `+`, `?` or `{`
    after a `(`, followed on the same line by a `)` that has one of these right after it. So even
    `(?:a|b)*` is dropped, because the `?` after `(` counts.
    """
    if len(source) + sum(char > "\uffff" for char in source) > _LONGEST:
        return f"it is longer than {_LONGEST:,} characters"
    opened = held = False
    for char, after in zip(source, f"{source[1:]} ", strict=False):
        if char == ")":
            if held and after in "*+?{":
                return "a repeated group contains another repetition; `(?` counts as one"
            opened = False
        elif char == "(":
            opened = True
        elif char in "*+?{":
            held = held or opened
        elif char in "\n\r\u2028\u2029":
            held = False
    return None


def slow(source: str) -> bool:
    """Return whether searching a long string for this pattern may be slow.

    Returns False for an invalid pattern.
    """
    try:
        return most_steps(RegexParser(source).read(), _LONG) > _LONG_STEPS
    except PatternError:
        return False
