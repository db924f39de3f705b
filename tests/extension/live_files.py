"""Live files as the hooks leave them: the last hook's JSON under the process id of the CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HOOKS = Path(__file__).parents[1] / "data/hooks/interactive.jsonl"
_WAITER = "import sys; print(flush=True); sys.stdin.read()"


def hook_inputs() -> dict[str, dict[str, Any]]:
    """What the hooks of one recorded session got, by event: the last one of each."""
    lines = map(json.loads, HOOKS.read_text().splitlines())
    return {each["hook_event_name"]: each for each in lines}


def hook_input(event: str, **others: Any) -> dict[str, Any]:
    """What the hook of an event got, with some of it changed."""
    return hook_inputs()[event] | others


def write_live(folder: Path, pid: int, content: Mapping[str, Any] | bytes) -> Path:
    """Write a live file, whole, as the hook does."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    new = folder / f".{pid}.new"
    new.write_bytes(data)
    return new.rename(folder / str(pid))


@contextmanager
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is there as long as somebody wants it, and no longer."""
    words = [sys.executable, "-I", "-S", "-c", _WAITER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


def made_old(path: Path, seconds: float) -> Path:
    """Let a file be older."""
    when = path.stat().st_mtime - seconds
    os.utime(path, (when, when))
    return path
