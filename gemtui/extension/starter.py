"""The script with which hooks start gemtui, to take checkpoints in CLI sessions.

This script isn't compared when gemtui checks whether the extension's files are up to date: a
different installation of gemtui for the same user may have written it, with its own program and
settings.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from gemtui.files import read_small
from gemtui.paths import config_file
from gemtui.processes import FOLDER, python
from gemtui.transcript.tools import tools_that_read

STARTER = "checkpoint.sh"
"""The file in the extension's folder that `hook.sh` sources."""
_MODULE = "gemtui.runs.undo.hooked_checkpoints"
_CONFIG, _PROGRAM = "config", "program"
_LONGEST = 20.0
"""The time limit, in seconds, for Python to load gemtui."""


def starter() -> bytes:
    """Return the script with which hooks take checkpoints.

    The script contains the path of gemtui's settings and the command to run.
    """
    program, *words = python("-m", _MODULE)
    return "\n".join(
        (
            f"{_CONFIG}={shlex.quote(str(config_file()))}",
            f"{_PROGRAM}={shlex.quote(program)}",
            f"reads={shlex.quote(' '.join(['', *tools_that_read(), '']))}",
            f'take() {{ cd {shlex.quote(FOLDER)} && "${_PROGRAM}" {shlex.join(words)} "$1" "${_CONFIG}" "$2"; }}',
            "",
        )
    ).encode()


def starter_problem(folder: Path) -> str | None:
    """Return why the hooks of the extension in `folder` take no checkpoints, or None.

    If the hooks name a different Python from this one, that Python is run to check it. Never
    raises.
    """
    try:
        data = read_small(folder / STARTER)
    except OSError:
        return f"{folder / STARTER} can't be read"
    values = _values(data.decode("utf-8", "surrogateescape"))
    config, program = values.get(_CONFIG, ""), values.get(_PROGRAM, "")
    if Path(config) != config_file():
        return f"its hooks read the settings in {config}, not in {config_file()}"
    if data == starter():
        return None
    if "\0" in program or not (Path(program).is_absolute() and os.access(program, os.X_OK)):
        return f"{program}, the Python that its hooks start, no longer exists"
    if not _has_gemtui(program):
        return f"{program}, the Python that its hooks start, can't load gemtui"
    return None


def _values(text: str) -> dict[str, str]:
    """Return the variables that the shell would set when sourcing `text`."""
    found = {}
    for line in text.split("\n"):
        name, sign, value = line.partition("=")
        with suppress(ValueError):
            if sign and name.isidentifier():
                found[name] = "".join(shlex.split(value)[:1])
    return found


def _has_gemtui(program: str) -> bool:
    try:
        done = subprocess.run(
            [program, "-P", "-c", f"import {_MODULE}"],
            cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LONGEST,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
