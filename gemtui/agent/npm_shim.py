"""Start Gemini CLI on Windows, where npm installs it as a batch file.

A batch file is run by cmd.exe, which takes parts of arguments such as `&` and `%PATH%` for
commands and variables. So gemtui reads in it which script Node.js would run, and starts that.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from gemtui.errors import CliNotFound
from gemtui.files import is_file, read_small
from gemtui.processes import find_program

_SCRIPTS = (".js", ".mjs", ".cjs")
_LARGEST = 64 * 1024
_START = re.compile(
    r"""(?: "[^"\n]*\bnode(?:\.exe|\$exe)?" | "%_prog%" | \bnode )  # Node.js
    (?P<options> (?: \s+ --[\w.=-]+ )* ) \s+
    "(?: %~?dp0%? | \$basedir ) [\\/]+ (?P<script> [^"\n]+ \.[cm]?js )" \s+
    (?: %\* | "\$@" | \$args )""",
    re.VERBOSE,
)
"""How npm and pnpm start a script in their files for cmd.exe, sh and PowerShell."""


def start_words(program: Path, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the words with which the command that starts the CLI at `program` begins.

    On Windows, they name Node.js and a script, unless the CLI is an .exe file. Raises CliNotFound.
    """
    ending = program.suffix.lower()
    if sys.platform != "win32" or ending == ".exe":
        return [str(program)]
    options, script = ([], program) if ending in _SCRIPTS else _started_script(program)
    beside = program.parent / "node.exe"
    node = str(beside) if is_file(beside) else find_program("node.exe", environ)
    if node is None:
        raise CliNotFound(f"{program} needs Node.js, which is not on PATH")
    return [node, *options, str(script)]


def _started_script(shim: Path) -> tuple[list[str], Path]:
    """Return the options for Node.js and the script in a file that npm wrote to start it."""
    try:
        text = read_small(shim, _LARGEST).decode()
    except (OSError, UnicodeDecodeError):
        text = ""
    starts = {(start["options"], start["script"]) for start in _START.finditer(text)}
    if len(starts) == 1:
        options, name = starts.pop()
        script = Path(os.path.abspath(shim.parent / name.replace("\\", "/")))  # noqa: PTH100
        if is_file(script):
            return options.split(), script
    raise CliNotFound(
        f"{shim} starts no script as npm's files do (GEMINI_CLI_PATH can be a script)"
    )
