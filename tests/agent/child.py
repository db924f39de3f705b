"""A child that misbehaves as it is told: `python child.py STEP...`, each step one word.

print:TEXT       a line to stdout          err:TEXT   a line to stderr
timed:JSON       an object in a line to stdout, with the time
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

Hundreds of tests start it: each step imports what it alone needs.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


def timed(text: str) -> None:
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f"{now % 1:.3f}"[1:]
    say(f'{text[:-1]},"timestamp":"{stamp}Z"}}')


def orphan(_: str) -> None:
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER], start_new_session=True, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    say(str(process.pid))


def stray(kind: str) -> None:
    import subprocess

    leave = '((env -i setsid --fork nohup "$@" 2> /dev/null &) &)'
    words = ["bash", "-c", leave, "bash", sys.executable, "-c", STRAY, kind]
    process = subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = process.stdout.readline().decode().strip()
    process.wait()
    say(pid)


def block(path: str) -> None:
    import shutil

    while True:
        os.rename(path, f"{path}-gone")
        shutil.rmtree(f"{path}-gone")
        try:
            open(path, "x").close()
        except FileExistsError:
            continue
        return


def stubborn(_: str) -> None:
    import signal

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def fill(value: str) -> None:
    while True:
        say("x", end="")
        time.sleep(int(value) / 1000)


def full(_: str) -> None:
    try:
        while os.write(1, bytes(10_000)):
            pass
    except OSError:
        return


def temporary(path: str) -> None:
    place = os.environ["TMPDIR"]
    write(os.path.join(place, path), "{}")
    say(place)


def until(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.01)


def make(value: str) -> None:
    path, _, text = value.partition("=")
    write(path, f"{text}\n")


def write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def send(path: str) -> None:
    with open(path, "rb") as file:
        sys.stdout.buffer.write(file.read())
    sys.stdout.flush()


def partner(_: str) -> None:
    import subprocess

    subprocess.Popen([sys.executable, "-c", PARTNER, str(os.getpid())])


def wait(_: str) -> None:
    import threading

    threading.Event().wait()


STEPS: dict[str, Callable[[str], object]] = {
    "print": say,
    "timed": timed,
    "raw": lambda text: say(text, end=""),
    "err": lambda text: print(text, file=sys.stderr, flush=True),
    "file": send,
    "stdin": lambda _: say(sys.stdin.read(), end=""),
    "block": block,
    "stubborn": stubborn,
    "orphan": orphan,
    "stray": stray,
    "partner": partner,
    "flood": lambda value: sys.stderr.write("e" * int(value)),
    "line": lambda value: say("y" * int(value)),
    "wait": wait,
    "fill": fill,
    "until": until,
    "make": make,
    "remove": os.unlink,
    "full": full,
    "tmp": temporary,
    "exit": lambda value: sys.exit(int(value)),
}

if __name__ == "__main__":
    main()
