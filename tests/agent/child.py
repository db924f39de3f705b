"""A child that misbehaves as it is told: `python child.py STEP...`, each step one word.

print:TEXT       a line to stdout          err:TEXT   a line to stderr
raw:TEXT         the text without its line feed, flushed
file:PATH        the bytes of a file to stdout
stdin            the whole of stdin to stdout
stubborn         SIGTERM, SIGINT and SIGHUP are ignored from now on
orphan           a grandchild in a session of its own that ignores SIGTERM; its pid to stdout
stray:KIND       a process that has left parent, session and environment; its pid to stdout;
                 a `stubborn` one ignores SIGTERM
partner          a child in the same group that goes on writing after we have gone
flood:N          N bytes to stderr        line:N    one line of N bytes to stdout
wait             sleep until a signal      exit:N    exit with this code
fill:N           one byte to stdout every N milliseconds, for ever
until:PATH       wait until a file is there
make:PATH=TEXT   a file with this text and a line feed
remove:PATH      a file is deleted
tmp:PATH         the temporary folder to stdout, once a file is made there
block:PATH       a file in the place of a folder, which is removed
full             one line to stdout until the disk is full
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

SLEEPER = (
    "import signal, time\n"
    "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n"
    "    signal.signal(number, signal.SIG_IGN)\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(60)\n"
)
STRAY = (
    "import os, signal, sys, time\n"
    "if sys.argv[1] == 'stubborn': signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print(os.getpid(), flush=True)\n"
    "while True: time.sleep(60)\n"
)
PARTNER = (
    "import os, sys, time\n"
    "while os.getppid() == int(sys.argv[1]): time.sleep(0.01)\n"
    "print('the last word', flush=True)\n"
)


def main() -> None:
    for word in sys.argv[1:]:
        step, _, value = word.partition(":")
        STEPS[step](value)


def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text.encode().decode("unicode_escape") + end)
    sys.stdout.flush()


def orphan(_: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    say(str(process.pid))


def stray(kind: str) -> None:
    leave = '((env -i setsid --fork nohup "$@" 2> /dev/null &) &)'
    words = ["bash", "-c", leave, "bash", sys.executable, "-c", STRAY, kind]
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = process.stdout.readline().decode().strip()
    process.wait()
    say(pid)


def block(value: str) -> None:
    path, gone = Path(value), Path(f"{value}-gone")
    while True:
        path.rename(gone)
        shutil.rmtree(gone)
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)
            return


def stubborn(_: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def fill(value: str) -> None:
    while True:
        say("x", end="")
        time.sleep(int(value) / 1000)


def full(_: str) -> None:
    with contextlib.suppress(OSError):
        while os.write(1, bytes(10_000)):
            pass


def temporary(path: str) -> None:
    place = Path(os.environ["TMPDIR"])
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    (place / path).write_text("{}")
    say(str(place))


def until(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.01)


def make(value: str) -> None:
    path, _, text = value.partition("=")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(f"{text}\n")


def send(path: str) -> None:
    sys.stdout.buffer.write(Path(path).read_bytes())
    sys.stdout.flush()


STEPS: dict[str, Callable[[str], object]] = {
    "print": say,
    "raw": lambda text: say(text, end=""),
    "err": lambda text: print(text, file=sys.stderr, flush=True),
    "file": send,
    "stdin": lambda _: say(sys.stdin.read(), end=""),
    "block": block,
    "stubborn": stubborn,
    "orphan": orphan,
    "stray": stray,
    "partner": lambda _: subprocess.Popen([sys.executable, "-c", PARTNER, str(os.getpid())]),
    "flood": lambda value: sys.stderr.write("e" * int(value)),
    "line": lambda value: say("y" * int(value)),
    "wait": lambda _: threading.Event().wait(),
    "fill": fill,
    "until": until,
    "make": make,
    "remove": lambda path: Path(path).unlink(),
    "full": full,
    "tmp": temporary,
    "exit": lambda value: sys.exit(int(value)),
}

if __name__ == "__main__":
    main()
