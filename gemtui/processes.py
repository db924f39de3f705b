"""Programs that we start: neither they nor what they load come from the current folder.

Anybody may have made the folder that a person stands in. Python puts it on `sys.path`, an empty or
relative entry of `PATH` and `PYTHONPATH` means it, and some programs take settings from it that
name commands.
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
"""Where our own children stand: nobody but root puts files there."""


def python(*words: str) -> list[str]:
    """The command that starts this Python with `words`, to be started in `FOLDER`.

    Without `-P` Python would import modules of the folder it is started in; in `FOLDER` the empty
    and the relative entries of `PYTHONPATH` name nothing of others, either.
    """
    return [sys.executable, "-P", *words]


def at_terminal(words: Sequence[str], *, program: str | None = None) -> int:
    """Run `words` (`program`: their executable) at our terminal; its exit code, -n for signal n.

    Ctrl+c and ctrl+backslash are its own meanwhile, as at a shell: the terminal sends them to us
    as well. Raises OSError.
    """
    keys = (signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, lambda *_: None) for number in keys}
    try:
        return subprocess.call(words, executable=program)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def find_program(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The absolute path of a program on `PATH`, whose relative and empty entries are passed over.

    A name with a slash is a path already, and is given back as it is. None = it is not there.
    """
    if os.sep in name:
        return name
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    return shutil.which(name, path=absolute) if absolute else None
