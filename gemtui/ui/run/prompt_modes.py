"""The modes that one key of the prompt goes through: ask, auto_edit, plan, yolo."""

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
"""The prompt that follows a plan."""
ASK = "ask"
"""The word for the CLI's default mode in a run that asks."""


def mode_word(options: AgentOptions, usual: ApprovalMode) -> str:
    """Return the mode of the next run in one word; `usual`: the mode of a run that names none.

    `ask` is the CLI's default mode in a run that asks the person; without that the CLI denies
    what needs an approval.
    """
    mode = options.approval_mode or usual
    return ASK if mode is ApprovalMode.DEFAULT and options.ask else mode.value


def next_mode(options: AgentOptions, usual: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options with the next mode; `can_ask`: the extension that asks is there.

    `ask` comes even without the extension: a run that starts then offers to install it.
    """
    mode = options.approval_mode or usual
    if mode is ApprovalMode.DEFAULT and not options.ask:
        return replace(options, approval_mode=mode, ask=True)
    return in_mode(options, _ORDER[(_ORDER.index(mode) + 1) % len(_ORDER)], can_ask=can_ask)


def mode_named(options: AgentOptions, name: str, *, can_ask: bool) -> AgentOptions | None:
    """Return the options in the mode of this name, as `mode_word` says it; None = no such mode."""
    mode = ApprovalMode.DEFAULT.value if name == ASK else name.replace("-", "_")
    found = next((each for each in _ORDER if each.value == mode), None)
    return None if found is None else in_mode(options, found, can_ask=can_ask)


def in_mode(options: AgentOptions, mode: ApprovalMode, *, can_ask: bool) -> AgentOptions:
    """Return the options in this mode; the person is asked wherever a run can ask."""
    return replace(options, approval_mode=mode, ask=can_ask or mode is ApprovalMode.DEFAULT)


def to_carry_out(options: AgentOptions, *, can_ask: bool) -> AgentOptions:
    """Return the options of the run that carries out a plan: it asks, or else may write files.

    It works where the plan was made, since it continues that session.
    """
    mode = ApprovalMode.DEFAULT if can_ask else ApprovalMode.AUTO_EDIT
    return replace(in_mode(options, mode, can_ask=can_ask), worktree=False)
