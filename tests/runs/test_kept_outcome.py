"""How an ended run came out is read once, kept in its folder, and read anew when it is stale."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.agent.run_folder import Exit, RunFolder
from gemtui.runs.ending import Status
from gemtui.runs.listing import Run, list_runs, with_outcome
from tests.rows import each_row
from tests.runs.test_listing import add_run, unended
from tests.runs.test_outcome import ENDINGS, NAMES, STREAMS

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REFUSED = (STREAMS / "policy-deny.jsonl").read_text()
FAILED = (STREAMS / "bad_args.jsonl").read_text()


def listed(place: Path) -> Run:
    (run,) = list_runs(place)
    return run


def read(place: Path) -> Run:
    return with_outcome(listed(place))


@pytest.mark.parametrize(
    ("output", "status", "refused", "failed", "word"),
    [
        (REFUSED, Status.REFUSED, 2, 0, "done, 2 denied"),
        (FAILED, Status.WARNING, 0, 2, "done, 2 failed"),
        ((STREAMS / "loop_text.jsonl").read_text(), Status.WARNING, 0, 0, "done, with a warning"),
        ((STREAMS / "sigterm-mid-text.jsonl").read_text(), Status.INCOMPLETE, 0, 0, "incomplete"),
    ],
)
def test_a_run_with_refusals_is_told_from_a_success(
    tmp_path: Path, output: str, status: Status, refused: int, failed: int, word: str
) -> None:
    add_run(tmp_path, "one", output)
    assert listed(tmp_path).to_dict()["refused"] is None
    told = read(tmp_path)
    assert (told.end, told.word) == (status, word)
    shown = told.to_dict()
    assert (shown["outcome"], shown["refused"], shown["failed"]) == (status, refused, failed)
    assert listed(tmp_path).outcome == told.outcome, "it was not kept"


@each_row("name", NAMES)
def test_every_recorded_end_is_the_one_that_the_panel_shows(tmp_path: Path, name: str) -> None:
    code = int((STREAMS / f"{name}.exit").read_text())
    ended = Exit(code=code, started=NOW, ended=NOW)
    folder = add_run(tmp_path / name, "one", ended=ended)
    folder.stdout.write_bytes((STREAMS / f"{name}.jsonl").read_bytes())
    folder.stderr.write_bytes((STREAMS / f"{name}.stderr").read_bytes())
    assert read(tmp_path / name).end is ENDINGS.get(name, (Status.OK, ""))[0]


def test_what_is_kept_spares_reading_and_what_grew_is_read_again(tmp_path: Path) -> None:
    folder = add_run(tmp_path, "one", REFUSED)
    read(tmp_path)
    folder.stdout.write_text(" " * len(REFUSED.encode()))
    assert listed(tmp_path).word == "done, 2 denied"
    folder.stdout.write_text(FAILED)
    assert listed(tmp_path).outcome is None
    assert read(tmp_path).word == "done, 2 failed"
    folder.stderr.write_text("more")
    assert listed(tmp_path).outcome is None


@pytest.mark.parametrize("text", ["", "[", "{}", '{"status":"ok"}', "[1]", '{"status":7}'])
def test_a_record_that_is_broken_is_made_anew(tmp_path: Path, text: str) -> None:
    folder = add_run(tmp_path, "one", REFUSED)
    folder.write("outcome.json", text)
    assert listed(tmp_path).outcome is None
    assert read(tmp_path).word == "done, 2 denied"
    assert listed(tmp_path).word == "done, 2 denied"


def test_a_folder_that_takes_no_file_is_told_of_all_the_same(tmp_path: Path) -> None:
    folder = add_run(tmp_path, "one", REFUSED)
    (folder.path / "outcome.json").mkdir()
    assert read(tmp_path).word == "done, 2 denied"


def test_of_a_run_that_has_not_ended_nothing_is_kept(tmp_path: Path) -> None:
    folder = unended(tmp_path, "one", None)
    assert with_outcome(listed(tmp_path)).outcome is None
    assert RunFolder(folder.path).exit() is None
    assert not (folder.path / "outcome.json").exists()
