"""JavaScript's regular expressions, as used in the CLI's rules.

See assets/gemini-cli.md#args-text. The package `regress` runs the expressions. It backtracks and
can't be interrupted, so patterns are run in a separate process, which is killed after `LIMIT`
seconds. Only what can't take long is matched here: literal text, command prefixes, and patterns
with one repetition in short texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from regress import Regex, RegressError

from gemtui.errors import GemtuiError
from gemtui.policy.match import pattern_process
from gemtui.policy.match.js_regex import PatternError, in_halves, rewritten_for_regress

LIMIT: Final = 2.0
"""The maximum CPU seconds for one search.

Each time the same pattern exceeds its limit, the limit becomes smaller.
"""
_LEAST: Final = 0.05
_SHORT: Final = 2000
"""Maximum length of a text in which a pattern with one repetition is searched for here.

The search tries at most each beginning with each end, which takes a few milliseconds.
"""
_PROBE_LENGTHS: Final = (28, 1000)
_PROBE_SECONDS: Final = 0.1
_MOST_PROBES: Final = 40
_LONGEST: Final = 2048
PREFIX_END: Final = r'(?:[\s"]|\\")'
"""What the CLI appends to a commandPrefix to make a pattern of it: the word must end there."""

_TOKEN = re.compile(r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|\[(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_LITERAL = re.compile(
    r"(?:(?:\\x00|\\0(?![0-9])|\\[^0-9A-Za-z]|[^\\^$.*+?()\[\]{}|])(?![*+?{]))*", re.DOTALL
)
"""Matches the literal text at the beginning of a pattern."""
_ESCAPED = re.compile(r"\\(x00|0|.)", re.DOTALL)


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
        self.source = source
        self._rewritten = rewritten_for_regress(source)
        try:
            self._regex = Regex(self._rewritten)
        except RegressError as error:
            raise PatternError(str(error)[:1].lower() + str(error)[1:]) from None
        self.prefix = ""
        rest = source
        if not alternatives(source):
            self.prefix, rest = _split_literal(source)
        self._rest = rest
        self._is_simple = _is_simple(source)
        self._stopped = 0

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a string. Raises PatternTimeout."""
        if not text.isascii():
            text = _in_halves(text)
        if self.prefix not in text:
            return False
        if not self._rest:
            return True
        if self._rest == PREFIX_END or (self._is_simple and len(text) <= _SHORT):
            return self._regex.find(text) is not None
        seconds = max(LIMIT / (1 + self._stopped), _LEAST)
        matches = pattern_process.found(self._rewritten, text, seconds)
        if matches is None:
            self._stopped += 1
            raise PatternTimeout(self.source, seconds)
        return matches

    def is_slow(self) -> bool:
        """Return whether the pattern was slow with a short text made of its own characters."""
        if self._rest in ("", PREFIX_END):
            return False
        at_the_beginning = f"^(?:{self._rewritten})"
        for piece in _pieces(self._rewritten):
            for length in _PROBE_LENGTHS:
                text = self.prefix + piece * (length // len(piece)) + "\0"
                if pattern_process.found(at_the_beginning, text, _PROBE_SECONDS) is None:
                    return True
        return False


def _is_simple(pattern: str) -> bool:
    """Return whether a pattern has no groups, no alternatives, and at most one repetition."""
    symbols = [token for token in tokens(pattern) if token in "()|*+?{"]
    return len(symbols) < 2 and not {"(", "|"}.intersection(symbols)


_in_halves = lru_cache(maxsize=2)(in_halves)


def _split_literal(source: str) -> tuple[str, str]:
    """Split a pattern without alternatives into the literal text it begins with, and the rest."""
    halves = in_halves(source)
    literal = _LITERAL.match(halves)
    end = literal.end() if literal else 0
    text = _ESCAPED.sub(
        lambda escape: "\0" if escape[1] in ("x00", "0") else escape[1], halves[:end]
    )
    return text, halves[end:]


def _pieces(pattern: str) -> list[str]:
    """Return short texts whose repetition may keep a pattern busy: its own words and characters.

    Some common characters are added, because `.` and the classes match them.
    """
    words = re.findall(r"\w+", pattern)
    pieces = dict.fromkeys([*"a 1", *words, *"".join(words), *pattern])
    return list(pieces)[:_MOST_PROBES]


def tokens(pattern: str) -> Iterator[str]:
    """Split a pattern into escapes, character classes and single characters."""
    for token in _TOKEN.finditer(pattern):
        yield token[0]


def alternatives(pattern: str) -> bool:
    """Return whether the pattern has a `|` outside of all groups."""
    depth = 0
    for token in tokens(pattern):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            return True
    return False


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


@lru_cache(maxsize=4096)
def slow(source: str) -> bool:
    """Return whether searching a long string for this pattern may be slow.

    Some texts are tried in the process for patterns, so a pattern may be slow that isn't reported.
    Returns False for an invalid pattern.
    """
    try:
        return compile_pattern(source).is_slow()
    except PatternError:
        return False
