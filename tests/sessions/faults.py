"""The file system failing: at the n-th call of a program, or whenever it is about a path."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Faults:
    """Counts calls of the file system, and lets some of them fail.

    `hit`: the paths of the calls that failed.
    """

    def __init__(self) -> None:
        self.hit: list[str] = []
        self._calls = 0
        self._fails: Callable[[str], bool] = lambda path: False
        self._errno = 0

    def fail_at(self, number: int, errno: int) -> None:
        """Let the call with this number fail, counted from now on."""
        self.hit, self._calls, self._errno = [], 0, errno
        self._fails = lambda path: self._calls == number

    def fail_below(self, place: Path, errno: int) -> None:
        """Let every call about this path, or one below it, fail."""
        self.hit, self._errno = [], errno
        self._fails = lambda path: Path(path).is_relative_to(place)

    def check(self, path: object) -> None:
        """A call about a path is made. Raises OSError if it is to fail."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        name = os.fsdecode(path)
        self._calls += 1
        if self._fails(name):
            self.hit.append(name)
            raise OSError(self._errno, os.strerror(self._errno), name)


class _Entry:
    """A directory entry whose look at the disk may fail."""

    def __init__(self, entry: os.DirEntry[str], faults: Faults) -> None:
        self._entry, self._faults = entry, faults
        self.name, self.path = entry.name, entry.path

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._entry, name)

        def call(**options: Any) -> Any:
            self._faults.check(self.path)
            return real(**options)

        return call


class _File:
    """An open file whose reading may fail."""

    def __init__(self, file: io.FileIO, path: Any, faults: Faults) -> None:
        self._file, self._path, self._faults = file, path, faults

    def read(self, size: int) -> bytes | None:
        self._faults.check(self._path)
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def injected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Everything that Python asks of the file system goes through `Faults` meanwhile."""
    faults = Faults()

    names: dict[int, Any] = {}

    def checked(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any = ".", *values: Any, **options: Any) -> Any:
            folder = names.get(options.get("dir_fd", -1))
            faults.check(path if folder is None else Path(folder, path))
            return real(path, *values, **options)

        return call

    scandir, opened = os.scandir, io.open

    @contextmanager
    def scan(path: str) -> Iterator[Iterator[_Entry]]:
        faults.check(path)
        with scandir(path) as entries:
            yield (_Entry(entry, faults) for entry in entries)

    os_open, raw = os.open, io.FileIO

    def handle(path: Any, *values: Any, **options: Any) -> int:
        faults.check(path)
        found = os_open(path, *values, **options)
        names[found] = path
        return found

    def file(path: Any, *values: Any, **options: Any) -> Any:
        faults.check(path)
        found = opened(path, *values, **options)
        return _File(found, path, faults) if isinstance(found, raw) else found

    with monkeypatch.context() as patch:
        for name in ("stat", "lstat", "readlink", "listdir"):
            patch.setattr(os, name, checked(getattr(os, name)))
        patch.setattr(os, "open", handle)
        patch.setattr(os, "scandir", scan)
        patch.setattr(io, "open", file)
        patch.setattr(io, "FileIO", lambda found: _File(raw(found), names.get(found), faults))
        yield faults
