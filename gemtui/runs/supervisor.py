"""The program that supervises one run: its session, checkpoints and questions.

It is started as `python -m gemtui.runs.supervisor FOLDER`. Modules are imported only if the run
needs them, for example because it asks questions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.agent.run_folder import Request, RunFolder
from gemtui.agent.supervise import AfterRun, RunGate, RunKeeper, main
from gemtui.agents import Agent

if TYPE_CHECKING:
    from gemtui.runs.budget import RunBudget


def keeper_of(folder: RunFolder, request: Request) -> RunKeeper | None:
    """Return the object that protects a run's session and takes its checkpoints.

    The session is protected only if the run resumes it. Returns None if the run needs neither.
    """
    from gemtui.runs.undo.checkpointing import checkpoints_of

    keepers = (_session_keeper(folder, request), checkpoints_of(folder, request))
    found = [keeper for keeper in keepers if keeper is not None]
    return Keepers(found) if len(found) > 1 else next(iter(found), None)


def _session_keeper(folder: RunFolder, request: Request) -> RunKeeper | None:
    if not request.about.get("resume"):
        return None
    from gemtui.kept.resume_guard import SessionKeeper
    from gemtui.kept.run_copies import backup_of

    kept = backup_of(folder)
    return None if kept is None else SessionKeeper(folder, kept)


class Keepers:
    """Combines several keepers, which watch over a run's files, into one.

    All of them are called, even if one raises an error.
    """

    def __init__(self, keepers: Sequence[RunKeeper]) -> None:
        self._keepers = keepers

    def check(self) -> float:
        """Let each keeper check; return the seconds until the first of them is due again."""
        waits = list[float]()

        def let_look(keeper: RunKeeper) -> None:
            waits.append(keeper.check())

        with ExitStack() as stack:
            for keeper in reversed(self._keepers):
                stack.callback(let_look, keeper)
        return min(waits)

    def close(self) -> None:
        """Close each keeper; this lets it check one last time."""
        with ExitStack() as stack:
            for keeper in reversed(self._keepers):
                stack.callback(keeper.close)


def gate_of(folder: RunFolder, request: Request) -> RunGate | None:
    """Return the gate that asks the user to approve a run's tool calls.

    Returns None if the run doesn't ask for approval, and Gemini CLI itself denies what needs one.
    """
    budget = budget_of(folder, request)
    more = {} if budget is None else {"may_prompt": budget.may_prompt}
    if request.agent is Agent.CLAUDE:
        from gemtui.runs.gate.claude_gate import ClaudeGate

        return ClaudeGate(folder, request, **more)
    if request.agent is Agent.QWEN:
        from gemtui.runs.gate.qwen_gate import QwenGate

        return QwenGate(folder, request, **more)
    if not request.about.get("ask"):
        return None
    from gemtui.runs.gate.gemini_gate import GeminiGate

    return GeminiGate(folder, request, **more)


def budget_of(folder: RunFolder, request: Request) -> RunBudget | None:
    """Return the object that limits a run's cost; None if there is no budget.

    Each call for the same run returns the same object.
    """
    about = request.about
    limits = about.get("budget"), about.get("day_budget")
    return None if limits == (None, None) else _budget(folder.path)


@cache
def _budget(folder: Path) -> RunBudget:
    from gemtui.runs.budget import RunBudget

    run = RunFolder(folder)
    request = run.request()
    assert request is not None
    return RunBudget(run, request)


def after_of(folder: RunFolder) -> AfterRun:
    """Return a callback that starts the user's command for finished runs.

    The command is read immediately, so that the run can't change it. If a CLI got no prompt, there
    was no run, and the callback removes the folder.
    """
    from gemtui.runs.gate.user_commands import ON_END, UserCommands, start_command

    program = UserCommands.of(folder).on_end

    def after(run: RunFolder) -> None:
        if run.request() is None:
            from gemtui.runs.listing import remove_unsent

            remove_unsent(run)
        elif program:
            start_command(run, ON_END, program)

    return after


if __name__ == "__main__":
    words = sys.argv[1:]
    after = after_of(RunFolder(Path(words[0])))
    sys.exit(main(words, keeper_of=keeper_of, gate_of=gate_of, after=after, budget_of=budget_of))
