"""How many generated examples, random moves or places of a sweep a test takes: some, or all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

DEEP = os.environ.get("GEMTUI_TEST_DEEP") == "1"
_FEW = 20
T = TypeVar("T")


def some_of(whole: int) -> int:
    """Return `whole` where GEMTUI_TEST_DEEP=1; otherwise a quarter, or 20 if that is more."""
    return whole if DEEP else min(whole, max(_FEW, whole // 4))


def a_quarter_of(places: Iterable[T]) -> list[T]:
    """Return all of a sweep where GEMTUI_TEST_DEEP=1; otherwise every fourth of them."""
    return list(places)[:: 1 if DEEP else 4]
