"""Decide calls as the CLI's policy engine does.

`decide` is for a single call; an `Engine` is faster for many. `explanation.py` has the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from gemtui.policy.engine.added_rules import BUILTIN, BUILTIN_CHECKERS, FOREIGN, setting_rules
from gemtui.policy.engine.evaluator import Evaluator, ForeignEvaluator
from gemtui.policy.engine.explanation import explanation
from gemtui.policy.engine.setup import Considered, Explanation, McpTool, Outcome, Setup, fatal
from gemtui.policy.file.levels import rule_mode
from gemtui.policy.file.policy import Policy
from gemtui.policy.match.matching import kills
from gemtui.policy.model.foreign import call_of
from gemtui.policy.model.rules import ApprovalMode, Call

__all__ = ["Considered", "Engine", "Explanation", "McpTool", "Outcome", "Setup", "decide"]


class Engine:
    """A policy in one mode and setup, prepared for deciding many calls.

    Calls of other agents are decided without Gemini CLI's own rules and settings
    (assets/agents.md#policies).

    `interactive`: whether the CLI can ask the user. `setup`: the settings, flags and MCP servers to
    take into account; None means none.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        interactive: bool = False,
        setup: Setup | None = None,
    ) -> None:
        setup = setup or Setup()
        self.mode = ApprovalMode(mode)
        self.interactive = interactive
        self._policy, self._setup = policy, setup
        rules = (*policy.rules, *setting_rules(setup, interactive=interactive), *BUILTIN)
        checkers = (*policy.checkers, *BUILTIN_CHECKERS)
        stopped = fatal(setup, self.mode)
        for rule in (*rules, *(checker.rule for checker in checkers)):
            field = kills(rule)
            if field and not stopped:
                stopped = f"{field} is empty in a rule"
        self._evaluator = Evaluator(
            rules, checkers, mode=self.mode, interactive=interactive, setup=setup, stopped=stopped
        )

    @cached_property
    def _foreign(self) -> ForeignEvaluator:
        """The evaluator for other agents, for which Gemini CLI's rules and settings don't hold."""
        made_of, policy = self._setup, self._policy
        rules = (rule for rule in policy.rules if rule.source not in made_of.gemini_only)
        return ForeignEvaluator(
            (*rules, *FOREIGN),
            (each for each in policy.checkers if each.rule.source not in made_of.gemini_only),
            mode=self.mode,
            interactive=self.interactive,
            setup=Setup(
                workspace=made_of.workspace, include_directories=made_of.include_directories
            ),
            stopped=None,
        )

    def _evaluator_of(self, call: Call) -> Evaluator:
        return self._foreign if call.is_foreign else self._evaluator

    def outcome(self, call: Call) -> Outcome:
        """Return the decision for one call, without reasons; faster than `explain`."""
        return self._evaluator_of(call).outcome(call)

    def explain(self, call: Call) -> Explanation:
        """Return the decision for one call, with its reasons."""
        other = self._counterpart._evaluator_of(call)
        return explanation(call, self._evaluator_of(call), other)

    @cached_property
    def _counterpart(self) -> Engine:
        """An engine for the opposite kind of run: interactive, if this is headless.

        Policy, mode and setup are the same. For an interactive engine, the result is headless.
        """
        return Engine(
            self._policy, mode=self.mode, interactive=not self.interactive, setup=self._setup
        )


def decide(
    policy: Policy,
    call: Call | Mapping[str, Any],
    mode: ApprovalMode | str = ApprovalMode.DEFAULT,
    interactive: bool = False,
    *,
    setup: Setup | None = None,
) -> Explanation:
    """Return what the CLI would do with `call` under `policy`, and why.

        decide(Policy.load("work.toml"), Call("glob", {"pattern": "*.py"})).decision

    `call`: a Call, or a mapping that `call_of` accepts. `mode`: default, auto_edit (or autoEdit, as
    in rules), plan or yolo. `interactive`: whether the CLI can ask the user. `setup`: the settings,
    flags and servers to take into account; None means none, because nothing is read from this
    machine. Use `Engine` for many calls. Raises OptionError for an unknown mode or an invalid call.
    """
    engine = Engine(policy, mode=rule_mode(mode), interactive=interactive, setup=setup)
    return engine.explain(call_of(call))
