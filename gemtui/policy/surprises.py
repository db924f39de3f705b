"""Where the engine does something else than a rule seems to say, and the form that does it."""

from __future__ import annotations

from gemtui.policy.rules import Finding, Rule


def surprises(rule: Rule) -> tuple[Finding, ...]:
    """What a person who wrote this rule hardly meant; all warnings, each with its way out."""
    raise NotImplementedError


def fixed(rule: Rule) -> Rule | None:
    """The rule in the form that does what was meant; None where there is none to be built."""
    raise NotImplementedError
