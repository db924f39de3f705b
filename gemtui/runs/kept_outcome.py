"""How the calls of an ended run came out, kept in its folder: a list of runs reads no output."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import orjson

from gemtui.agent.gemini import GeminiRun
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.jsonfile import read_object
from gemtui.runs.ending import Status
from gemtui.runs.outcome import RunProgress

_FILE = "outcome.json"
_RULES = 1
"""Counted up when the same output would come out otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutcome:
    """How a run ended, and how many of its tool calls were refused or failed.

    `sizes`: bytes of stdout and stderr that were read for it.
    """

    status: Status
    refused: int
    failed: int
    sizes: tuple[int, int]
    rules: int = _RULES


def kept_outcome(folder: RunFolder) -> KeptOutcome | None:
    """Return what is kept in a run's folder; None where it is missing, or older than the output."""
    with suppress(OSError, msgspec.ValidationError):
        kept = msgspec.convert(read_object(folder.path / _FILE), KeptOutcome)
        if (kept.rules, kept.sizes) == (_RULES, _sizes(folder)):
            return kept
    return None


def read_outcome(folder: RunFolder, request: Request) -> KeptOutcome | None:
    """Read all output of a run that has ended, and keep what comes of it.

    Takes the longer the more there is. None where the end of the run is not known.
    """
    sizes, progress, run = _sizes(folder), RunProgress(), GeminiRun(folder, request)

    async def read() -> None:
        async for event in run.events():
            progress.add(event)

    if run.exit() is None:
        return None
    asyncio.run(read())
    return _keep(folder, progress, run.stderr(), sizes)


def keep_outcome(folder: RunFolder, progress: RunProgress, stderr: str) -> KeptOutcome | None:
    """Keep what somebody found who followed a run to its end; None if it has not ended."""
    return _keep(folder, progress, stderr, _sizes(folder))


def _keep(
    folder: RunFolder, progress: RunProgress, stderr: str, sizes: tuple[int, int]
) -> KeptOutcome | None:
    outcome = progress.outcome(stderr)
    if outcome is None:
        return None
    found = KeptOutcome(
        status=outcome.status,
        refused=sum(progress.refused.values()),
        failed=progress.failed.total(),
        sizes=sizes,
    )
    with suppress(OSError):  # it is read again the next time
        folder.write(_FILE, orjson.dumps(found).decode())
    return found


def _sizes(folder: RunFolder) -> tuple[int, int]:
    return _size(folder.stdout), _size(folder.stderr)


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
