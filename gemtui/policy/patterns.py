"""JavaScript's regular expressions, as the CLI's rules use them (policy-engine, "argsPattern").

The package `regress` reads and runs them. It backtracks and can't be interrupted, so a pattern
that may take long on a text is run in a process of its own, which is ended after `LIMIT` seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from regress import Regex, RegressError

from gemtui.errors import GemtuiError
from gemtui.policy import pattern_process
from gemtui.policy.pattern_cost import ENDLESS, Cost, cost
from gemtui.policy.pattern_tree import (
    Assertion,
    Chars,
    Node,
    PatternError,
    Reader,
    Repeat,
    Row,
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
"""Seconds of work that one match of a pattern that may be slow gets; fewer after some failures."""

_LEAST: Final = 0.05
_HARMLESS_STEPS: Final = 5e6
_HARMLESS_WAYS: Final = 1e6
_LONGEST: Final = 2048


class PatternTimeout(GemtuiError):
    """The pattern did not end in time on a text; `seconds` it was given."""

    def __init__(self, source: str, seconds: float) -> None:
        super().__init__(f"the pattern {source!r} did not end within {seconds:g} s")
        self.source, self.seconds = source, seconds


class Pattern:
    """A pattern made ready; `source` is its text."""

    def __init__(self, source: str) -> None:
        reader = Reader(source)
        tree = reader.read()
        self.source = source
        self._rewritten = reader.rewritten
        try:
            self._regex = Regex(reader.rewritten)
        except RegressError as error:
            raise PatternError(str(error)[:1].lower() + str(error)[1:]) from None
        self._literals = _literals(tree)
        self.cost: Cost = cost(tree, anchored=self._literals.anchored)
        self._always_quick = self.cost.power == 0 and self.cost.ways <= _HARMLESS_WAYS / 1000
        self._stopped = 0

    def matches(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text; PatternTimeout when it can't end."""
        if not text.isascii():
            text = _in_halves(text)
        if self._always_quick or self._steps(text) <= _HARMLESS_STEPS:
            return self._regex.find(text) is not None
        if any(literal not in text for literal in self._literals.needed):
            return False
        return self._watched(text)

    def _steps(self, text: str) -> float:
        places = self._literals.places(text)
        return self.cost.steps(places, len(text)) if places else 0.0

    def _watched(self, text: str) -> bool:
        seconds = max(LIMIT / (1 + self._stopped), _LEAST)
        found = pattern_process.found(self._rewritten, text, seconds)
        if found is None:
            self._stopped += 1
            raise PatternTimeout(self.source, seconds)
        return found


_in_halves = lru_cache(maxsize=2)(in_halves)


@dataclass(frozen=True, slots=True)
class _Literals:
    """What every match begins with, and what it holds; `anchored`: it begins where a text does."""

    prefix: str
    needed: tuple[str, ...]
    anchored: bool

    def places(self, text: str) -> int:
        """At how many places of a text a match may begin, at most."""
        if self.anchored:
            return 1
        return text.count(self.prefix) * len(self.prefix) if self.prefix else len(text) + 1


def _literals(tree: Node) -> _Literals:
    runs, anchored = [""], False
    for at, node in enumerate(_row(tree)):
        if isinstance(node, Assertion):
            anchored = anchored or (at == 0 and node.start)
        elif isinstance(node, Chars) and (char := char_of(node)):
            runs[-1] += char
        else:
            runs.append("")
    return _Literals(runs[0], tuple(run for run in runs if run), anchored)


def _row(node: Node) -> Iterator[Node]:
    """What stands in a row, groups opened."""
    if isinstance(node, Row):
        for item in node.items:
            yield from _row(item)
    elif isinstance(node, Repeat) and node.least == node.most == 1:
        yield from _row(node.body)
    else:
        yield node


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> Pattern:
    """The pattern made ready, cached; PatternError when JavaScript can't read it."""
    return Pattern(source)


def unsafe(source: str) -> str | None:
    """Why the CLI drops a rule with this pattern although it can be read; None = it keeps it.

    Its test is on the text alone: a group, a repetition before any `)`, and a repetition behind a
    later `)` of the same line. So `(?:a|b)*` counts, since `?` is a repetition to it.
    """
    if len(source) + sum(char > "\uffff" for char in source) > _LONGEST:
        return f"it is longer than {_LONGEST:,} characters"
    opened = held = False
    for char, after in zip(source, f"{source[1:]} ", strict=False):
        if char == ")":
            if held and after in "*+?{":
                return "a repeated group holds a repetition, and `(?` counts as one"
            opened = False
        elif char == "(":
            opened = True
        elif char in "*+?{":
            held = held or opened
        elif char in "\n\r\u2028\u2029":
            held = False
    return None


def slow(source: str) -> str | None:
    """Why the pattern may be slow on a long text; None = it is not, or it can't be read at all."""
    try:
        judged = compile_pattern(source).cost
    except PatternError:
        return None
    if judged == ENDLESS:
        return "it has too many repetitions to say how long it takes"
    if judged.endless:
        return "one of its repetitions can match the same text in several ways"
    if judged.ways > _HARMLESS_WAYS:
        return "its choices can match the same text in too many ways"
    if judged.search_power > 2:
        return "several of its repetitions in a row can match the same text"
    return None
