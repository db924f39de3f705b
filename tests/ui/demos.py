"""The demo store, so placed that it looks the same wherever it is."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gemtui.demo import write_store

LENGTH = 160
"""Characters of the home folder's path: the sizes of its sessions follow from it."""


def demo_store(folder: Path, *, now: datetime) -> Path:
    """Write the store into a home below `folder`; that home, for `$HOME`."""
    home = folder.resolve() / ("h" * (LENGTH - 1 - len(str(folder.resolve()))))
    write_store(home, now=now)
    return home
