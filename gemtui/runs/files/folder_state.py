"""Record the state of a run's folder before the run: its files and their contents.

Contents are recorded only where that is cheap. The folder is read while the run is starting or even
later, so files may already have changed by then. Therefore, if the file system's times show that
something has changed since the run was requested, its former state counts as unknown.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

from watchfiles import DefaultFilter

from gemtui.files import SMALL, read_small
from gemtui.runs.git import ask_git

_MOST, _SECONDS = 20_000, 2.0
"""The limits on listing a folder: number of entries, and seconds."""
_LARGEST_COPY, _COPIES = 256_000, 8_000_000
"""Limits on copying contents into memory: bytes of one file, and bytes in total.

Files that git has stored are not copied.
"""
_LARGEST_INDEX = 16_000_000
_32_BITS = 0xFFFF_FFFF
_INDEXED = re.compile(
    rb"\d+ (?P<blob>[0-9a-f]+) \d\t(?P<name>[^\0]+)\0  ctime: .*\n  mtime: (?P<time>\d+:\d+)\n"
    rb"  dev: \d+\tino: (?P<inode>\d+)\n  uid: .*\n  size: (?P<size>\d+)\tflags: .*\n"
)


class _Facts(NamedTuple):
    regular: bool
    inode: int
    size: int
    modified: int
    changed: int
    """The ctime in nanoseconds since the epoch, which programs can't set."""


_UNLISTED = _Facts(regular=False, inode=0, size=0, modified=0, changed=0)


class FolderState:
    """The files of a folder as they were before a run.

    `began`: when the run was requested, in nanoseconds since the epoch. Creating an instance reads
    the disk.
    """

    def __init__(self, folder: Path, began: int) -> None:
        self._folder, self._began = folder, began
        self._files, self._folders = _listed(folder)
        self._blobs = dict(self._find_blobs())
        self._contents: dict[str, bytes | None] = dict(self._copies())

    def existed(self, path: Path) -> bool | None:
        """Return whether a file existed before the run; None if unknown."""
        if (facts := self._files.get(str(path))) is not None:
            return True if self._is_old(facts) else None
        folder = self._folder_of(path)
        return False if folder is not None and self._is_old(folder) else None

    def was_folder(self, path: Path) -> bool:
        """Return whether the path was a folder before the run."""
        return str(path) in self._folders

    def content(self, path: Path) -> bytes | None:
        """Return a file's contents before the run; None if unknown. Reads the disk."""
        name = str(path)
        if name not in self._contents and (blob := self._blobs.get(name)) is not None:
            found = ask_git(self._folder, "cat-file", "blob", blob, most=SMALL)
            same = found is not None and len(found) == self._files[name].size
            self._contents[name] = found if same else None
        return self._contents.get(name)

    def untouched(self, path: Path) -> bool:
        """Return whether a file is unchanged since before the run. Reads the disk."""
        facts = self._files.get(str(path))
        return facts is not None and self._is_old(facts) and facts == _facts(str(path))

    def changed(self) -> Iterator[Path]:
        """Yield files changed, created or deleted since the run began. Reads the disk."""
        files, _ = _listed(self._folder)
        for name, facts in files.items():
            known = name in self._files or self._folder_of(Path(name)) is not None
            if facts.regular and known and facts != self._files.get(name):
                yield Path(name)
        for name, facts in self._files.items():
            if facts.regular and name not in files and not (_facts(name) or _UNLISTED).regular:
                yield Path(name)

    def _is_old(self, facts: _Facts) -> bool:
        return facts.changed < self._began

    def _folder_of(self, path: Path) -> _Facts | None:
        """Return the recorded facts about the nearest folder above `path`.

        Returns None if that folder's contents are unknown because it was not listed, or if it is a
        link.
        """
        for place in path.parents:
            facts = self._files.get(str(place)) or self._folders.get(str(place))
            if facts is not None:
                return facts if facts.regular or str(place) in self._folders else None
        return None

    def _find_blobs(self) -> Iterator[tuple[str, str]]:
        """Yield (path, blob id) for files whose contents git has stored.

        A file is included only if it has the time and size that git's index records for it. This
        leaves out files whose contents git has converted (for example, their line endings), because
        the size then differs.
        """
        listing = ask_git(self._folder, "ls-files", "-s", "--debug", "-z", most=_LARGEST_INDEX)
        for entry in _INDEXED.finditer(listing or b""):
            name = f"{self._folder}/{os.fsdecode(entry['name'])}"
            facts = self._files.get(name)
            if facts is not None and self._is_old(facts) and _same(facts, entry):
                yield name, entry["blob"].decode()

    def _copies(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, contents) for small files whose contents git has not stored.

        Stops at the limits on memory and time.
        """
        room, until = _COPIES, time.monotonic() + _SECONDS
        for name, facts in self._files.items():
            hidden = name.rpartition("/")[2].startswith(".")
            if hidden or name in self._blobs or facts.size > min(_LARGEST_COPY, room):
                continue
            if time.monotonic() > until or not facts.regular or not self._is_old(facts):
                continue
            with suppress(OSError):
                content = read_small(Path(name), _LARGEST_COPY)
                if facts == _facts(name):
                    room -= len(content)
                    yield name, content


def _listed(root: Path) -> tuple[dict[str, _Facts], dict[str, _Facts]]:
    """Map a folder's files to their facts, and likewise the folders that were listed.

    Folders near `root` are listed first. Hidden folders, package managers' folders, and those
    beyond the limits are not listed; they are included among the files instead.
    """
    files: dict[str, _Facts] = {}
    folders: dict[str, _Facts] = {}
    waiting, until = deque([str(root)]), time.monotonic() + _SECONDS
    while waiting and len(files) < _MOST and time.monotonic() < until:
        name = waiting.popleft()
        try:
            with os.scandir(name) as entries:
                for entry in entries:
                    if len(files) >= _MOST or time.monotonic() > until:
                        break
                    if _is_listed(entry):
                        waiting.append(entry.path)
                    elif (facts := _facts(entry.path)) is not None:
                        files[entry.path] = facts
                else:
                    folders[name] = _facts(name) or _UNLISTED
        except OSError:
            pass
        if name not in folders:
            files[name] = _UNLISTED
    return files | dict.fromkeys(waiting, _UNLISTED), folders


def _is_listed(entry: os.DirEntry[str]) -> bool:
    kept = not entry.name.startswith(".") and entry.name not in DefaultFilter.ignore_dirs
    return kept and entry.is_dir(follow_symlinks=False)


def _facts(name: str) -> _Facts | None:
    try:
        facts = os.lstat(name)
    except OSError:
        return None
    return _Facts(
        regular=S_ISREG(facts.st_mode),
        inode=facts.st_ino,
        size=facts.st_size,
        modified=facts.st_mtime_ns,
        changed=facts.st_ctime_ns,
    )


def _same(facts: _Facts, entry: re.Match[bytes]) -> bool:
    """Return whether a file matches its entry in git's index.

    Only 32 bits of the inode are compared, because the index stores no more.
    """
    second, nano = map(int, entry["time"].split(b":"))
    indexed = (int(entry["inode"]), int(entry["size"]), second * 1_000_000_000 + nano)
    return facts.regular and indexed == (facts.inode & _32_BITS, facts.size, facts.modified)
