"""The policy that is in force for a run on this machine: files in their order, and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemtui.agent.cli_settings import CliSettings
from gemtui.agent.settings import (
    load_settings,
    settings_problems,
    system_settings_path,
)
from gemtui.agent.trust import must_ask, remembered
from gemtui.errors import OptionError
from gemtui.files import is_file, is_there
from gemtui.paths import current_folder, gemini_home, setting_paths
from gemtui.policy.engine.decide import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """The policy of a run, and where it comes from.

    `policy`: the rules of all files, in load order. `files`: those that exist and take part, as
    they are named to the CLI; `admin`: those of the administrator's tier. `settings`: the files
    that were read. `problems`: settings files that can't be read, each with the way out.
    """

    policy: Policy
    setup: Setup
    files: tuple[Path, ...]
    admin: tuple[Path, ...]
    settings: tuple[Path, ...]
    problems: tuple[str, ...] = ()


def effective_policy(
    policies: Sequence[Path] = (),
    *,
    alone: bool = False,
    admin: Sequence[Path] = (),
    settings: Path | None = None,
    allowed_tools: Sequence[str] = (),
    workspace: Path | None = None,
    include_directories: Sequence[Path] = (),
    environ: Mapping[str, str] = os.environ,
) -> EffectivePolicy:
    """Return the policy of a run that gemtui would start with the files `policies`.

    `--policy` replaces the user's own files, so gemtui names these first; `alone`: as `gemini
    --policy` by itself has it. Without `policies` both mean a plain run. `admin`: as
    `--admin-policy`. `settings`: a file to use instead of the machine's merged settings.
    `workspace`: the run's folder, whose own settings count if it is trusted.
    `include_directories`: the other folders that its tools may use. Raises OptionError for a
    settings file that does not exist, OSError for one that can't be read or is no settings file.
    """
    read, merged = _settings(settings, workspace, environ)
    files = [*(() if alone and policies else _user_files(merged, workspace, environ)), *policies]
    admins = _admin_files(admin, merged, workspace, environ)
    policy = Policy.load(files) + Policy.load(admins, tier=Tier.ADMIN)
    problems = () if settings is not None else settings_problems(environ, workspace)
    setup = Setup(
        settings=merged,
        allowed_tools=tuple(allowed_tools),
        workspace=workspace,
        include_directories=tuple(include_directories),
        stopped=next(iter(problems), None),
    )
    return EffectivePolicy(
        policy=policy,
        setup=setup,
        files=tuple(files),
        admin=tuple(admins),
        settings=tuple(read),
        problems=problems,
    )


def _user_files(
    settings: Mapping[str, Any], workspace: Path | None, environ: Mapping[str, str]
) -> list[Path]:
    """The user's own: what the settings name, else the folder."""
    home = gemini_home(environ)
    named = setting_paths(settings.get("policyPaths"), home, workspace or current_folder()) or (
        home / "policies",
    )
    return [path for path in named if is_there(path)]


def _admin_files(
    given: Sequence[Path],
    settings: Mapping[str, Any],
    workspace: Path | None,
    environ: Mapping[str, str],
) -> list[Path]:
    """The system's folder; where it holds none, those that are named."""
    system = system_settings_path({}).parent / "policies"
    if any(system.glob("*.toml")):
        return [system]
    home = gemini_home(environ)
    named = given or setting_paths(
        settings.get("adminPolicyPaths"), home, workspace or current_folder()
    )
    return [path for path in named if is_there(path)]


# --- settings ------------------------------------------------------------------------------------


def _settings(
    only: Path | None, workspace: Path | None, environ: Mapping[str, str]
) -> tuple[list[Path], Mapping[str, Any]]:
    if only is not None:
        if not is_file(only):
            raise OptionError(f"{only} is no settings file: name one that is there")
        return [only], load_settings(only, environ)
    project = workspace if workspace is not None and _trusted(workspace, environ) else None
    found = CliSettings.read(environ, project)
    return [file.path for file in found.files], found.merged


def _trusted(folder: Path, environ: Mapping[str, str]) -> bool:
    return not must_ask(folder, environ) or remembered(folder, environ)


def _items(value: object) -> list[Any]:
    """A list as it is; one text is a list of one."""
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else []
