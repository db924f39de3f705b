"""Start programs so that nothing is loaded from the current folder.

The current folder may be somebody else's. Python adds it to `sys.path`, an empty or relative entry
in `PATH` or `PYTHONPATH` refers to it, and some programs read settings from it that name commands.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = "/"
"""The working folder of gemtui's own child processes, where only root can create files."""


def python(*words: str) -> list[str]:
    """Return the command that runs this Python with `words`; start it in `FOLDER`.

    `-P` keeps Python from importing modules of the working folder. In `FOLDER`, empty and relative
    entries of `PYTHONPATH` are harmless, too.
    """
    return [sys.executable, "-P", *words]


def helper(
    *words: str, stdin: int, stdout: int = subprocess.DEVNULL, bufsize: int = -1
) -> subprocess.Popen[bytes]:
    """Start this Python with `words` as a helper process, in a session of its own.

    `stdin`, `stdout`, `bufsize`: as in `Popen`. Its stderr is discarded. Raises OSError.
    """
    return subprocess.Popen(
        python(*words),
        cwd=FOLDER,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=bufsize,
    )


def at_terminal(
    words: Sequence[str], *, program: str | None = None, folder: Path | None = None
) -> int:
    """Run a program in the terminal and return its exit code, -n if signal n ended it.

    `words`: its arguments, beginning with its name; `program`: the executable if it is not
    `words[0]`; `folder`: its working folder, None for the current one. Meanwhile gemtui ignores
    ctrl+c and ctrl+backslash, which the terminal sends to both, as a shell does. Raises OSError.
    """
    keys = (signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, lambda *_: None) for number in keys}
    try:
        return subprocess.call(words, executable=program, cwd=folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_program(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the absolute path of a program on `PATH`, or None if there is none.

    Relative and empty entries of `PATH` are skipped. A name with a slash is returned as it is.
    """
    if os.sep in name:
        return name
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    return shutil.which(name, path=absolute) if absolute else None
