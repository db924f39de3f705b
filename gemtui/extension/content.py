"""The extension's contents: the files in its folder, and the hooks they define.

One of the files is the script with which hooks start gemtui, to take checkpoints in CLI sessions.
It doesn't count for whether the files are up to date: a different installation of gemtui for the
same user may have written it, with its own program and settings.
"""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from gemtui.files import read_small, write_whole
from gemtui.jsonfile import read_object
from gemtui.jsonout import encode
from gemtui.paths import config_file, extension_dir, live_dir, make_own_folder
from gemtui.processes import FOLDER, finished, python
from gemtui.transcript.tools import tools_that_read
from gemtui.version import VERSION

NAME = "gemtui"
"""The name of the extension and of its hooks; settings can disable hooks by name."""
EVENTS = (
    "SessionStart",
    "BeforeAgent",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "Notification",
    "SessionEnd",
)
MARK = "gemtui: asks you before tool calls, shows which sessions work or wait, and saves sessions"
"""The extension's description, by which gemtui recognises its own extension."""
_MANIFEST, _SERVERS = "gemini-extension.json", "mcpServers"
_HOOK_LIMIT = 2_147_483_000
"""The time limit of a hook in milliseconds: 24 days.

The user may answer tomorrow or later. Larger values would overflow in the CLI.
"""
_REFUSAL = '{"decision":"deny","reason":"gemtui does not answer, so this call is denied"}'


def file_names() -> tuple[str, ...]:
    """Return the names of the extension's files, below its folder."""
    return (*content(Path()), _STARTER)


def content(folder: Path, *, mcp: bool = False) -> dict[str, bytes]:
    """Return the contents of the extension's files, by file name.

    `folder`: the folder from which the extension is installed; the hooks' commands name it. `mcp`:
    also provide an MCP server with which agents read stored sessions.
    """
    packaged = Path(__file__).with_name("files")
    manifest: dict[str, Any] = {"name": NAME, "version": VERSION, "description": MARK}
    if mcp:
        program, *arguments = python("-m", "gemtui", "mcp")
        manifest[_SERVERS] = {NAME: {"command": program, "args": arguments}}
    hooks = {event: [{"hooks": [_hook(event, folder)]}] for event in EVENTS}
    return {
        _MANIFEST: encode(manifest),
        "hooks/hooks.json": encode({"hooks": hooks}),
        **{name: (packaged / name).read_bytes() for name in ("hook.sh", "ask.py")},
    }


def _hook(event: str, folder: Path) -> dict[str, str | int]:
    return {
        "type": "command",
        "name": NAME,
        "command": command(event, folder),
        "timeout": _HOOK_LIMIT,
    }


def command(event: str, folder: Path) -> str:
    """Return the command of a Gemini CLI hook, which the CLI runs with `bash -c`.

    The CLI uses a hook's stdout or, if that is empty, its stderr, even if the hook was killed.
    Therefore, in a gated run (one that asks the user for approval), the command first writes a
    refusal to stderr, and only an answer on stdout can allow the call. There, the commands before
    and after a tool call also contain the whole program that asks. The CLI reads the command when
    it starts, so a program that replaces the extension's files later does not change what is asked.
    If the extension is removed while a session is running, the hook's script is missing; unless the
    session is a gated run, it then continues unaffected.
    """
    gated = _gated(event, folder) if event in ("BeforeTool", "AfterTool") else ":"
    return (
        f"hook={_quoted(folder / 'hook.sh')}; "
        f'if [ -n "$GEMTUI_GATE" ]; then {gated}; '
        """elif ! [ -r "$hook" ]; then echo '{}'; exit 0; fi; """
        f'exec sh "$hook" {event} "$PPID" 2>/dev/null'
    )


def _gated(event: str, folder: Path) -> str:
    """Return the part of a command that asks about a tool call, or tells of its end; it exits."""
    asks = _quoted((Path(__file__).with_name("files") / "ask.py").read_text())
    live = _quoted(folder.parent / live_dir().name)
    asks = f'exec 2>/dev/null; "$GEMTUI_PYTHON" -I -S -c {asks} {live} "$PPID"'
    if event == "BeforeTool":
        return f"printf %s '{_REFUSAL}' >&2; {asks} || exit 2; exit 0"
    return f"{asks} || echo '{{}}'; exit 0"


def _quoted(text: str | Path) -> str:
    """Quote a text for the shell, separating `$` from the name that follows it.

    Otherwise the CLI would replace `${…}` and `$GEMINI_…` in the command.
    """
    return shlex.quote(str(text)).replace("$", "$''")


def offers_mcp(folder: Path) -> bool:
    """Return whether the extension in `folder` provides the MCP server for sessions."""
    with suppress(OSError):
        return bool(read_object(folder / _MANIFEST).get(_SERVERS))
    return False


def write(*, mcp: bool | None = None) -> None:
    """Write the extension's files, and create the folder for live files.

    Live files are the small files in which hooks report the state of CLI sessions. `mcp`: whether
    the extension provides the MCP server that reads sessions; None keeps it as it is. Raises
    OSError.
    """
    make_own_folder(live_dir())
    write_to(extension_dir(), mcp=offers_mcp(extension_dir()) if mcp is None else mcp)


def write_to(folder: Path, *, mcp: bool = False) -> None:
    """Write the extension's files to a folder, creating the folder. Raises OSError."""
    for name, data in content(folder, mcp=mcp).items():
        path = folder / name
        make_own_folder(path.parent)
        write_whole(path, [data])
    write_whole(folder / _STARTER, [_starter()])


def is_current(folder: Path) -> bool:
    """Return whether the files in `folder` match this version of gemtui. Never raises."""
    try:
        wanted = content(folder, mcp=offers_mcp(folder))
        return all(read_small(folder / name) == data for name, data in wanted.items())
    except OSError:
        return False


# --- script that starts gemtui --------------------------------------------------------------------

_STARTER = "checkpoint.sh"
"""The file in the extension's folder that `hook.sh` sources."""
_MODULE = "gemtui.runs.undo.hooked_checkpoints"
_CONFIG, _PROGRAM = "config", "program"
_LOAD_LIMIT = 20.0
"""The time limit, in seconds, for Python to load gemtui."""


def _starter() -> bytes:
    """Return the script with which hooks take checkpoints.

    The script contains the path of gemtui's settings and the command to run.
    """
    program, *arguments = python("-m", _MODULE)
    return "\n".join(
        (
            f"{_CONFIG}={shlex.quote(str(config_file()))}",
            f"{_PROGRAM}={shlex.quote(program)}",
            f"reads={shlex.quote(' '.join(['', *tools_that_read(), '']))}",
            (
                f'take() {{ cd {shlex.quote(FOLDER)} && "${_PROGRAM}" {shlex.join(arguments)} "$1" '
                f'"${_CONFIG}" "$2"; }}'
            ),
            "",
        )
    ).encode()


def starter_problem(folder: Path) -> str | None:
    """Return why the hooks of the extension in `folder` take no checkpoints, or None.

    If the hooks name a different Python from this one, that Python is run to check it. Never
    raises.
    """
    try:
        data = read_small(folder / _STARTER)
    except OSError:
        return f"{folder / _STARTER} can't be read"
    values = _values(data.decode("utf-8", "surrogateescape"))
    config, program = values.get(_CONFIG, ""), values.get(_PROGRAM, "")
    if Path(config) != config_file():
        return f"its hooks read the settings in {config}, not in {config_file()}"
    if data == _starter():
        return None
    if "\0" in program or not (Path(program).is_absolute() and os.access(program, os.X_OK)):
        return f"{program}, the Python that its hooks start, no longer exists"
    if not _has_gemtui(program):
        return f"{program}, the Python that its hooks start, can't load gemtui"
    return None


def _values(text: str) -> dict[str, str]:
    """Return the variables that the shell would set when sourcing `text`."""
    values = {}
    for line in text.split("\n"):
        name, sign, value = line.partition("=")
        with suppress(ValueError):
            if sign and name.isidentifier():
                values[name] = "".join(shlex.split(value)[:1])
    return values


def _has_gemtui(program: str) -> bool:
    importing = finished([program, "-P", "-c", f"import {_MODULE}"], _LOAD_LIMIT)
    return importing is not None and importing.returncode == 0
