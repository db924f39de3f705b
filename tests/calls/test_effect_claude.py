"""What calls of Claude Code do, by their arguments and the disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.calls.effect import CallContext, Effect, EffectKind, digest
from gemtui.calls.effect_claude import claude_effect

TWO = "one\ntwo\n"


def effect_of(folder: Path, tool: str, name: str, **arguments: object) -> Effect:
    arguments["file_path"] = str(folder / name)
    return claude_effect(tool, arguments, CallContext(project=folder))


EDITS: list[tuple[bytes | None, Mapping[str, Any], bytes | str]] = [
    (b"one\ntwo\n", {"old": "two", "new": "2"}, b"one\n2\n"),
    (b"one\r\ntwo\r\n", {"old": "one\ntwo", "new": "1\n2"}, b"1\r\n2\r\n"),
    (b"\xef\xbb\xbfone\n", {"old": "one", "new": "1"}, b"\xef\xbb\xbf1\n"),
    (b"one\ntwo", {"old": "two", "new": "2 \\n$&"}, b"one\n2 \\n$&"),
    (b"one\ntwo\n", {"old": "one", "new": ""}, b"two\n"),
    (b"one two\n", {"old": "one", "new": ""}, b" two\n"),
    (b"a\na\na", {"old": "a", "new": "b", "replace_all": True}, b"b\nb\nb"),
    (b"", {"old": "", "new": "new"}, b"new"),
    (None, {"old": "", "new": "new\n"}, b"new\n"),
    (b"a\na\n", {"old": "a", "new": "b"}, "the text to replace occurs 2 times"),
    (b"a\n", {"old": "b", "new": "c"}, "the text to replace is not in the file exactly"),
    (b"a\n", {"old": "a", "new": "a"}, "nothing would change"),
    (b"a\n", {"old": "", "new": "a"}, "it would create a file that already exists"),
    (None, {"old": "a", "new": "b"}, "the file to edit does not exist"),
    (b"caf\xe9\n", {"old": "c", "new": "b"}, "it is not valid UTF-8"),
]


@pytest.mark.parametrize(("before", "edit", "after"), EDITS)
def test_an_edit_becomes_what_claude_code_writes(
    before: bytes | None, edit: Mapping[str, Any], after: bytes | str, tmp_path: Path
) -> None:
    if before is not None:
        (tmp_path / "a.txt").write_bytes(before)
    texts = {"old_string": edit["old"], "new_string": edit["new"]}
    several = {"replace_all": edit.get("replace_all", False)}
    effect = effect_of(tmp_path, "Edit", "a.txt", **texts, **several)
    if isinstance(after, str):
        assert effect.fails == after
    else:
        assert (effect.fails, effect.certain, effect.becomes) == (None, True, digest(after))


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (None, "a\\nb\r\n", b"a\\nb\r\n"),
        (b"one\r\n", "1\n", b"1\n"),
        (b"\xef\xbb\xbfone\n", "1\n", b"\xef\xbb\xbf1\n"),
        (b"\xef\xbb\xbfone\n", "", b""),
        (None, "\ufeff1", b"\xef\xbb\xbf1"),
        (None, "\ud83d", b"\xef\xbf\xbd"),
    ],
)
def test_a_text_is_written_byte_for_byte_and_keeps_the_mark_of_the_file(
    before: bytes | None, content: str, after: bytes, tmp_path: Path
) -> None:
    if before is not None:
        (tmp_path / "a.txt").write_bytes(before)
    effect = effect_of(tmp_path, "Write", "a.txt", content=content)
    assert (effect.fails, effect.becomes) == (None, digest(after))


@pytest.mark.parametrize(
    ("before", "tool"),
    [
        ("one\n".encode("utf-16"), "Write"),
        (b"one\r\ntwo\n", "Edit"),
        (b"one\rtwo\n", "Edit"),
        (b"\xef\xbb\xbfone", "Write"),
    ],
)
def test_what_is_not_known_exactly_is_not_certain(before: bytes, tool: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(before)
    texts = {"content": "\ufeffx", "old_string": "one", "new_string": "1"}
    effect = effect_of(tmp_path, tool, "a.txt", **texts)
    assert (effect.fails, effect.certain, effect.after) == (None, False, None)


def test_a_link_to_a_file_fails_and_a_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file").symlink_to("real/a.txt")
    assert effect_of(tmp_path, "Write", "folder/a.txt", content="").path == str(
        tmp_path / "real/a.txt"
    )
    assert "symbolic link" in str(effect_of(tmp_path, "Write", "file", content="").fails)


@pytest.mark.parametrize("name", ["a\0b", "a\udcff", "real"])
def test_a_path_that_can_not_be_written_fails(name: str, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    assert effect_of(tmp_path, "Write", name, content="").fails is not None


def test_only_one_of_a_file_s_names_changes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TWO)
    os.link(tmp_path / "a.txt", tmp_path / "b.txt")
    effect = effect_of(tmp_path, "Write", "a.txt", content="x")
    assert effect.remarks == ("it has 2 names (hard links): only this one changes",)
    assert effect.names == 2


def test_a_command_runs_where_the_shell_is_now(tmp_path: Path) -> None:
    context = CallContext(project=tmp_path / "sub")
    effect = claude_effect("Bash", {"command": "ls", "run_in_background": True}, context)
    assert (effect.command, effect.folder) == ("ls", str(tmp_path / "sub"))
    assert effect.remarks == ("it goes on in the background",)


@pytest.mark.parametrize("tool", ["Read", "NotebookEdit", "Task", "mcp__a__b"])
def test_other_calls_have_their_arguments(tool: str, tmp_path: Path) -> None:
    effect = claude_effect(tool, {"a": 1}, CallContext(project=tmp_path))
    assert (effect.kind, json.dumps(effect.arguments)) == (EffectKind.OTHER, '{"a": 1}')


def test_a_missing_argument_fails(tmp_path: Path) -> None:
    assert effect_of(tmp_path, "Write", "a.txt").fails is not None
