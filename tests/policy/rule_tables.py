"""Rules and calls in the tables of `tests/data/policy`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemtui.policy.file.rule_codec import read_rule
from gemtui.policy.model.rules import Call


def rule_or_call(fields: dict[str, Any]) -> Any:
    """What has a tool name is a rule, as in a policy file; what has a tool is a call. Others stay
    as they are.
    """
    if "toolName" in fields:
        rule = read_rule({"priority": 100, **fields})
        assert rule is not None
        return replace(rule, source="work.toml", index=1)
    return Call(**fields) if "tool" in fields else fields
