"""The files of a run's folder on disk: their state before the run, and how they change.

The CLI's output names only the files that file tools wrote, but shell commands write files as well.
A file that is seen to change was not necessarily changed by the run.

The state before the run includes contents only where that is cheap. The folder is read while the
run is starting or even later, so files may already have changed by then. Therefore, if the file
system's times show that something has changed since the run was requested, its former state counts
as unknown.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryFile
from threading import Timer
from typing import NamedTuple

from watchfiles import Change, DefaultFilter, awatch

from gemtui.files import SMALL, changed_at, is_folder, read_small, resolved, stat_if_possible
from gemtui.processes import FOLDER, find_program, git_command, git_environ

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
            found = _ask_git(self._folder, "cat-file", "blob", blob, most=SMALL)
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
        listing = _ask_git(self._folder, "ls-files", "-s", "--debug", "-z", most=_LARGEST_INDEX)
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
    facts = stat_if_possible(name)
    return facts and _Facts(
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
        return not any(part.startswith(".") for part in inside.parts) and super().__call__(
            change, path
        )


def kept(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Return those files that git doesn't ignore; they may have been deleted.

    If git is not available, all files are returned.
    """
    files = list(paths)
    given = b"\0".join(bytes(path) for path in files)
    words = ("check-ignore", "--no-index", "--stdin", "-z")
    output = _ask_git(folder, *words, given=given, most=len(given) + 1) if files else None
    ignored = set((output or b"").split(b"\0"))
    return [path for path in files if bytes(path) not in ignored]


_LIMIT = 5.0
"""The time limit of a git command, in seconds."""
_ANSWERED = (0, 1)
"""The exit codes that don't count as failures; 1 is git's way of answering “no”."""


def _ask_git(folder: Path, *words: str, given: bytes = b"", most: int) -> bytes | None:
    """Return the output of a git command in a folder; None if it fails.

    Exit code 1 does not count as a failure. `given`: the command's input. `most`: the largest
    output in bytes; None is returned if there is more. `words` must be a git command that runs no
    filters.
    """
    git = find_program("git")
    if git is None:
        return None
    command = [*git_command(git, folder), *words]
    with suppress(OSError), TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        with subprocess.Popen(
            command,
            cwd=FOLDER,
            env=git_environ(),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            return _answer(process, most)
    return None


def _answer(process: subprocess.Popen[bytes], most: int) -> bytes | None:
    assert process.stdout is not None
    limit = Timer(_LIMIT, process.kill)
    limit.start()
    try:
        output = process.stdout.read(most + 1)
        if len(output) > most:
            process.kill()
        return output if process.wait() in _ANSWERED else None
    finally:
        limit.cancel()
