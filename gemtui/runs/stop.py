"""End a run, whether or not its supervisor is alive."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from functools import partial

import psutil

from gemtui.agent import process_tree
from gemtui.agent.gemini import GeminiRun
from gemtui.agent.run_folder import Exit
from gemtui.kept.resume_guard import ResumeGuard
from gemtui.runs.ending import RunState
from gemtui.runs.listing import Run

GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL for processes without a supervisor."""


def stop_run(run: Run) -> bool:
    """End all of a run's processes; return whether none is left.

    Blocks for some seconds. A living supervisor ends the processes and records the exit; if the
    supervisor is dead, this function does both. Raises OSError if the record can't be written.
    """
    request = run.folder.request()
    if run.state is RunState.RUNNING and request is not None:
        running = GeminiRun(run.folder, request)
        running.abort()
        asyncio.run(running.wait())
    process_tree.end_processes(partial(_left, run), grace=GRACE)
    if run.folder.exit() is None:
        now = datetime.now(UTC)
        run.folder.finish(Exit(code=None, started=None, ended=now, aborted=True))
    if _left(run):
        return False
    run.folder.clean(request)
    ResumeGuard().after(run.folder)
    return True


def _left(run: Run) -> set[psutil.Process]:
    ended = run.folder.exit()
    recorded = () if ended is None else ended.left
    return process_tree.tagged(run.id) | process_tree.still_running(recorded)
