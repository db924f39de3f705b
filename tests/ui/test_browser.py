"""The app in a browser: what a server such as textual-serve and its page get from it."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
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


class Browser:
    """A page in headless Chromium, which is driven by JSON through pipes."""

    def __init__(self, folder: Path, address: str) -> None:
        reading, theirs = os.pipe()
        their_input, self._writing = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        script = f'exec 3<&{their_input} 4>&{theirs}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", "chromium", *flags, f"--user-data-dir={folder}"],
            pass_fds=(their_input, theirs),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(their_input)
        self._answers = os.fdopen(reading, "rb")
        self._rest, self._number, self._page = b"", 0, ""
        target = self.call("Target.createTarget", url=address)["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._page = attached["sessionId"]

    def call(self, method: str, **parameters: object) -> Any:
        """The result of a method of Chromium's protocol."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._page:
            message["sessionId"] = self._page
        os.write(self._writing, orjson.dumps(message) + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._answers.fileno(), 1 << 16)
                assert part, "Chromium has ended"
                self._rest += part
            line, _, self._rest = self._rest.partition(b"\0")
            answer = orjson.loads(line)
            if answer.get("id") == self._number:
                return answer.get("result", {})  # none if the page is just being loaded

    def gets(self, name: str, milliseconds: int) -> bool:
        """Whether the page's body gets a class within a time."""
        script = f"""new Promise(resolve => {{
            const look = () => document.body?.classList.contains("{name}") && resolve(true)
            setInterval(look, 20)
            setTimeout(() => resolve(false), {milliseconds})
        }})"""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        return answer.get("result", {}).get("value") is True

    def press(self, key: str) -> None:
        focus = "document.querySelector('textarea')?.focus()"
        self.call("Runtime.evaluate", expression=focus)
        code = ord(key.upper())
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, text=key, key=key, windowsVirtualKeyCode=code
            )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._answers.close()
        os.close(self._writing)


SERVER = """
import sys
from textual_serve.server import Server
Server(f"{sys.executable} -m gemtui --demo", port=int(sys.argv[1])).serve()
"""


@pytest.mark.skipif(
    not (find_spec("textual_serve") and shutil.which("chromium")),
    reason="textual-serve or Chromium is not installed",
)
def test_a_browser_shows_the_app_and_that_it_has_ended(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port)
        browser = Browser(tmp_path / "chromium", f"http://127.0.0.1:{port}")
        try:
            end = time.monotonic() + PATIENCE
            while not browser.gets("-first-byte", 500):
                assert time.monotonic() < end
            while not browser.gets("-closed", 500):
                assert time.monotonic() < end
                browser.press("q")  # until the app has drawn itself, a key does nothing
        finally:
            browser.close()
    finally:
        server.kill()
        server.wait()


def wait_for_port(port: int) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            assert time.monotonic() < end
            time.sleep(0.05)


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
