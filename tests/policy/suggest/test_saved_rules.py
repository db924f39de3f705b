"""Rules that Gemini CLI saved are compared with the calls for which they were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import Call, CallStatus, RecordedCall
from gemtui.policy.suggest.saved_rules import SavedRules, saved_findings
from tests.rows import each_row

PROJECT = Path("/home/me/app")


def called(tool: str, **args: Any) -> RecordedCall:
    ended = CallStatus.SUCCEEDED
    return RecordedCall(call=Call(tool, args), session="s", id="c", ended=ended, project=PROJECT)


def ran(*commands: str) -> list[RecordedCall]:
    return [called("run_shell_command", command=command) for command in commands]


def told(rule: str, calls: list[RecordedCall]) -> list[tuple[str, str]]:
    text = f'[[rule]]\ndecision = "allow"\npriority = 950\n{rule}\n'
    saved = SavedRules(Policy.parse(text).rules)
    saved.feed(calls[:1])
    saved.feed(calls[1:])
    return [(found.message, found.way_out) for found in saved_findings(saved.unmatched(), 3)]


def prefix(text: str) -> str:
    return f'toolName = "run_shell_command"\ncommandPrefix = ["{text}"]'


@each_row(
    "saved, command, better",
    [
        ("gradlew", "./gradlew test", "./gradlew"),
        ("updateFiles", "/path/to/updateFiles -v a", "/path/to/updateFiles"),
        ("npm test", "CI=1 npm test", "CI=1 npm test"),
        ("gradlew", "cd app && ./gradlew test", "./gradlew"),
    ],
)
def test_a_saved_command_without_its_folder_is_told_with_the_prefix_that_matches(
    saved: str, command: str, better: str
) -> None:
    ((message, way_out),) = told(prefix(saved), ran("ls", command, command))
    assert message == f"matches no call in 3 sessions; 2 similar calls such as: {command}"
    assert way_out == f'write "{better}"'
    assert told(prefix(better), ran(command)) == []


@each_row(
    "saved, command",
    [
        ("make", "rm make -rf /"),
        ("npm test", "sudo npm test"),
        ("./gradlew", "/tmp/other/gradlew test"),
        ("gradlew", "CI=1 sudo ./gradlew"),
        (" ", "ls"),
    ],
)
def test_no_rule_is_told_that_would_allow_another_program(saved: str, command: str) -> None:
    assert told(prefix(saved), ran(command)) == [("matches no call in 3 sessions", "")]


def test_a_saved_file_is_matched_however_a_call_spells_it() -> None:
    rule = 'toolName = "write_file"\nargsPattern = \'\\x00"file_path":"src/a\\.py"\\x00\''
    here = called("write_file", file_path="src/a.py", content="x")
    absolute = called("write_file", file_path="/home/me/app/src/a.py", content="x")
    other = called("write_file", file_path="src/b.py", content="x")
    assert told(rule, [here]) == []
    ((message, way_out),) = told(rule, [absolute, other])
    assert message.endswith("1 similar call such as: /home/me/app/src/a.py")
    pattern = way_out.removeprefix("write '").removesuffix("'")
    assert told(f"toolName = \"write_file\"\nargsPattern = '{pattern}'", [absolute]) == []


def test_a_rule_for_which_there_are_no_calls_at_all_is_told_without_another() -> None:
    assert told(prefix("make"), ran("makefile", "ls")) == [("matches no call in 3 sessions", "")]
    server = 'mcpName = "github"\ntoolName = "search"'
    assert told(server, [called("mcp_github_search")]) == []
    assert told(server, [called("mcp_gitlab_search")]) != []


def test_nothing_is_told_of_a_rule_whose_pattern_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gemtui.policy.match.patterns.LIMIT", 0.05)
    slow = 'toolName = "run_shell_command"\ncommandRegex = "(a|a)*$"'
    assert told(slow, ran(f"{'a' * 60}b", "ls")) == []
