"""The socket at which the hooks of a gated run ask: one question and one answer a connection.

A hook sends `{"event": …}` on one line and reads one line. What can't be understood is answered
with nothing, and the hook then refuses. A connection that ends while its hook waits means that the
hook is gone.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

LARGEST = 64_000_000
"""Bytes of a question; a longer one is not answered."""
_PIECE = 1024 * 1024
_QUEUE = 1024

IsGone = Callable[[], bool]
"""Whether the hook that waits for an answer is gone."""
Answer = Callable[[Mapping[str, Any], IsGone], Mapping[str, Any] | None]
"""Returns what the hook is to print for an event; None = nothing, so that it refuses."""


class GateServer:
    """Answers hooks, each in a thread, from `start` to `close`."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self._answer = answer
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._closed = False
        try:
            with chdir(path.parent):  # the whole path may be longer than an address can be
                self._listening.bind(path.name)
            path.chmod(0o600)
            self._listening.listen(_QUEUE)
        except OSError:
            self._listening.close()
            raise

    def start(self) -> None:
        """Answer from now on, in the background."""
        threading.Thread(target=self._serve, name="gate", daemon=True).start()

    def close(self) -> None:
        """Answer no more hooks. Those that wait are told nothing, and refuse."""
        self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                continue  # too many files are open for now, or we are closed
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError, RecursionError):
            if not _is_ours(connection):
                return
            said = json.loads(_line(connection))
            event = said.get("event") if isinstance(said, dict) else None
            if isinstance(event, dict):
                answer = self._answer(event, lambda: _is_gone(connection))
                if answer is not None:
                    told = json.dumps(answer, allow_nan=False)  # what is no JSON, the CLI allows
                    connection.sendall(told.encode("ascii") + b"\n")


def _line(connection: socket.socket) -> bytes:
    """What was sent, up to a line feed. Raises ValueError for what is too long or has no end."""
    pieces, size = [], 0
    while piece := connection.recv(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if piece.endswith(b"\n"):
            return b"".join(pieces)
        if size > LARGEST:
            break
    raise ValueError("no whole line")


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other end is closed: a hook that waits sends nothing more."""
    looking = select.poll()
    looking.register(connection, select.POLLIN)
    return bool(looking.poll(0))


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other process is of our user; where nobody tells, the folder is private."""
    if sys.platform != "linux":
        return True
    size = struct.calcsize("3i")
    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = struct.unpack("3i", facts)
    return bool(user == os.geteuid())
