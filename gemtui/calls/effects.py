"""Predict what a tool call will do, whichever agent makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gemtui.agents import Agent
from gemtui.calls.effect import CallContext, Effect, effect
from gemtui.calls.effect_claude import claude_effect


def effect_of(tool: str, arguments: Mapping[str, Any], context: CallContext) -> Effect:
    """Predict a tool call's effect from its arguments, its context and the disk."""
    predict = claude_effect if context.agent == Agent.CLAUDE else effect
    return predict(tool, arguments, context)
