"""Completion for tags that are already in use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from gemtui.text import Clean, clean_line

if TYPE_CHECKING:
    from gemtui.marks import Mark

BETWEEN = re.compile(r"[\s,]+")
"""Matches the separators between tags."""


def tags_in_use(marks: Mapping[str, Mark]) -> list[Clean]:
    """Return the tags in use, most frequent first."""
    uses = Counter(tag for mark in marks.values() for tag in mark.tags)
    return [clean_line(tag) for tag, _ in uses.most_common()]


def complete_tag(text: str, tags: Callable[[], Sequence[Clean]], *, sign: str = "") -> str | None:
    """Return a text with its last word completed to a tag in use, or None if none matches.

    `sign`: only words with this prefix are completed.
    """
    word = BETWEEN.split(text)[-1]
    begun = word.removeprefix("#").lower()
    if not begun or not word.startswith(sign):
        return None
    found = next((tag for tag in tags() if tag.startswith(begun)), None)
    return None if found is None else text + found[len(begun) :]
