"""Predict what a tool call will do, whichever agent makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gemtui.agents import Agent
from gemtui.calls.effect import EDIT, CallContext, Effect, EffectKind, effect
from gemtui.calls.effect_claude import claude_effect

ANNOUNCED = "this is as Qwen Code announces it; the file is compared after the call"


def effect_of(tool: str, arguments: Mapping[str, Any], context: CallContext) -> Effect:
    """Predict a tool call's effect from its arguments, its context and the disk."""
    if context.agent == Agent.QWEN:
        return _qwen_effect(tool, arguments, context)
    predict = claude_effect if context.agent == Agent.CLAUDE else effect
    return predict(tool, arguments, context)


def _qwen_effect(tool: str, arguments: Mapping[str, Any], context: CallContext) -> Effect:
    """Predict a call of Qwen Code as that of Gemini CLI, whose tools it has."""
    named = dict(arguments)
    if tool == "edit":
        named["allow_multiple"] = named.pop("replace_all", False)
    does = effect(EDIT if tool == "edit" else tool, named, context)
    if does.kind is not EffectKind.FILE:
        return replace(does, arguments=dict(arguments))
    return replace(
        does,
        tool=tool,
        arguments=dict(arguments),
        certain=does.certain and does.arguments == named,
        remarks=(*does.remarks, ANNOUNCED),
    )
