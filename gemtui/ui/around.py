"""What the policy pane opens around itself: try a call, replay history, suggest rules.

Each is called in a worker of the pane and may wait for screens (`push_screen_wait`). None of them
changes the draft: rules that a person took come back, and the pane adds them as one step.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.policy.rules import Call, Rule
from gemtui.ui.past import Past
from gemtui.ui.policies import Draft
from gemtui.ui.trial import Trial

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp

Taken = tuple[Rule, ...]
"""Rules that the person took; () = none."""


async def try_call(app: GemtuiApp, draft: Draft, call: Call | None = None) -> Taken:
    """What would happen to one tool call, and why; `call`: the one to begin with."""
    from gemtui.ui.screens.try_call import TryScreen

    trial = _trial(app, draft)
    return await app.push_screen_wait(TryScreen(trial, _past(app), call=call)) or ()


async def replay(app: GemtuiApp, draft: Draft) -> Taken:
    """The tool calls of past sessions under this policy."""
    from gemtui.ui.screens.replay import ReplayScreen

    return await app.push_screen_wait(ReplayScreen(_trial(app, draft), _past(app))) or ()


async def suggest(app: GemtuiApp, draft: Draft) -> Taken:
    """Rules that would allow what past sessions did."""
    from gemtui.ui.screens.suggest import SuggestScreen

    return await app.push_screen_wait(SuggestScreen(_trial(app, draft), _past(app))) or ()


def _trial(app: GemtuiApp, draft: Draft) -> Trial:
    return Trial(draft, app.start.project or Path.cwd())


def _past(app: GemtuiApp) -> Past:
    return Past(app.start.home, cache=app.start.cache)
