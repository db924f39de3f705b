"""A private git index, with which git detects files that have changed.

The index has git's index format, version 2. It contains the `lstat` facts of files, but not their
contents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from struct import Struct

from gemtui.checkpoints.states import LINK, FileState
from gemtui.checkpoints.store import Facts

_ENTRY = Struct(">10L20sH")
_WORD = 0xFFFFFFFF
_LONGEST = 0xFFF
_SECOND = 1_000_000_000
_NO_CONTENT = b"\x01" * 20
"""The fake content hash written into every entry of the index.

No real file has this hash. So git lists a file as modified as soon as its size or times differ from
the index, without comparing contents.
"""
_LINK_MODE, _FILE_MODE, _PROGRAM_MODE = 0o120000, 0o100644, 0o100755


def encode_index(files: Iterable[tuple[bytes, FileState, Facts]]) -> bytes:
    """Return the bytes of an index file that contains these files and links.

    `files`: sorted by name.
    """
    entries = [_entry(*each) for each in files]
    data = b"".join([b"DIRC", (2).to_bytes(4), len(entries).to_bytes(4), *entries])
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def _entry(name: bytes, state: FileState, facts: Facts) -> bytes:
    mode = _PROGRAM_MODE if state.mode & 0o100 else _FILE_MODE
    head = _ENTRY.pack(
        facts.ctime // _SECOND & _WORD, facts.ctime % _SECOND,
        facts.mtime // _SECOND & _WORD, facts.mtime % _SECOND,
        0, facts.inode & _WORD, _LINK_MODE if state.kind == LINK else mode,
        facts.user, facts.group, facts.size & _WORD,
        _NO_CONTENT, min(len(name), _LONGEST),
    )  # fmt: skip
    return head + name + bytes(8 - (len(head) + len(name)) % 8)
