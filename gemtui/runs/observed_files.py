"""Files that change in a run's folder during the run, whoever changes them.

The stream names only the files that file tools wrote, while shell commands write files as well. A
file seen here need not be the run's work.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from pathlib import Path

from watchfiles import Change, DefaultFilter, awatch

from gemtui.files import is_folder
from gemtui.processes import FOLDER, find_program

MOST = 200
"""Number of files that are reported for one run at most."""
_GIT_LIMIT = 5.0
_NO_COMMANDS = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
_FROM_RULES_ALONE = ("--no-index", "--stdin", "-z")


async def seen_files(folder: Path, *, most: int = MOST) -> AsyncGenerator[tuple[Path, ...]]:
    """Yield, at every change, all files seen so far, in the order of their first change.

    Left out are folders, hidden files, what git's rules ignore, and what tools and package managers
    keep. Ends by itself if the system can't watch the folder, beyond `most` files, and at once for
    the home folder and the root, which are too large.
    """
    if not is_folder(folder) or folder in (Path.home(), Path(folder.anchor)):
        return
    seen: dict[Path, None] = {}
    events = awatch(folder, watch_filter=_Filter(folder), step=100, ignore_permission_denied=True)
    try:
        async with aclosing(events):
            async for batch in events:
                new = {Path(path) for _, path in batch} - seen.keys()
                kept = await asyncio.to_thread(_kept, folder, sorted(new))
                seen.update(dict.fromkeys(kept))
                if kept:
                    yield tuple(seen)[:most]
                if len(seen) >= most:
                    return
    except (OSError, RuntimeError):  # watchfiles' own errors are RuntimeErrors
        return


class _Filter(DefaultFilter):
    """Watchfiles' own choice, and nothing hidden below the folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __call__(self, change: Change, path: str) -> bool:
        place = Path(path)
        inside = place.relative_to(self._folder) if place.is_relative_to(self._folder) else place
        return not any(part.startswith(".") for part in inside.parts) and super().__call__(
            change, path
        )


def _kept(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Files, gone ones too, that git's rules do not ignore; all of them where there is no git.

    A repository's own settings can name commands for git to run. Of those that `check-ignore`
    would, one comes with the index and one with objects that are fetched: neither is looked at.
    """
    files = [path for path in paths if not is_folder(path)]
    git = find_program("git")
    if not files or git is None:
        return files
    try:
        asked = subprocess.run(
            [git, *_NO_COMMANDS, "-C", str(folder.absolute()), "check-ignore", *_FROM_RULES_ALONE],
            cwd=FOLDER,
            env={**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"},
            input=b"\0".join(bytes(path) for path in files),
            capture_output=True,
            timeout=_GIT_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return files
    ignored = set(asked.stdout.split(b"\0"))
    return [path for path in files if bytes(path) not in ignored]
