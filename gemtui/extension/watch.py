"""Notice when the files that hold back the calls of an “Ask me” run change while it works."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from gemtui.extension.content import NAME, file_names
from gemtui.extension.status import link_file, source_of
from gemtui.files import read_small
from gemtui.paths import gemini_home

_Stamp = tuple[int, ...] | None
_LARGEST = 1_000_000
"""The largest file, in bytes, that is read; any writing of a larger one counts as a change."""


def hook_files(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the files on which the hooks of a run depend.

    These are the extension's files in the folder from which Gemini CLI loads it, the file that
    registers this folder, and the Python that the hooks start.
    """
    link = gemini_home(environ) / "extensions" / NAME
    source = source_of(link) or link
    python = Path(sys.executable)
    own = (source / name for name in file_names())
    return (*own, link_file(link), python, python.parent.parent / "pyvenv.cfg")


class FileWatch:
    """Compares files with what they were when the watch began.

    A small file that is written again with the same contents has not changed.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = tuple(files)
        self._stamps = self._current_stamps()
        self._began_with = self._digests()

    def changed(self) -> bool:
        """Return whether any of the files differs from what it was. Never raises."""
        stamps = self._current_stamps()
        if stamps == self._stamps:
            return False
        if self._digests() != self._began_with:
            return True
        self._stamps = stamps
        return False

    def _current_stamps(self) -> tuple[_Stamp, ...]:
        return tuple(map(_stamp, self._files))

    def _digests(self) -> tuple[str, ...]:
        return tuple(map(_digest, self._files))


def _stamp(path: Path) -> _Stamp:
    """Return numbers that differ once a file was written or replaced; None if there is none."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_small(path, _LARGEST)).hexdigest()
    except OSError:
        return str(_stamp(path))
