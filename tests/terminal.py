"""A program at a real pseudo-terminal: its screen as a person sees it, its bytes as they came."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pyte

from tests.patience import PATIENCE

_MOMENT = 0.1


class _Screen(pyte.Screen):
    """Takes what programs say about the keyboard, which has the form of a colour, for no colour."""

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attrs)


class Terminal:
    """Starts `words` at a terminal; nothing goes on unless `until` or `wait` reads.

    `raw`: all bytes the program has written. Leaving it ends the program and all it started.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        columns: int = 120,
        rows: int = 36,
    ) -> None:
        self.raw = bytearray()
        self._screen = _Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._seen = 0
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            list(words),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={"TERM": "xterm-256color", "COLORTERM": "truecolor", **environ},
            start_new_session=True,
        )
        os.close(theirs)

    @property
    def lines(self) -> list[str]:
        """The rows of the screen as they stand."""
        self._stream.feed(bytes(self.raw[self._seen :]))
        self._seen = len(self.raw)
        rows, columns = self._screen.buffer, range(self._screen.columns)
        return ["".join(rows[at][x].data for x in columns) for at in range(self._screen.lines)]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines)

    def resize(self, columns: int, rows: int) -> None:
        """Change its size; the screen is empty until somebody draws."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._stream.feed(bytes(self.raw[self._seen :]))
        self._seen = len(self.raw)
        self._screen.resize(rows, columns)
        self._screen.reset()

    @property
    def cooked(self) -> bool:
        """Whether it edits lines and echoes, as programs find it in a shell."""
        modes = termios.tcgetattr(self._fd)[3]
        return bool(modes & termios.ICANON and modes & termios.ECHO)

    def press(self, *keys: str) -> None:
        """Type these characters; "\\r" is enter, "\\x1b" escape."""
        for key in keys:
            os.write(self._fd, key.encode())

    def read(self, patience: float) -> bool:
        """Wait for bytes; False when none came in time, or none will come any more."""
        ready, _, _ = select.select([self._fd], [], [], max(patience, 0))
        if not ready:
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # Linux says EIO when the program has closed its side
            return False
        self.raw += data
        return bool(data)

    def read_for(self, seconds: float) -> None:
        """Read as long as a person needs before a key counts as an answer."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Read until `holds`; the screen is in the error if it never does."""
        end = time.monotonic() + PATIENCE
        while not holds():
            if not self.read(end - time.monotonic()):
                raise AssertionError(f"never came: {what}\n{self.text}")

    def shows(self, *texts: str) -> None:
        """Read until all of `texts` stand on the screen."""
        self.until(lambda: all(text in self.text for text in texts), " and ".join(texts))

    def hides(self, text: str) -> None:
        """Read until `text` stands nowhere on the screen, and will not come again.

        What is being drawn again is gone for a moment too; a key would come to what still stands.
        """
        self.until(lambda: text not in self.text, f"the end of {text}")
        while not self.rests():
            self.until(lambda: text not in self.text, f"the end of {text}")

    def rests(self) -> bool:
        """Whether for a moment the program draws nothing and needs no processor.

        A program that gets none on a busy machine draws nothing either.
        """
        try:
            process = psutil.Process(self.process.pid)
            before = process.cpu_times()
            return (
                not self.read(_MOMENT)
                and process.cpu_times() == before
                and process.status() != psutil.STATUS_RUNNING
            )
        except psutil.NoSuchProcess:
            return True

    def wait(self) -> int:
        """Read on until the program ends by itself; its exit code."""
        end = time.monotonic() + PATIENCE
        while self.read(end - time.monotonic()):
            pass
        return self.process.wait(max(end - time.monotonic(), 0.1))

    def hang_up(self) -> None:
        """Take the terminal away, as a dropped connection does."""
        os.close(self._fd)
        self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self._fd >= 0:
            os.close(self._fd)
