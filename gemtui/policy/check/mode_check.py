"""Rules that narrow nothing in one approval mode, since it allows the whole tool anyway."""

from __future__ import annotations

from collections.abc import Iterator

from gemtui.policy.check.finding_builder import findings, warned
from gemtui.policy.engine.decide import Engine
from gemtui.policy.engine.results import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Finding, Tier


def mode_findings(policy: Policy, mode: ApprovalMode, setup: Setup) -> tuple[Finding, ...]:
    """Return a warning for each rule that allows some calls of tools that are allowed whole.

    Asks an engine once for each tool: for a thread.
    """
    return tuple(_findings(policy, Engine(policy, mode=mode, setup=setup)))


def _findings(policy: Policy, engine: Engine) -> Iterator[Finding]:
    mode = engine.mode
    for rule in policy.rules:
        if rule.decision is not Decision.ALLOW or not rule.conditional or rule.tier is Tier.BUILTIN:
            continue
        if rule.mcp_name or rule.subagent or (rule.modes and mode.in_rules not in rule.modes):
            continue
        tools = [tool for tool in rule.tools if tool != "*"]
        if tools and all(engine.outcome(Call(tool)).decision is Decision.ALLOW for tool in tools):
            said = f"in mode {mode.value} it narrows nothing: every call of {tools[0]} is allowed"
            way_out = "add a rule of a lower priority that denies all other calls of the tool"
            draft = warned("decision", said, way_out, mode=mode)
            yield from findings([draft], rule.source, rule.index)
