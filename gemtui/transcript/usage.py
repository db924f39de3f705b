"""The tokens that answers cost, and their sums."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Usage(Struct, frozen=True, gc=False):
    """The token counts of one model answer, or a sum of them.

    None means unknown, and 0 a measured zero. `input` includes `cached`; `output` excludes
    `thoughts`; total = input + output + thoughts + tool.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    thoughts: int | None = None
    tool: int | None = None
    total: int | None = None

    @property
    def adds_up(self) -> bool:
        """Whether the counts add up; False only if all are known and the sum differs."""
        parts = (self.input, self.output, self.thoughts, self.tool)
        if self.total is None or any(part is None for part in parts):
            return True
        return self.total == sum(part for part in parts if part is not None)


def usage_sum(usages: Iterable[Usage | None]) -> Usage:
    """Return the sum of the known values for each token count, skipping None."""
    counted = [usage for usage in usages if usage is not None]
    totals: dict[str, int] = {}
    for name in Usage.__struct_fields__:
        counts = [count for usage in counted if (count := getattr(usage, name)) is not None]
        if counts:
            totals[name] = sum(counts)
    return Usage(**totals)
