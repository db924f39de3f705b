"""Zstandard as Python 3.14 has it; older ones have it from `backports.zstd`, the same module."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Damaged = zstd.ZstdError
_LEVEL = 9
_CHUNK = 1 << 20


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces as one frame; how they are cut does not change its bytes."""
    packer = zstd.ZstdCompressor(level=_LEVEL)
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= _CHUNK:
            yield packer.compress(bytes(held[:_CHUNK]))
            del held[:_CHUNK]
    yield packer.compress(bytes(held)) + packer.flush()


def lines_in(path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed file with their ends.

    Raises OSError, Damaged, EOFError.
    """
    with zstd.open(path, "rb") as stream:
        yield from stream
