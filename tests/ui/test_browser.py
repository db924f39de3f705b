"""The app in a browser: what a server such as textual-serve and its page get from it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
import pytest

from gemtui.ui.app import OPEN_TO_OTHERS
from gemtui.ui.kit.signals import NO_TERMINAL
from tests.patience import PATIENCE

pytestmark = [pytest.mark.covers("gemtui/ui/app.py", "gemtui/ui/kit/signals.py"), pytest.mark.deep]


class Page:
    """A page that shows the app: it sends keys, and draws what it gets."""

    def __init__(self, folder: Path) -> None:
        environ = {**os.environ, "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}
        environ |= {"COLUMNS": "120", "ROWS": "30", "EDITOR": "vi"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gemtui", "--demo"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env=environ,
        )
        self._screen = pyte.Screen(120, 30)
        self._stream = pyte.ByteStream(self._screen)
        self._rest = b""
        self.first = self._read().partition(b"\n")[0]

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        assert ready, self._screen.display
        self._rest += os.read(self.process.stdout.fileno(), 1 << 16)
        return self._rest

    def _draw(self) -> None:
        """Draw all packets that are complete: `D`, four bytes of length, and the text."""
        self._rest = self._rest.removeprefix(b"__GANGLION__\n")
        while len(self._rest) >= 5 + int.from_bytes(self._rest[1:5], "big"):
            end = 5 + int.from_bytes(self._rest[1:5], "big")
            if self._rest[:1] == b"D":
                self._stream.feed(self._rest[5:end].replace(b"\x1b[>", b"\x1b[?"))
            self._rest = self._rest[end:]

    def shows(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        self._draw()
        while text not in "\n".join(self._screen.display):
            assert time.monotonic() < end, self._screen.display
            self._read()
            self._draw()

    def press(self, key: str) -> None:
        assert self.process.stdin is not None
        data = key.encode()
        self.process.stdin.write(b"D" + len(data).to_bytes(4, "big") + data)
        self.process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def test_a_page_shows_the_app_warns_and_has_no_shell_to_return_to(tmp_path: Path) -> None:
    with Page(tmp_path) as page:
        assert page.first == b"__GANGLION__"
        page.shows(OPEN_TO_OTHERS)
        page.shows("Running the tests.")
        page.press("\x1a")
        page.shows(NO_TERMINAL)
        page.press("q")
        page.process.wait(PATIENCE)
        assert page.process.returncode == 0


def test_the_app_ends_with_the_server_that_shows_it(tmp_path: Path) -> None:
    with Page(tmp_path) as page:
        page.shows(OPEN_TO_OTHERS)
        assert page.process.stdin is not None
        page.process.stdin.close()
        assert page.process.wait(PATIENCE) == 128 + 1
