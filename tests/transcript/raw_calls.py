"""Hand-made records and calls in the forms of assets/gemini-cli.md#messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import hypothesis.strategies as st

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
"""Any JSON, lone surrogates and numbers beyond JSON included."""


def reply(**response: Any) -> list[dict[str, Any]]:
    """A stored result with one functionResponse."""
    return [{"functionResponse": {"id": "c1", "name": "x", "response": response}}]


def raw_call(
    name: str = "read_file",
    *,
    response: Mapping[str, Any] = MappingProxyType({"output": "ok"}),
    **fields: Any,
) -> dict[str, Any]:
    """A stored call that went well, unless the response or other fields say something else."""
    return {
        "id": "c1",
        "name": name,
        "args": {},
        "result": reply(**response),
        "status": "success",
        "timestamp": "2026-01-02T03:04:06.500Z",
        **fields,
    }


def record(type: str = "gemini", **fields: Any) -> dict[str, Any]:
    """A stored message record."""
    return {
        "id": "m1",
        "timestamp": "2026-01-02T03:04:05.250Z",
        "type": type,
        "content": "",
        **fields,
    }
