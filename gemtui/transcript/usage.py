"""The tokens that answers cost, and their sums."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import asdict, astuple


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """The token counts of one model answer, or a sum of them.

    None means unknown, and 0 a measured zero. `input` includes `cached` and `written`, which was
    written to the cache of Claude's API; `output` excludes `thoughts`; total = input + output +
    thoughts + tool.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    thoughts: int | None = None
    tool: int | None = None
    total: int | None = None
    written: int | None = None

    def to_dict(self) -> dict[str, int | None]:
        """Return the counts as JSON; `written` only where an agent tells it."""
        counts: dict[str, int | None] = asdict(self)
        if self.written is None:
            del counts["written"]
        return counts

    @property
    def adds_up(self) -> bool:
        """Whether the counts add up; False only if all are known and the sum differs."""
        parts = (self.input, self.output, self.thoughts, self.tool)
        if self.total is None or any(part is None for part in parts):
            return True
        return self.total == sum(part for part in parts if part is not None)


def usage_sum(usages: Iterable[Usage | None]) -> Usage:
    """Return the sum of the known values for each token count, skipping None."""
    totals: list[int | None] = []
    for column in zip(*(astuple(usage) for usage in usages if usage is not None), strict=True):
        total = sum(filter(None, column))
        is_known = total or any(count is not None for count in column)
        totals.append(total if is_known else None)
    return Usage(*totals)
