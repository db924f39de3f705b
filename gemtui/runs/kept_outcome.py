"""Cache the outcomes of finished runs, so that lists needn't read their output."""

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
"""The version of the code that determines outcomes.

It is increased when the same output yields a different outcome, which invalidates the cache.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutcome:
    """How a finished run ended, with the numbers of denied and failed tool calls.

    `sizes`: the sizes in bytes of the stdout and stderr from which this was determined; the cache
    is outdated if they differ.
    """

    status: Status
    refused: int
    failed: int
    sizes: tuple[int, int]
    rules: int = _RULES


def kept_outcome(folder: RunFolder) -> KeptOutcome | None:
    """Return the cached outcome of a run; None if it is missing or outdated."""
    with suppress(OSError, msgspec.ValidationError):
        kept = msgspec.convert(read_object(folder.path / _FILE), KeptOutcome)
        if (kept.rules, kept.sizes) == (_RULES, _sizes(folder)):
            return kept
    return None


def read_outcome(folder: RunFolder, request: Request) -> KeptOutcome | None:
    """Determine a finished run's outcome from all of its output, and cache it.

    Returns None if how the run ended was not recorded. Takes time proportional to the output.
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
    """Cache and return the outcome of a run whose events have been followed.

    Returns None if the run hasn't ended. `progress`: the facts from the events.
    """
    return _keep(folder, progress, stderr, _sizes(folder))


def _keep(folder: RunFolder, progress: RunProgress, stderr: str, sizes: tuple[int, int]) -> KeptOutcome | None:
    outcome = progress.outcome(stderr)
    if outcome is None:
        return None
    found = KeptOutcome(
        status=outcome.status, refused=sum(progress.refused.values()), failed=progress.failed.total(), sizes=sizes
    )
    with suppress(OSError):  # if this fails, the output is read again
        folder.write(_FILE, orjson.dumps(found).decode())
    return found


def _sizes(folder: RunFolder) -> tuple[int, int]:
    return _size(folder.stdout), _size(folder.stderr)


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
