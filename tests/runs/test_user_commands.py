"""The user's own programs, told of a question that waits and of a run that has ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.options import AgentOptions
from gemtui.paths import config_file, state_dir
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.gate.user_commands import (
    CommandFailure,
    UserCommands,
    keep_failure,
    report_failures,
    run_program,
)
from tests.cli.conftest import Gemtui, gemtui
from tests.fake_cli import OK, FakeCli, says
from tests.patience import until
from tests.rows import each_row, table
from tests.runs.test_gate import Asker

__all__ = ["gemtui"]

KEEPS = "import os, sys, json; told = json.load(sys.stdin); told['environ'] = dict(os.environ); "
KEEPS += "place = open(sys.argv[1] + '.new', 'w'); json.dump(told, place); place.close(); "
KEEPS += "os.link(sys.argv[1] + '.new', sys.argv[1])"


def keeping(place: Path) -> tuple[str, ...]:
    """A program that keeps what it is told, and fails where it was told something before."""
    return (sys.executable, "-c", KEEPS, str(place))


def set_on_end(*words: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(f"on_end = {json.dumps(words)}\n")


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return tmp_path / "told.json"


def read(place: Path) -> Any:
    until(lambda: place.exists())
    return json.loads(place.read_text())


@pytest.fixture
def asker(home: Path, told: Path) -> Iterator[Asker]:
    """A run that goes on and asks, with a program that is told."""
    place = state_dir()
    place.mkdir(parents=True)
    made = Asker(place, commands=UserCommands(on_ask=keeping(told)))
    made.lives()
    yield made
    made.close()
    for each in made.gate.gate.started:
        each.wait()


def test_a_question_that_waits_is_told_once(asker: Asker, told: Path, gemtui: Gemtui) -> None:
    waiting = asker.later("run_shell_command", command="make > all")
    found = read(told)
    assert (found["version"], found["event"]) == (1, "question")
    assert found["question"]["effect"]["command"] == "make > all"
    name = found["question"]["id"]
    for number in range(2):  # a second answer changes nothing
        assert gemtui("runs", "answer", "run", name, "deny").code == number
    assert waiting.result() is not None
    assert len(asker.gate.gate.started) == 1
    assert report_failures() == ()


def test_the_end_of_a_run_is_told_without_what_the_run_adds(
    home: Path, told: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_on_end(*keeping(told))
    monkeypatch.setenv("MINE", "yes")
    cli = fake_cli(says("hello"), f"print:{OK}")
    options = AgentOptions(cwd=tmp_path, environment={"SECRET": "of the run"})
    run = GeminiAdapter(cli=cli).start("Do it", options)
    set_on_end("/nowhere")  # counts for later runs
    run.reap()
    found = read(told)
    assert (found["event"], found["run"]["id"]) == ("end", run.folder.id)
    assert found["run"]["state"] == "ended"
    assert found["environ"]["MINE"] == "yes"
    assert not {"SECRET", "GEMTUI_RUN"} & found["environ"].keys()


@each_row("words, why", table("runs/user_commands.json"))
def test_why_a_program_failed(words: list[str], why: str | None) -> None:
    found = run_program(tuple(words), b"x" * 1_000_000, limit=0.3 if "60" in words[-1] else 30)
    assert found == why or (why is not None and str(found).startswith(why))


def test_a_failure_is_told_once_until_it_is_another_one(home: Path) -> None:
    failure = CommandFailure(setting="on_end", words=("x\x1b",), why="was not found")
    keep_failure(failure)
    assert report_failures() == ("on_end: x␛ was not found",)
    keep_failure(failure)
    assert report_failures() == ()
    keep_failure(CommandFailure(setting="on_end", words=("x",), why="failed"))
    assert report_failures() == ("on_end: x failed",)


def test_gemtui_run_says_that_a_program_is_missing(
    fake_cli: FakeCli, gemtui: Gemtui, tmp_path: Path
) -> None:
    set_on_end("no-such-program")
    fake_cli(says("hello"), f"print:{OK}")
    for said in (1, 0):
        done = gemtui("run", "Do it", "-C", tmp_path)
        assert done.code == 0
        assert done.err.count("on_end: no-such-program was not found") == said
