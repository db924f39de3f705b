"""`gemtui worktrees` and `gemtui run --worktree`, with real git and the real CLI on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gemtui.agent import trust
from gemtui.paths import runs_dir, worktrees_dir
from gemtui.runs.listing import list_runs
from gemtui.runs.worktrees import make_worktree
from gemtui.worktree_records import list_worktrees
from tests.checkpoints.projects import files_of, put
from tests.checkpoints.test_repositories import repository
from tests.cli.conftest import Gemtui, has, values
from tests.model_server import ModelServer, answer, shell, text, writes
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.test_documents import SHAPES, names

pytestmark = pytest.mark.covers("gemtui/commands", "gemtui/runs", "gemtui/worktree_records.py")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository with a commit."""
    return repository(tmp_path / "project", other="other\n")


def test_worktrees_are_listed_applied_and_removed(top: Path, gemtui: Gemtui) -> None:
    empty = gemtui("worktrees")
    assert (empty.code, empty.out) == (0, "")
    assert "gemtui run --worktree" in empty.complaint
    one, two = (make_worktree(top, f"{word} thing")[0] for word in ("One", "Two"))
    put(one.tree, b"other", b"left \x1b[2J\n")
    put(one.tree, b"binary", b"\0")
    put(two.tree, b"other", b"right\n")
    listed = gemtui.json("worktrees")
    assert set(listed) == names(SHAPES["worktrees list"])
    assert values(listed["worktrees"], "name") == [two.name, one.name]
    assert listed["worktrees"][1]["branch"] == one.branch
    has(listed["worktrees"][1], files=2, not_applied=2)
    assert one.name in gemtui("worktrees list").out

    patch = gemtui("worktrees diff one")
    assert (patch.code, "\x1b" in patch.out) == (0, False)
    assert "diff --git a/other b/other" in patch.out
    assert "binary: not text, 1 byte" in patch.complaint
    told = gemtui.json("worktrees diff", one.branch)
    assert set(told) == names(SHAPES["worktrees diff"])
    files = told["files"]
    assert values(files, "path", "change") == [("binary", "added"), ("other", "modified")]

    before = files_of(top)
    gemtui("worktrees apply two").refuses("--yes")
    planned = gemtui("worktrees apply two --dry-run")
    assert (planned.out, files_of(top)) == ("would be written: other\n", before)
    done = gemtui("worktrees apply latest --yes --json")
    assert (done.code, done.json["written"]) == (0, ["other"])
    assert set(done.json) == names(SHAPES["worktrees apply"])
    refused = gemtui("worktrees apply one --yes")
    assert (refused.code, "left alone: other" in refused.out) == (1, True)
    assert (top / "other").read_text() == "right\n"

    assert gemtui("worktrees remove one").code == 2
    assert gemtui("worktrees remove nothing").code == 2
    removed = gemtui.json("worktrees remove one two --yes")
    assert set(removed) == names(SHAPES["worktrees remove"])
    assert values(removed["removed"], "branch_left") == [False, False]
    assert list_worktrees() == ()


@pytest.mark.parametrize(
    "damage", [os.mkfifo, Path.touch, lambda file: file.write_bytes(b"[" * 5000)]
)
def test_a_worktree_whose_record_is_damaged_is_named(
    damage: Callable[[Path], object], gemtui: Gemtui
) -> None:
    record = worktrees_dir() / "fix-1234" / "worktree.json"
    record.parent.mkdir(parents=True)
    damage(record)
    listed = gemtui("worktrees list")
    assert (listed.code, listed.out) == (0, "")
    assert listed.err.startswith(f"gemtui: {record.parent}: its record is damaged")
    assert listed.err.count("\n") == 1


def test_names_complete(top: Path, gemtui: Gemtui) -> None:
    made = make_worktree(top, "Complete me")[0]
    del gemtui
    done = subprocess.run(
        [sys.executable, "-m", "gemtui"],
        env={
            **os.environ,
            "_GEMTUI_COMPLETE": "bash_complete",
            "COMP_WORDS": "gemtui worktrees diff com",
            "COMP_CWORD": "3",
        },
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert made.name in done.stdout.decode(), done.stderr


def run(cli: GeminiCli, model: ModelServer, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gemtui",
            "run",
            "-C",
            str(cli.project),
            "--approval-mode",
            "yolo",
            *words,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_run_in_a_worktree_leaves_the_project_until_it_is_applied(
    on_loopback: GeminiCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE")
    top = repository(on_loopback.project)
    trust.remember(top)
    before = files_of(top)
    turns = [
        answer(writes("a.txt", "hi\n")),
        answer(shell("echo two >> tracked; pwd")),
        answer(text("Done.")),
    ]
    with ModelServer(turns) as model:
        code, out, err = run(on_loopback, model, "-m", MODEL, "--worktree", "Write a.txt")
    assert (code, out.strip()) == (0, "Done."), err
    (worktree,) = list_worktrees()
    assert f"working in the new worktree {worktree.name}, on branch {worktree.branch}" in err
    assert f"the worktree is trusted until it is removed, because {top} is" in err
    assert files_of(top) == before
    (ran,) = list_runs(runs_dir())
    assert (ran.cwd, ran.worktree) == (str(worktree.folder), worktree.branch)
    shown = gemtui.json("worktrees")["worktrees"][0]
    assert (shown["files"], shown["runs"][0]["id"]) == (2, ran.id)
    gemtui.ok("worktrees apply latest --yes")
    assert (top / "a.txt").read_text() == "hi\n"
    assert (top / "tracked").read_text() == "one\ntwo\n"
    gemtui.ok("worktrees remove latest --yes")
    assert not worktree.tree.exists()
    assert not list((top / ".git").glob("worktrees/*"))


def test_a_prompt_goes_to_several_models_at_once(on_loopback: GeminiCli, gemtui: Gemtui) -> None:
    top = repository(on_loopback.project)

    with ModelServer([answer(text("Done.")), answer(text("Done."))]) as model:
        models = ("--each-model", MODEL, "--each-model", "gemini-2.5-pro")
        code, out, err = run(on_loopback, model, *models, "Say it")
    assert code == 0, err
    two, one = list_worktrees()
    assert out.splitlines() == [
        f"== {MODEL}: {one.name}",
        "Done.",
        f"== gemini-2.5-pro: {two.name}",
        "Done.",
    ]
    assert {run.model for run in list_runs(runs_dir())} == {MODEL, "gemini-2.5-pro"}
    rows = gemtui.json("runs")["runs"]
    assert {each["worktree"] for each in rows} == {one.branch, two.branch}
    assert files_of(top) == {
        b"tracked": ("file", 0o644, b"one\n"),
        b"d/tracked": ("file", 0o644, b"one\n"),
    }
