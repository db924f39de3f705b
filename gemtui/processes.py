"""Start programs so that they load nothing from the current folder.

The current folder may be untrusted. Python adds it to `sys.path`, empty or relative entries in
`PATH` or `PYTHONPATH` refer to it, and some programs read settings from it that name commands to
run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FOLDER = "/"
PROGRAM_ENDINGS: tuple[str, ...] = ("",)
"""The endings of the names of programs."""
BATCH_ENDINGS = (".cmd", ".bat")
if sys.platform == "win32":
    PROGRAM_ENDINGS = (".exe", ".com")
    FOLDER = os.path.join(os.environ["SYSTEMROOT"], "System32")  # noqa: PTH118
"""The working directory of child processes; only root can create files in it."""


def _ignore(*_: object, **__: object) -> None:
    pass


class IndependentProcess(subprocess.Popen[bytes]):
    """A process that may outlive this one; Python doesn't warn when nobody waits for it any
    more.
    """

    def __del__(self, _ignore: Callable[..., None] = _ignore) -> None:
        super().__del__(_warn=_ignore)  # type: ignore[call-arg]  # not in its stub


DRIVER = "TEXTUAL_DRIVER"
"""The variable with which a server such as textual-serve shows the app in a browser.

Stdin and stdout are pipes to the server then, and there is no terminal.
"""


def python(*words: str) -> list[str]:
    """Return the command that runs the current Python with the arguments `words`.

    Start the command in `FOLDER`, where empty and relative entries of `PYTHONPATH` are harmless.
    `-P` keeps Python from importing modules from the working directory.
    """
    return [sys.executable, "-P", *words]


def at_terminal(
    words: Sequence[str], *, program: str | None = None, folder: Path | None = None
) -> int:
    """Run a program in the terminal and return its exit code.

    If a signal ended the program, the exit code is the negative signal number. `words`: the
    arguments, starting with the program's name. `program`: the executable, if it is not
    `words[0]`. `folder`: the working directory; None means the current one. While the program is
    running, gemtui ignores ctrl+c and ctrl+backslash, as a shell does, because the terminal sends
    these signals to both processes. Raises OSError.
    """
    keys = [signal.SIGINT]
    if sys.platform != "win32":
        keys.append(signal.SIGQUIT)
    before = {number: signal.signal(number, lambda *_: None) for number in keys}
    try:
        return subprocess.call(words, executable=program, cwd=folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def finished(
    words: Sequence[str], limit: float, *, stdin: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program in `folder` or `FOLDER`, and return its result and output.

    Returns None if it can't be started, or takes longer than `limit` seconds. `stdin`: its input.
    """
    try:
        return subprocess.run(
            words,
            cwd=folder or FOLDER,
            input=stdin,
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def absolute_folders(environ: Mapping[str, str]) -> list[str]:
    """Return the folders in `PATH`, without the relative ones, which mean the current folder."""
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return [entry for entry in entries if Path(entry).is_absolute()]


def find_program(
    name: str, environ: Mapping[str, str] = os.environ, *, endings: Sequence[str] = PROGRAM_ENDINGS
) -> str | None:
    """Return the absolute path of a program on `PATH`, or None if it is not found.

    It is never looked for in the current folder, as Windows would do. A name with a folder is
    returned unchanged. `endings`: the endings that a name may have, in order. On Windows, a batch
    file is no program: it would take parts of its arguments for commands.
    """
    if Path(name).name != name:
        is_batch_file = sys.platform == "win32" and name.lower().rstrip(". ").endswith(
            BATCH_ENDINGS
        )
        return None if is_batch_file else name
    has_ending = name.lower().endswith(tuple(filter(None, endings)))
    for folder in absolute_folders(environ):
        for ending in [""] if has_ending else endings:
            path = os.path.join(folder, name + ending)  # noqa: PTH118
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                return path
    return None


def git_command(git: str, folder: Path) -> list[str]:
    """Return the beginning of a git command that starts no hook, monitor or helper.

    A repository's configuration can name programs for git to run. Filters are not disabled, so the
    command that follows must be one that runs none. Start it with `git_environ`. `git`: the
    program. `folder`: where git works.
    """
    settings = (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "safe.bareRepository=explicit",
        "protocol.allow=never",
    )
    return [
        git,
        "--no-pager",
        *(word for setting in settings for word in ("-c", setting)),
        "-C",
        str(folder.absolute()),
    ]


def git_environ() -> dict[str, str]:
    """Return the environment for `git_command`.

    It lacks variables that lead git to another repository, as in a shell that git has started.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **own,
        "LC_ALL": "C",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
