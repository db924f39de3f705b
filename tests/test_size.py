"""The count of what there is to read."""

from __future__ import annotations

from tests.tools.size import size_of

SOURCE = '''"""A module."""

LIMIT = 3  # not counted
"""Of something."""


def _once(each):
    """Return it."""
    found = each
    return found


def twice():
    return _once(1)
'''


def test_comments_and_docstrings_are_not_counted() -> None:
    size = size_of(SOURCE)
    counted = (
        "LIMIT = 3 def _once ( each ) : found = each return found def twice ( ) : return "
        "_once ( 1 )"
    )
    assert size.tokens == len(counted.split())
    assert size.lines == 6


def test_private_functions_with_one_caller_and_vague_names_are_counted() -> None:
    size = size_of(SOURCE)
    assert (size.one_caller, size.vague) == (1, {"found": 1})
    assert size_of(SOURCE + "\n\ndef thrice():\n    return _once(2)\n").one_caller == 0
