"""The extension's contents: the files in its folder, and the hooks they define."""

from __future__ import annotations

import shlex
from contextlib import suppress
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from gemtui.extension.starter import STARTER, starter
from gemtui.files import read_small, write_whole
from gemtui.jsonfile import read_object
from gemtui.jsonout import encode
from gemtui.paths import extension_dir, live_dir, make_own_folder
from gemtui.processes import python

NAME = "gemtui"
"""The name of the extension and of its hooks; settings can disable hooks by name."""
EVENTS = ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "Notification", "SessionEnd")
MARK = "gemtui: asks you before tool calls, shows which sessions work or wait, and saves sessions"
"""The extension's description, by which gemtui recognises its own extension."""
_MANIFEST, _SERVERS = "gemini-extension.json", "mcpServers"
_LONGEST = 2_147_483_000
"""The time limit of a hook in milliseconds: 24 days.

The user may answer tomorrow or later. Larger values would overflow in the CLI.
"""
_REFUSAL = '{"decision":"deny","reason":"gemtui does not answer, so this call is denied"}'


def content(folder: Path, *, mcp: bool = False) -> dict[str, bytes]:
    """Return the contents of the extension's files, by file name.

    `folder`: the folder from which the extension is installed; the hooks' commands name it. `mcp`:
    also provide an MCP server with which agents read stored sessions.
    """
    packaged = files("gemtui.extension") / "files"
    manifest: dict[str, Any] = {"name": NAME, "version": version("gemtui"), "description": MARK}
    if mcp:
        program, *words = python("-m", "gemtui", "mcp")
        manifest[_SERVERS] = {NAME: {"command": program, "args": words}}
    hooks = {event: [{"hooks": [_hook(event, folder)]}] for event in EVENTS}
    return {
        _MANIFEST: encode(manifest),
        "hooks/hooks.json": encode({"hooks": hooks}),
        **{name: (packaged / name).read_bytes() for name in ("hook.sh", "ask.py")},
    }


def _hook(event: str, folder: Path) -> dict[str, str | int]:
    return {"type": "command", "name": NAME, "command": command(event, folder), "timeout": _LONGEST}


def command(event: str, folder: Path) -> str:
    """Return the command of a Gemini CLI hook, which the CLI runs with `bash -c`.

    The CLI uses a hook's stdout or, if that is empty, its stderr, even if the hook was killed.
    Therefore, in a gated run (one that asks the user for approval), the command first writes a
    refusal to stderr, and only an answer on stdout can allow the call. If the extension is removed
    while a session is running, the hook's script is missing; unless the session is a gated run, it
    then continues unaffected.
    """
    gated = f"printf %s '{_REFUSAL}' >&2" if event == "BeforeTool" else ":"
    return (
        f"hook={_quoted(folder / 'hook.sh')}; "
        f'if [ -n "$GEMTUI_GATE" ]; then {gated}; '
        """elif ! [ -r "$hook" ]; then echo '{}'; exit 0; fi; """
        f'exec sh "$hook" {event} "$PPID" 2>/dev/null'
    )


def _quoted(path: Path) -> str:
    """Quote a path for the shell, separating `$` from the name that follows it.

    Otherwise the CLI would replace `${…}` and `$GEMINI_…` in the command.
    """
    return shlex.quote(str(path)).replace("$", "$''")


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
    write_whole(folder / STARTER, [starter()])


def is_current(folder: Path) -> bool:
    """Return whether the files in `folder` match this version of gemtui. Never raises."""
    try:
        wanted = content(folder, mcp=offers_mcp(folder))
        return all(read_small(folder / name) == data for name, data in wanted.items())
    except OSError:
        return False
