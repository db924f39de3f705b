"""The policy in effect for a run on this machine, from policy files and settings.

`RunPolicy` answers questions about it: which tools the run hides, and which rules deny calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Self

from gemtui.agent.command import ALLOWS, DENIES, GATE
from gemtui.agent.run_folder import Request
from gemtui.agent.settings import CliSettings, admin_policy_files, settings_problems
from gemtui.agent.trust import folder_settings
from gemtui.errors import OptionError
from gemtui.files import is_file, path_exists
from gemtui.paths import current_folder
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.engine.setup import table_at
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import policy_files
from gemtui.policy.model.mcp_names import cli_name, rule_name, tool_patterns
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from gemtui.policy.model.tool_catalog import CLASSES
from gemtui.policy.words import rule_place
from gemtui.text import short_path


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
    own = () if alone and policies else tuple(filter(path_exists, read.user_policies(cwd)))
    files = [*own, *policies]
    admins = admin_policy_files(admin or read.admin_policies(cwd))
    for_gemini, chosen = Policy.load(own), Policy.load(policies)
    of_admin = Policy.load(admins, tier=Tier.ADMIN)
    policy = for_gemini + chosen + of_admin
    problems = () if settings is not None else settings_problems(environ, workspace)
    setup = Setup(
        settings=read.merged,
        allowed_tools=tuple(allowed_tools),
        workspace=workspace,
        include_directories=tuple(include_directories),
        home=read.home,
        stopped=next(iter(problems), None),
        gemini_only=_files_of(for_gemini + of_admin) - _files_of(chosen),
    )
    return EffectivePolicy(
        policy=policy,
        setup=setup,
        files=tuple(files),
        admin=tuple(admins),
        settings=read,
        problems=problems,
    )


def _files_of(policy: Policy) -> frozenset[str]:
    rules = (*policy.rules, *(checker.rule for checker in policy.checkers))
    return frozenset(rule.source for rule in rules)


def _settings(only: Path | None, workspace: Path | None, environ: Mapping[str, str]) -> CliSettings:
    if only is not None:
        if not is_file(only):
            raise OptionError(f"{only} is not a settings file: give an existing one")
        return CliSettings.of_file(only, environ)
    return folder_settings(workspace, environ)


OPTIONS_PLACE = "the options of the run"
"""The words for the place of rules that were made from a run's own options."""
_OPTIONS = (DENIES, ALLOWS)
"""The names of the policy files that hold the rules from a run's own options."""


def policy_of_run(
    request: Request, environ: Mapping[str, str] = os.environ
) -> tuple[EffectivePolicy, ApprovalMode]:
    """Return a run's policy and approval mode, as the CLI will load them.

    Raises OSError, OptionError.
    """
    environ, folder = {**environ, **request.environ}, Path(request.cwd)
    effective = effective_policy(
        [path for path in _paths(request, "--policy=") if path.name != GATE],
        alone=True,
        workspace=folder,
        include_directories=_paths(request, "--include-directories="),
        environ=environ,
    )
    chosen = request.about.get("approval_mode")
    return effective, ApprovalMode(chosen) if chosen else effective.settings.default_run_mode


def _paths(request: Request, flag: str) -> list[Path]:
    """Return the absolute paths passed to a run with a flag, such as `--policy=`."""
    words = (word.removeprefix(flag) for word in request.argv if word.startswith(flag))
    return [Path(request.cwd) / word for word in words]


def for_everybody(policy: Policy) -> Policy:
    """Return a policy in which the rules from a run's options always apply.

    These rules are written for headless runs only. Without this change, they would not apply when
    the policy is judged as if the CLI could ask the user.
    """
    rules = tuple(
        replace(rule, interactive=None) if Path(rule.source).name in _OPTIONS else rule
        for rule in policy.rules
    )
    return replace(policy, rules=rules)


@dataclass(frozen=True, slots=True)
class DecidingRule:
    """A rule that keeps a call from running.

    `place`: the rule's number and file, in words. `asks`: whether it requires approval; if not, it
    denies the call.
    """

    place: str
    asks: bool


class RunPolicy:
    """Answers questions about a run's policy that the CLI's output leaves open.

    `asks`: whether the run asks the user for approval.
    """

    def __init__(self, found: EffectivePolicy, mode: ApprovalMode, *, asks: bool = False) -> None:
        self._found, self._mode = found, mode
        policy = for_everybody(found.policy) if asks else found.policy
        self._engine = Engine(policy, mode=mode, interactive=asks, setup=found.setup)

    @classmethod
    def of(cls, request: Request, environ: Mapping[str, str] = os.environ) -> Self:
        """Load a run's policy. Raises OSError, OptionError."""
        asks = bool(request.about.get("ask"))
        return cls(*policy_of_run(request, environ), asks=asks)

    def is_older_than(self, time: datetime) -> bool:
        """Return whether no policy or settings file has changed since `time`.

        Raises OSError.
        """
        settings = [each.path for each in self._found.settings.files]
        places = (*self._found.files, *self._found.admin, *settings)
        files = [each for place in places for each in _files(place)]
        return all(each.stat().st_mtime <= time.timestamp() for each in files)

    def hidden(self) -> dict[str, str]:
        """Map each existing tool that this run hides to the rule that hides it.

        The rule is "" if the approval mode hides the tool. MCP servers' tools are given as
        patterns. If the CLI did not find a tool that is not in the result, the tool does not exist.
        """
        rules = self._found.policy.rules
        found = {tool: _words(rule) for rule in rules for tool in self._servers_tools(rule)}
        servers = table_at(self._found.setup.settings, "mcpServers")
        samples = {name: name for name in CLASSES}
        for server in servers:
            samples |= dict.fromkeys(tool_patterns(server), cli_name(server, "some_tool"))
        if not servers:
            samples["mcp_*"] = "mcp_some_tool"
        for pattern, sample in samples.items():
            outcome = self._engine.outcome(Call(sample))
            if not outcome.found:
                found[pattern] = f"the setting {outcome.setting}" if outcome.setting else ""
                if outcome.rule is not None:
                    found[pattern] = _words(outcome.rule)
        return found

    def _servers_tools(self, rule: Rule) -> Iterator[str]:
        """Yield patterns for the MCP servers' tools that a rule hides."""
        counts = not rule.modes or self._mode.in_rules in rule.modes
        if rule.decision is not Decision.DENY or rule.conditional or rule.subagent or not counts:
            return
        for tool in rule.tools:
            if rule.mcp_name is not None:
                yield rule_name(rule.mcp_name, tool)
            elif tool.startswith("mcp_"):
                yield tool

    def deciding(self, call: Call) -> DecidingRule | None:
        """Return the rule of the user or administrator that keeps a call from running.

        Returns None if there is none.
        """
        rule = self._engine.outcome(call).rule
        if rule is None or rule.decision is Decision.ALLOW or not (place := _words(rule)):
            return None
        return DecidingRule(place, asks=rule.decision is Decision.ASK_USER)


def _words(rule: Rule) -> str:
    """Return a rule's place and file in words for the user; "" for a built-in rule."""
    if rule.tier < Tier.USER:
        return ""
    if Path(rule.source).name in _OPTIONS:
        return OPTIONS_PLACE
    return (
        f"{rule_place(rule)} ({short_path(Path(rule.source))})" if rule.index else rule_place(rule)
    )


def _files(place: Path) -> Iterator[Path]:
    yield from (place,) if is_file(place) else policy_files(place)
