"""Read newline-delimited JSON: chunks of bytes -> lines -> values.

Memory use is bounded, and no input raises an exception. Only a line feed ends a line, because the
CLI writes U+2028, U+2029 and U+0085 unescaped (assets/gemini-cli.md#stdout).
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any, Literal

import orjson
from msgspec import Struct

from gemtui.jsonin import loads

LINE_LIMIT = 64 * 1024 * 1024
"""The longest line, in bytes.

A longer line is cut at this length and reported, and the rest of it is skipped.
"""


class Parsed(Struct, frozen=True, kw_only=True):
    """A line that is valid JSON."""

    data: Any
    ok: Literal[True] = True


class Malformed(Struct, frozen=True, kw_only=True):
    """A line that is not JSON.

    `raw`: the line without its line ending, with undecodable bytes replaced.
    """

    error: str
    raw: str
    ok: Literal[False] = False


class NdjsonReader:
    """Accepts chunks of any size, and yields the value of each complete line."""

    def __init__(self, *, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._length = 0
        self._skipping = False

    def feed(self, chunk: bytes | str) -> Iterator[Parsed | Malformed]:
        """Yield the values of the lines that this chunk completes."""
        data = chunk.encode("utf-8", "surrogatepass") if isinstance(chunk, str) else chunk
        *ends, rest = data.split(b"\n")
        for end in ends:
            if (line := self._complete(end)) is not None:
                yield line
        if (cut := self._keep(rest)) is not None:
            yield cut

    def close(self) -> Iterator[Parsed | Malformed]:
        """Yield the value of the last line if the line did not end with a line feed."""
        if (line := self._complete(b"")) is not None:
            yield line

    def _complete(self, end: bytes) -> Parsed | Malformed | None:
        if self._skipping:
            self._skipping = False
            return None
        if self._pieces:
            end = b"".join((*self._pieces, end))
            self._pieces, self._length = [], 0
        if len(end) > self._limit:
            return self._cut(end)
        if not end or end.isspace():
            return None
        try:
            return Parsed(data=loads(end))
        except orjson.JSONDecodeError as error:
            raw = end.removesuffix(b"\r").decode("utf-8", "replace")
            return Malformed(error=error.msg, raw=raw)

    def _keep(self, rest: bytes) -> Malformed | None:
        if self._skipping or not rest:
            return None
        self._pieces.append(rest)
        self._length += len(rest)
        if self._length <= self._limit:
            return None
        cut = self._cut(b"".join(self._pieces))
        self._pieces, self._length, self._skipping = [], 0, True
        return cut

    def _cut(self, line: bytes) -> Malformed:
        raw = line[: self._limit].decode("utf-8", "replace")
        return Malformed(error=f"line longer than {self._limit:,} bytes; the rest was dropped", raw=raw)


async def read_ndjson(
    chunks: AsyncIterable[bytes | str], *, limit: int = LINE_LIMIT
) -> AsyncIterator[Parsed | Malformed]:
    """Yield the value of each line of newline-delimited JSON.

    The chunks can have any size, so a line may be spread over several of them. Each line yields
    `Parsed` (`ok` True, `data`) or `Malformed` (`ok` False, `error`, `raw`). Blank lines yield
    nothing. The last line is parsed even if it lacks a line feed. No content raises an exception: a
    line of more than `limit` bytes is cut and reported.
    """
    reader = NdjsonReader(limit=limit)
    async for chunk in chunks:
        for line in reader.feed(chunk):
            yield line
    for line in reader.close():
        yield line
