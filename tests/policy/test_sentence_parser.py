"""Sentences make rules that hold against the known ways around them, and are read back."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import explicit_fields, rules_to_toml
from gemtui.policy.match.matching import dropped, pattern_sources
from gemtui.policy.match.patterns import slow
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.policy.sentence_parser import (
    read_sentences,
    rules_of,
    sentence_completions,
    sentence_of,
)
from tests.policy.test_recipes import NOT_LOCAL, NOT_TESTS, SHELL
from tests.rows import each_row, table

TABLES = table("policy/sentences.json")

PROJECT = Path("/home/me/app")
GOAL = "allow read; allow edit src/**; allow npm test; deny git push; deny everything else"
ALLOW, ASK, DENY = Decision.ALLOW, Decision.ASK_USER, Decision.DENY


def decided(text: str, tool: str, args: dict[str, Any], mode: str = "yolo") -> Decision:
    toml = rules_to_toml(rules_of(read_sentences(text, PROJECT)))
    policy = Policy.parse(toml)
    assert not policy.findings
    return Engine(policy, mode=ApprovalMode(mode)).outcome(Call(tool, args)).decision


def runs(text: str, command: str, mode: str = "yolo") -> Decision:
    return decided(text, SHELL, {"command": command}, mode)


def edits(text: str, path: str, mode: str = "yolo") -> Decision:
    return decided(text, "write_file", {"file_path": path, "content": '"src/x'}, mode)


AS_AGENTS_RUN_TESTS = TABLES["as_agents_run_tests"]
MORE_THAN_TESTS = [*NOT_TESTS, *TABLES["more_than_tests"]]


@each_row("mode", ["default", "auto_edit", "yolo"])
def test_nothing_but_the_goal_is_allowed(mode: str) -> None:
    assert [each for each in AS_AGENTS_RUN_TESTS if runs(GOAL, each, mode) is not ALLOW] == []
    assert [each for each in MORE_THAN_TESTS if runs(GOAL, each, mode) is not DENY] == []
    inside, outside = (
        ["src/a.py", "./src/b/c.py", "/home/me/app/src/a"],
        ["a", "src/../a", "/src/a"],
    )
    assert {edits(GOAL, each, mode) for each in inside} == {ALLOW}
    assert {edits(GOAL, each, mode) for each in outside} == {DENY}
    rest = [tool.name for tool in TOOLS if tool.name not in ("read_file", "glob", "grep_search")]
    others = [name for name in rest if name not in ("read_many_files", "list_directory")]
    assert {decided(GOAL, each, {}, mode) for each in (*others, "mcp_a_b")} == {DENY}
    assert decided(GOAL, "read_file", {"file_path": "a"}, mode) is ALLOW


def test_a_deny_finds_its_words_anywhere_and_names_what_it_cannot_close() -> None:
    found = ["git push", "git  push", "git -C . push", "env git push", "git -c alias.p=push p"]
    found += ["/usr/bin/git push", "X=1 git push", "true && git push"]
    assert {runs("deny git push", each) for each in found} == {DENY}
    (alone,) = read_sentences("deny git push")
    assert any("alias" in limit and "deny everything else" in limit for limit in alone.limits)
    beside = read_sentences("deny git push; deny everything else")[0]
    assert not any("alias" in limit for limit in beside.limits)
    assert {runs("deny git push; deny everything else", each) for each in NOT_LOCAL} == {DENY}


def test_a_denied_path_is_found_however_it_is_named() -> None:
    ways = ["src/gen/a", "./src/gen/a", "src/./gen/a", "src/x/../gen/a", "/home/me/app/src/gen/a"]
    text = "deny edit src/gen/**; deny read .env"
    assert {edits(text, each) for each in ways} == {DENY}
    assert {edits(text, each) for each in ["src/a", "gen/a", "mysrc/gen/a"]} == {ALLOW}
    reads: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"file_path": "a/../.env"}),
        ("read_many_files", {"include": ["a", ".env"]}),
    ]
    assert {decided(text, tool, args) for tool, args in reads} == {DENY}
    assert decided(text, "read_file", {"file_path": ".environment"}) is ALLOW


@each_row("text", ["a" * 5000, "allow edit " + "a/" * 5000, f"allow run {'./a' * 5000}"])
def test_a_word_longer_than_any_path_is_read(text: str, tmp_path: Path) -> None:
    assert len(read_sentences(text, tmp_path)) == 1


@each_row("text, problem", TABLES["what_makes_no_rule_says_why"])
def test_what_makes_no_rule_says_why(text: str, problem: str) -> None:
    (found,) = read_sentences(text, PROJECT)
    assert not found.rules
    assert problem in found.problem


@each_row("text", [*GOAL.split("; "), *TABLES["a_rule_is_read_back_as_its_sentence"]])
@each_row("project", [PROJECT, None])
def test_a_rule_is_read_back_as_its_sentence(text: str, project: Path | None) -> None:
    (rule,) = rules_of(read_sentences(text, project))
    assert sentence_of(rule) == text
    for pattern in filter(None, pattern_sources(rule)):
        assert not dropped(pattern)
        assert not slow(pattern)
    if text != "allow run":
        assert check_text(rules_to_toml([rule]), "x.toml") == ()


def test_an_allow_that_a_deny_hits_says_so() -> None:
    _, allowed = read_sentences("deny git; allow git status")
    assert any(limit.startswith("Never applies, because “deny git”") for limit in allowed.limits)


def test_sentences_are_compared_with_each_other_in_little_time() -> None:
    def seconds(count: int) -> float:
        text = "; ".join(f"allow npm run a{n}; deny npm run b{n}" for n in range(count))
        began = process_time()
        read_sentences(text)
        return process_time() - began

    assert seconds(400) < 10 * max(seconds(100), 0.01)


def test_the_last_sentence_is_completed() -> None:
    assert sentence_completions("allow read; de") == ("allow read; deny ",)
    assert sentence_completions("allow edit s", folders=["src"]) == ("allow edit src/**",)
    assert sentence_completions("deny git p") == ("deny git push",)
    assert sentence_completions("permit r") == ()


@each_row(
    "text, expected", TABLES["a_sentence_about_a_servers_tool_uses_the_name_that_gemini_cli_uses"]
)
def test_a_sentence_about_a_servers_tool_uses_the_name_that_gemini_cli_uses(
    text: str, expected: dict[str, Any]
) -> None:
    (sentence,) = read_sentences(text)
    (rule,) = sentence.rules
    found = explicit_fields(rule)
    assert {
        name: value
        for name, value in found.items()
        if name in ("toolName", "mcpName", "toolAnnotations")
    } == expected


def test_a_sentence_about_a_tool_that_no_rule_can_name_says_so() -> None:
    (sentence,) = read_sentences("allow mcp büro")
    assert "never matches a tool of the server" in sentence.problem
    (sentence,) = read_sentences(f"deny mcp_server_{'a' * 60}")
    assert "did you mean mcp_server_aaa" in sentence.problem


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("src", "tests", "docs"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def call_of(text: str) -> Call:
    tool, _, argument = text.partition(" ")
    if tool == "$":
        return Call(SHELL, {"command": argument})
    if tool == "edit":
        return Call("write_file", {"file_path": argument, "content": ""})
    if tool == "read":
        return Call("read_file", {"file_path": argument})
    return Call({"web": "web_fetch", "agent": "invoke_agent"}[tool], {})


@each_row("text, allowed, denied, asked, untouched", TABLES["sentences_as_people_write_them"])
def test_sentences_as_people_write_them_mean_what_they_say(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    allowed: list[str],
    denied: list[str],
    asked: list[str],
    untouched: list[str],
) -> None:
    monkeypatch.setenv("PATH", "")  # what the machine has makes no difference
    sentences = read_sentences(text, project)
    assert [sentence.problem for sentence in sentences if sentence.problem] == []
    policy = Policy.parse(rules_to_toml(rules_of(sentences)))
    default = Engine(policy, mode=ApprovalMode.DEFAULT)
    yolo = Engine(policy, mode=ApprovalMode.YOLO)
    expected = dict.fromkeys(denied, DENY) | dict.fromkeys(asked, ASK)
    expected |= dict.fromkeys([*allowed, *untouched], ALLOW)
    assert {call: yolo.outcome(call_of(call)).decision for call in expected} == expected
    assert {default.outcome(call_of(call)).decision for call in allowed} <= {ALLOW}


def test_edit_only_says_that_other_files_are_denied(project: Path) -> None:
    (sentence,) = read_sentences("edit only src", project)
    others = "Other files are denied to these tools; a command can still reach them."
    assert others in sentence.limits


@pytest.mark.parametrize("text", ["no network", "edit nothing", "allow everything except network"])
def test_a_kind_that_is_denied_to_tools_only_is_told_to_be_open_to_commands(text: str) -> None:
    (sentence,) = read_sentences(text)
    assert sum("Shell commands can still do this" in limit for limit in sentence.limits) == 1
    beside = read_sentences(f"{text}; deny run")[0]
    assert not any("Shell commands" in limit for limit in beside.limits)


@each_row("text, example", TABLES["what_is_not_understood"])
def test_what_is_not_understood_is_answered_by_an_example_that_is_understood(
    project: Path, text: str, example: str
) -> None:
    (sentence,) = read_sentences(text, project)
    assert not sentence.rules
    assert sentence.problem.endswith(f"write it like this: {example}")
    assert rules_of(read_sentences(example, project))


def test_a_command_or_path_in_quotes_is_taken_as_it_is(project: Path) -> None:
    (unknown,) = read_sentences("allow frobnicate the-files", project)
    assert not unknown.rules
    policy = rules_of(read_sentences("allow 'frobnicate all'; edit \"my notes.md\"", project))
    engine = Engine(Policy.parse(rules_to_toml(policy)), mode=ApprovalMode.DEFAULT)
    calls = ("$ frobnicate all", "edit my notes.md")
    assert {engine.outcome(call_of(call)).decision for call in calls} == {ALLOW}


def test_tests_without_a_known_command_ask_for_its_name(tmp_path: Path) -> None:
    (sentence,) = read_sentences("run tests", tmp_path)
    assert sentence.problem == "name the command that runs the tests, such as: allow npm test"
