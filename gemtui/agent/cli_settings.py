"""The CLI's settings for a run, merged from all settings files.

The merged values are the same as in the CLI. `CliSettings` also finds the files that contain a
given setting. All code that needs a setting reads it here, so that runs, the simulator, the editor
and the commands agree. See assets/gemini-cli.md#settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gemtui.agent.settings import load_settings, read_settings, settings_places, system_settings_path
from gemtui.files import is_file, path_exists
from gemtui.paths import gemini_home, setting_paths
from gemtui.policy.file.policy_files import SkipReason, policy_entries
from gemtui.policy.model.rules import ApprovalMode

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
    def read(cls, environ: Mapping[str, str], project: Path | None, *, expand: bool = True) -> CliSettings:
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
            if (value := at(file.values, *names)) is not None:
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
        known = ("auto_edit", "plan") if plans is None or plans else ("auto_edit",)
        return ApprovalMode(usual) if usual in known else ApprovalMode.DEFAULT


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
        if any(each.skipped is not SkipReason.CASE for each in policy_entries(system)):
            return [system]
    return [path for path in named if path_exists(path)]
