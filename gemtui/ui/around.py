"""What the policy pane opens around itself: try a call, replay history, suggest rules.

Each is called in a worker of the pane and may wait for screens (`push_screen_wait`). None of them
changes the draft: rules that a person took come back, and the pane adds them as one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemtui.policy.rules import Rule
from gemtui.ui.policies import Draft

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp

Taken = tuple[Rule, ...]
"""Rules that the person took; () = none."""


async def try_call(app: GemtuiApp, draft: Draft) -> Taken:
    """What would happen to one tool call, and why."""
    del draft
    app.say("Not there yet.")
    return ()


async def replay(app: GemtuiApp, draft: Draft) -> Taken:
    """The tool calls of past sessions under this policy."""
    del draft
    app.say("Not there yet.")
    return ()


async def suggest(app: GemtuiApp, draft: Draft) -> Taken:
    """Rules that would allow what past sessions did."""
    del draft
    app.say("Not there yet.")
    return ()
