"""The CLI's settings: the files, whether the CLI reads them, and their merged values.

The merged values are the same as in the CLI. `CliSettings` also finds the files that contain a
given setting. All code that needs a setting reads it here, so that runs, the simulator, the editor
and the commands agree. See assets/gemini-cli.md#settings.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gemtui import system
from gemtui.agent.detect import is_older
from gemtui.errors import reason_of
from gemtui.files import is_file, path_exists, read_small, resolved
from gemtui.jsonfile import object_of, without_comments
from gemtui.paths import gemini_home, setting_paths
from gemtui.policy.file.policy_files import SkipReason, policy_entries
from gemtui.policy.model.rules import ApprovalMode

SETTINGS_VARIABLE = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"


CHECKED_SINCE = (0, 60)
"""The first CLI version that checks who can write to the machine's settings."""


def settings_unread(path: Path, *, version: str | None) -> str | None:
    """Return why the CLI would ignore the run's settings file at `path`, or None.

    Since 0.60 (seen in 0.61.0), the CLI reads a run's settings or the machine's only if root owns
    the file and every folder above it, and nobody else has write permission for them. So an
    ordinary user can't have settings for a single run, and even root can't have them under /tmp. A
    file that doesn't exist yet is treated as if the current user owned it. `version`: the CLI's
    version; None means unknown, which is treated as new.
    """
    if is_older(version, CHECKED_SINCE):
        return None
    if system.user() != 0 and not os.path.lexists(path):
        return "Gemini CLI accepts a settings file for a single run only if root owns the file"
    for folder in _on_the_way(path):
        reason = _unsafe(folder)
        if reason:
            return reason
    return None


def _on_the_way(path: Path) -> Iterator[Path]:
    """Yield the path and all its parents, first as written, then with links resolved."""
    named = path.absolute()
    real = resolved(path)
    yield from dict.fromkeys((named, *named.parents, real, *real.parents))


def _unsafe(path: Path) -> str | None:
    try:
        facts = path.stat()
        link = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path} can't be checked: {reason_of(error)}"
    if facts.st_uid != 0 or link.st_uid != 0:
        return f"{path} does not belong to root"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"users other than root can write to {path}"
    return None


def system_settings_path(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the path of the machine's settings, which the environment may override."""
    named = environ.get(SETTINGS_VARIABLE)
    if named:
        return Path(named)
    if platform == "darwin":
        return Path("/Library/Application Support/GeminiCli/settings.json")
    if platform == "win32":
        return Path("C:/ProgramData/gemini-cli/settings.json")
    return Path("/etc/gemini-cli/settings.json")


def settings_places(environ: Mapping[str, str], project: Path | None) -> list[Path]:
    """Return a run's settings files, in ascending order of priority.

    See assets/gemini-cli.md#settings. The machine's files are left out if the CLI ignores them.
    `project`: None leaves out the project's settings.
    """
    system = system_settings_path(environ)
    named = environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH")
    defaults = Path(named) if named else system.parent / "system-defaults.json"
    unread = {path for path in (defaults, system) if settings_unread(path, version=None)}
    home = gemini_home(environ)
    places = [defaults, home / "settings.json"]
    if project is not None and resolved(project) != resolved(home.parent):  # else read already
        places.append(project / ".gemini" / "settings.json")
    places.append(system)
    return [path for path in dict.fromkeys(places) if path not in unread]


def system_settings(environ: Mapping[str, str], *, version: str | None) -> dict[str, Any]:
    """Return the machine's settings, or {} if a CLI of this version ignores them."""
    path = system_settings_path(environ)
    return read_settings(path) if settings_unread(path, version=version) is None else {}


def read_settings(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a settings file like `load_settings`, but return {} if that fails."""
    with suppress(OSError):
        return load_settings(path, environ)
    return {}


def load_settings(path: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read one of the CLI's settings files, which may contain comments.

    `environ`: the values for `$NAME`, `${NAME}` and `${NAME:-default}` in strings (seen in 0.61.0);
    if None, variables are not replaced. Raises OSError, including when the file isn't a JSON
    object.
    """
    values = object_of(without_comments(read_small(path)), path)
    settings: dict[str, Any] = values if environ is None else _with_variables(values, environ)
    return settings


def settings_problems(environ: Mapping[str, str], project: Path | None = None) -> tuple[str, ...]:
    """Return a message, with a remedy, for each settings file that can't be read.

    `project`: a run's folder, whose own settings are checked as well. The values in the files are
    not checked.
    """
    places = [*settings_places(environ, project), gemini_home(environ) / "trustedFolders.json"]
    return tuple(problem for path in places if (problem := _problem(path)))


def _problem(path: Path) -> str | None:
    try:
        load_settings(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = f"{path} can't be read: {reason_of(error)}"
        return (
            f"{why}; Gemini CLI exits immediately because of it (exit code 52): repair or remove it"
        )
    return None


_VARIABLE = re.compile(r"\$(?:(\w+)|\{([^}]+?)(?::-([^}]*))?\})", re.ASCII)


def _with_variables(value: Any, environ: Mapping[str, str]) -> Any:
    """Replace variables in a setting's strings; unset variables are left unchanged."""

    def named(match: re.Match[str]) -> str:
        otherwise = match[0] if match[3] is None else match[3]
        return environ.get(match[1] or match[2], otherwise)

    if isinstance(value, str):
        return _VARIABLE.sub(named, value)
    if isinstance(value, list):
        return [_with_variables(item, environ) for item in value]
    if isinstance(value, dict):
        return {name: _with_variables(item, environ) for name, item in value.items()}
    return value


# --- merged settings ------------------------------------------------------------------------------


_UNIONS = frozenset({"exclude", "policyPaths", "adminPolicyPaths", "excludedEnvVars", "disabled"})
"""Settings whose lists are joined across all settings files, without duplicates.

For any other list, only the file with the highest priority counts.
"""
_HOOKS = "hooks"
"""The table whose lists are joined across files, because hooks of all files run."""
_WHOLE = "mcpServers"
"""The table whose entries are not merged across files.

Of several entries with the same name, only the one in the file with the highest priority counts.
"""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file; `values` is empty if the file can't be read."""

    path: Path
    values: Mapping[str, Any]


@dataclass(frozen=True)
class CliSettings:
    """A run's settings files, in ascending order of priority."""

    files: tuple[SettingsFile, ...]
    home: Path
    """The CLI's folder, which relative paths in settings refer to."""

    @classmethod
    def read(
        cls, environ: Mapping[str, str], project: Path | None, *, expand: bool = True
    ) -> CliSettings:
        """Read the settings of the machine, the user and, unless it is None, of a project.

        Callers use `gemtui.agent.trust.folder_settings`, which decides whether the project counts.
        `expand`: replace variables in strings with their values, as the CLI does.
        """
        places = [path for path in settings_places(environ, project) if is_file(path)]
        variables = environ if expand else None
        files = tuple(SettingsFile(path, read_settings(path, variables)) for path in places)
        return cls(files, gemini_home(environ))

    @classmethod
    def of_file(cls, path: Path, environ: Mapping[str, str]) -> CliSettings:
        """Return the settings of a single file. Raises OSError."""
        return cls((SettingsFile(path, load_settings(path, environ)),), gemini_home(environ))

    @cached_property
    def merged(self) -> Mapping[str, Any]:
        """The values of all files, merged."""
        merged: dict[str, Any] = {}
        for file in self.files:
            merged = _over(merged, file.values)
        return merged

    def get(self, *names: str) -> Any:
        """Return a setting's value, as in `get("tools", "core")`; None if unset."""
        return at(self.merged, *names)

    def each(self, *names: str) -> Iterator[tuple[Path, Any]]:
        """Yield each settings file that contains the setting, with its value in that file."""
        for file in self.files:
            value = at(file.values, *names)
            if value is not None:
                yield file.path, value

    def policy_paths(self, cwd: Path) -> tuple[Path, ...]:
        """Return the policy files named by `policyPaths`, for a run in `cwd`."""
        return setting_paths(self.get("policyPaths"), self.home, cwd)

    def user_policies(self, cwd: Path) -> tuple[Path, ...]:
        """Return the user's policy files for a run in `cwd`.

        These are the paths in the setting `policyPaths` or, if it is unset, the user's policy
        folder. The paths may not exist.
        """
        return self.policy_paths(cwd) or (self.home / "policies",)

    def added_folders(self, cwd: Path) -> tuple[Path, ...]:
        """Return the additional folders (`context.includeDirectories`) for a run in `cwd`."""
        return setting_paths(self.get("context", "includeDirectories"), self.home, cwd)

    def admin_policies(self, cwd: Path) -> tuple[Path, ...]:
        """Return the administrator's policy files, named by `adminPolicyPaths`."""
        return setting_paths(self.get("adminPolicyPaths"), self.home, cwd)

    @property
    def default_run_mode(self) -> ApprovalMode:
        """The approval mode of a run whose options don't set one; never yolo."""
        usual = self.get("general", "defaultApprovalMode")
        plans = self.get("general", "plan", "enabled")
        modes = ("auto_edit", "plan") if plans is None or plans else ("auto_edit",)
        return ApprovalMode(usual) if usual in modes else ApprovalMode.DEFAULT


def at(value: Any, *names: str) -> Any:
    """Look up `names` one after another in nested tables; None if one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _over(base: Mapping[str, Any], above: Mapping[str, Any], table: str = "") -> dict[str, Any]:
    merged = dict(base)
    for name, value in above.items():
        below = merged.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[name] = {**below, **value} if name == _WHOLE else _over(below, value, name)
        elif name in _UNIONS:
            added = (item for item in _items(value) if item not in _items(below))
            merged[name] = [*_items(below), *added]
        elif table == _HOOKS and isinstance(below, list):
            merged[name] = [*below, *_items(value)]
        else:
            merged[name] = value
    return merged


def _items(value: object) -> list[Any]:
    """Return the value as a list; a string becomes a list with one item."""
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []


def admin_policy_files(named: Sequence[Path]) -> list[Path]:
    """Return the administrator's policy files that are in effect.

    If the system's policy folder contains a name that ends in .toml, even of a link or a folder,
    the result is that folder. If it doesn't, the result is those paths among `named` that exist.
    `named`: the paths in `adminPolicyPaths`.
    """
    system = system_settings_path({}).parent / "policies"
    with suppress(OSError):
        if any(entry.skipped is not SkipReason.CASE for entry in policy_entries(system)):
            return [system]
    return [path for path in named if path_exists(path)]
