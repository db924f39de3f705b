"""Files that change in a run's folder during the run, whoever changes them.

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
"""Number of files that are reported for one run at most."""


async def seen_files(folder: Path, *, most: int = MOST) -> AsyncGenerator[Mapping[Path, float]]:
    """Yield, at every change, the files seen so far and when each was changed, the first one first.

    Times are those of `changed_at`. Left out are folders, hidden files, what git's rules ignore,
    and what tools and package managers keep. Ends by itself if the system can't watch the folder,
    beyond `most` files, and at once where it is `too_large`.
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
    except (OSError, RuntimeError):  # watchfiles' own errors are RuntimeErrors
        return


def too_large(folder: Path) -> bool:
    """Return whether a folder is, or leads by a link to, one that is not watched.

    Those are the home folder, what holds it, and so the root.
    """
    return resolved(Path.home()).is_relative_to(resolved(folder))


def _times(folder: Path, paths: Iterable[str]) -> dict[Path, float]:
    files = [path for path in map(Path, paths) if not is_folder(path)]
    return {path: changed_at(path) for path in kept(folder, files)}


class OwnFiles(DefaultFilter):
    """Lets through what people keep in a folder: watchfiles' own choice, and nothing hidden."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __call__(self, change: Change, path: str) -> bool:
        """Whether a change of `path` is reported."""
        place = Path(path)
        inside = place.relative_to(self._folder) if place.is_relative_to(self._folder) else place
        return not any(part.startswith(".") for part in inside.parts) and super().__call__(
            change, path
        )


def kept(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Return the files, gone ones too, that git's rules do not ignore; without git all of them."""
    files = list(paths)
    given = b"\0".join(bytes(path) for path in files)
    words = ("check-ignore", "--no-index", "--stdin", "-z")
    said = ask_git(folder, *words, given=given, most=len(given) + 1) if files else None
    ignored = set((said or b"").split(b"\0"))
    return [path for path in files if bytes(path) not in ignored]
