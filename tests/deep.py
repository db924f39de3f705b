"""How many generated examples or random moves a test takes: some, or all of them."""

from __future__ import annotations

import os

DEEP = os.environ.get("GEMTUI_TEST_DEEP") == "1"
_FEW = 20


def some_of(whole: int) -> int:
    """Return `whole` where GEMTUI_TEST_DEEP=1; otherwise a quarter, or 20 if that is more."""
    return whole if DEEP else min(whole, max(_FEW, whole // 4))
