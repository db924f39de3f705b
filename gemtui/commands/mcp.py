"""`gemtui mcp`: stored sessions for agents, read-only, over stdin and stdout."""

from __future__ import annotations

import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from gemtui.commands.mcp_tools import WHAT, SessionTools
from gemtui.mcp_server import McpServer
from gemtui.paths import current_folder


def run(*, project: Path | None, everywhere: bool) -> int:
    """Serve until the input ends, SIGTERM or SIGINT.

    `project`: whose sessions may be read, those of the current folder without one. `everywhere`:
    those of all projects.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed is no part of the protocol
    where = None if everywhere else (project or current_folder()).absolute()
    server = McpServer(
        SessionTools(where).tools(),
        name="gemtui",
        version=version("gemtui"),
        instructions=WHAT,
    )
    server.serve(sys.stdin.buffer, out)
    sys.stderr.flush()
    os._exit(0)  # a tool that was given up may still be reading


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
