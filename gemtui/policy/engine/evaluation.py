"""The decision on a call while it is being made: the rule, and what the engine added to it."""

from __future__ import annotations

from dataclasses import dataclass

from gemtui.policy.match.matching import CompiledRule
from gemtui.policy.model.rules import Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A decision. `ready`: the rule that decided; None = no rule, or not the rule alone.

    `matched`: the rule that matched first, if the engine then decided otherwise. `note`: why it
    did, a clause in plain words. `message`: what the CLI tells the model about a refusal, if that
    does not come from the rule. `stuck`: a pattern did not end, so that the CLI would not either;
    the note says which.
    """

    decision: Decision
    ready: CompiledRule | None = None
    matched: CompiledRule | None = None
    note: str = ""
    message: str | None = None
    stuck: bool = False
