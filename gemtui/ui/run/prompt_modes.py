"""The approval modes that a key in the prompt cycles through.

They are ask, auto_edit, plan and yolo.
"""

from __future__ import annotations

from dataclasses import replace

from gemtui.agent.options import AgentOptions
from gemtui.policy.model.rules import ApprovalMode

_ORDER = (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT, ApprovalMode.PLAN, ApprovalMode.YOLO)
CARRY_OUT = "Carry out the plan."
"""The prompt that makes a new run carry out a finished run's plan."""
ASK = "ask"
"""The name of Gemini CLI's default mode in runs that can ask the user."""


def mode_word(options: AgentOptions, usual: ApprovalMode) -> str:
    """Return the name of the next run's mode.

    `usual`: the mode of a run whose options set none. Gemini CLI's default mode is called `ask` if
    the run can ask the user; otherwise calls that need approval are denied, and it is called
    `default`.
    """
    mode = options.approval_mode or usual
    return ASK if mode is ApprovalMode.DEFAULT and options.ask else mode.value


def with_next_mode(options: AgentOptions, usual: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options with the next mode.

    `usual`: the mode of a run whose options set none. `can_ask`: whether the extension works, so
    that runs can ask the user. Even if it doesn't work, `ask` is one of the modes, because starting
    such a run offers to install the extension.
    """
    mode = options.approval_mode or usual
    if mode is ApprovalMode.DEFAULT and not options.ask:
        return replace(options, approval_mode=mode, ask=True)
    return in_mode(options, _ORDER[(_ORDER.index(mode) + 1) % len(_ORDER)], can_ask=can_ask)


def mode_named(options: AgentOptions, name: str, *, can_ask: bool) -> AgentOptions | None:
    """Return the options with the mode of this name, or None if there is no such mode.

    The names are those that `mode_word` returns. `can_ask`: whether runs can ask the user.
    """
    mode = ApprovalMode.DEFAULT.value if name == ASK else name.replace("-", "_")
    found = next((each for each in _ORDER if each.value == mode), None)
    return None if found is None else in_mode(options, found, can_ask=can_ask)


def in_mode(options: AgentOptions, mode: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options with this mode, asking the user where possible.

    In the default mode, the run asks in any case. In the other modes, it asks if `can_ask` is true:
    that is, if the extension works.
    """
    return replace(options, approval_mode=mode, ask=can_ask or mode is ApprovalMode.DEFAULT)


def options_for_plan(options: AgentOptions, *, can_ask: bool) -> AgentOptions:
    """Return the options for a run that carries out a plan.

    The run uses the folder in which the plan was made, because it continues the same session. It
    asks for approval if it can; otherwise it may edit files without asking. `can_ask`: whether runs
    can ask the user.
    """
    mode = ApprovalMode.DEFAULT if can_ask else ApprovalMode.AUTO_EDIT
    return replace(in_mode(options, mode, can_ask=can_ask), worktree=False)
