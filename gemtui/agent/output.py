"""Read the CLI's output while the CLI is writing it: events, turns and stderr.

The CLI's standard output is newline-delimited JSON. Only a line feed ends a line, because the CLI
writes U+2028, U+2029 and U+0085 unescaped (assets/gemini-cli.md#stdout). Memory use is bounded, and
no input raises an exception.
"""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Literal

import orjson
from msgspec import Struct

from gemtui.files import open_regular, read_end
from gemtui.jsonin import loads
from gemtui.text import clean

READ_PAUSE = 0.02
"""Seconds between two reads of a growing file."""
_LONGEST_PAUSE = 2.0
"""Seconds between two reads of a file of which the system reports no changes."""
_CHUNK = 256 * 1024
_MOST_READ = 4 * 1024 * 1024
"""The most bytes of new output that are held in memory to find events, unless a line is longer."""


# --- growing files --------------------------------------------------------------------------------


async def tail(
    path: Path, *, ended: Callable[[], bool], beside: Sequence[Path] = ()
) -> AsyncIterator[bytes]:
    """Yield what is written to `path`, in chunks of at most 256 KiB.

    `ended`: returns whether the writer has ended; what it wrote before that is still yielded.
    `beside`: more folders to watch. After a change in the file's folder or in these, and every two
    seconds, a read that finds nothing new yields an empty chunk, so that the caller gets a chance
    to do other work. The file need not exist yet. If it isn't a regular file or can't be read, no
    data is yielded.
    """
    # the supervisor needs only NewEvents, and starts sooner without these
    import asyncio

    from gemtui.folder_events import watching

    while (file := _opened(path)) is None:
        if ended():
            return
        yield b""
        await asyncio.sleep(READ_PAUSE)
    with file, watching(path.parent, *beside) as stirs:
        while True:
            last = ended()
            while chunk := file.read(_CHUNK):
                yield chunk
                await asyncio.sleep(0)
            if last:
                return
            file.seek(0, io.SEEK_CUR)  # Windows may remember that the file has ended
            yield b""
            await stirs.next(READ_PAUSE, _LONGEST_PAUSE)


def _opened(path: Path) -> io.FileIO | None:
    with suppress(OSError):
        return open_regular(path)
    return None


class NewEvents:
    """Reads events from the CLI's growing output, each as soon as it is complete.

    Everything that watches a working run reads its output with this class. `types`: the types of
    the events to return; lines without any of these words are not even parsed. `parse`: the parser
    of a line.
    """

    def __init__(self, output: Path, *types: str, parse: Callable[[bytes], Any] = loads) -> None:
        self._output, self._types, self._parse = output, types, parse
        self._words = [f'"{type}"'.encode() for type in types]
        self._rest = b""
        self.size = 0
        """How many bytes of the output have been read."""

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the events completed since the last call; none if the file can't be read."""
        while data := self._new():
            self.size += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                if any(word in line for word in self._words) and (event := self._event(line)):
                    yield event

    def _new(self) -> bytes:
        with suppress(OSError), open_regular(self._output) as file:
            file.seek(self.size)
            return file.read(_MOST_READ) or b""
        return b""

    def _event(self, line: bytes) -> dict[str, Any] | None:
        with suppress(ValueError, RecursionError):
            event = self._parse(line)
            if isinstance(event, dict) and event.get("type") in self._types:
                return event
        return None


# --- lines of JSON --------------------------------------------------------------------------------

LINE_LIMIT = 64 * 1024 * 1024
"""The longest line, in bytes.

A longer line is cut at this length and reported, and the rest of it is skipped.
"""


class Parsed(Struct, frozen=True, kw_only=True, gc=False):
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
    """Accepts chunks of any size, and yields the value of each complete line.

    `parse`: parses a line's JSON, and raises orjson.JSONDecodeError if it is invalid.
    """

    def __init__(self, *, limit: int = LINE_LIMIT, parse: Callable[[bytes], Any] = loads) -> None:
        self._limit = limit
        self._parse = parse
        self._pieces: list[bytes] = []
        self._length = 0
        self._skipping = False

    def feed(self, chunk: bytes | str) -> Iterator[Parsed | Malformed]:
        """Yield the values of the lines that this chunk completes."""
        data = chunk.encode("utf-8", "surrogatepass") if isinstance(chunk, str) else chunk
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = self._complete(end)
            if line is not None:
                yield line
        cut = self._keep(rest)
        if cut is not None:
            yield cut

    def close(self) -> Iterator[Parsed | Malformed]:
        """Yield the value of the last line if the line did not end with a line feed."""
        line = self._complete(b"")
        if line is not None:
            yield line

    def _complete(self, end: bytes) -> Parsed | Malformed | None:
        if self._skipping:
            self._skipping = False
            return None
        if self._pieces:
            end = b"".join((*self._pieces, end))
            self._pieces = []
            self._length = 0
        if len(end) > self._limit:
            return self._cut(end)
        if not end or end.isspace():
            return None
        try:
            return Parsed(data=self._parse(end))
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
        self._pieces = []
        self._length = 0
        self._skipping = True
        return cut

    def _cut(self, line: bytes) -> Malformed:
        raw = line[: self._limit].decode("utf-8", "replace")
        return Malformed(
            error=f"line longer than {self._limit:,} bytes; the rest was dropped", raw=raw
        )


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


# --- turns ----------------------------------------------------------------------------------------


class TurnLimit:
    """Detects when turn number `limit` is over; if `limit` is None, it never is.

    A turn is one answer of the model together with the tool calls in it. The CLI reports all calls
    first, then all results (assets/gemini-cli.md#events), and calls the model again after the last
    result. An answer without calls ends the run by itself.
    """

    def __init__(self, limit: int | None) -> None:
        self.exceeded = False
        """Whether the CLI began another answer before gemtui could end the run."""
        self._left = inf if limit is None else limit
        self._had_results = False
        self._waiting: set[str] = set()

    @property
    def last_is_over(self) -> bool:
        """Whether the last turn that the limit allows is over."""
        return self._left <= 0

    @property
    def between_turns(self) -> bool:
        """Whether all tool calls have results and the model has written nothing since."""
        return self._had_results and not self._waiting

    def note_text(self) -> None:
        """Record that the model has written text."""
        self._had_results = False
        if self._left <= 0:
            self.exceeded = True

    def calls(self, id: str) -> None:
        """Record a tool call."""
        self.note_text()
        self._waiting.add(id)

    def has_result(self, id: str) -> None:
        """Record a tool call's result."""
        self._had_results = True
        if id in self._waiting:
            self._waiting.remove(id)
            self._left -= not self._waiting


class TurnWatch:
    """Counts the turns in a CLI's growing output, for the supervisor.

    Without a limit, it only detects whether the model is between two turns. In that case, text
    matters as well.
    """

    def __init__(self, output: Path, limit: int | None) -> None:
        text = () if limit is not None else ("message",)
        self._events = NewEvents(output, "tool_use", "tool_result", *text)
        self._turns = TurnLimit(limit)
        self._counts = limit is not None

    def last_is_over(self) -> bool:
        """Read new output; return whether the last turn that the limit allows is over."""
        if self._counts:
            self._update()
        return self._turns.last_is_over

    def between_turns(self) -> bool:
        """Read new events; return whether the CLI is about to call the model.

        Use this only for runs without a turn limit.
        """
        self._update()
        return self._turns.between_turns

    def _update(self) -> None:
        for event in self._events.read():
            if event["type"] == "tool_use":
                self._turns.calls(str(event.get("tool_id")))
            elif event["type"] == "tool_result":
                self._turns.has_result(str(event.get("tool_id")))
            elif event.get("role") == "assistant":
                self._turns.note_text()


# --- stderr ---------------------------------------------------------------------------------------
#
# If a run succeeds, stderr is only noise, but if the CLI fails to start, only stderr says why.

_STDERR_END = 16 * 1024
"""How many bytes of stderr are read to explain how a run ended."""
_WORDS = 2000

_USAGE = re.compile(r"^Usage: gemini \[options\]", re.MULTILINE)
"""The first line of the CLI's help, which is noise; any error comes before it."""
_NOISE = re.compile(
    r"YOLO mode is enabled|\[STARTUP\]|^\(node:\d+\)|^\(Use `node --trace-"
    r"|DeprecationWarning|^Loaded cached credentials|256-color|true ?color|^Warning: .*(TERM|color)"
    r"|^\s+at .*\(?(file|node):|^Full report available at:|^Ripgrep is not available",
    re.IGNORECASE,
)


def meaningful_lines(text: str) -> str:
    """Return the lines of stderr output, without noise, blank lines and duplicates.

    Control characters are escaped. Only the last 2,000 characters are returned.
    """
    message = _USAGE.split(clean(text))[0]
    lines = (line.rstrip() for line in message.split("\n"))
    kept = dict.fromkeys(line for line in lines if line.strip() and not _NOISE.search(line))
    return "\n".join(kept)[-_WORDS:]


def stderr_end(path: Path) -> str:
    """Return the end of a stderr file, unfiltered; "" if the file can't be read."""
    try:
        return read_end(path, _STDERR_END).decode("utf-8", "replace")
    except OSError:
        return ""


def last_words(path: Path) -> str:
    """Return the meaningful lines at the end of a stderr file."""
    return meaningful_lines(stderr_end(path))
