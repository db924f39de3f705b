"""Undo of runs of the real CLI in yolo: what shell commands did included."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Gemtui
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import GeminiCli

SED = "sed -i s/two/TWO/ keep.txt && chmod +x keep.txt"
PROMPTS = (
    ("Write.", call("write_file", file_path="new/a.txt", content="one\n")),
    ("Remove.", call("run_shell_command", command="rm -rf src && mkdir -p gen && echo g > gen/x")),
    (
        "Change.",
        call("run_shell_command", command=SED),
    ),
)


def files(root: Path) -> dict[str, tuple[int, str]]:
    """All files but the repository's, with mode and text."""
    return {
        str(path.relative_to(root)): (path.stat().st_mode & 0o777, path.read_text())
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def repository(root: Path) -> dict[str, bytes]:
    """All bytes of `.git`."""
    found = sorted((root / ".git").rglob("*"))
    return {str(path): path.read_bytes() for path in found if path.is_file()}


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def test_three_prompts_in_yolo_are_undone_each_and_redone(
    on_loopback: GeminiCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = on_loopback.project
    monkeypatch.chdir(project)
    (project / "src").mkdir()
    (project / "src/main.py").write_text("print()\n")
    (project / "keep.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "First")
    before = repository(project)
    trees = []
    for prompt, tool in PROMPTS:
        trees.append(files(project))
        with ModelServer([answer(tool), answer(text("Done."))]) as model:
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
            more = () if len(trees) == 1 else ("--resume", "latest")
            done = gemtui("run", "--approval-mode", "yolo", *more, prompt)
        assert done.code == 0, done.err
    trees.append(files(project))
    assert len({str(tree) for tree in trees}) == 4
    session = gemtui("sessions", "--json").json["sessions"][0]["id"]
    told = gemtui("checkpoints", session, "--json").json["checkpoints"]
    commands = [each["command"] for each in told if each["command"]]
    assert commands == [tool["functionCall"]["args"]["command"] for _, tool in PROMPTS[1:]]
    assert [each["prompt"] for each in told if each["reason"] == "prompt"] == [1, 2, 3]
    files_changed = gemtui("review", session, "--json").json["files"]
    assert [
        (file["path"], hunk["owner"], hunk["command"])
        for file in files_changed
        for hunk in file["hunks"]
    ] == [
        ("gen/x", "shell", commands[0]),
        ("keep.txt", "shell", SED),
        ("keep.txt", "shell", SED),
        ("new/a.txt", "tool", None),
        ("src/main.py", "shell", commands[0]),
    ]
    for to in (3, 1, 2):
        done = gemtui("undo", session, "--to", str(to), "--files", "--yes", "--json")
        assert (done.code, done.json["kept"], done.json["complete"]) == (0, [], True)
        assert files(project) == trees[to - 1]
    for tree in (trees[0], trees[2], trees[3]):
        assert gemtui("redo", "--yes").code == 0
        assert files(project) == tree
    (project / "keep.txt").write_text("one\nTWO\nthree\nfour\nFIVE\n")
    both = gemtui("undo", session, "--to", "2", "--yes", "--json").json
    assert (both["merged"], both["removed"], both["kept"]) == (["keep.txt"], ["gen/x"], [])
    assert (project / "keep.txt").read_text() == "one\ntwo\nthree\nfour\nFIVE\n"
    assert both["session"] in {each["id"] for each in gemtui("sessions", "--json").json["sessions"]}
    assert repository(project) == before
