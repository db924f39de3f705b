"""What the CLI's policy engine decides on a call, and why. `Engine` is for many calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemtui.policy.engine.builtin import BUILTIN
from gemtui.policy.engine.evaluator import Evaluator
from gemtui.policy.engine.explain import explanation
from gemtui.policy.engine.results import Considered, Explanation, McpTool, Outcome, Setup
from gemtui.policy.engine.settings import fatal, setting_rules
from gemtui.policy.file.levels import approval_mode
from gemtui.policy.file.policy import Policy
from gemtui.policy.match.matching import kills
from gemtui.policy.model.rules import ApprovalMode, Call

__all__ = [
    "Considered",
    "Engine",
    "Explanation",
    "McpTool",
    "Outcome",
    "Setup",
    "decide",
]


class Engine:
    """One policy in one mode and setup, made ready for many calls."""

    def __init__(
        self,
        policy: Policy,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        interactive: bool = False,
        setup: Setup | None = None,
    ) -> None:
        setup = setup or Setup()
        self.mode, self.interactive = ApprovalMode(mode), interactive
        rules = (*policy.rules, *setting_rules(setup, interactive=interactive), *BUILTIN)
        killing = (f"{field} is empty in a rule" for field in map(kills, rules) if field)
        stopped = fatal(setup, self.mode) or next(killing, None)
        self._judge = Evaluator(
            rules, mode=self.mode, interactive=interactive, setup=setup, stopped=stopped
        )
        self._other: Engine | None = None
        self._made_of = policy, setup

    def outcome(self, call: Call) -> Outcome:
        """The decision on one call."""
        return self._judge.outcome(call)

    def explain(self, call: Call) -> Explanation:
        """The decision on one call with its reasons."""
        return explanation(call, self._judge, self._counterpart()._judge)

    def _counterpart(self) -> Engine:
        """The same with somebody to ask, or with nobody."""
        if self._other is None:
            policy, setup = self._made_of
            self._other = Engine(
                policy, mode=self.mode, interactive=not self.interactive, setup=setup
            )
        return self._other


def decide(
    policy: Policy,
    call: Call | Mapping[str, Any],
    mode: ApprovalMode | str = ApprovalMode.DEFAULT,
    interactive: bool = False,
    *,
    setup: Setup | None = None,
) -> Explanation:
    """What the CLI would do with `call` under `policy`, and why.

        decide(Policy.load("work.toml"), Call("glob", {"pattern": "*.py"})).decision

    `call`: a Call, or a mapping as `Call.of` takes it. `mode`: default, auto_edit (or autoEdit, as
    in rules), plan, yolo. `interactive`: somebody can be asked. `setup`: settings, flags and
    servers that take part; None = none. Only what is given here counts, and nothing of this
    machine; `Engine` is faster for many calls. OptionError for a mode or a call that is none.
    """
    engine = Engine(policy, mode=approval_mode(mode), interactive=interactive, setup=setup)
    return engine.explain(Call.of(call))
