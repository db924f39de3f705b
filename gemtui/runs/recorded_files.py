"""What became of the files of a run, as its record and its stored session tell."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gemtui.agent.fold import Fold
from gemtui.agent.gemini import GeminiRun
from gemtui.runs.ending import RunState
from gemtui.runs.enrich import enrich
from gemtui.runs.file_tracker import FileTracker
from gemtui.runs.listing import Run
from gemtui.transcript.writes import FileWrite


def recorded_files(run: Run, home: Path) -> tuple[FileWrite, ...] | None:
    """Return the rows of a run that has ended; None for one that goes on, or that can't be read.

    `home`: the store in which its session is. Reads all output of the run.
    """
    request = run.folder.request()
    if request is None or run.state is RunState.RUNNING:
        return None
    fold = Fold("", began=run.started)

    async def read() -> None:
        async for event in GeminiRun(run.folder, request).events():
            fold.add(event)

    asyncio.run(read())
    told = enrich(fold.transcript(), home, run.session)
    return FileTracker(Path(run.cwd), ended=run.ended or run.started).rows(told.calls())
