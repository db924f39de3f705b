"""Completion for tags that are already in use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.suggester import Suggester

from gemtui.text import Clean, clean_line

if TYPE_CHECKING:
    from gemtui.marks import Mark

BETWEEN = re.compile(r"[\s,]+")
"""Matches the separators between tags."""


def tags_in_use(marks: Mapping[str, Mark]) -> list[Clean]:
    """Return the tags in use, most frequent first."""
    uses = Counter(tag for mark in marks.values() for tag in mark.tags)
    return [clean_line(tag) for tag, _ in uses.most_common()]


class TagSuggester(Suggester):
    """Completes the last word of the input to a tag that is in use.

    `sign`: only words with this prefix are completed.
    """

    def __init__(self, tags: Callable[[], Sequence[Clean]], *, sign: str = "") -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._tags, self._sign = tags, sign

    async def get_suggestion(self, value: str) -> str | None:
        """Return the input with its last tag completed, or None if no tag in use matches."""
        word = BETWEEN.split(value)[-1]
        begun = word.removeprefix("#").lower()
        if not begun or not word.startswith(self._sign):
            return None
        found = next((tag for tag in self._tags() if tag.startswith(begun)), None)
        return None if found is None else value + found[len(begun) :]
