"""`gemtui policy list`, `show` and `check`: policy files as text or as JSON."""

from __future__ import annotations

from collections.abc import Sequence


def list_all(*, as_json: bool) -> int:
    """List the policies that there are."""
    raise NotImplementedError


def show(name: str, *, as_json: bool) -> int:
    """Print the rules of one policy. Raises PolicyNotFound."""
    raise NotImplementedError


def check(files: Sequence[str], *, strict: bool, as_json: bool) -> int:
    """Print the findings; 1 on errors, with `strict` on warnings too. Raises PolicyNotFound."""
    raise NotImplementedError
