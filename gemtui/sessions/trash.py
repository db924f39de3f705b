"""The system's trash: what a deletion has moved there, and how that comes back.

Nothing is kept beside it: where a file lies in the trash is asked of the system while it is moved,
which knows the path of an open file whatever has moved it. So whatever happens to gemtui, all is
where a person looks for it, and what has been taken out of the trash or was emptied is gone here,
too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gemtui.files import move_new


@dataclass(frozen=True, slots=True, kw_only=True)
class Trashed:
    """A file or folder in the trash.

    `path`: where it was. `place`: where it lies, None if the system does not tell. `identity`: of
    the file, wherever it is.
    """

    path: Path
    place: Path | None
    identity: tuple[int, int]


class Trash:
    """What one deletion moves to the trash, in its order."""

    def __init__(self) -> None:
        self.items: list[Trashed] = []

    @property
    def is_known(self) -> bool:
        """Whether all of it can be brought back: there is something, and the system told where."""
        return bool(self.items) and all(item.place is not None for item in self.items)

    def put(self, path: Path) -> None:
        """Move a file or folder to the system's trash. Raises OSError."""
        from send2trash import send2trash  # type: ignore[import-untyped]  # looks for a desktop

        identity = _identity(path)
        with _followed(path) as present:
            send2trash(path)
            self.items.append(Trashed(path=path, place=present(), identity=identity))

    def bring_back(self, allowed: Callable[[Path], bool]) -> tuple[tuple[Trashed, str], ...]:
        """Put everything back where it was, never over anything; return what could not be, and why.

        `allowed`: whether a path is still one to write to. What is returned stays where it is, and
        is tried again the next time, unless it is nowhere.
        """
        left = []
        for item in reversed(self.items):
            try:
                _bring_back(item, allowed)
            except OSError as error:
                left.append((item, error.strerror or str(error)))
        self.items = [item for item, _ in reversed(left) if _lies_in_trash(item)]
        return tuple(left)


def _bring_back(item: Trashed, allowed: Callable[[Path], bool]) -> None:
    """Raises OSError."""
    place = item.place
    if place is None:
        raise OSError("the system does not tell where it lies")
    if not _lies_in_trash(item):
        raise OSError("it is not in the trash any more")
    top = item.path
    while not top.parent.exists():
        top = top.parent
    if not allowed(top):
        raise OSError("its folder is gone, or another one now")
    item.path.parent.mkdir(parents=True, exist_ok=True)
    try:
        move_new(place, item.path)
    except FileExistsError:
        raise OSError("something else is at its place now") from None
    if place.parent.name == "files":  # as freedesktop.org has it
        note = place.parent.parent / "info" / f"{place.name}.trashinfo"
        with suppress(OSError):
            note.unlink()


def _lies_in_trash(item: Trashed) -> bool:
    return item.place is not None and _is_there(item.place, item.identity)


@contextmanager
def _followed(path: Path) -> Iterator[Callable[[], Path | None]]:
    """A function that says where the file is that was at `path`; None where nobody knows."""
    try:
        handle = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield lambda: None
        return
    try:
        identity = _identity(path)
        yield lambda: _place_of(handle, identity)
    finally:
        os.close(handle)


def _place_of(handle: int, identity: tuple[int, int]) -> Path | None:
    with suppress(OSError):
        place = _path_of(handle)
        if _is_there(place, identity):
            return place
    return None


def _path_of(handle: int) -> Path:
    """Raises OSError."""
    if sys.platform == "darwin":
        from fcntl import F_GETPATH, fcntl

        if os.fstat(handle).st_nlink > 1:
            raise OSError("it could name another link")
        return Path(os.fsdecode(fcntl(handle, F_GETPATH, bytes(1024)).rstrip(b"\0")))
    return Path(f"/proc/self/fd/{handle}").readlink()


def _is_there(place: Path, identity: tuple[int, int]) -> bool:
    with suppress(OSError):
        return _identity(place) == identity
    return False


def _identity(path: Path) -> tuple[int, int]:
    """Raises OSError."""
    facts = path.lstat()
    return facts.st_dev, facts.st_ino
