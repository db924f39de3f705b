"""Open the simulator's screens: try a call, replay past calls, suggest rules.

Each function runs in a worker of the policy pane, waits until its screen is closed, and returns
rules, which the pane adds to the draft in a single step. The screens themselves change the draft
only to save an example in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemtui.paths import current_folder
from gemtui.policy.model.rules import Call
from gemtui.ui.rules.draft import Draft
from gemtui.ui.simulator.call_scan import CallHistory
from gemtui.ui.simulator.simulation import Simulation, Taken

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


async def try_call(app: AppBase, draft: Draft, call: Call | None = None) -> Taken:
    """Show what a draft policy decides about a call, and why; return rules to add.

    `call`: the call to start with; None means an empty form.
    """
    from gemtui.ui.simulator.try_call import TryScreen

    simulation = _simulation(app, draft)
    return await app.push_screen_wait(TryScreen(simulation, _history(app), call=call)) or ()


async def replay_history(app: AppBase, draft: Draft) -> Taken:
    """Show what a draft policy decides about past calls; return rules to add."""
    from gemtui.ui.simulator.replay import ReplayScreen

    return await app.push_screen_wait(ReplayScreen(_simulation(app, draft), _history(app))) or ()


async def suggest_rules(app: AppBase, draft: Draft) -> Taken:
    """Suggest rules that would allow past sessions' calls; return those to add."""
    from gemtui.ui.simulator.suggest import SuggestScreen

    return await app.push_screen_wait(SuggestScreen(_simulation(app, draft), _history(app))) or ()


def _simulation(app: AppBase, draft: Draft) -> Simulation:
    return Simulation(draft, app.start.project or current_folder())


def _history(app: AppBase) -> CallHistory:
    return CallHistory(app.start.home, cache=app.start.cache, name_of=app.name_of)
