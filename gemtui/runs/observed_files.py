"""Watch for files that change in a run's folder, whoever changes them.

The stream names only the files that file tools wrote, while shell commands write files as well. A
file seen here need not be the run's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path

from watchfiles import Change, DefaultFilter, awatch

from gemtui.files import changed_at, is_folder, resolved
from gemtui.runs.git import ask_git

MOST = 200
"""Largest number of files that are reported for one run."""


async def seen_files(folder: Path, *, most: int = MOST) -> AsyncGenerator[Mapping[Path, float]]:
    """Yield, at every change, the files seen so far with the times of their changes.

    They are in the order of their first changes; times are those of `changed_at`. Folders, hidden
    files, files ignored by git's rules and those of tools and package managers are left out. Ends
    if the system can't watch the folder, beyond `most` files, and immediately if it is `too_large`.
    """
    if not is_folder(folder) or too_large(folder):
        return
    seen: dict[Path, float] = {}
    events = awatch(folder, watch_filter=OwnFiles(folder), step=100, ignore_permission_denied=True)
    try:
        async with aclosing(events):
            async for batch in events:
                new = await asyncio.to_thread(_times, folder, sorted({path for _, path in batch}))
                for path, time in new.items():
                    if path in seen or len(seen) < most:
                        seen[path] = time
                if new:
                    yield dict(seen)
                if len(seen) >= most:
                    return
    except (OSError, RuntimeError):  # errors of watchfiles are RuntimeErrors
        return


def too_large(folder: Path) -> bool:
    """Return whether a folder is, or links to, one that is not watched.

    These are the home folder and those above it, including the root.
    """
    return resolved(Path.home()).is_relative_to(resolved(folder))


def _times(folder: Path, paths: Iterable[str]) -> dict[Path, float]:
    files = [path for path in map(Path, paths) if not is_folder(path)]
    return {path: changed_at(path) for path in kept(folder, files)}


class OwnFiles(DefaultFilter):
    """Accepts people's own files: watchfiles' own choice without hidden ones."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __call__(self, change: Change, path: str) -> bool:
        """Return whether to report a change of `path`."""
        place = Path(path)
        inside = place.relative_to(self._folder) if place.is_relative_to(self._folder) else place
        return not any(part.startswith(".") for part in inside.parts) and super().__call__(
            change, path
        )


def kept(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Return the files, even deleted ones, that git does not ignore; all without git."""
    files = list(paths)
    given = b"\0".join(bytes(path) for path in files)
    words = ("check-ignore", "--no-index", "--stdin", "-z")
    output = ask_git(folder, *words, given=given, most=len(given) + 1) if files else None
    ignored = set((output or b"").split(b"\0"))
    return [path for path in files if bytes(path) not in ignored]
