"""Carrying out, in the run pane, what the user has chosen on the worktrees screen."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from gemtui.agent.options import AgentOptions
from gemtui.text import counted
from gemtui.ui.run import actions
from gemtui.ui.run.worktrees_screen import Then, WorktreeChoice
from gemtui.worktree_records import origin_of

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase
    from gemtui.ui.run.live_run import LiveRun
    from gemtui.ui.run.registry import RunRegistry
    from gemtui.ui.run.screen import RunScreen


async def carry_out(app: AppBase, registry: RunRegistry, screen: RunScreen, wanted: WorktreeChoice) -> None:
    """Carry out the user's choice for a worktree: show its run, or start new ones."""
    if wanted.then is Then.EACH:
        await _start_each(app, registry, screen, wanted)
        return
    run = await registry.attach(wanted.runs[0]) if wanted.runs else None
    if run is None:
        screen.prepare(wanted.worktree.folder)
    else:
        screen.show_run(run)
    if wanted.prompt:
        screen.prompt.set_text(wanted.prompt)


async def _start_each(app: AppBase, registry: RunRegistry, screen: RunScreen, wanted: WorktreeChoice) -> None:
    """Send a worktree's first prompt once per variant, and show the first new run.

    Each run gets a new worktree and its variant's options (see `WorktreeChoice`).
    """
    worktree = wanted.worktree
    begun: list[LiveRun] = []
    first = wanted.runs[-1].folder if wanted.runs else None
    prompt = worktree.prompt if first is None else await asyncio.to_thread(first.prompt_text)
    folder = origin_of(worktree.folder)
    same = screen.options.cwd in (folder, worktree.folder)
    options = screen.options if same else AgentOptions(cwd=folder)
    for variant in wanted.variants:
        chosen = replace(options, cwd=folder, worktree=True, resume=None, **variant)
        run = await actions.start_run(app, registry, prompt or worktree.prompt, chosen, None)
        if run is None:
            break
        begun.append(run)
    if begun:
        screen.show_run(begun[0])
        app.show_message(f"Started {counted(len(begun), 'run')}. Press F7 to compare the results.")
