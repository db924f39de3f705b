"""Find words that differ from a given word only by typos."""

from __future__ import annotations

import re

from gemtui.search.words import parts

_FIXED, _SHORT = 4, 7
"""Maximum lengths of words in which no typo, or at most one, is allowed."""
_TOO_LONG = 100
"""Length from which a word is taken for data, in which no typo is allowed."""
_WORD = re.compile(r"[^\W_]+")


def typos(word: str) -> int:
    """Return how many typos a word may have and still count as similar.

    The number is 0 for short words, very long words, and words with digits.
    """
    if not _FIXED < len(word) < _TOO_LONG or any(map(str.isdigit, word)):
        return 0
    return 1 if len(word) <= _SHORT else 2


def similar_in(text: str, word: str, *, prefix: bool, most: int) -> list[str]:
    """Return the words in `text`, and parts of compound names, similar to `word`.

    They are spelled as in `text`. `prefix`: include words that only begin similarly. `most`:
    compare at most this many words of `text`.
    """
    if not (errors := typos(word)):
        return []
    found: dict[str, bool] = {}
    for match, _ in zip(_WORD.finditer(text), range(most), strict=False):
        name = match[0]
        if name not in found:
            whole = _is_similar(name.lower(), word, errors, prefix)
            found[name] = whole
            for part in () if whole else parts(name).split():
                at = name.lower().find(part)
                found[name[at : at + len(part)]] = _is_similar(part, word, errors, prefix)
    return [name for name, similar in found.items() if similar]


def _is_similar(found: str, word: str, most: int, prefix: bool) -> bool:
    """Return whether two words differ by at most `most` typos.

    A typo is a letter that is added, left out, replaced, or swapped with its neighbour. `prefix`:
    compare only the beginning of `found`.
    """
    if len(found) < len(word) - most or (not prefix and len(found) > len(word) + most):
        return False
    found = found[: len(word) + most]
    before: list[int] = []
    row = list(range(len(found) + 1))
    for at, letter in enumerate(word, 1):
        last, before, row = before, row, [at]
        for to, other in enumerate(found, 1):
            cost = min(before[to] + 1, row[-1] + 1, before[to - 1] + (letter != other))
            if at > 1 and to > 1 and word[at - 2] == other and letter == found[to - 2]:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return False
    return (min(row) if prefix else row[-1]) <= most
