"""`gemtui files`: what sessions wrote, as lines, as JSON, and as a patch that git takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Gemtui, has, put, values
from tests.cli.shapes import fits
from tests.rows import each_row, table
from tests.sessions import logs
from tests.sessions.stores import session, talk, uuid
from tests.sessions.writes import wrote
from tests.transcript.test_patch import apply

TABLES = table("cli/files.json")


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    marker = home / ".gemini" / "tmp" / "proj" / ".project_root"
    put(marker, str(folder))
    monkeypatch.chdir(folder)
    return folder


def stored(home: Path, number: int, *messages: dict[str, Any]) -> str:
    id = uuid(number)
    session(home / ".gemini", id, [*talk(id, f"Prompt {number}"), *messages])
    return id


def test_which_sessions_wrote_a_file(gemtui: Gemtui, home: Path, project: Path) -> None:
    path = project / "src" / "a.py"
    one = stored(home, 1, wrote(path, None, "a\n", seconds=20))
    two = stored(
        home,
        2,
        wrote(path, "a\n", "b\n", seconds=40),
        wrote(path, "b\n", "c\n", seconds=50, status="error"),
        wrote(project / "never.py", None, "x", seconds=60, status="error"),
    )
    report = gemtui.json("files")
    fits(report, "Files")
    (file,) = report["files"]
    has(file, path=str(path), project=str(project))
    assert values(file["writes"], "session", "status") == [
        (one, "success"),
        (two, "success"),
        (two, "error"),
    ]
    lines = gemtui("files a.py").out.splitlines()
    assert [line.split()[-3:] for line in lines[1:]] == [
        [two[:8], "write_file", "error"],
        ["write_file", "+1", "-1"],
        ["+1", "-1", "new"],
    ]
    for wanted in ("src", "src/a.py", str(path), "./src"):
        assert len(gemtui.json("files", wanted)["files"]) == 1
    nothing = gemtui("files b.py")
    assert (nothing.code, nothing.out) == (1, "")
    assert len(gemtui.json("files --session", one)["files"][0]["writes"]) == 1


def test_all_changes_of_a_project_as_one_patch(gemtui: Gemtui, home: Path, project: Path) -> None:
    kept, new = project / "two words.txt", project / "src" / "new.py"
    stored(home, 1, wrote(kept, "one\n", "two\n", seconds=20), wrote(new, None, "a", seconds=22))
    stored(home, 2, wrote(kept, "two\n", "three\n", seconds=40))
    stored(home, 3, wrote(project.parent / "outside.txt", None, "x", seconds=50))
    patch = gemtui.ok("files --patch")
    left_out = f"left out: not in {project}: 1 file"
    assert [left_out, f"{project.parent}/outside.txt"] == [
        line.removeprefix("gemtui: ") for line in patch.err.splitlines()
    ]
    kept.write_text("one\n")
    apply(project, patch.out)
    assert kept.read_text() == "three\n"
    assert new.read_text() == "a"


def test_what_something_else_changed_in_between_is_said(
    gemtui: Gemtui, home: Path, project: Path
) -> None:
    path = project / "a.txt"
    stored(home, 1, wrote(path, "1\n", "2\n", seconds=20), wrote(path, "two\n", "3\n", seconds=30))
    patch = gemtui("files --patch")
    assert "includes changes that no session wrote: 1 file" in patch.err
    path.write_text("1\n")
    apply(project, patch.out)
    assert path.read_text() == "3\n"


def test_a_file_that_was_written_without_a_change_makes_no_patch(
    gemtui: Gemtui, home: Path, project: Path
) -> None:
    stored(home, 1, wrote(project / "a", "x\n", "x\n", seconds=20))
    patch = gemtui("files --patch")
    assert (patch.code, patch.out) == (1, "")
    assert patch.err == "gemtui: there are no changes to put in a patch\n"
    assert gemtui("files b --patch").err == "gemtui: no session wrote a matching file\n"


def test_a_base_that_is_not_recorded_is_said(gemtui: Gemtui, home: Path, project: Path) -> None:
    old = logs.call(
        "c", 5, name="write_file", args={"file_path": str(project / "a"), "content": "x"}
    )
    stored(home, 1, logs.gemini("g", "", 5, toolCalls=[old]))
    patch = gemtui("files --patch")
    assert (patch.code, patch.out) == (1, "")
    assert "left out: its contents before the write are not recorded: 1 file" in patch.err


@each_row("since, files", TABLES["since"])
def test_since(gemtui: Gemtui, home: Path, project: Path, since: str, files: int) -> None:
    stored(home, 1, wrote(project / "a", None, "x", seconds=20))
    stored(home, 2, wrote(project / "b", None, "x", seconds=40))
    assert len(gemtui.json("files --since", since)["files"]) == files


def test_a_subagents_writes_are_its_sessions(gemtui: Gemtui, home: Path, project: Path) -> None:
    parent = stored(home, 1)
    path = home / ".gemini/tmp/proj/chats" / parent / "abc12345.jsonl"
    head = logs.header("abc12345", kind="subagent")
    logs.write(path, [head, logs.user("u", "Go"), wrote(project / "a", None, "x", seconds=20)])
    (file,) = gemtui.json("files")["files"]
    (written,) = file["writes"]
    has(written, session=parent, subagent="abc12345")
