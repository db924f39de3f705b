"""The policy in effect for a run on this machine, from policy files and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemtui.agent.cli_settings import CliSettings, admin_policy_files
from gemtui.agent.settings import settings_problems
from gemtui.agent.trust import folder_settings
from gemtui.errors import OptionError
from gemtui.files import is_file, path_exists
from gemtui.paths import current_folder
from gemtui.policy.engine.decide import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """A run's policy, and its sources.

    * `policy`: the rules of all files, in load order.
    * `setup`: everything else that affects decisions, such as settings.
    * `files`: the user's policy files that exist and those passed to the CLI.
    * `admin`: the policy files of the administrator.
    * `settings`: the settings that were read.
    * `problems`: settings files that can't be read, each with a suggested fix.
    """

    policy: Policy
    setup: Setup
    files: tuple[Path, ...]
    admin: tuple[Path, ...]
    settings: CliSettings
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
    """Return the policy of a run that gemtui would start with certain options.

    * `policies`: policy files to pass to the CLI.
    * `alone`: whether `policies` replace the user's own files, as with `gemini --policy`. If False,
      the user's own files come first. Without `policies`, this makes no difference.
    * `admin`: the values of `--admin-policy`.
    * `settings`: a file to use instead of the machine's merged settings.
    * `allowed_tools`: the values of `--allowed-tools`.
    * `workspace`: the run's folder, whose own settings are in effect if the folder is trusted.
    * `include_directories`: the other folders that the run's tools may use.

    Raises OptionError for a settings file that does not exist, and OSError for one that can't be
    read or isn't a settings file.
    """
    read = _settings(settings, workspace, environ)
    cwd = workspace or current_folder()
    own = () if alone and policies else filter(path_exists, read.user_policies(cwd))
    files = [*own, *policies]
    admins = admin_policy_files(admin or read.admin_policies(cwd))
    policy = Policy.load(files) + Policy.load(admins, tier=Tier.ADMIN)
    problems = () if settings is not None else settings_problems(environ, workspace)
    setup = Setup(
        settings=read.merged,
        allowed_tools=tuple(allowed_tools),
        workspace=workspace,
        include_directories=tuple(include_directories),
        stopped=next(iter(problems), None),
    )
    return EffectivePolicy(
        policy=policy, setup=setup, files=tuple(files), admin=tuple(admins), settings=read, problems=problems
    )


def _settings(only: Path | None, workspace: Path | None, environ: Mapping[str, str]) -> CliSettings:
    if only is not None:
        if not is_file(only):
            raise OptionError(f"{only} is not a settings file: give an existing one")
        return CliSettings.of_file(only, environ)
    return folder_settings(workspace, environ)
