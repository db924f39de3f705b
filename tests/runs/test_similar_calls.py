"""Calls like one that was answered: what the rule says, what it allows, and what never."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import ApprovalRequest
from gemtui.agents import Agent
from gemtui.calls.effect import CallContext
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import path_of
from gemtui.policy.model.foreign import in_folder, spelled
from gemtui.policy.model.rules import Call
from gemtui.runs.gate.similar_calls import ALWAYS, Granted, SimilarCalls, keep_always, similar_calls
from tests.rows import each_row, table

TABLES = table("runs/similar_calls.json")

SHELL = "run_shell_command"


def asked(tool: str, args: Mapping[str, Any], cwd: Path) -> SimilarCalls:
    return similar_calls(ApprovalRequest(tool_name=tool, arguments=args), cwd)


def answered(project: Path, command: str) -> tuple[Granted, SimilarCalls]:
    """What is granted once calls like this command are allowed, and what the answer said."""
    like = asked(SHELL, {"command": command}, project)
    granted = Granted(project)
    granted.add(like.toml)
    return granted, like


def shell(command: str) -> Call:
    return Call(SHELL, {"command": command})


def edit(path: object) -> Call:
    return Call("write_file", {"file_path": str(path), "content": "x"})


@each_row(
    "command, words, also, never", TABLES["a command stands for its prefix, read as bash reads it"]
)
def test_a_command_stands_for_its_prefix_read_as_bash_reads_it(
    project: Path, command: str, words: str, also: str, never: str
) -> None:
    granted, like = answered(project, command)
    for start in filter(None, words.split(" or ")):
        assert f"{start} … (" in like.words
    assert granted.allows(shell(command))
    assert granted.allows(shell(also))
    assert not granted.allows(shell(never))
    assert not granted.allows(edit("a.txt"))


@each_row("command, known, unknown", TABLES["similar covers the options that are known"])
def test_similar_covers_the_options_of_an_allowed_command_that_are_known(
    project: Path, command: str, known: list[str], unknown: list[str]
) -> None:
    granted, like = answered(project, command)
    assert like.rule is not None, like.words
    assert granted.allows(shell(command)) or not unknown
    prefix = like.rule.command_prefixes[0]
    allowed = [words for words in known + unknown if granted.allows(shell(f"{prefix} {words}"))]
    assert allowed == known


@pytest.mark.parametrize(
    "command",
    ["node build.js 'a b'", "just build", "npx unknown-tool --fix", "jq . a"],
)
def test_of_a_program_that_is_not_known_only_the_same_command_is_similar(
    project: Path, command: str
) -> None:
    granted, like = answered(project, command)
    assert like.words == f"exactly {command}, in this folder, also if what it runs has changed"
    (project / "sub").mkdir()
    assert granted.allows(shell(command))
    assert not granted.allows(shell(f"{command} --more"))
    assert not granted.allows(shell(command.partition(" ")[0]))
    assert not granted.allows(Call(SHELL, {"command": command, "dir_path": "sub"}))
    assert not granted.allows(shell(f"cd sub && {command}"))


@each_row(
    "command",
    [
        "./build.js a",
        "./out",
        "node build.js",
        "tool --with=build.js",
        "npx @a/b build.js",
        "python -m build",
        "tool build:app",
        "tool --app=build:app",
        "tool -Abuild",
        "timeout 5 node build",
        "tool src",
        "python -m src.build",
    ],
)
def test_a_command_with_a_file_of_the_project_is_not_the_same_once_the_file_changes(
    project: Path, command: str
) -> None:
    like = asked(SHELL, {"command": command}, project)
    granted = Granted(project)
    granted.add(like.toml)
    assert granted.allows(shell(command)), "there are no such files"
    file, link = project / "build.js", project / "out"
    file.touch()
    link.symlink_to("/bin/true")
    folder = project / "src"
    folder.mkdir()
    (folder / "build.py").touch()
    assert "is in the project, can change" in asked(SHELL, {"command": command}, project).words
    assert not granted.allows(shell(command))
    file.unlink()
    link.unlink()
    shutil.rmtree(folder)


def test_a_file_pattern_is_not_the_same_command_each_time(project: Path) -> None:
    assert "pattern" in asked(SHELL, {"command": "just build *.js"}, project).words


def test_the_words_say_that_other_options_are_asked_about(project: Path) -> None:
    assert asked(SHELL, {"command": "git add a && npx tool"}, project).words == (
        "exactly npx tool, in this folder, also if what it runs has changed; "
        "git add … (on files of the repository); other options are asked about"
    )


def test_making_a_folder_is_not_said_to_run_code(project: Path) -> None:
    assert "code" not in asked(SHELL, {"command": "mkdir x"}, project).words


@pytest.mark.parametrize(
    ("command", "why"),
    [*TABLES["where no rule is narrow it says why"], ("echo x; " * 10_000, "be parsed")],
)
def test_where_no_rule_is_narrow_it_says_why(project: Path, command: str, why: str) -> None:
    like = asked(SHELL, {"command": command}, project)
    assert like.rule is None
    assert like.toml == ""
    assert why in like.words


def test_a_command_elsewhere_is_not_like_one_here(project: Path) -> None:
    granted, _ = answered(project, "git add a")
    (project / "sub").mkdir()
    there = Call(SHELL, {"command": "git add a", "dir_path": "../other"})
    inside = Call(SHELL, {"command": "git add a", "dir_path": "sub"})
    assert not granted.allows(there)
    assert granted.allows(inside)


def test_a_file_is_this_very_file(project: Path, tmp_path: Path) -> None:
    like = asked("replace", {"file_path": "src/a.py"}, project)
    assert "src/a.py" in like.words
    granted = Granted(project)
    granted.add(like.toml)
    assert granted.allows(edit("src/a.py"))
    assert granted.allows(edit(project / "src/a.py"))
    for spelling in ("src/../src/a.py", "src/a%2epy", "@src/a.py", "src/a\0.py"):
        assert granted.allows(edit(spelling)), spelling
    for other in (
        "src/b.py",
        "a.py",
        "src/a.py/x",
        "src/a%252epy",
        "../project2/src/a.py",
        "",
        "a\0",
        3,
    ):
        assert not granted.allows(edit(other)), other
    other_project = Granted(tmp_path / "elsewhere")
    other_project.add(like.toml)
    assert not other_project.allows(edit("src/a.py"))


def test_a_file_that_became_a_link_is_another_one(project: Path, tmp_path: Path) -> None:
    granted = Granted(project)
    granted.add(asked("write_file", {"file_path": "a.txt"}, project).toml)
    (project / "a.txt").symlink_to(tmp_path / "secret")
    assert not granted.allows(edit("a.txt"))


@pytest.mark.parametrize(("path", "why"), TABLES["a file for which there is no rule"])
def test_a_file_for_which_there_is_no_rule(project: Path, path: str, why: str) -> None:
    (project / "out").symlink_to("/tmp")
    like = asked("write_file", {"file_path": path}, project)
    assert like.rule is None
    assert why in like.words


def test_other_tools_are_allowed_whole(project: Path) -> None:
    like = asked("mcp_docs_search", {"q": "x"}, project)
    assert like.words == "all calls of mcp_docs_search: with any arguments"
    granted = Granted(project)
    granted.add(like.toml)
    assert granted.allows(Call("mcp_docs_search", {"q": "y"}))
    assert not granted.allows(Call("mcp_docs_write", {}))
    assert asked("exit_plan_mode", {}, project).rule is None
    assert asked("no_such_tool", {}, project).rule is None


def test_without_an_answer_nothing_is_granted(project: Path) -> None:
    granted = Granted(project)
    granted.add("no toml [")
    granted.add('[[rule]]\ntoolName = "glob"\ndecision = "ask_user"\npriority = 1\n')
    assert not granted.allows(shell("ls"))
    assert not granted.allows(Call("glob", {"pattern": "*"}))


def test_the_rules_of_an_answer_are_taken_back_alone(project: Path) -> None:
    granted = Granted(project)
    granted.add(asked(SHELL, {"command": "git add a"}, project).toml, answer=1)
    granted.add(asked(SHELL, {"command": "git commit -m a"}, project).toml, answer=4)
    assert granted.allows(shell("git add b"))
    granted.revoke(1)
    assert granted.answers == (4,)
    assert not granted.allows(shell("git add b"))
    assert granted.allows(shell("git commit -m b"))


def test_always_is_a_policy_of_ours_that_later_runs_read(home: Path, project: Path) -> None:
    like = asked(SHELL, {"command": "git add a"}, project)
    assert like.rule is not None
    place = keep_always(like.rule)
    keep_always(like.rule)
    assert place == path_of(ALWAYS)
    assert not Policy.load(place).findings
    assert len(Policy.load(place).rules) == 1
    later = Granted(project)
    later.load_always()
    assert later.allows(shell("git add b"))


def by_claude(project: Path, tool: str, **args: Any) -> tuple[Granted, SimilarCalls]:
    """What is granted once calls like this one of Claude Code are allowed."""
    context = CallContext(project=project, agent=Agent.CLAUDE)
    like = similar_calls(ApprovalRequest(tool_name=tool, arguments=args, context=context), project)
    granted = Granted(project)
    granted.add(like.toml)
    return granted, like


def of_claude(tool: str, **args: Any) -> Call:
    return spelled(Agent.CLAUDE, tool, args)


def test_calls_of_another_agent_are_alike_as_those_of_gemini_cli_are(project: Path) -> None:
    test, npm = of_claude("Bash", command="npm test --silent"), shell("npm test")
    granted, like = by_claude(project, "Bash", command="npm test")
    assert like.words.startswith("npm test … (")
    assert granted.allows(test)
    assert granted.allows(npm)
    assert not granted.allows(in_folder(test, str(project.parent)))
    assert not granted.allows(of_claude("Bash", command="npm publish"))
    unsandboxed = {"command": "npm test", "dangerouslyDisableSandbox": True}
    assert not granted.allows(of_claude("Bash", **unsandboxed))
    assert by_claude(project, "Bash", **unsandboxed)[1].rule is None

    path = str(project / "a.txt")
    granted, like = by_claude(project, "Write", file_path=path, content="x")
    assert granted.allows(of_claude("Edit", file_path=path, old_string="x", new_string="y"))
    assert not granted.allows(of_claude("Write", file_path=f"{path}t", content="x"))

    granted, like = by_claude(project, "mcp__a_b__c")
    assert like.words == "all calls of mcp__a_b__c: with any arguments"
    assert granted.allows(of_claude("mcp__a_b__c", x=1))
    assert not granted.allows(of_claude("mcp__a__b_c"))

    assert by_claude(project, "WebFetch", url="u")[1].words.startswith("all calls of WebFetch: any")
    assert by_claude(project, "SendMessage")[1].words == "rules have no name for this tool"
