"""Binary content for tests: small pictures, and parts of records that hold them."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any


def png(width: int = 64, height: int = 48) -> bytes:
    """A red picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xff\0\0" * width) * height
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", head),
            chunk(b"IDAT", zlib.compress(rows)),
            chunk(b"IEND", b""),
        )
    )


def inline(data: bytes | str, mime: str = "image/png", **more: str) -> dict[str, Any]:
    """An `inlineData` part; text stands for data that is base64 already, or is none."""
    text = data if isinstance(data, str) else b64encode(data).decode()
    return {"inlineData": {"data": text, "mimeType": mime, **more}}
