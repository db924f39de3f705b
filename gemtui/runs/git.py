"""Run git commands in a folder whose repository may be untrusted."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer

from gemtui.processes import FOLDER, find_program

_LIMIT = 5.0
"""The time limit of a git command, in seconds."""
_ANSWERED = (0, 1)
"""The exit codes that don't count as failures; 1 is git's way of answering “no”."""
_NO_COMMANDS = (
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "protocol.allow=never",
)


def ask_git(folder: Path, *words: str, given: bytes = b"", most: int) -> bytes | None:
    """Return the output of a git command in a folder; None if it fails.

    Exit code 1 does not count as a failure. `given`: the command's input. `most`: the largest
    output in bytes; None is returned if there is more. A repository's own settings can name
    programs for git to run. Programs that detect changed files or fetch objects are disabled here,
    but `words` must be a git command that runs no filters or hooks.
    """
    git = find_program("git")
    if git is None:
        return None
    command = [git, *_NO_COMMANDS, "-C", str(folder.absolute()), *words]
    environ = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
    with suppress(OSError), TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        with subprocess.Popen(
            command, cwd=FOLDER, env=environ, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            return _answer(process, most)
    return None


def _answer(process: subprocess.Popen[bytes], most: int) -> bytes | None:
    assert process.stdout is not None
    limit = Timer(_LIMIT, process.kill)
    limit.start()
    try:
        output = process.stdout.read(most + 1)
        if len(output) > most:
            process.kill()
        return output if process.wait() in _ANSWERED else None
    finally:
        limit.cancel()
