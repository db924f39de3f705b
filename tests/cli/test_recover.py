"""`gemtui recover`: a lost file, for a person and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Gemtui, has, values
from tests.cli.shapes import fits
from tests.recover.histories import saw, wrote
from tests.sessions import logs
from tests.sessions.stores import marker, session, uuid


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    marker(home / ".gemini", "proj", str(folder))
    monkeypatch.chdir(folder)
    file = str(folder / "a")
    history = [wrote(file, None, "a\nb\x1b[2J\n", 1), saw(file, "A\nb\n", 2, 1, 1)]
    records = [logs.header(uuid(1)), logs.user("u", "Go", 0), *history]
    session(home / ".gemini", uuid(1), records)
    return folder


def test_a_lost_file_is_told_with_where_each_line_is_from(gemtui: Gemtui, project: Path) -> None:
    answer = gemtui("recover ./a")
    assert (answer.code, answer.out) == (0, "A\nb␛[2J\n")
    answer.tells(
        "1 line known, 1 guessed",
        "line 1: known, read_file in 00000001",
        "line 2: guessed, write_file in 00000001",
    )
    report = gemtui.json("recover", project / "a")
    fits(report, "Recovered")
    has(report, known=1, guessed=1, missing=0, text="A\nb\x1b[2J\n", session=uuid(1))
    assert values(report["lines"], "first", "tool") == [(1, "read_file"), (2, "write_file")]


def test_a_file_gets_the_text_as_it_was_and_nothing_is_written_over(
    gemtui: Gemtui, project: Path
) -> None:
    there, link = project / "a", project / "link"
    assert gemtui("recover a --output a --at 2000-01-01").code == 1
    assert not there.exists()
    gemtui.ok("recover a --output a")
    assert there.read_bytes() == b"A\nb\x1b[2J\n"
    there.write_text("mine")
    gemtui("recover a --output a").refuses(
        "a exists: name another file, or replace it with --force"
    )
    assert there.read_text() == "mine"
    gemtui.ok("recover a --output a --force")
    assert there.read_bytes() == b"A\nb\x1b[2J\n"
    link.symlink_to("nowhere")
    for more in ([], ["--force"]):
        assert gemtui("recover a --output link", *more).code == 2
    assert not (project / "nowhere").exists()


def test_what_no_session_tells_of_is_said(gemtui: Gemtui, project: Path) -> None:
    gemtui("recover b").fails("no session contains text of")
    report = gemtui("recover b --json")
    assert report.code == 1
    fits(report.json, "Recovered")
