"""Whether the next run of the run pane starts in a new git worktree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gemtui.agent.options import AgentOptions
from gemtui.paths import current_folder
from gemtui.worktree_records import worktree_of

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


def begins_worktree(options: AgentOptions) -> bool:
    """Return whether a run with these options starts in a worktree created for it."""
    return options.worktree and worktree_of(options.cwd or current_folder()) is None


def switched(app: AppBase, options: AgentOptions) -> AgentOptions:
    """Return the options with the worktree switched on or off, and report the change.

    In a worktree, the options stay as they are, because runs there always use that worktree.
    """
    here = worktree_of(options.cwd or current_folder())
    if here is not None:
        app.say(f"Runs here work in worktree {here.name}; ctrl+n leaves it.")
        return options
    if options.worktree:
        app.say("The next run works in the folder itself.")
    else:
        app.say("The next run works in a new git worktree; F7 lists them.")
    return replace(options, worktree=not options.worktree)
