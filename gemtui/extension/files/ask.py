"""Ask gemtui about one hook of Gemini CLI: `ask.py LIVE PID`.

The answer comes through the socket in GEMTUI_GATE, however long it takes: it sends one line and
prints the line that it receives. Without a complete answer the exit code is 2. hook.sh describes
LIVE and PID. Each tool call waits for this program, so it imports little. GEMTUI_GATE_PID is the
process that must be at the other end: another program may have put its own socket there.
"""
# ruff: noqa: PTH105, PTH108, PTH123

import os
import select
import socket
import sys

_NOTED = 1_048_576
_CREDENTIALS = 12
"""The size of a peer's process, user and group."""
_SOON = 1.0
"""Seconds after which a person is evidently being asked."""


def _note(live: str, pid: str, event: bytes) -> None:
    """Update the live file for gemtui's session list.

    Failing at it must not refuse a call.
    """
    new = f"{live}/.{pid}.{os.getpid()}"
    try:
        with open(new, "wb") as file:
            file.write(event[:_NOTED])
        os.replace(new, f"{live}/{pid}")
    except OSError:
        try:
            os.unlink(new)
        except OSError:
            return


def _check_peer(gate: socket.socket) -> None:
    """Raise ValueError if the socket is another process's. Only Linux can tell."""
    wanted = os.environ.get("GEMTUI_GATE_PID")
    if wanted is None or sys.platform != "linux":
        return
    facts = gate.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS)
    if int.from_bytes(facts[:4], sys.byteorder) != int(wanted):
        raise ValueError("another program is at gemtui's socket")


def _ask(live: str, pid: str, event: bytes) -> bytes:
    """Return the answer. Raises OSError and ValueError if there is none."""
    if sys.platform == "win32":
        raise OSError("Windows has no such sockets")
    folder, name = os.path.split(os.environ["GEMTUI_GATE"])
    os.chdir(folder)  # the whole path may be too long for an address
    with socket.socket(socket.AF_UNIX) as gate:
        gate.connect(name)
        _check_peer(gate)
        gate.sendall(b'{"event": %b}\n' % event)
        asks = not select.select([gate], [], [], _SOON)[0]
        if asks:
            _note(live, pid, b'{"gemtui_asks": "",' + event[1:])
        with gate.makefile("rb") as stream:
            answer = stream.readline()
        if asks:
            _note(live, pid, event)
    if not (answer.startswith(b"{") and answer.endswith(b"}\n")):
        raise ValueError("gemtui's answer is incomplete")
    return answer


def main(live: str, pid: str) -> int:
    """Ask, print, and return the exit code."""
    os.umask(0o077)
    event = sys.stdin.buffer.read().strip()
    _note(live, pid, event)
    try:
        answer = _ask(live, pid, event)
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"gemtui does not answer: {error}\n")
        return 2
    while answer:
        answer = answer[os.write(1, answer) :]
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
