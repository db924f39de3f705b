"""Check the integrity of a text index's files.

The search library (tantivy) maps these files into memory and trusts them: a changed byte leads to
wrong hits or a panic, and a FIFO blocks it forever. So every file that will be read is compared
with the checksum at its end. The names of checked files are stored in a small file, so that a file
is checked again only after it has changed.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

import msgspec
from msgspec import Struct

from gemtui.files import open_regular, write_whole

_META = "meta.json"
_END = struct.Struct("<II")
"""The last bytes of an index file.

They are the length of the metadata before them, and a magic number.
"""
_MARK = 1337
_TRIES = 3
"""How often to check the files; the writer may replace some during a check."""
_Stamp = tuple[int, int, int]


class IndexDamaged(ValueError):
    """Raised if the index can't be used; the message says why."""


class _Deletes(Struct):
    opstamp: int


class _Segment(Struct):
    segment_id: str
    deletes: _Deletes | None = None


class _Meta(Struct):
    segments: list[_Segment]


class _Footer(Struct):
    crc: int


class Integrity:
    """Checks the files of the text index in the folder `words`.

    `known`: the path of the file in which the checked files are listed.
    """

    def __init__(self, words: Path, known: Path) -> None:
        self._words, self._known = words, known
        self._checked: dict[str, _Stamp] = {}
        with suppress(OSError, msgspec.MsgspecError), open_regular(known) as stream:
            self._checked = msgspec.json.decode(stream.read(), type=dict[str, _Stamp])

    def check(self) -> None:
        """Check the files that have changed since the last check. Raises IndexDamaged."""
        for left in reversed(range(_TRIES)):
            try:
                self._check()
            except FileNotFoundError as error:
                if not left:
                    raise IndexDamaged("its words are missing") from error
            except OSError as error:
                raise IndexDamaged(error.strerror or str(error)) from error
            else:
                return

    def _check(self) -> None:
        stamps: dict[str, _Stamp] = {}
        for file in self._words.iterdir():
            found = file.lstat()
            if not S_ISREG(found.st_mode):
                raise IndexDamaged(f"{file.name} is not a file")
            stamps[file.name] = found.st_size, found.st_ino, found.st_ctime_ns
        used = {name: stamps[name] for name in self._used() if name in stamps}
        new = [name for name, stamp in used.items() if self._checked.get(name) != stamp]
        for name in new:
            if not _is_whole(self._words / name):
                raise IndexDamaged(f"{name} has changed")
        if new:
            self._checked = used
            with suppress(OSError):
                write_whole(self._known, [msgspec.json.encode(used)])

    def _used(self) -> Iterator[str]:
        """Yield the names of the files that the index currently uses.

        Missing files are not reported here, because the search library reports them.
        """
        with open_regular(self._words / _META) as stream:
            data = stream.read()
        try:
            meta = msgspec.json.decode(data, type=_Meta)
        except msgspec.MsgspecError as error:
            raise IndexDamaged(f"{_META} has changed") from error
        for segment in meta.segments:
            id = segment.segment_id.replace("-", "")
            yield from (f"{id}.{kind}" for kind in _KINDS)
            if segment.deletes is not None:
                yield f"{id}.{segment.deletes.opstamp}.del"


_KINDS = ("idx", "pos", "term", "store", "fast", "fieldnorm")


def _is_whole(path: Path) -> bool:
    """Return whether a file's contents match the checksum at its end."""
    with open_regular(path) as stream:
        try:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file can't be mapped
            return False
    with data:
        if len(data) < _END.size:
            return False
        length, mark = _END.unpack(data[-_END.size :])
        end = len(data) - _END.size - length
        if mark != _MARK or end < 0:
            return False
        try:
            footer = msgspec.json.decode(data[end : -_END.size], type=_Footer)
        except msgspec.MsgspecError:
            return False
        with memoryview(data) as view, view[:end] as body:
            return zlib.crc32(body) == footer.crc
