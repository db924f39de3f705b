"""Undo of runs of the real CLI in yolo: what shell commands did included."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Gemtui, has
from tests.model_server import ModelServer, answer, call, shell, text, writes
from tests.real_cli import GeminiCli

pytestmark = pytest.mark.covers("gemtui/commands", "gemtui/checkpoints", "gemtui/runs")

SED = "sed -i s/two/TWO/ keep.txt && chmod +x keep.txt"
NAMED = "@new%2fa%2etxt"
"""A path that the CLI reads as `new/a.txt`."""
PROMPTS = (
    ("Write.", writes(NAMED, "one\n")),
    ("Remove.", shell("rm -rf src && mkdir -p gen && echo g > gen/x")),
    ("Change.", shell(SED)),
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


def make_repository(project: Path) -> None:
    """A repository with two files in one commit."""
    (project / "src").mkdir()
    (project / "src/main.py").write_text("print()\n")
    (project / "keep.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "First")


def test_three_prompts_in_yolo_are_undone_each_and_redone(
    on_loopback: GeminiCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = on_loopback.project
    monkeypatch.chdir(project)
    make_repository(project)
    before = repository(project)
    trees = []
    for prompt, tool in PROMPTS:
        trees.append(files(project))
        with ModelServer([answer(tool), answer(text("Done."))]) as model:
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
            more = () if len(trees) == 1 else ("--resume", "latest")
            done = gemtui("run --approval-mode yolo", *more, prompt)
        assert done.code == 0, done.err
    trees.append(files(project))
    assert len({str(tree) for tree in trees}) == 4
    session = gemtui.json("sessions")["sessions"][0]["id"]
    told = gemtui.json("checkpoints", session)["checkpoints"]
    commands = [each["command"] for each in told if each["command"]]
    assert commands == [tool["functionCall"]["args"]["command"] for _, tool in PROMPTS[1:]]
    assert [each["prompt"] for each in told if each["reason"] == "prompt"] == [1, 2, 3]
    files_changed = gemtui.json("review", session)["files"]
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
        gemtui.ok("redo --yes")
        assert files(project) == tree
    (project / "keep.txt").write_text("one\nTWO\nthree\nfour\nFIVE\n")
    both = gemtui.json("undo", session, "--to", "2", "--yes")
    has(both, merged=["keep.txt"], removed=["gen/x"], kept=[])
    assert (project / "keep.txt").read_text() == "one\ntwo\nthree\nfour\nFIVE\n"
    assert both["session"] in {each["id"] for each in gemtui.json("sessions")["sessions"]}
    assert repository(project) == before


def test_feedback_to_a_model_that_repeats_itself_counts_as_no_prompt(
    on_loopback: GeminiCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(on_loopback.project)
    make_repository(on_loopback.project)
    repeats = [answer(shell("true")) for _ in range(5)]
    prompts = [repeats, [answer(writes("a.txt", "a"))]]
    for more, turns in zip(([], ["--resume", "latest"]), prompts, strict=True):
        with ModelServer([*turns, answer(text("Done."))]) as model:
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
            gemtui.ok("run --approval-mode yolo", *more, "Go")
            heard = str(model.asked[-1].body["contents"])
    assert "Potential loop detected" in heard
    (session,) = gemtui.json("sessions")["sessions"]
    told = gemtui.json("checkpoints", session["id"])["checkpoints"]
    assert [each["prompt"] for each in told if each["reason"] == "prompt"] == [1, 2]
    assert session["prompts"] == 2
    undone = gemtui.json("undo", session["id"], "--to", "2", "--files", "--yes")
    has(undone, removed=["a.txt"], complete=True)


STASH = "git stash -u && git checkout -q other"
GENERATE = "rm -rf src && mkdir -p gen/deep && for i in 1 2 3; do echo $i > gen/deep/$i; done"
SUBAGENT = "generalist"
AGENT_TURNS: tuple[tuple[Mapping[str, Any], ...], ...] = (
    (writes("new/a.txt", "one\n"),),
    (
        call("replace", file_path="keep.txt", instruction="-", old_string="one", new_string="ONE"),
        shell(SED),
    ),
    (shell(GENERATE),),
    (shell(STASH),),
    (call("invoke_agent", agent_name=SUBAGENT, prompt="Write two files."),),
)
OF_SUBAGENT = (writes("new/a.txt", "by a subagent\n"), shell("mv keep.txt kept.txt"))


def answering(*turns: Sequence[Mapping[str, Any]]) -> ModelServer:
    """A model that makes these calls, and that writes two files as a subagent."""
    main = iter([*(answer(*turn) for turn in turns), answer(text("Done."))])
    end = call("complete_task", result={"response": "Written."})
    inner = iter([answer(*OF_SUBAGENT), answer(end)])
    return ModelServer(lambda r: next(inner if "complete_task" in r.tools else main))


def ask(
    gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, turn: Sequence[Mapping[str, Any]], *words: str
) -> ModelServer:
    """Run a prompt in yolo whose answer is `turn`; the model's server knows what it was sent."""
    with answering(turn) as model:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", model.url)
        done = gemtui("run --approval-mode yolo", *words)
    assert done.code == 0, done.err
    return model


def stored_texts(gemini: GeminiCli, id: str) -> list[str]:
    """What was said in the files of a session, as far as they are there."""
    found = sorted(gemini.store.rglob(f"chats/session-*-{id[:8]}.json*"))
    return [line for path in found for line in path.read_text().splitlines() if '"content"' in line]


def test_prompts_with_git_commands_and_a_subagent_are_undone_and_forked(
    on_loopback: GeminiCli, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = on_loopback.project
    monkeypatch.chdir(project)
    make_repository(project)
    git(project, "checkout", "-qb", "other")
    (project / "keep.txt").write_text("other\n")
    git(project, "commit", "-qam", "Other")
    git(project, "checkout", "-q", "-")
    trees = []
    for number, turn in enumerate(AGENT_TURNS, 1):
        trees.append(files(project))
        more = () if number == 1 else ("--resume", "latest")
        ask(gemtui, monkeypatch, turn, *more, f"Prompt {number}.")
    trees.append(files(project))
    assert len({str(tree) for tree in trees}) == 6
    repo = repository(project)
    session = gemtui.json("sessions")["sessions"][0]["id"]
    for to in (5, 4, 3, 2, 1):
        done = gemtui("undo", session, "--to", str(to), "--files", "--yes", "--json")
        assert (done.code, done.json["kept"], done.json["complete"]) == (0, [], True), done.out
        assert files(project) == trees[to - 1], to
    for to in (1, 2, 3, 4, 5):
        gemtui.ok("redo --yes")
        assert files(project) == trees[to]
    assert repository(project) == repo
    forks = [gemtui.json("fork", session, "--before", str(n)) for n in (2, 4, 5)]
    undone = gemtui.json("undo", session, "--to", "3", "--yes")
    assert files(project) == trees[2]
    assert repository(project) == repo
    ids = [session, undone["session"], *(each["session"] for each in forks)]
    before = on_loopback.plain_list()
    assert [id for id in ids if id not in before] == []
    another = (shell("rm keep.txt && git stash list > list"),)
    model = ask(gemtui, monkeypatch, another, "--resume", undone["session"], "Elsewhere.")
    sent = [part for each in model.asked[0].body["contents"] for part in each["parts"]]
    called = [part["functionCall"]["name"] for part in sent if "functionCall" in part]
    assert called == ["write_file", "replace", "run_shell_command"]
    assert sum("functionResponse" in part for part in sent) == 3
    stored = {id: stored_texts(on_loopback, id) for id in ids}
    assert all(stored.values())
    after = on_loopback.plain_list()
    assert [id for id in ids if id not in after] == []
    assert {id: stored_texts(on_loopback, id) for id in ids} == stored
    for id, to in ((undone["session"], 3), (undone["session"], 2), (session, 1)):
        done = gemtui("undo", id, "--to", str(to), "--files", "--yes", "--json")
        assert (done.code, done.json["kept"]) == (0, []), done.out
        assert files(project) == trees[to - 1], (id, to)
