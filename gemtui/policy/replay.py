"""A policy over recorded calls: how many it would allow, ask about, deny, and by which rule.

A call is decided as the CLI of today would decide it under the name and with the arguments that
were recorded. Names are not translated, but for the one alias that the engine itself knows
(policy-engine, "Names"): a tool that the CLI no longer has is not offered, and is counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gemtui.policy.decide import Engine
from gemtui.policy.recorded import Recorded, Reference
from gemtui.policy.rules import Rule

KEPT = 200_000
"""References that a replay keeps, about 300 bytes each; calls beyond them are only counted."""


class Verdict(StrEnum):
    """What becomes of a call. Each call has one: they add up to all calls."""

    ALLOW = "allow"
    ASK_USER = "ask_user"
    """Refused headless."""
    DENY = "deny"
    NOT_OFFERED = "not_offered"
    """The model is not told of the tool: a call of it fails as not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The calls of one rule with one verdict. `rule`: None = no rule, the mode decided.

    `references`: in the order of the calls; fewer than `calls` beyond the bound.
    """

    rule: Rule | None
    verdict: Verdict
    calls: int
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The calls so far. `by_rule`: most calls first, then in the order of their first call.

    `unknown`: tools that the CLI of today does not have -> how many calls; they are among the
    counts, too.
    """

    calls: int
    allow: int
    ask_user: int
    deny: int
    not_offered: int
    by_rule: tuple[Share, ...]
    unknown: Mapping[str, int]


class Replay:
    """A replay that is fed as calls come; `tally` may be asked for at any time."""

    def __init__(self, engine: Engine, *, keep: int = KEPT) -> None:
        raise NotImplementedError

    def feed(self, calls: Iterable[Recorded]) -> None:
        """Decide on these calls, too."""
        raise NotImplementedError

    def tally(self) -> Tally:
        """What has come of all calls so far."""
        raise NotImplementedError


def replay(calls: Iterable[Recorded], engine: Engine, *, keep: int = KEPT) -> Tally:
    """What `engine` decides on all these calls."""
    run = Replay(engine, keep=keep)
    run.feed(calls)
    return run.tally()
