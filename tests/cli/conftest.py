"""The command as it is typed: in this process, or as one of its own where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
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

    def refuses(self, *texts: str) -> None:
        """Check that a command that can't be meant so did nothing but say this."""
        self._says(2, texts)

    def fails(self, *texts: str) -> None:
        """Check that a command that did not go well did nothing but say this."""
        self._says(1, texts)

    def _says(self, code: int, texts: tuple[str, ...]) -> None:
        assert (self.code, self.out) == (code, ""), self
        for text in texts:
            assert text in self.complaint


class Gemtui:
    """`gemtui LINE WORDS…` in this process."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self._captured = captured

    def __call__(self, line: object, *words: object) -> Answer:
        """Run a command; the words of `line` are split at blanks, the others are taken as they are."""
        self._captured.readouterr()
        code = main(typed(line, *words))
        sys.stdout.flush()
        sys.stderr.flush()
        out, err = self._captured.readouterr()
        return Answer(code=code, out=out.decode(), err=err.decode())

    def json(self, line: object, *words: object) -> Any:
        """What a command says in JSON."""
        return self(line, *words, "--json").json


@pytest.fixture
def gemtui(capfdbinary: pytest.CaptureFixture[bytes]) -> Gemtui:
    return Gemtui(capfdbinary)


def typed(line: object = "", *words: object) -> list[str]:
    """The words of a command: those of `line`, if it is no path, and the others."""
    first = line.split() if isinstance(line, str) else [str(line)]
    return [*first, *map(str, words)]


def start(
    *words: object, cwd: Path | None = None, environ: Mapping[str, str | None] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """`gemtui LINE WORDS…` as a process; a variable that is None in `environ` is not set.

    `given`: what it finds on stdin.
    """
    changed = {**os.environ, **(environ or {})}
    return subprocess.run(
        [sys.executable, "-m", "gemtui", *typed(*words)],
        input=given,
        capture_output=True,
        cwd=cwd,
        env={name: value for name, value in changed.items() if value is not None},
        timeout=PATIENCE,
        check=False,
    )
