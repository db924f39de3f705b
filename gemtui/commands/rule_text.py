"""Format rules as JSON, and tables for the shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gemtui.policy.model.rules import Rule
from gemtui.text import Clean, cells, visible_line


def rule_dict(rule: Rule | None) -> dict[str, Any] | None:
    """Return a rule for JSON reports, with its place and priorities; None for no rule."""
    if rule is None:
        return None
    return {
        "source": rule.source,
        "index": rule.index,
        "tier": int(rule.tier),
        "priority": rule.priority,
        "effective": rule.effective,
    }


def columns(
    rows: Sequence[Sequence[str]],
    *,
    numbers: frozenset[int] = frozenset(),
    room: int | None = None,
) -> Iterator[Clean]:
    """Yield the rows as lines with aligned columns.

    `numbers`: the indexes of columns to align right. `room`: the width of a line in cells, at which
    the last column is wrapped; None disables wrapping.
    """
    cleaned = [[Clean(visible_line(cell).strip()) for cell in row] for row in rows]
    if not cleaned:
        return
    widths = [max(map(cells, column)) for column in zip(*cleaned, strict=True)]
    for *front, last in cleaned:
        padded = []
        for at, cell in enumerate(front):
            blanks = " " * (widths[at] - cells(cell))
            padded.append(blanks + cell if at in numbers else cell + blanks)
        before = "".join(f"{cell}  " for cell in padded)
        for line in _wrapped(last, room and room - cells(Clean(before))):
            yield Clean(f"{before}{line}".rstrip())
            before = " " * cells(Clean(before))


_NARROW = 20
"""The width in cells below which a column is not wrapped."""


def _wrapped(text: Clean, room: int | None) -> Iterator[str]:
    """Wrap text at spaces to lines of at most `room` cells; long words stay whole."""
    if room is None or room < _NARROW:
        yield text
        return
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and cells(Clean(longer)) > room:
            yield line
            longer = word
        line = longer
    yield line
