"""The lines that a growing file has got since one last looked."""

from __future__ import annotations

from pathlib import Path

from gemtui.files import open_regular

_LOOK = 4 * 1024 * 1024
"""Bytes that are read at one look."""


class NewLines:
    """Reads a file that somebody else appends to; a line counts once it is whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._rest = b""

    def look(self) -> list[bytes]:
        """Return what is new, without line feeds; nothing where the file can't be read."""
        try:
            with open_regular(self._path) as file:
                file.seek(self._read)
                data = file.read(_LOOK)
        except OSError:
            return []
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines
