"""Whether a CLI that waits for its prompt is still as if it were started now.

Gemini CLI reads these files when it starts, before its prompt: its settings, policies, extensions,
agents and context files, the names of the project's files, and the session that it resumes.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import psutil

from gemtui.agent import trust
from gemtui.agent.command import Machine
from gemtui.agent.detect import is_older
from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Request
from gemtui.agent.settings import admin_policy_files, settings_places
from gemtui.calls.env_files import env_files
from gemtui.extension.status import source_of
from gemtui.extension.watch import hook_files
from gemtui.files import stat_if_possible
from gemtui.kept.run_copies import session_files
from gemtui.paths import config_file, current_folder, gemini_home
from gemtui.sessions.store.store import Store

OLDEST = (0, 61)
"""The first version of Gemini CLI that is known to wait for the rest of its prompt."""
_LEAST_MEMORY = 1024**3
"""The free memory, in bytes, with which a CLI may be started before it is needed."""
_DEPTH = 4
"""How many folders deep Gemini CLI's own folders are looked through."""
_MOST = 2000
"""How many names in the project are compared; Gemini CLI tells the model at most 200."""
_NOT_ENTERED = frozenset((".gemini", ".git", "dist", "node_modules"))
_WRITTEN_BY_CLI = frozenset(
    (
        "tmp",
        "history",
        "node_modules",
        "google_accounts.json",
        "installation_id",
        "oauth_creds.json",
        "projects.json",
        "projects.json.lock",
        "state.json",
    )
)
"""Names in `~/.gemini` that every session may change."""
_CONTEXT = (".md", "ignore", ".env")
"""How the names of files end that Gemini CLI reads anywhere in a project."""


def can_wait(options: AgentOptions, version: str | None, environ: Mapping[str, str]) -> bool:
    """Return whether a CLI can be started with these options before there is a prompt.

    `version`: the CLI's version; None if unknown. A session can't be resumed in the minute after
    which its file is named: its only file would seem to be empty until the prompt is sent
    (assets/gemini-cli.md#ghosts).
    """
    is_known = sys.platform != "win32" and is_older(version, OLDEST) is False
    if not is_known or options.worktree or options.prompt_in_argv or options.sandbox:
        return False
    if options.resume is not None:
        minute = f"{datetime.now(UTC):%Y-%m-%dT%H-%M}"
        home = gemini_home({**environ, **options.environment})
        if any(minute in file.path.name for file in session_files(Store(home), options.resume)):
            return False
    return psutil.virtual_memory().available >= _LEAST_MEMORY


class LoadedFiles:
    """The state of the files that a CLI reads when it starts; create it before the CLI starts."""

    def __init__(self, request: Request, options: AgentOptions, machine: Machine) -> None:
        self._cwd = options.cwd or current_folder()
        self._options, self._machine = options, machine
        self._environ = {**machine.environ, **request.environ}
        self._home = gemini_home(self._environ)
        self._session = "" if options.resume else request.about.get("session_id") or ""
        self._has_session = False
        resumed = session_files(Store(self._home), options.resume) if options.resume else ()
        self._resumed = tuple(file.path for file in resumed)
        named = machine.settings.get("context", "fileName") or ()
        self._context = (*_CONTEXT, *([named] if isinstance(named, str) else map(str, named)))
        self._before = self._state()

    def changed(self) -> bool:
        """Return whether a CLI that was started now might read something else. Blocking."""
        return self._state() != self._before or self._has_lost_session()

    def _has_lost_session(self) -> bool:
        """Return whether the file of the new session is gone; another CLI may have removed it."""
        if not self._session:
            return False
        exists = any(session_files(Store(self._home), self._session))
        self._has_session = self._has_session or exists
        return self._has_session and not exists

    def _state(self) -> object:
        files = [(str(path), _stamp(path)) for path in self._files()]
        folders = list(self._folders())
        identities = [_identity(folder) for folder in folders]  # a CLI stays in a moved folder
        names = [name for folder in folders for name in self._names(folder)]
        return date.today(), files, identities, names

    def _folders(self) -> Iterator[Path]:
        yield self._cwd
        yield from self._options.include_directories
        yield from self._machine.settings.added_folders(self._cwd)

    def _files(self) -> Iterator[Path]:
        cwd, machine = self._cwd, self._machine
        yield from (machine.cli, config_file(), trust.trusted_folders_file())
        yield from settings_places(self._environ, cwd)
        yield from env_files(cwd, self._environ)
        yield from hook_files(self._environ)
        yield from self._resumed
        policies = (*machine.user_policies, *self._options.policies)
        admin = admin_policy_files(machine.settings.admin_policies(cwd))
        yield from _below((*policies, *admin))
        yield from _below((self._home, cwd / ".gemini"))
        for extension in _entries(self._home / "extensions"):
            yield from _below(filter(None, [source_of(Path(extension.path))]))
        for folder in cwd.parents:
            for entry in _entries(folder):
                if entry.name.endswith(self._context):
                    yield Path(entry.path)

    def _names(self, root: Path) -> Iterator[tuple[str, object]]:
        """Yield the names in a project's folders, and when its context files were changed.

        The folders are read in Gemini CLI's order, the upper ones first.
        """
        folders, count = deque([str(root)]), 0
        while folders and count < _MOST:
            for entry in _entries(folders.popleft()):
                count += 1
                is_context = entry.name.endswith(self._context)
                yield entry.path, _stamp(Path(entry.path)) if is_context else None
                if entry.is_dir(follow_symlinks=False) and entry.name not in _NOT_ENTERED:
                    folders.append(entry.path)


def _identity(path: Path) -> tuple[int, int] | None:
    facts = stat_if_possible(path, follow=True)
    return None if facts is None else (facts.st_dev, facts.st_ino)


def _stamp(path: Path) -> tuple[int, ...] | None:
    facts = stat_if_possible(path, follow=True)
    if facts is None:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, sorted by name; nothing if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def _below(places: Iterable[Path]) -> Iterator[Path]:
    """Yield files, and the files in folders, a few folders deep."""
    for place in places:
        if not place.is_dir():
            yield place
            continue
        depth = len(place.parts) + _DEPTH
        for folder, folders, files in os.walk(place):
            kept = [name for name in folders if name not in _WRITTEN_BY_CLI]
            folders[:] = sorted(kept) if len(Path(folder).parts) < depth else []
            yield from (Path(folder, name) for name in sorted(files) if name not in _WRITTEN_BY_CLI)
