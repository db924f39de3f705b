"""`gemtui trust`: what was trusted, and taking it back."""

from __future__ import annotations

from pathlib import Path

from gemtui.agent.trust import remember
from gemtui.paths import runs_dir
from gemtui.runs.listing import list_runs
from tests.cli.conftest import Gemtui
from tests.fake_cli import INIT, OK, FakeCli

VARIABLE = "GEMINI_CLI_TRUST_WORKSPACE"


def test_a_trusted_folder_is_listed_and_removed(
    gemtui: Gemtui, tmp_path: Path, fake_cli: FakeCli
) -> None:
    fake_cli(f"print:{INIT}", f"print:{OK}")
    folder = tmp_path / "project"
    folder.mkdir()
    remember(folder)
    gemtui("run Go -C", folder)
    assert gemtui("trust").out == f"{folder}\n"
    assert gemtui.json("trust list") == {
        "version": 1,
        "folders": [{"path": str(folder), "place": "same"}],
    }
    gemtui.ok("trust remove", folder)
    gemtui("run Go -C", folder)
    last, first = (run.folder.request() for run in list_runs(runs_dir()))
    assert first is not None
    assert last is not None
    assert (first.environ.get(VARIABLE), last.environ.get(VARIABLE)) == ("true", None)
    assert gemtui.json("trust")["folders"] == []


def test_what_has_happened_to_a_folder_is_said(gemtui: Gemtui, tmp_path: Path) -> None:
    for name in ("gone", "other"):
        (tmp_path / name).mkdir()
        remember(tmp_path / name)
    (tmp_path / "gone").rmdir()
    (tmp_path / "other").rename(tmp_path / "moved")
    (tmp_path / "other").mkdir()
    answer = gemtui("trust")
    assert [line.partition("  ")[2] for line in answer.out.splitlines()] == [
        "(does not exist)",
        "(replaced by another folder, which is not trusted)",
    ]


def test_a_folder_that_was_not_trusted(gemtui: Gemtui, tmp_path: Path) -> None:
    gemtui("trust remove", tmp_path).fails("list trusted folders with gemtui trust")
    assert gemtui.json("trust remove", tmp_path) == {"version": 1, "removed": False}
