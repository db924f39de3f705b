"""A small check of JSON against the shapes that are promised: those of
tests/data/cli/shapes.json.
"""

from __future__ import annotations

import re
from types import NoneType
from typing import Any

from tests.rows import table

SHAPES = table("cli/shapes.json")
TYPES = {kind.__name__: kind for kind in (str, int, float, bool, dict)} | {"null": NoneType}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def fits(value: Any, shape: Any, at: str = "$") -> None:
    """Fail with the place where `value` is not of `shape`.

    A shape is a text with alternatives (the names of types and shapes, `time`, `null`, and allowed
    strings), a list with the shape of its items, or a dict with exactly these keys beside those of
    the shape that it names under `...`.
    """
    match shape:
        case str() if shape in SHAPES:
            fits(value, SHAPES[shape], at)
        case str():
            assert any(_is_of(value, kind) for kind in shape.split(" | ")), (
                f"{at}: {value!r} is not {shape}"
            )
        case {"...": base, **more}:
            fits(value, SHAPES[base] | more, at)
        case dict():
            assert isinstance(value, dict), f"{at}: {value!r}"
            assert set(value) == set(shape), f"{at}: {set(value) ^ set(shape)}"
            for key, inner in shape.items():
                fits(value[key], inner, f"{at}.{key}")
        case list():
            assert isinstance(value, list), f"{at}: {value!r}"
            for index, item in enumerate(value):
                fits(item, shape[0], f"{at}[{index}]")
        case _:
            assert value == shape, f"{at}: {value!r}"


def _is_of(value: Any, kind: str) -> bool:
    if kind in SHAPES:
        return _does_fit(value, SHAPES[kind])
    if kind == "time":
        return isinstance(value, str) and TIME.fullmatch(value) is not None
    return type(value) is TYPES[kind] if kind in TYPES else value == kind


def _does_fit(value: Any, shape: Any) -> bool:
    try:
        fits(value, shape)
    except AssertionError:
        return False
    return True
