"""The files changed by a run, updated while the run works.

This module uses asyncio but no widgets. Files are read on background threads.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from gemtui.agent.events import Done, Payload, ToolResult, ToolUse
from gemtui.agent.gemini import GeminiRun
from gemtui.runs.changed_files import FileStates, FileTracker, Span
from gemtui.runs.folder_state import MOST, seen_files
from gemtui.transcript.model import ToolCall
from gemtui.transcript.tools import ToolKind, kind_of
from gemtui.transcript.writes import FileWrite

LOOK = 0.2
"""Minimum number of seconds between two updates."""


class LiveFiles:
    """The files that a run has changed, with the state of each.

    `rows` holds the files; `revision` goes up whenever they change. `calls`: returns the tool calls
    that the run has made so far.
    """

    def __init__(self, run: GeminiRun, calls: Callable[[], Sequence[ToolCall]]) -> None:
        self.rows: tuple[FileWrite, ...] = ()
        self.revision = 0
        self._run, self._calls = run, calls
        self._cwd = Path(run.request.cwd)
        self._tracker = FileTracker(self._cwd)
        self._seen: Mapping[Path, float] = {}
        self._shells: dict[str, Span] = {}
        self._stirred = asyncio.Event()
        self._looking = asyncio.Lock()

    async def see(self) -> None:
        """Watch the run's folder for changed files until the task is cancelled."""
        async for seen in seen_files(self._cwd):
            self._seen = seen
            self._stirred.set()

    async def follow(self, *, before: bool) -> None:
        """Update the rows whenever a file may have changed, until the task is cancelled.

        `before`: whether to determine first what the files were like when the run started.
        """
        if before:
            await asyncio.to_thread(self._tracker.record_before, self._run.folder.requested_at())
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            await self.recompute()
            await asyncio.sleep(LOOK)

    def process(self, payload: Payload) -> None:
        """Handle one of the run's events, after which files may have changed."""
        if isinstance(payload, ToolUse | ToolResult | Done):
            self._stirred.set()
        self._time_shell(payload)

    def _time_shell(self, payload: Payload) -> None:
        """Record when each shell command ran, for comparison with file modification times."""
        now = time.time()
        if isinstance(payload, ToolUse) and kind_of(payload.tool_name) is ToolKind.SHELL:
            self._shells[payload.tool_use_id] = now, math.inf
        elif isinstance(payload, ToolResult) and payload.tool_use_id in self._shells:
            began, _ = self._shells[payload.tool_use_id]
            self._shells[payload.tool_use_id] = began, now

    async def end(self, ended: datetime | None) -> None:
        """Update the rows one last time, after the run has ended.

        `ended`: when the run ended, or None if that was just now.
        """
        if ended is not None:
            self._tracker = FileTracker(self._cwd, ended=ended)
        self._seen = await asyncio.to_thread(self._tracker.changes_after, self._seen)
        await self.recompute()

    @property
    def more(self) -> bool:
        """Whether so many files have changed that not all of them may be tracked."""
        return len(self._seen) >= MOST

    async def recompute(self) -> None:
        """Recompute the rows, and increase `revision` if they have changed."""
        async with self._looking:
            shells, calls = tuple(self._shells.values()), self._calls()
            rows = await asyncio.to_thread(self._tracker.rows, calls, self._seen, shells)
        if rows != self.rows:
            self.rows = rows
            self.revision += 1

    async def difference(self, path: Path) -> FileStates:
        """Return a file's state before this run and now, along with the diff."""
        return await asyncio.to_thread(self._tracker.difference, path, self._calls())
