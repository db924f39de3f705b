"""`gemtui mcp`: give agents read-only access to sessions, over stdin and stdout."""

from __future__ import annotations

import os
import signal
import stat
import sys
from importlib.metadata import version
from pathlib import Path
from types import FrameType

import click

from gemtui.commands.mcp_tools import WHAT, SessionTools
from gemtui.mcp_server import McpServer
from gemtui.paths import current_folder


def run(*, project: Path | None, everywhere: bool) -> int:
    """Answer agents' requests until the input ends, or until SIGTERM or SIGINT.

    `project`: the folder whose sessions agents can read; None means the current folder.
    `everywhere`: agents can read the sessions of all projects. Raises click.UsageError.
    """
    if sys.stdin is None or sys.stdout is None:
        raise click.UsageError("agents connect through stdin and stdout, but stdin or stdout is closed")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    out = os.fdopen(os.dup(1), "wb")
    _let_stderr_go()
    os.dup2(2, 1)  # keep other output out of the protocol
    where = None if everywhere else (project or current_folder()).absolute()
    server = McpServer(SessionTools(where).tools(), name="gemtui", version=version("gemtui"), instructions=WHAT)
    server.serve(sys.stdin.buffer, out)
    sys.stderr.flush()
    os._exit(0)  # a tool that has timed out may still be running


def _let_stderr_go() -> None:
    """Discard everything written to stderr if it is a pipe or a socket.

    If the program at the other end never reads from it, its buffer fills up, and the server would
    wait forever.
    """
    kind = os.fstat(2).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(0)
