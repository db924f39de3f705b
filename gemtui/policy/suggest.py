"""Rules that would allow what agents did and succeeded with, each with its evidence.

Nothing is applied: a person reads them and takes what they want.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemtui.policy.decide import Setup
from gemtui.policy.policy import Policy
from gemtui.policy.recorded import Recorded, Reference
from gemtui.policy.rules import ApprovalMode, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A rule and what speaks for it.

    `calls` in `sessions` sessions would be allowed by it that are not allowed now; `examples`: three
    of them. `opens`: what else it would allow, in words.
    """

    rule: Rule
    calls: int
    sessions: int
    examples: tuple[Reference, ...]
    opens: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Calls for which no rule is proposed. `what`: a prefix, a folder, a tool; `why`: a sentence."""

    what: str
    why: str
    calls: int
    examples: tuple[Reference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestions:
    """`calls`: all that were read; `succeeded` of them did; `allowed` of those need no rule.

    `suggestions` and `left_out`: most calls first.
    """

    calls: int
    succeeded: int
    allowed: int
    suggestions: tuple[Suggestion, ...]
    left_out: tuple[LeftOut, ...]


class Evidence:
    """Recorded calls, taken in as they come; `suggest` may be asked for at any time."""

    def __init__(
        self,
        policy: Policy,
        *,
        mode: ApprovalMode = ApprovalMode.DEFAULT,
        interactive: bool = False,
        setup: Setup | None = None,
    ) -> None:
        raise NotImplementedError

    def feed(self, calls: Iterable[Recorded]) -> None:
        """Take these calls in."""
        raise NotImplementedError

    def suggest(self) -> Suggestions:
        """The rules that the calls so far speak for."""
        raise NotImplementedError


def suggest(
    calls: Iterable[Recorded],
    policy: Policy,
    *,
    mode: ApprovalMode = ApprovalMode.DEFAULT,
    interactive: bool = False,
    setup: Setup | None = None,
) -> Suggestions:
    """The smallest set of allow rules, beside `policy`, for what these calls did."""
    evidence = Evidence(policy, mode=mode, interactive=interactive, setup=setup)
    evidence.feed(calls)
    return evidence.suggest()
