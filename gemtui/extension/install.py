"""Install and remove the extension, and explain both to the user beforehand.

All changes in `~/.gemini` are made by the CLI itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import platformdirs

from gemtui import system
from gemtui.agent.detect import Detected, is_older
from gemtui.agent.npm_shim import start_words
from gemtui.errors import CliNotFound, ExtensionError, reason_of
from gemtui.extension.content import NAME, write
from gemtui.extension.status import ExtensionState, HookState, extension_state
from gemtui.files import is_folder
from gemtui.paths import (
    extension_dir,
    gemini_home,
    hooked_dir,
    live_dir,
    vault_dir,
)
from gemtui.processes import FOLDER, absolute_folders
from gemtui.text import clean_line, short_path

OLDEST = (0, 26)
"""The first version of Gemini CLI known to run extensions' hooks; 0.25 doesn't."""
LIMIT = 60.0
"""The time limit for a CLI command in seconds; about two seconds are usual."""
_LONGEST = 10_000
"""How many bytes of the CLI's output are read; the last line explains a failure."""


def install_extension(
    cli: Detected, environ: Mapping[str, str] = os.environ, *, mcp: bool | None = None
) -> ExtensionState:
    """Write the extension's files, and register the extension with the CLI if needed.

    `mcp`: whether the extension provides agents with an MCP server that reads stored sessions; None
    keeps it as it is. Returns the extension's state for a session in the current folder. Raises
    CliNotFound, ExtensionError, OSError.
    """
    system.require(system.Unported.EXTENSION)
    before = extension_state(environ)
    if before.state is HookState.FOREIGN:
        raise ExtensionError(str(before.problem))
    program = cli.program()
    _require_hooks(cli)
    if before.installed and not before.is_installed_here:
        remove_extension(cli, environ)
    write(mcp=mcp)
    try:
        if not before.is_installed_here:
            _run(program, ["link", str(before.folder), "--consent"], environ)
    finally:
        after = extension_state(environ)
        if not after.installed:
            _remove_ours(before)
    if not after.installed:
        raise ExtensionError("Gemini CLI did not install the extension, and gave no reason")
    return after


def _require_hooks(cli: Detected) -> None:
    """Raise ExtensionError for a CLI that is known to be too old."""
    if is_older(cli.version, OLDEST):
        oldest = ".".join(map(str, OLDEST))
        raise ExtensionError(
            f"Gemini CLI {cli.version} does not run hooks of extensions: update it to {oldest} or "
            "newer"
        )


def remove_extension(cli: Detected, environ: Mapping[str, str] = os.environ) -> ExtensionState:
    """Unregister the extension from the CLI, and remove its folder and live files.

    Live files are the small files in which hooks report the state of CLI sessions. Archived
    sessions are kept in the vault. Returns the state afterwards. Raises CliNotFound,
    ExtensionError, OSError.
    """
    before = extension_state(environ)
    if before.installed:
        program = cli.program()
        if before.is_installed_here:
            write()  # the CLI can only remove what it can load
        elif before.source is not None and not is_folder(before.source):
            raise ExtensionError(
                f"Gemini CLI can't remove the extension because {before.source} no longer exists: "
                f"delete {before.link} yourself"
            )
        _run(program, ["uninstall", NAME], environ)
    after = extension_state(environ)
    if after.installed:
        raise ExtensionError(f"Gemini CLI did not remove the extension: check {after.link}")
    _remove_ours(before)
    return after


def _remove_ours(state: ExtensionState) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(state.folder)
    for folder in (live_dir(), hooked_dir()):
        shutil.rmtree(folder, ignore_errors=True)  # a running hook may still write there


def _run(program: Path, words: list[str], environ: Mapping[str, str]) -> None:
    """Run `gemini extensions` with these arguments, in the home folder.

    Raises CliNotFound, ExtensionError.
    """
    what = f"gemini extensions {words[0]}"
    path = os.pathsep.join((os.fspath(program.parent), *absolute_folders(environ)))
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [*start_words(program, environ), "extensions", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=Path.home() if is_folder(Path.home()) else FOLDER,
                env={**environ, "PATH": path, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
                **system.DETACHED,
            )
        except OSError as error:
            raise CliNotFound(f"{program} can't be started: {reason_of(error)}") from error
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise ExtensionError(f"{what} took longer than {LIMIT:g} s: try again") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                system.kill_group(process.pid)
            process.wait()
        output.seek(0)
        lines = output.read(_LONGEST).decode(errors="replace").split("\n")
    if code != 0:
        why = clean_line(
            next((line for line in reversed(lines) if line.strip()), "no reason given")
        )
        raise ExtensionError(f"{what} failed with exit code {code}: {why}")


# --- what a person reads before ------------------------------------------------------------------

_WARNING = "Google does not vet, endorse, or guarantee the functionality or security of extensions."
"""A quote from the notice Gemini CLI shows when installing an extension."""


MCP = (
    "In every session in a trusted folder, agents can then search and read the stored sessions of "
    "that folder, using a read-only MCP server that gemtui starts. What a model reads there is "
    "sent wherever the model's other input goes."
)
"""The additional paragraph if the extension provides the MCP server for sessions."""


def before_install(environ: Mapping[str, str] = os.environ, *, mcp: bool = False) -> Iterator[str]:
    """Yield paragraphs about what the extension does, and what installing it changes.

    `mcp`: also provide agents with an MCP server that reads stored sessions.
    """
    yield (
        "With this extension, gemtui can ask you before a run acts, show which Gemini CLI "
        "sessions are working or waiting for you in any terminal and, if you turn that on, save "
        "sessions that Gemini CLI deletes."
    )
    yield (
        "Its hooks, shell scripts, run in every Gemini CLI session. In sessions that gemtui did "
        "not start, they take milliseconds and change nothing. They save the latest event, which "
        f"may contain part of a prompt or file, in {short_path(live_dir())}, readable only by "
        "you. If the setting “checkpoints” is “always”, they also take checkpoints of the folders "
        "that sessions work in. Nothing leaves this machine. Gemini CLI sometimes shows "
        f"“Executing Hook: {NAME}”; its setting hooksConfig.notifications turns that off."
    )
    if mcp:
        yield MCP
    yield from cached_program(environ)
    yield (
        f"gemtui writes the extension to {short_path(extension_dir())}. Under "
        f"{short_path(gemini_home(environ))}, Gemini CLI's own command `gemini extensions link` "
        f"writes extensions/{NAME}/.gemini-extension-install.json, "
        "extensions/extension-enablement.json, extension_integrity.json and "
        "gemini-credentials.json. Like any start of Gemini CLI in your home folder, it also "
        "writes projects.json, installation_id and one folder each in tmp and history."
    )
    yield f"Gemini CLI's warning about every extension: “{_WARNING}”"
    yield "To remove it again: gemtui extension remove"


def cached_program(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield a warning if the hooks would start a Python that a cache may lose.

    `uvx gemtui` and `pipx run gemtui` put it there.
    """
    program = Path(sys.executable)
    caches = [Path(platformdirs.user_cache_dir()), Path.home() / ".cache"]  # uv's is this on macOS
    caches += [Path(environ[name]) for name in ("UV_CACHE_DIR",) if environ.get(name)]
    is_of_pipx = ("pipx", ".cache") in pairwise(program.parts)
    if is_of_pipx or any(program.is_relative_to(cache) for cache in caches):
        yield (
            f"Checkpoints by hooks and `gemtui mcp` start {short_path(program)}, which lies in a "
            "cache that uv or pipx may empty: install gemtui first, with `uv tool install gemtui` "
            "or `pipx install gemtui`."
        )


def removal_notes(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield paragraphs about what removing the extension does, and what remains."""
    home = short_path(gemini_home(environ))
    yield (
        "Gemini CLI's own command `gemini extensions uninstall` deletes "
        f"{home}/extensions/{NAME}, then gemtui deletes {short_path(extension_dir())} and "
        f"{short_path(live_dir())}. Sessions that are running are not affected."
    )
    yield (
        f"Gemini CLI keeps the name {NAME} in {home}/extension_integrity.json, a signed file, "
        f"where it has no effect. The files in {short_path(vault_dir())} are kept."
    )
    yield (
        "Afterwards, gemtui can't ask you during a run, and shows less about sessions in other "
        "terminals."
    )
