"""The command as it is typed: in this process, or as one of its own where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
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
    def events(self) -> list[Any]:
        """The JSON of each line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaint(self) -> str:
        """The one line on stderr."""
        assert self.err.startswith("gemtui: ")
        assert self.err.count("\n") == 1, self.err
        return self.err.strip()

    def shows(self, *texts: str) -> None:
        """Check what is on stdout."""
        for text in texts:
            assert text in self.out

    def tells(self, *texts: str) -> None:
        """Check what is on stderr."""
        for text in texts:
            assert text in self.err

    def complains(self, *texts: str) -> None:
        """Check what is in the one line on stderr."""
        for text in texts:
            assert text in self.complaint

    def refuses(self, *texts: str) -> None:
        """Check that a command that can't be meant so did nothing but say this."""
        self._says(2, texts)

    def fails(self, *texts: str) -> None:
        """Check that a command that did not go well did nothing but say this."""
        self._says(1, texts)

    def _says(self, code: int, texts: tuple[str, ...]) -> None:
        assert (self.code, self.out) == (code, ""), self
        self.complains(*texts)


class Gemtui:
    """`gemtui LINE WORDS…` in this process."""

    def __init__(self, captured: pytest.CaptureFixture[bytes]) -> None:
        self._captured = captured

    def __call__(self, line: object, *words: object) -> Answer:
        """Run a command; the words of `line` are split at blanks, the others are taken as they
        are.
        """
        self._captured.readouterr()
        code = main(typed(line, *words))
        sys.stdout.flush()
        sys.stderr.flush()
        out, err = self._captured.readouterr()
        return Answer(code=code, out=out.decode(), err=err.decode())

    def ok(self, line: object, *words: object) -> Answer:
        """Run a command that goes well."""
        answer = self(line, *words)
        assert answer.code == 0, answer
        return answer

    def answers(self, case: Mapping[str, Any]) -> None:
        """Check a case of a table: its exit code, and what it prints as a text, or as a list of
        parts.
        """
        line = case["line"]
        answer = self(line) if isinstance(line, str) else self(*line)
        assert answer.code == case["code"]
        for stream in case.keys() & {"out", "err"}:
            printed, expected = getattr(answer, stream), case[stream]
            assert (
                printed == expected
                if isinstance(expected, str)
                else all(text in printed for text in expected)
            )
        for text in case.get("complaint", ()):
            assert text in answer.complaint
            assert answer.complaint.isprintable()
        assert "json" not in case or answer.json == case["json"]

    def json(self, line: object, *words: object) -> Any:
        """What a command says in JSON."""
        return self(line, *words, "--json").json


@pytest.fixture
def gemtui(capfdbinary: pytest.CaptureFixture[bytes]) -> Gemtui:
    return Gemtui(capfdbinary)


def put(path: Path, content: str | bytes) -> None:
    """Write a file, in a folder that may have to be made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def has(record: Any, **facts: Any) -> None:
    """Check some of the values of a record."""
    assert {name: record[name] for name in facts} == facts


def values(records: Iterable[Any], *names: str) -> list[Any]:
    """The values with a name in each record, or with several names as tuples."""
    take = itemgetter(*names)
    return [take(record) for record in records]


def typed(line: object = "", *words: object) -> list[str]:
    """The words of a command: those of `line`, if it is no path, and the others."""
    first = line.split() if isinstance(line, str) else [str(line)]
    return [*first, *map(str, words)]


def start(
    *words: object,
    cwd: Path | None = None,
    environ: Mapping[str, str | None] | None = None,
    given: bytes = b"",
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
