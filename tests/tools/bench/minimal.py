"""Floors of what an app can do at a terminal: one line, a long plain text, a text that grows.

`python -m tests.tools.bench.minimal [long | feed FILE]`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widgets import Log, Static

LINE = "the first row"
LINES = 10_000
FRAMES = 15
"""Times a second that a growing text is painted, as in gemtui."""


class Minimal(App[None]):
    """One line of text and nothing else."""

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static(LINE)


class Long(App[None]):
    """Plain lines and nothing else."""

    def compose(self) -> ComposeResult:
        """The lines."""
        yield Log(auto_scroll=False)

    def on_mount(self) -> None:
        """Fill it."""
        self.query_one(Log).write_lines(f"{LINE} {number} " * 4 for number in range(LINES)).focus()


class Fed(App[None]):
    """The deltas that somebody writes to a file, as often as we paint them."""

    def compose(self) -> ComposeResult:
        """The text so far."""
        yield Log()

    def on_mount(self) -> None:
        """Look at the file from now on."""
        self.query_one(Log).write_line("fed")
        file = Path(sys.argv[2]).open("rb")  # noqa: SIM115 (as long as the app)
        self.set_interval(1 / FRAMES, lambda: self._take(file.read()))

    def _take(self, data: bytes) -> None:
        said = (json.loads(line) for line in data.splitlines())
        self.query_one(Log).write("".join(each.get("content", "") + "\n" for each in said))


if __name__ == "__main__":
    {"": Minimal, "long": Long, "feed": Fed}["".join(sys.argv[1:2])]().run()
