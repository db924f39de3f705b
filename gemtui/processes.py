"""Programs that we start: neither they nor what they load come from the current folder.

Anybody may have made the folder that a person stands in. Python puts it on `sys.path`, an empty or
relative entry of `PATH` and `PYTHONPATH` means it, and some programs take settings from it that
name commands.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = "/"
"""Where our own children stand: nobody but root puts files there."""


def python(*words: str) -> list[str]:
    """The command that starts this Python with `words`, to be started in `FOLDER`.

    Without `-P` Python would import modules of the folder it is started in; in `FOLDER` the empty
    and the relative entries of `PYTHONPATH` name nothing of others, either.
    """
    return [sys.executable, "-P", *words]


def find_program(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The absolute path of a program on `PATH`, whose relative and empty entries are passed over.

    A name with a slash is a path already, and is given back as it is. None = it is not there.
    """
    if os.sep in name:
        return name
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    return shutil.which(name, path=absolute) if absolute else None
