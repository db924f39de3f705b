"""`gemtui policy flags`: the words by which Gemini CLI is given a policy."""

from __future__ import annotations


def flags(name: str, *, mode: str, as_json: bool) -> int:
    """Print the words for this policy. Raises PolicyNotFound."""
    raise NotImplementedError
