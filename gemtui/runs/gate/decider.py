"""Decide the calls of agents other than Gemini CLI by gemtui's policies.

Such an agent asks gemtui before every call, and does what gemtui answers. So nothing but gemtui
stands between the model and the call: what no rule allows, and what can't be judged, is asked
(assets/agents.md#policies).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gemtui.agents import Agent
from gemtui.calls.effect import EDIT, SHELL, WRITE, Effect
from gemtui.errors import PolicyError
from gemtui.files import resolved
from gemtui.policy.engine.decide import Setup
from gemtui.policy.engine.refusals import own_path
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.foreign import UNSANDBOXED, in_folder, spelled
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Severity
from gemtui.policy.words import rule_place
from gemtui.runs.gate.policy import CallPolicy, Judgement, Way, denied, is_own


class AgentPolicy(CallPolicy):
    """Decides how a run of another agent handles its calls, by gemtui's policies alone.

    Gemini CLI's own rules and settings don't count. A policy in which Gemini CLI would ignore a
    rule is refused, because the rule may be one that denies.
    """

    env_files = ()

    def __init__(
        self,
        agent: Agent,
        policies: Iterable[Path],
        workspace: Path,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        include_directories: Iterable[Path] = (),
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Load the policies, which are files and folders of them.

        `workspace`: the run's folder; the agent may use it and `include_directories` without a
        question. Raises PolicyError.
        """
        files = tuple(policies)
        policy = Policy.load(files)
        for finding in policy.findings:
            if finding.severity is Severity.ERROR:
                raise PolicyError(f"{finding.file}: {finding.message}", path=Path(finding.file))
        setup = Setup(workspace=workspace, include_directories=tuple(include_directories))
        super().__init__(policy, setup, mode, environ, policies=files)
        self._agent = agent

    def judge(self, call: Call, effect: Effect | None = None) -> Judgement:
        """Return how to handle a call, which has the agent's own names; the way is never PASS."""
        return super().judge(self.spelled(call, effect), effect)

    def spelled(self, call: Call, effect: Effect | None) -> Call:
        """Return a call as rules see it; a command names its folder if that is not the run's."""
        call = spelled(self._agent, call.tool, call.args, call.subagent)
        folder = None if effect is None else effect.folder
        if folder is None or Path(folder) == self._workspace:
            return call
        return in_folder(call, folder)

    def _judge(self, call: Call, effect: Effect | None) -> Judgement:
        outcome = self._asked.outcome(call)
        if outcome.decision is Decision.DENY:
            return denied(self._asked.explain(call).message)
        if outcome.decision is Decision.ASK_USER:
            return Judgement(way=Way.ASK, why=self._asked.explain(call).because)
        why = self._why_ask(call, effect, outcome.rule)
        if why is not None:
            return Judgement(way=Way.ASK, why=why)
        place = rule_place(outcome.rule) if is_own(outcome.rule) else ""
        return Judgement(way=Way.THROUGH, rule=place)

    def _why_ask(self, call: Call, effect: Effect | None, rule: Rule | None) -> str | None:
        if self.mode is ApprovalMode.YOLO:
            return None
        if call.args.get(UNSANDBOXED):
            return "The command would run outside of the agent's sandbox."
        is_known = effect is not None and effect.path is not None
        if call.tool in (WRITE, EDIT) and not is_known:
            return "gemtui does not know which file this changes."
        if call.tool not in (SHELL, WRITE, EDIT) and not (is_own(rule) and rule.conditional):
            why = self._why_outside(call)
            if why is not None:
                return why
        return super()._why_ask(call, effect, rule)

    def _why_outside(self, call: Call) -> str | None:
        """Return why to ask about what a call reads, as a sentence; None if it is in the run."""
        names = [own_path(call.tool)]
        if call.tool == "glob":
            names.append("pattern")
        for name in names:
            path = call.args.get(name)
            if isinstance(path, str) and not self._is_inside(path):
                return "It reads outside of the run's folders."
        return None

    def _is_inside(self, path: str) -> bool:
        real = resolved(self._workspace / os.path.expanduser(path))  # noqa: PTH111
        return any(real.is_relative_to(folder) for folder in self._folders)
