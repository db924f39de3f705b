"""A decision on its way: what the engine says of a call, and what it added to the rule."""

from __future__ import annotations

from dataclasses import dataclass

from gemtui.policy.match.matching import CompiledRule
from gemtui.policy.model.rules import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A decision. `ready`: the rule that answers for it; None = no rule, or not the rule alone.

    `matched`: the rule that matched first, where the engine made another decision of it. `note`:
    why it did, a clause in plain words. `message`: what the CLI tells the model beside a refusal,
    where that does not come from the rule. `stuck`: a pattern did not end, so the CLI would not
    either; the note tells which.
    """

    decision: Decision
    ready: CompiledRule | None = None
    matched: CompiledRule | None = None
    note: str = ""
    message: str | None = None
    stuck: bool = False
