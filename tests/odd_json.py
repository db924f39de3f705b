"""JSON that is not what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

_NAMES = st.text("ab/\0", max_size=3)
_TEXTS = ("", "x", "/", "a\0b", "../..", "~", "TRUST_FOLDER", "2026-01-02T03:04:05Z")
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(_TEXTS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)


def spoilt(value: Any) -> st.SearchStrategy[Any]:
    """The value with odd things in the place of some of its parts, or of all of it."""
    if isinstance(value, Mapping):
        spoilt_parts = {name: spoilt(part) for name, part in value.items()}
        parts = st.fixed_dictionaries({}, optional=spoilt_parts)
        return ODD | parts.map(lambda changed: {**value, **changed})
    if isinstance(value, list):
        return ODD | st.tuples(*map(spoilt, value)).map(list)
    return ODD | st.just(value)
