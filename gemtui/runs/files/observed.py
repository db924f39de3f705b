"""Watch for files that change in a run's folder, whatever changes them.

The CLI's output names only the files that file tools wrote, but shell commands write files as well.
A file observed here was not necessarily changed by the run.
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
"""The most files that are reported for one run."""


async def seen_files(folder: Path, *, most: int = MOST) -> AsyncGenerator[Mapping[Path, float]]:
    """Yield all files that have changed so far, each time a file changes.

    Each file is mapped to the time of its last change, in the order of the files' first changes.
    Folders, hidden files, files that git ignores, and files of tools and package managers are left
    out. The iteration ends after `most` files, or if the system can't watch the folder; it yields
    nothing if the folder is `too_large`.
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
    except (OSError, RuntimeError):  # watchfiles raises RuntimeErrors
        return


def too_large(folder: Path) -> bool:
    """Return whether a folder is too large to watch.

    The home folder and all folders above it are, and so are links to them.
    """
    return resolved(Path.home()).is_relative_to(resolved(folder))


def _times(folder: Path, paths: Iterable[str]) -> dict[Path, float]:
    files = [path for path in map(Path, paths) if not is_folder(path)]
    return {path: changed_at(path) for path in kept(folder, files)}


class OwnFiles(DefaultFilter):
    """A filter that accepts users' own files.

    It rejects hidden files, and those that watchfiles' default filter rejects.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __call__(self, change: Change, path: str) -> bool:
        """Return whether to report a change to `path`."""
        place = Path(path)
        inside = place.relative_to(self._folder) if place.is_relative_to(self._folder) else place
        return not any(part.startswith(".") for part in inside.parts) and super().__call__(change, path)


def kept(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Return those files that git doesn't ignore; they may have been deleted.

    If git is not available, all files are returned.
    """
    files = list(paths)
    given = b"\0".join(bytes(path) for path in files)
    words = ("check-ignore", "--no-index", "--stdin", "-z")
    output = ask_git(folder, *words, given=given, most=len(given) + 1) if files else None
    ignored = set((output or b"").split(b"\0"))
    return [path for path in files if bytes(path) not in ignored]
