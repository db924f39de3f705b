"""`gemtui undo` that a signal stops, and what the other commands say about it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gemtui.checkpoints.project_files import ProjectFiles
from gemtui.checkpoints.store import Reason
from gemtui.checkpoints.undo import open_project
from gemtui.runs.undo.checkpointing import project_of
from tests.cli.conftest import Gemtui, has
from tests.runs.reviewed import recorded
from tests.sessions.stores import uuid

ID = uuid(1)


@pytest.fixture
def project(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose session changed `a.txt` and made `new.txt`."""
    del home
    recorded(tmp_path / "proj")
    with open_project(*project_of(tmp_path / "proj")) as opened:
        opened.taker.take(Reason.MANUAL)
    monkeypatch.chdir(tmp_path / "proj")
    return tmp_path / "proj"


def signals_at(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let so many signals arrive when the first file is removed."""
    remove = ProjectFiles.remove

    def interrupted(self: ProjectFiles, name: bytes) -> None:
        remove(self, name)
        for _ in range(count):
            os.kill(os.getpid(), signal.SIGTERM)
        monkeypatch.setattr(ProjectFiles, "remove", remove)

    monkeypatch.setattr(ProjectFiles, "remove", interrupted)


def test_a_signal_lets_an_undo_finish_and_is_told(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals_at(monkeypatch, 1)
    done = gemtui("undo", ID, "--yes", "--json")
    assert (done.code, "interrupted, but everything was finished" in done.err) == (
        128 + signal.SIGTERM,
        True,
    )
    assert done.json["interrupted"] == {"done": 2, "left": 0, "finish": None}
    assert not (project / "new.txt").exists()
    assert "agent" not in (project / "a.txt").read_text()


def test_two_signals_stop_an_undo_and_every_command_says_how_to_finish_it(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals_at(monkeypatch, 2)
    finish = f"gemtui undo {ID} --to 1 --files"
    stopped = gemtui("undo", ID, "--files", "--yes", "--json")
    assert stopped.code == 128 + signal.SIGTERM
    assert stopped.json["interrupted"] == {"done": 1, "left": 1, "finish": finish}
    has(stopped.json, removed=["new.txt"], restored=[], merged=[])
    assert not stopped.json["complete"]
    assert f"interrupted after 1 of 2 files; to finish, run: {finish}" in stopped.err
    words = f"An undo in {project} was interrupted after 1 of 2 files. To finish it, run: {finish}"
    doctor = gemtui("doctor --json")
    assert (doctor.code, words in doctor.json["problems"]) == (1, True)
    told = gemtui.json("checkpoints", ID)["interrupted"]
    has(told, kind="undo", done=1, left=1, finish=finish)
    assert "all well" not in gemtui("doctor").out
    for command in (("checkpoints", ID), ("sessions",), ("sessions", "--json")):
        assert words in gemtui(*command).err
    planned = gemtui.json("undo", ID, "--files", "--dry-run")
    assert planned["merged"] + planned["restored"] == ["a.txt"]
    assert "agent" in (project / "a.txt").read_text()
    done = gemtui(*finish.split()[1:], "--yes", "--json")
    assert (done.json["merged"] + done.json["restored"], done.json["interrupted"]) == (
        ["a.txt"],
        None,
    )
    assert "agent" not in (project / "a.txt").read_text()
    assert gemtui.json("checkpoints", ID)["interrupted"] is None
    assert words not in gemtui("doctor").out


def test_an_interrupt_before_anything_is_changed_says_so(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = {each.name: each.read_bytes() for each in project.iterdir()}
    monkeypatch.setattr("gemtui.runs.undo.undo.require_idle", interrupted)
    done = gemtui("undo", ID, "--yes")
    assert (done.code, done.err) == (130, "gemtui: interrupted before any file was changed\n")
    assert before == {each.name: each.read_bytes() for each in project.iterdir()}
