from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.edits import block
from gemtui.calls.effect import (
    CallContext,
    Effect,
    EffectKind,
    effect,
    unescaped,
    unescapes,
    unwritable,
)
from tests.rows import each_row, table

TABLES = table("calls/effect.json")


def write(project: Path, path: str, content: str = "new\n", **context: Any) -> Effect:
    arguments = {"file_path": path, "content": content}
    return effect("write_file", arguments, CallContext(project=project, **context))


def edit(project: Path, old: str, new: str, *, path: str = "a.txt", **more: Any) -> Effect:
    arguments = {"file_path": path, "old_string": old, "new_string": new, **more}
    return effect("replace", arguments, CallContext(project=project))


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("sub", "@kept"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("sub")
    return tmp_path


@each_row(
    "spelled, real",
    [
        ("a%2etxt", "a.txt"),
        ("a%252etxt", "a%2etxt"),
        ("sub%2fn.txt", "sub/n.txt"),
        ("%2e%2e/x", "../x"),
        ("a%", "a%"),
        ("a\0.txt", "a.txt"),
        ("@sub/n.txt", "sub/n.txt"),
        ("@/sub/n.txt", "sub/n.txt"),
        ("link/n.txt", "sub/n.txt"),
        ("@kept/n.txt", "@kept/n.txt"),
    ],
)
def test_path_names_the_file_that_the_cli_writes(folders: Path, spelled: str, real: str) -> None:
    found = write(folders, spelled)
    assert found.path == os.path.normpath(folders / real)
    assert found.arguments["file_path"] == found.path.replace("%", "%25")
    again = effect("write_file", found.arguments, CallContext(project=folders))
    assert again.path == found.path


def test_undeclared_arguments_are_not_handed_back(tmp_path: Path) -> None:
    arguments = {"file_path": "a", "content": "x", "ai_proposed_content": "y"}
    found = effect("write_file", arguments, CallContext(project=tmp_path))
    assert found.arguments.keys() == {"file_path", "content"}


@each_row("model, means", TABLES["model_decides_whether_escapes_are_replaced"])
def test_model_decides_whether_escapes_are_replaced(model: str | None, means: bool | None) -> None:
    assert unescapes(model) is means


def test_escaped_text_is_shown_as_it_will_be_written(tmp_path: Path) -> None:
    text = '# one \\n\\\\"line\\"'
    found = write(tmp_path, "a.py", text, model="gemini-flash-latest")
    assert found.after == found.arguments["content"] == '# one \n"line"'
    assert unescaped(found.after) == found.after
    assert unwritable(found, text) is not None
    assert write(tmp_path, "a.json", text, model="gemini-flash-latest").after == text
    assert write(tmp_path, "a.py", text, model="gemini-2.5-pro").after == text


def test_text_that_another_model_may_change_is_not_certain(tmp_path: Path) -> None:
    assert not write(tmp_path, "a.py", "a\\nb", corrects=True).certain
    assert write(tmp_path, "a.py", "plain", corrects=True).certain
    (tmp_path / "a.txt").write_text("one\n")
    context = CallContext(project=tmp_path, corrects=True)
    args = {"file_path": "a.txt", "old_string": "nowhere to be found", "new_string": "x"}
    assert not effect("replace", args, context).certain


def test_line_ends_of_an_existing_file_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\n")
    assert write(tmp_path, "a.txt", "x\ny\n").after == "x\r\ny\r\n"
    assert edit(tmp_path, "one\n", "1\n").after == "1\r\ntwo\r\n"


def test_loose_edit_becomes_an_exact_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("def f():\n    if x:\n        return 1\n\nend\n")
    found = edit(tmp_path, "if x:\n  return 1", "if y:\n    return 2")
    assert found.after == "def f():\n    if y:\n        return 2\n\nend\n"
    again = effect("replace", found.arguments, CallContext(project=tmp_path))
    assert (again.after, again.remarks) == (found.after, ())


@each_row("before, after", TABLES["block_is_in_the_text_once"])
def test_block_is_in_the_text_once(before: str, after: str) -> None:
    old, new = block(before, after)
    assert before.count(old) == 1
    changed = before.replace(old, new)
    assert changed == after or changed == f"{after}\n"


@each_row("old, new, why", TABLES["edit_that_the_tool_refuses_says_why"])
def test_edit_that_the_tool_refuses_says_why(tmp_path: Path, old: str, new: str, why: str) -> None:
    (tmp_path / "a.txt").write_text("one one two\n")
    found = edit(tmp_path, old, new)
    assert found.after is None
    assert why in (found.fails or "")


def test_what_can_not_be_read_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    (tmp_path / "loop").symlink_to("loop")
    assert edit(tmp_path, "a", "b").fails == "it is not a regular file"
    assert write(tmp_path, "loop").fails
    assert write(tmp_path, "a.txt/b").fails


def test_mark_changes_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    before = write(tmp_path, "a.txt").mark
    assert write(tmp_path, "a.txt").mark == before
    (tmp_path / "a.txt").write_text("two\n")
    assert write(tmp_path, "a.txt").mark != before


def test_command_is_the_one_that_bash_runs(tmp_path: Path) -> None:
    arguments = {"command": "sh -c 'echo hi'", "dir_path": "sub"}
    found = effect("run_shell_command", arguments, CallContext(project=tmp_path))
    assert (found.kind, found.command, found.folder) == (
        EffectKind.COMMAND,
        "echo hi",
        str(tmp_path / "sub"),
    )


def test_plans_land_in_their_folder(tmp_path: Path) -> None:
    plans = tmp_path / "plans"
    plans.mkdir()
    assert write(tmp_path / "project", "next.md", plans=plans).path == str(plans / "next.md")
    assert write(tmp_path / "project", "/etc/x.md", plans=plans).fails
