"""`gemtui review`: what a session changed, by whom; and reverting some of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.errors import UndoError
from gemtui.runs.undo import review as reviews
from tests.cli.conftest import Gemtui, has
from tests.runs.reviewed import LINES, recorded, shell, with_checkpoints
from tests.sessions.stores import uuid

ID = uuid(1)


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    del home
    recorded(tmp_path / "proj")
    with_checkpoints(tmp_path / "proj")
    return tmp_path / "proj"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that are asked; each is declined."""
    questions: list[str] = []
    monkeypatch.setattr("gemtui.commands.output.require_terminal", lambda: None)
    monkeypatch.setattr("gemtui.commands.undo.require_terminal", lambda: None)
    monkeypatch.setattr("click.confirm", lambda question, **_: questions.append(question))
    return questions


def hunks(told: Any) -> dict[tuple[str, str], str]:
    """The ids of hunks by path and owner."""
    return {
        (file["path"], hunk["owner"]): hunk["id"]
        for file in told["files"]
        for hunk in file["hunks"]
    }


def test_each_hunk_has_an_owner_and_can_be_reverted_and_redone(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    told = gemtui.json("review", ID)
    found = hunks(told)
    assert set(found) == {
        ("a.txt", "tool"),
        ("a.txt", "person"),
        ("b.txt", "shell"),
        ("new.txt", "tool"),
    }
    has(told, version=1, session=ID, complete=False)
    assert "rm -rf build" in "".join(told["notes"])
    shell = next(each["hunks"][0] for each in told["files"] if each["path"] == "b.txt")
    assert shell["command"] == "sed -i s/old/new/ b.txt"
    assert shell["text"] == "@@ -1,1 +1,1 @@\n-old\n+by\x1b[31m shell\n"
    assert {each["path"]: each["change"] for each in told["files"]} == {
        "a.txt": "modified",
        "b.txt": "modified",
        "new.txt": "added",
    }
    plain = gemtui("review", ID)
    assert "sed -i s/old/new/ b.txt" in plain.out
    assert "\x1b" not in plain.out

    gemtui("review", ID, "--revert", shell["id"]).refuses("--yes")
    done = gemtui("review", ID, "--revert", shell["call"], "--yes", "--json")
    assert (done.code, done.json["reverted"]) == (0, [shell["id"]])
    assert hunks(done.json) == {key: id for key, id in found.items() if key[1] != "shell"}
    assert (project / "b.txt").read_text() == "old\n"
    ids = [found["a.txt", "tool"], found["new.txt", "tool"]]
    gemtui.ok("review", ID, *(w for id in ids for w in ("--revert", id)), "--yes")
    assert (project / "a.txt").read_text() == "".join(LINES).replace("line 7", "mine")
    assert not (project / "new.txt").exists()
    assert gemtui("redo --yes").code == gemtui("redo --yes").code == 0
    assert hunks(gemtui.json("review", ID)) == found


def test_later_lines_that_a_revert_leaves_are_named(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    shell(project, "k2", "tee b.txt", "later\n")
    told = gemtui.json("review", ID)
    first, second = next(each["hunks"] for each in told["files"] if each["path"] == "b.txt")
    assert (first["changed"], second["changed"]) == ([], [first["call"]])
    assert "tee b.txt, changed lines written by run_shell_command: sed" in gemtui("review", ID).out
    done = gemtui("review", ID, "--revert", first["id"], "--yes")
    assert (
        "not reverted: b.txt:1: run_shell_command: tee b.txt changed lines written by" in done.out
    )
    assert second["id"] in done.out
    gemtui.ok("redo --yes")
    both = [word for each in (first, second) for word in ("--revert", each["id"])]
    done = gemtui("review", ID, *both, "--yes", "--json")
    assert (done.json["built_on"], len(done.json["reverted"])) == ([], 2)
    assert (project / "b.txt").read_text() == "old\n"


def test_a_hunk_that_is_gone_is_left_alone_and_named(project: Path, gemtui: Gemtui) -> None:
    found = hunks(gemtui.json("review", ID))
    text = (project / "a.txt").read_text().replace("agent", "edited since")
    (project / "a.txt").write_text(text)
    id = found["a.txt", "tool"]
    done = gemtui("review", ID, "--revert", id, "--revert", found["b.txt", "shell"], "--yes")
    assert done.code == 1
    assert f"left alone: {id}: this change is no longer in the files" in done.out
    assert (project / "a.txt").read_text() == text
    assert (project / "b.txt").read_text() == "old\n"
    assert gemtui("review", ID, "--revert", "nonsense", "--yes").code == 2


def test_while_a_run_works_nothing_is_reverted(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: Path) -> None:
        raise UndoError("a run works here: wait")

    id = hunks(gemtui.json("review", ID))["b.txt", "shell"]
    monkeypatch.setattr(reviews, "require_idle", busy)
    done = gemtui("review", ID, "--revert", id, "--yes")
    assert (done.code, done.complaint) == (1, "gemtui: a run works here: wait")
    assert "shell" in (project / "b.txt").read_text()


def test_a_folder_that_is_gone_is_not_called_unknown(project: Path, gemtui: Gemtui) -> None:
    project.rename(project.parent / "elsewhere")
    told = gemtui.json("review", ID)
    has(told, files=[], complete=False)
    assert told["notes"] == [
        f"The folder of this session is gone, so its files can't be undone: {project}"
    ]
    planned = gemtui.json("undo", ID, "--dry-run")
    has(planned, complete=False, notes=told["notes"])


@pytest.mark.parametrize(
    "line", ["undo", "undo gemini:latest", "review --revert h0123456789", "fork"]
)
def test_in_a_folder_without_sessions_a_command_that_writes_wants_a_session(
    project: Path, gemtui: Gemtui, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (project / "a.txt").read_text()
    yes = () if line == "fork" else ("--yes",)
    gemtui(line, *yes).refuses("no session of this folder: name one, such as `gemtui")
    assert (project / "a.txt").read_text() == before


def test_a_plan_and_a_question_name_the_session_and_its_folder_unless_it_is_this_one(
    project: Path,
    gemtui: Gemtui,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[str],
) -> None:
    name = f"session {ID[:8]} (Change the text.)"
    monkeypatch.chdir(project)
    assert gemtui("undo --dry-run").out.startswith(f"{name}\n")
    monkeypatch.chdir(tmp_path)
    assert gemtui("undo --dry-run", ID).out.startswith(f"{name} in {project}\n")
    gemtui("undo", ID)
    gemtui("review --revert", hunks(gemtui.json("review", ID))["new.txt", "tool"], ID)
    assert [f"of {name} in {project}" in question for question in asked] == [True, True]


def test_where_nothing_would_change_no_question_is_asked_about_files(
    project: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    monkeypatch.chdir(project)
    gemtui("undo --files --yes")
    gemtui.ok("undo --files").shows("No files need to be changed.")
    nothing = gemtui("review --revert h0123456789")
    assert (nothing.code, "left alone: h0123456789" in nothing.out) == (1, True)
    assert asked == []
    gemtui("undo")
    assert [question.partition(" of ")[0] for question in asked] == ["Undo chat"]
