"""The command as it is typed: in this process, or as one of its own where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gemtui.cli import main
from tests.patience import PATIENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on stderr."""
        assert self.err.startswith("gemtui: ")
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()


Gemtui = Callable[..., Answer]


@pytest.fixture
def gemtui(capfdbinary: pytest.CaptureFixture[bytes]) -> Gemtui:
    """`gemtui WORDS…` in this process."""

    def run(*words: str | Path) -> Answer:
        capfdbinary.readouterr()
        code = main([str(word) for word in words])
        sys.stdout.flush()
        sys.stderr.flush()
        said = capfdbinary.readouterr()
        return Answer(code=code, out=said.out.decode(), err=said.err.decode())

    return run


def start(
    *words: str | Path, cwd: Path | None = None, environ: Mapping[str, str | None] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """`gemtui WORDS…` as a process; a variable that is None in `environ` is not set.

    `given`: what it finds on stdin.
    """
    changed = {**os.environ, **(environ or {})}
    return subprocess.run(
        [sys.executable, "-m", "gemtui", *map(str, words)],
        input=given,
        capture_output=True,
        cwd=cwd,
        env={name: value for name, value in changed.items() if value is not None},
        timeout=PATIENCE,
        check=False,
    )
