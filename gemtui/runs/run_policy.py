"""One run's policy: which tools it hides, and which rules deny calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Self

from gemtui.agent.command import ALLOWS, DENIES, GATE
from gemtui.agent.run_folder import Request
from gemtui.files import is_file
from gemtui.policy.engine.decide import Engine
from gemtui.policy.engine.setup import table_at
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import policy_files
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from gemtui.policy.model.tool_catalog import CLASSES
from gemtui.policy.words import rule_place
from gemtui.runs.effective_policy import EffectivePolicy, effective_policy
from gemtui.text import short_path

_OPTIONS = (DENIES, ALLOWS)
"""The names of the policy files that hold the rules from a run's own options."""


def policy_of_run(request: Request, environ: Mapping[str, str] = os.environ) -> tuple[EffectivePolicy, ApprovalMode]:
    """Return a run's policy and approval mode, as the CLI will load them.

    Raises OSError, OptionError.
    """
    environ, folder = {**environ, **request.environ}, Path(request.cwd)
    found = effective_policy(
        [path for path in _paths(request, "--policy=") if path.name != GATE],
        alone=True,
        workspace=folder,
        include_directories=_paths(request, "--include-directories="),
        environ=environ,
    )
    chosen = (request.about or {}).get("approval_mode")
    return found, ApprovalMode(chosen) if chosen else found.settings.default_run_mode


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
        replace(rule, interactive=None) if Path(rule.source).name in _OPTIONS else rule for rule in policy.rules
    )
    return replace(policy, rules=rules)


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
        asks = bool((request.about or {}).get("ask"))
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
        any_server = [f"mcp_{server}_*" for server in servers] or ["mcp_*"]
        for name in (*CLASSES, *any_server):
            outcome = self._engine.outcome(Call(name.replace("*", "some_tool")))
            if not outcome.found:
                found[name] = "" if outcome.rule is None else _words(outcome.rule)
        return found

    def _servers_tools(self, rule: Rule) -> Iterator[str]:
        """Yield patterns for the MCP servers' tools that a rule hides."""
        counts = not rule.modes or self._mode.in_rules in rule.modes
        if rule.decision is not Decision.DENY or rule.conditional or rule.subagent or not counts:
            return
        for tool in rule.tools:
            if rule.mcp_name is not None:
                yield f"mcp_{rule.mcp_name}_{tool}"
            elif tool.startswith("mcp_"):
                yield tool

    def denying(self, call: Call) -> str:
        """Return the rule of the user or administrator that denies a call, in words.

        Returns "" if there is none.
        """
        outcome = self._engine.outcome(call)
        denies = outcome.rule is not None and outcome.rule.decision is Decision.DENY
        return _words(outcome.rule) if denies and outcome.rule is not None else ""


def _words(rule: Rule) -> str:
    """Return a rule's place and file in words for the user; "" for a built-in rule."""
    if rule.tier < Tier.USER:
        return ""
    if Path(rule.source).name in _OPTIONS:
        return "the options of the run"
    return f"{rule_place(rule)} ({short_path(Path(rule.source))})" if rule.index else rule_place(rule)


def _files(place: Path) -> Iterator[Path]:
    yield from (place,) if is_file(place) else policy_files(place)
