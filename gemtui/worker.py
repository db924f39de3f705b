"""Helper processes of gemtui, and the messages that they exchange with it.

    worker = Worker("gemtui.sessions.catalog.read_files:serve")     # starts a process
    answer = worker.ask(question, seconds=5.0)
    worker.end()

The process imports the named module and calls the function with a `Parent`. This file is also the
program that the process runs. It is started by its path and imports little, because some helpers
have to start fast. Whatever happens to this process, the helper ends soon after it. A message is a
length of eight bytes, followed by a pickled object. Both sides unpickle without validation, because
they only talk to gemtui's own code.

The connection is a socket, which is the helper's standard input; other code may print. On Windows,
where a socket can't be that, it is handed over through the standard input.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
from _thread import start_new_thread
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from math import inf
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from typing import NoReturn

if sys.platform == "win32":
    import _socket

    def _read_some(file: int, size: int) -> bytes:
        connection = _socket.socket(fileno=file)
        try:
            return connection.recv(size)
        finally:
            connection.detach()

    def _write_some(file: int, data: memoryview) -> int:
        connection = _socket.socket(fileno=file)
        try:
            return connection.send(data)
        finally:
            connection.detach()
else:
    _read_some, _write_some = os.read, os.write

T = TypeVar("T")

_PROGRAM = os.path.abspath(__file__)  # noqa: PTH100 - pathlib would take longer to import
_LENGTH = 8
"""Number of bytes of a message's length."""
_PART = 1024 * 1024
"""Maximum number of bytes to read at once."""


class Worker:
    """A process that runs one of gemtui's functions, and the connection to it.

    `function`: a module and one of its functions, as "module:function". `grace`: seconds that the
    process may continue after this one has ended; infinite for a process that should finish its
    work. Creating an instance may raise OSError. One thread may send while another receives.
    """

    def __init__(self, function: str, *, grace: float = 0.0) -> None:
        import socket
        import subprocess
        import threading

        from gemtui.processes import FOLDER, python

        ours, theirs = socket.socketpair()
        with theirs:
            try:
                words, environ = python(_PROGRAM, function, str(grace)), None
                if sys.platform == "win32":
                    # The Python of a virtual environment would start another process, which
                    # couldn't take the connection.
                    words[0] = getattr(sys, "_base_executable", sys.executable)
                    environ = {**os.environ, "__PYVENV_LAUNCHER__": sys.executable}
                self._process = subprocess.Popen(
                    words,
                    env=environ,
                    cwd=FOLDER,
                    stdin=subprocess.PIPE if sys.platform == "win32" else theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                if sys.platform == "win32":
                    os.write(self._stdin(), theirs.share(self._process.pid))
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        self._socket = ours
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """The id of the process."""
        pid: int = self._process.pid
        return pid

    def fileno(self) -> int:
        """Return the file descriptor of the connection."""
        file: int = self._socket.fileno()
        return file

    def is_running(self) -> bool:
        """Return whether the process is still running."""
        return self._process.poll() is None

    def send(self, message: object, *, seconds: float | None = None) -> None:
        """Send a message within a number of seconds; None waits as long as it takes.

        Raises OSError if the process has ended or takes too long.
        """
        with self._lock:
            _send(self._socket.fileno(), message, _after(seconds))

    def receive(self, *, seconds: float | None = None) -> Any:
        """Return the next message, waiting for it; arguments and errors are as in `send`."""
        return _receive(self._socket.fileno(), _after(seconds))

    def ask(self, message: object, *, seconds: float | None = None) -> Any:
        """Send a message, and return the next one; arguments and errors are as in `send`."""
        until = _after(seconds)
        self.send(message, seconds=seconds)
        return _receive(self._socket.fileno(), until)

    def finish(self) -> None:
        """Send no more messages; the process is expected to finish its work and exit."""
        import socket

        with self._lock, suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill the process; a thread that waits for its messages gets an OSError."""
        self._process.kill()

    def end(self) -> None:
        """Kill the process and close the connection, which no other thread may be reading."""
        self._process.kill()
        self._process.wait()
        with self._lock:
            self._close()

    def leave(self) -> None:
        """Close the connection, and let the process continue without this one."""
        self._close()
        self._process.returncode = 0  # prevents a warning that the process is still running

    def _stdin(self) -> int:
        assert self._process.stdin is not None
        file: int = self._process.stdin.fileno()
        return file

    def _close(self) -> None:
        self._socket.close()
        if self._process.stdin is not None:
            self._process.stdin.close()


def with_answers(workers: Iterable[Worker], seconds: float) -> list[Worker]:
    """Return the workers that have sent a message or ended, waiting until there is one.

    `seconds`: how long to wait for the first.
    """
    by_file = {worker.fileno(): worker for worker in workers}
    if sys.platform == "win32":
        return [by_file[file] for file in select.select(by_file, [], [], seconds)[0]]
    poll = select.poll()
    for file in by_file:
        poll.register(file, select.POLLIN)
    return [by_file[file] for file, _ in poll.poll(seconds * 1000)]


class Parent:
    """The process that has started this one, as the function of a `Worker` sees it.

    `file`: the connection to it.
    """

    def __init__(self, file: int) -> None:
        self._file = file

    def send(self, message: object) -> None:
        """Send a message. Raises OSError if the parent process has ended."""
        _send(self._file, message, None)

    def receive(self) -> Any:
        """Return the next message. Raises OSError if there are no more."""
        return _receive(self._file, None)

    def answer(self, work: Callable[[Any], object]) -> NoReturn:
        """Answer each message with `work(message)`. Raises OSError when there are no more."""
        while True:
            self.send(work(self.receive()))


class ForkedCall(Generic[T]):
    """A copy of this process that calls a function.

    Create it only while the process has a single thread. Raises OSError if that is impossible.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._answer, theirs = os.pipe()
        try:
            self._child = _fork()
        except OSError:
            os.close(self._answer)
            os.close(theirs)
            raise
        if self._child == 0:
            os.close(self._answer)
            _call(function, theirs)
        os.close(theirs)

    def result(self) -> T:
        """Wait for the function's result. Raises OSError if the copy has failed. Call this once."""
        try:
            result: T = _receive(self._answer, None)
        finally:
            os.close(self._answer)
            with suppress(ChildProcessError):
                os.waitpid(self._child, 0)
        return result


def _fork() -> int:
    if sys.platform == "win32":
        raise OSError("Windows can't copy a process")
    return os.fork()


def _call(function: Callable[[], object], answer: int) -> NoReturn:
    """Write the function's result to a pipe, and exit."""
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        _send(answer, function(), None)
    finally:
        os._exit(0)


# --- messages ------------------------------------------------------------------------------------


def _after(seconds: float | None) -> float | None:
    return None if seconds is None else monotonic() + seconds


def _send(file: int, message: object, until: float | None) -> None:
    data = pickle.dumps(message)
    # In one piece, so that the other side is woken only once.
    left = memoryview(len(data).to_bytes(_LENGTH, "big") + data)
    while left:
        try:
            left = left[_write_some(file, left) :]
        except BlockingIOError:
            _wait(file, True, until)


def _receive(file: int, until: float | None) -> Any:
    data = _read(file, int.from_bytes(_read(file, _LENGTH, until), "big"), until)
    try:
        return pickle.loads(data)
    except Exception as error:  # from a process of another version of gemtui
        raise ConnectionError("the message can't be read") from error


def _read(file: int, size: int, until: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            part = _read_some(file, min(size - len(data), _PART))
        except BlockingIOError:
            _wait(file, False, until)
            continue
        if not part:
            raise ConnectionError("the process has ended")
        data += part
    return bytes(data)


def _wait(file: int, writes: bool, until: float | None) -> None:
    """Wait until a file can be read or written. Raises TimeoutError at the time `until`."""
    seconds = None if until is None else max(until - monotonic(), 0)
    if sys.platform == "win32":
        one = [file]
        is_ready = any(select.select([] if writes else one, one if writes else [], [], seconds))
    else:
        poll = select.poll()
        poll.register(file, select.POLLOUT if writes else select.POLLIN)
        is_ready = bool(poll.poll(None if seconds is None else seconds * 1000))
    if not is_ready:
        raise TimeoutError("the process takes too long")


# --- program of the process ----------------------------------------------------------------------


def _main(function: str, grace: float) -> None:
    file = 0
    if sys.platform == "win32":
        file = _socket.socket(0, 0, 0, os.read(0, _PART)).detach()
    if grace < inf:
        start_new_thread(_end_with_parent, (grace,))
    sys.path.append(os.path.dirname(os.path.dirname(_PROGRAM)))  # noqa: PTH120
    module, name = function.split(":")
    try:
        getattr(import_module(module), name)(Parent(file))
    finally:
        os._exit(0)


def _end_with_parent(grace: float) -> None:
    """Exit this process when its parent closes the connection or ends."""
    if sys.platform == "win32":
        os.read(0, 1)
    else:
        poll = select.poll()
        poll.register(0, select.POLLHUP)
        poll.poll()
    sleep(grace)
    os._exit(0)


if __name__ == "__main__":
    _main(sys.argv[1], float(sys.argv[2]))
