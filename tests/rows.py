"""One test over a table: for many cases that cost less than pytest's own work for each."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Test = Callable[..., None]


def table(name: str, read: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Return the tables of a JSON file of `tests/data`: rows that are nothing but values.

    `read`: what makes of an object what it stands for.
    """
    return json.loads((Path(__file__).parent / "data" / name).read_text("utf-8"), object_hook=read)


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each row of a table, as `pytest.mark.parametrize` does, but in one test.

    The rows share the fixtures of the test. If one fails, the error names it.
    """
    named = tuple(each.strip() for each in names.split(",")) if isinstance(names, str) else names
    table = [row if len(named) > 1 else (row,) for row in rows]
    assert all(len(row) == len(named) for row in table)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        others = [each for name, each in signature.parameters.items() if name not in named]

        @functools.wraps(test)
        def test_rows(**fixtures: Any) -> None:
            for number, row in enumerate(table, 1):
                given = dict(zip(named, row, strict=True))
                try:
                    test(**fixtures, **given)
                except BaseException as error:
                    error.add_note(f"in row {number} of {len(table)}: {given}")
                    raise

        test_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return test_rows

    return decorate
