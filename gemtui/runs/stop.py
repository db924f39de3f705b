"""The end of a run, whoever is in charge of it: its supervisor, or nobody any more."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from gemtui.agent import process_tree
from gemtui.agent.gemini import GeminiRun
from gemtui.agent.run_folder import Exit
from gemtui.runs.listing import Run, RunState
from gemtui.runs.resume import ResumeGuard

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL for processes that nobody is in charge of."""


def stop(run: Run) -> bool:
    """End all processes of a run; whether none is left. Takes some seconds.

    A supervisor that lives does it, and writes how the run ended; else it is done and written here.
    Raises OSError where that can't be written.
    """
    request = run.folder.request()
    if run.state is RunState.RUNNING and request is not None:
        running = GeminiRun(run.folder, request)
        running.abort()
        asyncio.run(running.wait())
    process_tree.end_tagged(run.id, grace=GRACE)
    if run.folder.exit() is None:
        now = datetime.now(UTC)
        run.folder.finish(Exit(code=None, started=None, ended=now, aborted=True))
    if process_tree.tagged(run.id):
        return False
    run.folder.clean(request)
    ResumeGuard().after(run.folder)
    return True
