"""Read dataclasses that were stored as JSON, by the types of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from gemtui.transcript.parts import instant

T = TypeVar("T")
_hints = cache(get_type_hints)


def record_of(kind: type[T], stored: Mapping[str, Any]) -> T:
    """Return the dataclass `kind` made of stored fields; unknown fields are ignored.

    Raises TypeError if a field is missing or has another type than it should.
    """
    return kind(**_fields(kind, stored))


def _fields(kind: type, stored: Mapping[str, Any]) -> dict[str, Any]:
    hints = _hints(kind)
    return {name: _typed(stored[name], hints[name]) for name in hints if name in stored}


def _typed(value: Any, hint: Any) -> Any:
    """The value as its type wants it. Raises TypeError."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if value is None and NoneType in inner else _typed(value, inner[0])
    if origin in (tuple, list) and isinstance(value, list):
        return origin(_typed(each, inner[0]) for each in value)
    if origin is Mapping and isinstance(value, dict):
        return {name: _typed(each, inner[1]) for name, each in value.items()}
    if is_typeddict(hint) and isinstance(value, dict):
        return _fields(hint, value)
    if hint is datetime and (time := instant(value)) is not None:
        return time
    if hint is float and type(value) is int:
        return float(value)
    if hint is Any or type(value) is hint:
        return value
    raise TypeError(f"{value!r} is no {hint}")
