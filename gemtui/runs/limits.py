"""How many runs are kept, and how to remove them."""

from __future__ import annotations

MOST_RUNS = 200
MOST_BYTES = 500_000_000
CLEAR = "gemtui runs clear"
"""The shell command that removes the records of all finished runs."""
CLEAR_PROMPTS = f"{CLEAR} --prompts"
"""The shell command that also removes the run pane's history of prompts."""
BROKEN = f"contains no readable run: check it; to delete leftovers of a failed start, use {CLEAR}"
"""The message about a folder that should contain a run but has no readable one."""


def lost_words(id: str) -> str:
    """Return a message saying that a run is lost."""
    return f"run {id[:8]} is lost, because its supervisor was killed: see gemtui runs show {id[:8]}"


def orphaned_words(id: str) -> str:
    """Return a message saying that a run's processes are alive without a supervisor.

    It contains the command that stops them.
    """
    return f"run {id[:8]} has orphaned processes: stop them with gemtui runs stop {id[:8]}"
