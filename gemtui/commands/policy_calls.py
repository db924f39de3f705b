"""`gemtui policy explain`, `replay` and `suggest`: policies against tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def explain(
    policies: Sequence[str], *, tool: str, args: str, mode: str, interactive: bool, as_json: bool
) -> int:
    """Print what would happen to one call."""
    raise NotImplementedError


def replay(
    policies: Sequence[str],
    *,
    session: str | None,
    project: Path | None,
    everywhere: bool,
    mode: str,
    interactive: bool,
    as_json: bool,
) -> int:
    """Print what would happen to recorded calls."""
    raise NotImplementedError


def suggest(*, session: str | None, project: Path | None, everywhere: bool, as_json: bool) -> int:
    """Print rules that would allow what was done."""
    raise NotImplementedError
