"""A store for `gemtui --demo`: three projects, three weeks of work, every kind of record.

For people who have no chats yet, and for pictures of the program. Everything in it is invented.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from gemtui.demo import notes, shopfront, tidewatch
from gemtui.demo.workspace import Workspace


def write_store(home: Path, *, now: datetime) -> None:
    """Write a store below `home`, which stands for a person's home directory.

    `home/.gemini` is as Gemini CLI leaves it, and the project folders in `home` hold the files
    that the sessions wrote. `now` (aware) is when the newest session was last written to; the
    same `now` in the same folder gives the same bytes. Raises OSError.
    """
    now = now.astimezone(UTC)
    works = [each.tell(home, now) for each in (tidewatch, shopfront, notes)]
    for work in works:
        _write_files(work)
        for place in ("tmp", "history"):
            marker = home / ".gemini" / place / work.slug / ".project_root"
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.write_text(str(work.root), encoding="utf-8")
    projects = {"projects": {str(work.root): work.slug for work in works}}
    registry = home / ".gemini" / "projects.json"
    registry.write_text(json.dumps(projects, indent=2), encoding="utf-8")


def _write_files(work: Workspace) -> None:
    for name, content in work.files.items():
        path = work.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="\n")
