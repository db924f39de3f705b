"""What a call would do, and the arguments that do what a person wrote instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import ApprovalRequest
from gemtui.runs.gate.proposal import Form, Proposal, proposal_of
from tests.rows import each_row, table


def proposed(tool: str, args: Mapping[str, Any], cwd: Path) -> Proposal:
    return proposal_of(ApprovalRequest(tool_name=tool, arguments=args), cwd)


def signs(found: Proposal) -> list[str]:
    assert found.diff is not None
    return [line for line in found.diff.diff.split("\n")[2:] if line[:1] in ("+", "-")]


@each_row("promise, cases", table("runs/proposals_of_files.json").items())
def test_what_a_call_would_do_to_a_file_is_told(
    tmp_path: Path, promise: str, cases: list[dict[str, Any]]
) -> None:
    for case in cases:
        (tmp_path / "a.txt").write_text(case["before"], newline="")
        found = proposed(case["tool"], case["args"], tmp_path)
        if "signs" in case:
            assert signs(found) == case["signs"], promise
        if "refusal" in case:
            assert case["refusal"] in found.remarks[-1]
            assert found.refusal() == found.remarks[-1]
        assert found.text == case.get("text", found.text)
        assert [*found.remarks] == case.get("remarks", [*found.remarks])
        if "typed" in case:
            assert found.changed(case["typed"]) == case["changed"]


def test_a_proposal_is_of_the_file_that_would_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    found = proposed("write_file", {"file_path": "a%2etxt", "content": "2\n"}, tmp_path)
    assert signs(found) == ["-one", "+2"]
    assert found.remarks == (f"Gemini CLI reads this path as {tmp_path / 'a.txt'}",)
    escaped = proposed("write_file", {"file_path": "b.py", "content": "# a\\nb"}, tmp_path)
    assert signs(escaped) == ["+# a", "+b"]
    assert "choose another model" in str(escaped.refusal("# a\\nb"))


@pytest.mark.parametrize(("value", "others"), [(False, []), (True, [("allow_multiple", "True")])])
def test_a_switch_is_shown_only_if_it_is_on(
    tmp_path: Path, value: bool, others: list[tuple[str, str]]
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    args = {"file_path": "a.txt", "old_string": "one", "new_string": "1", "allow_multiple": value}
    assert [*proposed("replace", args, tmp_path).others()] == others


def test_what_the_path_hides_is_said(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "bashrc").write_text("x\n")
    (project / "out.txt").symlink_to(tmp_path / "bashrc")
    (project / "in.txt").symlink_to(project / "real.txt")
    for path in ("out.txt", "../bashrc"):
        found = proposed("write_file", {"file_path": path, "content": "y"}, project)
        assert found.remarks == (f"outside of the run's folder: {tmp_path / 'bashrc'}",)
    inside = proposed("write_file", {"file_path": "in.txt", "content": "y"}, project)
    assert f"a symbolic link to {project / 'real.txt'}" in inside.remarks


@pytest.mark.parametrize("path", ["/dev/zero", ".", "a\0b"])
def test_what_is_no_file_is_not_read(tmp_path: Path, path: str) -> None:
    found = proposed("write_file", {"file_path": path, "content": "y"}, tmp_path)
    assert found.form is Form.FILE
    assert found.remarks


def test_a_binary_file_is_shown_as_gemini_cli_reads_it(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    found = proposed("write_file", {"file_path": "binary", "content": "y"}, tmp_path)
    assert "not valid UTF-8" in found.remarks[0]


def test_a_command_is_text_with_its_dangers(tmp_path: Path) -> None:
    found = proposed("run_shell_command", {"command": "ls; rm x", "dir_path": "a"}, tmp_path)
    assert found.form is Form.COMMAND
    assert [found.text[each.start : each.end] for each in found.dangers] == ["rm x"]
    assert found.changed("ls\n") == {"command": "ls\n", "dir_path": "a"}
    with pytest.raises(ValueError, match="empty"):
        found.changed(" \n")


def test_other_arguments_are_json(tmp_path: Path) -> None:
    args = {"q": "a\0b", "n": [1, {"x": None}]}
    found = proposed("mcp_docs_search", args, tmp_path)
    assert found.form is Form.ARGUMENTS
    assert json.loads(found.text) == args
    assert "\\u202e" in proposed("mcp_x", {"q": "\u202e"}, tmp_path).text
    assert found.changed('{"q": "b"}') == {"q": "b"}
    for bad in ("[1]", "{", "", "[" * 100_000, '{"size": 1e999}'):
        with pytest.raises(ValueError):
            found.changed(bad)


@pytest.mark.parametrize(("tool", "args"), table("runs/proposal.json"))
def test_arguments_of_any_shape_are_shown(
    tmp_path: Path, tool: str, args: Mapping[str, Any]
) -> None:
    assert proposed(tool, args, tmp_path).form is Form.ARGUMENTS
