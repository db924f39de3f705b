"""A disk that ignores case, as far as `ProjectFiles` asks for files in open folders."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from gemtui.checkpoints.project_files import folded_name


def _on_disk(name: bytes, folder: int | None) -> bytes:
    """The name under which a folder lists a file, in whatever case it is asked for."""
    if folder is None:
        return name
    listed = [os.fsencode(other) for other in os.listdir(folder)]  # noqa: PTH208
    wanted = folded_name(os.fsencode(name))
    return next((other for other in listed if folded_name(other) == wanted), name)


class CaseBlind(ModuleType):
    """The module `os` on such a disk."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def stat(self, name: bytes, *, dir_fd: int | None = None, **options: Any) -> os.stat_result:
        return os.stat(_on_disk(name, dir_fd), dir_fd=dir_fd, **options)

    def open(self, name: bytes, flags: int, *mode: int, dir_fd: int | None = None) -> int:
        return os.open(_on_disk(name, dir_fd), flags, *mode, dir_fd=dir_fd)

    def unlink(self, name: bytes, *, dir_fd: int | None = None) -> None:
        os.unlink(_on_disk(name, dir_fd), dir_fd=dir_fd)

    def rename(self, source: bytes, target: bytes, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        here = _on_disk(target, dst_dir_fd)
        os.rename(source, here, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
