"""Files that decide what runs later."""

from __future__ import annotations

from pathlib import Path

_NAMES = frozenset((".env", ".envrc", ".npmrc", ".gitattributes"))
_FOLDERS = frozenset((".gemini", ".husky", ".github", ".git"))


def decides_later(path: Path, project: Path) -> str | None:
    """Return why writing a real file decides what runs later, a clause; None = it does not."""
    del project
    if path.name in _NAMES or _FOLDERS & set(path.parts):
        return f"{path.name} decides what runs later"
    return None
