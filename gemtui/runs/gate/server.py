"""The socket to which a gated run's hooks connect, once for each event.

A hook sends `{"event": …}` on one line and reads the answer from one line. An unreadable event gets
no answer, and the hook then denies the call. If the connection is closed while the hook should be
waiting, the hook has been killed.
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

from gemtui.system import Unported, why_not

LARGEST = 64_000_000
"""The largest event, in bytes; larger ones get no answer."""
_PIECE = 1024 * 1024
_QUEUE = 1024

IsGone = Callable[[], bool]
"""A function that returns whether the waiting hook has been killed."""
AnswerEvent = Callable[[Mapping[str, Any], IsGone], Mapping[str, Any] | None]
"""A function that returns what the hook is to print for an event.

If it returns None, the hook prints nothing and denies the call.
"""


class GateServer:
    """Answers hooks, each in its own thread.

    It works from `start` to `close`. `answer`: returns the answer to an event.
    """

    def __init__(self, path: Path, answer: AnswerEvent) -> None:
        self._answer = answer
        self._listening = _local_socket()
        self._closed = False
        try:
            with chdir(path.parent):  # the whole path may be too long for a socket address
                self._listening.bind(path.name)
            path.chmod(0o600)
            self._listening.listen(_QUEUE)
        except OSError:
            self._listening.close()
            raise

    def start(self) -> None:
        """Start answering hooks in the background."""
        threading.Thread(target=self._serve, name="gate", daemon=True).start()

    def close(self) -> None:
        """Stop answering hooks. Waiting hooks get no answer and deny their calls."""
        self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                continue  # too many open files at the moment, or the socket is closed
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, ValueError, RecursionError):
            if not _is_ours(connection):
                return
            message = json.loads(_line(connection))
            event = message.get("event") if isinstance(message, dict) else None
            if isinstance(event, dict):
                answer = self._answer(event, lambda: _is_gone(connection))
                if answer is not None:
                    line = json.dumps(answer, allow_nan=False)  # the CLI would allow invalid JSON
                    connection.sendall(line.encode("ascii") + b"\n")


def _local_socket() -> socket.socket:
    if sys.platform == "win32":
        raise OSError(why_not(Unported.ASK))
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def _line(connection: socket.socket) -> bytes:
    """Read one line, up to a line feed.

    Raises ValueError for a line that is too long or incomplete.
    """
    pieces, size = [], 0
    while piece := connection.recv(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if piece.endswith(b"\n"):
            return b"".join(pieces)
        if size > LARGEST:
            break
    raise ValueError("the line is incomplete")


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the hook has closed its connection.

    A waiting hook sends nothing more, so the connection becomes readable only if it is closed.
    """
    if sys.platform == "win32":
        return bool(select.select([connection], [], [], 0)[0])
    looking = select.poll()
    looking.register(connection, select.POLLIN)
    return bool(looking.poll(0))


def _is_ours(connection: socket.socket) -> bool:
    """Return whether the process at the other end belongs to the current user.

    Only Linux can tell. On other systems, True is returned, and the private folder protects the
    socket.
    """
    if sys.platform != "linux":
        return True
    size = struct.calcsize("3i")
    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = struct.unpack("3i", facts)
    return bool(user == os.geteuid())
