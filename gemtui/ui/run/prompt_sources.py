"""What the prompt field can offer: earlier prompts, and the files of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import orjson

from gemtui.files import read_small, write_whole
from gemtui.paths import make_own_folder
from gemtui.text import clean

MOST_PROMPTS = 200
LONGEST = 20_000
"""Maximum length in characters of a prompt to remember."""
MOST_BYTES = 8 * MOST_PROMPTS * LONGEST
"""Maximum size in bytes of the file with the remembered prompts."""
MOST_FILES = 20_000
_PASSED_OVER = {"node_modules", "__pycache__", "target", "dist", "build", "venv"}


class History:
    """Earlier prompts, oldest first, stored in a file that only the user can read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.prompts = list(_read(path))

    def add(self, prompt: str) -> None:
        """Remember a prompt.

        If the file can't be written, the prompt is only remembered until gemtui exits. The file is
        read again first: another gemtui may have added prompts to it, and prompts that the user has
        deleted from it must not come back. Very long prompts aren't remembered.
        """
        if not prompt.strip() or len(prompt) > LONGEST:
            return
        others = (each for each in _read(self.path) if each != prompt)
        self.prompts = [*others, prompt][-MOST_PROMPTS:]
        try:
            make_own_folder(self.path.parent)
            lines = (orjson.dumps(each) + b"\n" for each in self.prompts)
            write_whole(self.path, lines, durable=True)
        except OSError:
            return


def _read(path: Path) -> Iterator[str]:
    try:
        lines = read_small(path, MOST_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines[-MOST_PROMPTS - 1 :]:
        try:
            prompt = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(prompt, str):
            yield clean(prompt)


def paths_below(folder: Path) -> tuple[str, ...]:
    """Return the paths of files and folders under `folder`, least deeply nested first.

    Folders end in a slash. At most 20,000 paths are returned. Hidden files, build folders such as
    `node_modules`, and names that can't be typed are left out.
    """
    return tuple(path for path, _ in zip(_walk(folder), range(MOST_FILES), strict=False))


def _walk(folder: Path) -> Iterator[str]:
    waiting = [""]
    while waiting:
        below: list[str] = []
        for parent in waiting:
            for entry in _entries(folder / parent):
                path = parent + entry.name
                if path != clean(path):
                    continue
                if _is_folder(entry):
                    below.append(f"{path}/")
                    yield f"{path}/"
                else:
                    yield path
        waiting = below


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            kept = [e for e in found if not e.name.startswith(".") and e.name not in _PASSED_OVER]
    except (OSError, ValueError):  # ValueError: the path contains a NUL
        return []
    return sorted(kept, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return entry.is_dir(follow_symlinks=False)
    return False


def matching_paths(wanted: str, paths: Iterable[str], *, most: int) -> tuple[str, ...]:
    """Return up to `most` paths that match what the user has typed, best first.

    The best matches are those whose path or name starts with `wanted`. Next come those that contain
    it, and then those that contain its letters in order. Case matters only if `wanted` contains a
    capital letter.
    """
    exact = wanted != wanted.lower()
    ranked: list[tuple[int, int, str]] = []
    for path in paths:
        rank = _rank(wanted, path if exact else path.lower())
        if rank is not None:
            ranked.append((rank, len(path), path))
    return tuple(path for *_, path in sorted(ranked)[:most])


def _rank(wanted: str, path: str) -> int | None:
    name = path.rstrip("/").rpartition("/")[2]
    if path.startswith(wanted) or name.startswith(wanted):
        return 0
    if wanted in path:
        return 1
    letters = iter(path)
    return 2 if all(letter in letters for letter in wanted) else None
