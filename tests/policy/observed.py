"""The observed cases put before our engine: their files made in a folder, calls in their order.

A run's folder is made anew, and `/home/dev` in the recorded texts stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from gemtui.policy.engine.decide import Engine, Explanation, McpTool, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Tier
from tests.tools.observation.cases import Case
from tests.tools.observation.mcp import ANNOTATIONS

RECORDED_HOME = "/home/dev"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What our engine says of a case, in the words of the observation."""

    outcome: str
    offered: bool
    explained: Explanation


class Run:
    """The files of one recorded run, made under `home`."""

    def __init__(self, case: Case, home: Path) -> None:
        self.case, self.home = case, home
        self.project, self.store = home / "proj", home / ".gemini"
        self.policies = home / "policies"
        self.project.mkdir(parents=True)
        self._write(self.project, case.project_files)
        of_user = {name for given in case.given if given.kind == "user" for name in given.names}
        for name, text in case.files.items():
            self._write(self.store / "policies" if name in of_user else self.policies, {name: text})

    def _write(self, folder: Path, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(self.here(text.removeprefix("-> ")))
            else:
                path.write_bytes(self.here(text).encode())

    def here(self, text: str) -> str:
        """A recorded text with this run's folder in it."""
        return text.replace(RECORDED_HOME, str(self.home))

    def _here(self, value: Any) -> Any:
        return json.loads(self.here(json.dumps(value, ensure_ascii=False)))

    def setup(self) -> Setup:
        """Settings, flags and servers, as the case has them."""
        settings = self._here(dict(self.case.settings))
        flags = pairwise(self.case.flags)
        servers = settings.get("mcpServers", {})
        return Setup(
            settings=settings,
            allowed_tools=tuple(value for flag, value in flags if flag == "--allowed-tools"),
            mcp_tools=tuple(
                McpTool(server=server, name=name, annotations=hints)
                for server in servers
                for name, hints in ANNOTATIONS.items()
            ),
            workspace=self.project,
        )

    def policy(self) -> Policy:
        """All policy files of the run, as the CLI takes them together."""
        named: list[str] = []
        admin: list[str] = []
        for given in self.case.given:
            match given.kind:
                case "policy":
                    named += [str(self.policies / name) for name in given.names]
                case "policy_dir":
                    named.append(str(self.policies))
                case "policy_paths":
                    named += map(self.here, given.values)
                case "admin":
                    admin += [str(self.policies / name) for name in given.names]
        own = self.store / "policies"
        users = Policy.load(named or ([own] if own.exists() else []), folder=self.project)
        return users + Policy.load(admin, tier=Tier.ADMIN)

    def answers(self, cases: tuple[Case, ...]) -> tuple[Answer, ...]:
        """Our engine's word on the calls of this run, in their order; some change the mode."""
        setup = self.setup()
        policy = self.policy()
        engines: dict[ApprovalMode, Engine] = {}
        mode = ApprovalMode(self.case.mode)
        found: list[Answer] = []
        for case in cases:
            engine = engines.setdefault(
                mode, Engine(policy, mode=mode, interactive=case.interactive, setup=setup)
            )
            call = Call(tool=case.tool, args=self._here(dict(case.args)))
            found.append(_answer(engine, call, case.interactive))
            mode = _mode_after(case, found[-1], mode)
        return tuple(found)


def _answer(engine: Engine, call: Call, interactive: bool) -> Answer:
    said = engine.explain(call)
    quick = engine.outcome(call)
    both = ("decision", "offered", "rule", "found")
    assert [getattr(quick, name) for name in both] == [getattr(said, name) for name in both]
    outcome = {
        Decision.ALLOW: "allowed",
        Decision.DENY: "denied_by_policy",
        Decision.ASK_USER: "ask_user" if interactive else "needs_confirmation",
    }[said.decision]
    if not said.found:
        outcome = "not_offered"
    return Answer(outcome=outcome, offered=said.offered, explained=said)


def _mode_after(case: Case, answer: Answer, mode: ApprovalMode) -> ApprovalMode:
    """Headless, a call that may change the mode does; leaving plan mode ends in yolo."""
    if answer.outcome == "allowed" and not case.interactive:
        if case.tool == "enter_plan_mode":
            return ApprovalMode.PLAN
        if case.tool == "exit_plan_mode":
            return ApprovalMode.YOLO
    return mode
