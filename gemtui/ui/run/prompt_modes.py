"""The modes that a key of the prompt cycles through: ask, auto_edit, plan, yolo."""

from __future__ import annotations

from dataclasses import replace

from gemtui.agent.options import AgentOptions
from gemtui.policy.model.rules import ApprovalMode

_ORDER = (
    ApprovalMode.DEFAULT,
    ApprovalMode.AUTO_EDIT,
    ApprovalMode.PLAN,
    ApprovalMode.YOLO,
)
CARRY_OUT = "Carry out the plan."
"""The prompt that carries out a plan."""
ASK = "ask"
"""The name of Gemini CLI's default mode in a supervised run."""


def mode_word(options: AgentOptions, usual: ApprovalMode) -> str:
    """Return the name of the next run's mode.

    `usual`: the mode of a run without a mode option. `ask` means Gemini CLI's default mode in a
    supervised run; without supervision, Gemini CLI denies calls that need an approval.
    """
    mode = options.approval_mode or usual
    return ASK if mode is ApprovalMode.DEFAULT and options.ask else mode.value


def next_mode(options: AgentOptions, usual: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options with the next mode.

    `can_ask`: whether the extension is installed. `ask` is included even without the extension,
    because starting such a run offers to install it.
    """
    mode = options.approval_mode or usual
    if mode is ApprovalMode.DEFAULT and not options.ask:
        return replace(options, approval_mode=mode, ask=True)
    return in_mode(options, _ORDER[(_ORDER.index(mode) + 1) % len(_ORDER)], can_ask=can_ask)


def mode_named(options: AgentOptions, name: str, *, can_ask: bool) -> AgentOptions | None:
    """Return the options in the mode with this name, or None if it is unknown.

    The names are those of `mode_word`.
    """
    mode = ApprovalMode.DEFAULT.value if name == ASK else name.replace("-", "_")
    found = next((each for each in _ORDER if each.value == mode), None)
    return None if found is None else in_mode(options, found, can_ask=can_ask)


def in_mode(options: AgentOptions, mode: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options in this mode, supervised whenever possible."""
    return replace(options, approval_mode=mode, ask=can_ask or mode is ApprovalMode.DEFAULT)


def options_for_plan(options: AgentOptions, *, can_ask: bool) -> AgentOptions:
    """Return the options for carrying out a plan.

    The run works in the folder where the plan was made, because it continues the plan's session. It
    asks if that is possible, and otherwise it may write files.
    """
    mode = ApprovalMode.DEFAULT if can_ask else ApprovalMode.AUTO_EDIT
    return replace(in_mode(options, mode, can_ask=can_ask), worktree=False)
