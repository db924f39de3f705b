"""Find the files of a project that its checkpoints don't cover, and compare them later.

Checkpoints cover neither files that git ignores, nor nested repositories, FIFOs, sockets, devices,
nor empty folders. Undo can't restore them, but it can tell whether they have changed: each is
recorded with a digest of the sizes and times of all files in it. The project's own `.git` is left
out, because undo is not meant to change it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import orjson

_MOST_FILES = 50_000
"""The most files that are examined in all; whether others have changed remains unknown."""
_MOST_NAMED = 20
"""The most entries that the notes for the user name one by one."""
_GIT_PARTS = (b"HEAD", b"config", b"packed-refs", b"refs", b"hooks")
"""The parts of a nested repository's `.git` folder that are compared.

Reading a repository, for example by `git status`, doesn't change them.
"""


class UncoveredKind(StrEnum):
    """The kinds of things that checkpoints don't cover; each value describes it to users."""

    IGNORED = "ignored by git"
    REPOSITORY = "a nested repository"
    SPECIAL = "neither a file nor a link"
    EMPTY = "an empty folder"
    UNREADABLE = "a folder that can't be read"


class UncoveredEntry(NamedTuple):
    """A file or folder that checkpoints don't cover.

    `facts`: differ if anything in it has changed; "" if that is unknown.
    """

    kind: UncoveredKind
    facts: str


Uncovered = dict[bytes, UncoveredEntry]
"""Maps names, relative to the root, to what is there. If a whole folder is not covered, only the
folder is listed."""


def find_uncovered(root: Path, covered: Collection[bytes], without: Collection[bytes]) -> Uncovered:
    """Return what a project contains besides the files in its checkpoints.

    `covered`: the files in checkpoints. `without`: files and folders to leave out. Never raises.
    """
    search = _Search(os.fsencode(root), covered, without)
    search.enter(b"")
    return search.found


class _Search:
    """Looks through a project's folders; `found` is the result."""

    def __init__(self, root: bytes, covered: Collection[bytes], without: Collection[bytes]) -> None:
        self.found: Uncovered = {}
        self._root, self._covered, self._without = root, covered, without
        self._folders = {
            name[:end] for name in covered for end, char in enumerate(name) if char == ord("/")
        }
        self._left = _MOST_FILES

    def enter(self, top: bytes) -> None:
        """Examine a folder that contains covered files, and all such folders in it."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(self._root + b"/" + folder) as entries:
                    for entry in entries:
                        name = b"/".join(filter(None, (folder, entry.name)))
                        if name in self._folders and entry.is_dir(follow_symlinks=False):
                            waiting.append(name)
                        elif (
                            name not in self._covered
                            and name not in self._without
                            and not _is_git(name)
                        ):
                            with suppress(FileNotFoundError):  # it has just been deleted
                                self.found[name] = self._entry(entry)
            except OSError:
                self.found[folder or b"."] = UncoveredEntry(UncoveredKind.UNREADABLE, "")

    def _entry(self, entry: os.DirEntry[bytes]) -> UncoveredEntry:
        if not entry.is_dir(follow_symlinks=False):
            facts = entry.stat(follow_symlinks=False)
            is_file = stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)
            kind = UncoveredKind.IGNORED if is_file else UncoveredKind.SPECIAL
            return UncoveredEntry(kind, self._digest([(entry.name, facts)]))
        files = list(self._files(entry.path))
        kind = UncoveredKind.IGNORED if files else UncoveredKind.EMPTY
        if os.path.lexists(entry.path + b"/.git"):
            kind = UncoveredKind.REPOSITORY
        return UncoveredEntry(kind, self._digest(files))

    def _files(self, top: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
        """Yield the path and facts of everything under a folder that is not a folder.

        Of repositories' own data, only the parts that matter are examined.
        """
        waiting = [top]
        while waiting and self._left > 0:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if _is_git(folder) and entry.name not in _GIT_PARTS:
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        else:
                            self._left -= 1
                            yield entry.path, entry.stat(follow_symlinks=False)
            except OSError:
                self._left = 0

    def _digest(self, files: Collection[tuple[bytes, os.stat_result]]) -> str:
        """Return a digest of files' facts; "" if not all of them were examined."""
        if self._left <= 0:
            return ""
        digest = hashlib.blake2b(digest_size=12)
        for path, facts in sorted(files, key=lambda file: file[0]):
            version = (
                facts.st_mode,
                facts.st_size,
                facts.st_mtime_ns,
                facts.st_ctime_ns,
                facts.st_ino,
            )
            digest.update(path + repr(version).encode())
        return digest.hexdigest()


def _is_git(folder: bytes) -> bool:
    return folder.rpartition(b"/")[2].lower() == b".git"


def encode_uncovered(uncovered: Uncovered) -> str:
    """Serialise the result of `find_uncovered`, for `decode_uncovered`."""
    rows = [[name.hex(), entry.kind.name, entry.facts] for name, entry in uncovered.items()]
    return orjson.dumps(rows).decode()


def decode_uncovered(text: str) -> Uncovered:
    """Parse what `encode_uncovered` serialised. Raises ValueError."""
    return {
        bytes.fromhex(name): UncoveredEntry(UncoveredKind[kind], facts)
        for name, kind, facts in orjson.loads(text)
    }


def uncovered_notes(before: Uncovered, now: Uncovered) -> list[str]:
    """Return a note for each thing that may have changed, with what has become of it."""
    notes = list[str]()
    for name in sorted({*before, *now}):
        fate = _fate(before.get(name), now.get(name))
        if fate:
            kind = (before.get(name) or now[name]).kind
            notes.append(f"Not covered by checkpoints: {os.fsdecode(name)} ({kind}) {fate}.")
    if len(notes) > _MOST_NAMED:
        notes[_MOST_NAMED:] = [f"and {len(notes) - _MOST_NAMED} more that checkpoints don't cover"]
    return notes


def _fate(before: UncoveredEntry | None, now: UncoveredEntry | None) -> str:
    if before is None:
        return "has been created"
    if now is None:
        return "has been deleted"
    if before.facts and before.facts == now.facts:
        return ""
    return "has been changed" if before.facts and now.facts else "may have been changed"
