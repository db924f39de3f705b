"""Calls like one that was answered: what the rule says, what it allows, and what never."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import ApprovalRequest
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import path_of
from gemtui.policy.model.rules import Call
from gemtui.runs.gate.similar_calls import ALWAYS, Granted, SimilarCalls, keep_always, similar_calls

SHELL = "run_shell_command"


def asked(tool: str, args: Mapping[str, Any], cwd: Path) -> SimilarCalls:
    return similar_calls(ApprovalRequest(tool_name=tool, arguments=args), cwd)


def shell(command: str) -> Call:
    return Call(SHELL, {"command": command})


def edit(path: object) -> Call:
    return Call("write_file", {"file_path": str(path), "content": "x"})


@pytest.mark.parametrize(
    ("command", "words", "also", "never"),
    [
        ("git add a.txt", "git add", "git add b.txt", "git push"),
        ("npm run test", "npm run test", "npm run test -- -u", "npm run deploy"),
        ("pytest -q", "pytest", "pytest tests/x.py", "pytest -q > ~/.bashrc"),
        ("git add . && pytest", "git add or pytest", "pytest && git add x", "pytest; rm x"),
        ("cargo build", "cargo build", "cargo build --release", "cargo build $(rm x)"),
    ],
)
def test_a_command_stands_for_its_prefix(project: Path, command: str, words: str, also: str, never: str) -> None:
    like = asked(SHELL, {"command": command}, project)
    assert f"start with {words}" in like.words
    granted = Granted(project)
    granted.add(like.toml)
    assert granted.allows(shell(command))
    assert granted.allows(shell(also))
    assert not granted.allows(shell(never))
    assert not granted.allows(edit("a.txt"))


@pytest.mark.parametrize(
    ("command", "also", "never"),
    [
        ("git log -3", "git log --oneline", "git log --output=x"),
        ("git init", "git init -q", "git init --templ=./hooks"),
        ("git cat-file -p x", "git cat-file -t x", "git cat-file --filters x"),
        ("git mv a.txt b.txt", "git mv b.txt c.txt", "git mv b.txt .husky/pre-commit"),
        ("git log -3", "git log  src", "git log --outp=x"),
        ("git log -3", "git log", "git log --textconv"),
        ("git shortlog", "git shortlog -n", "git shortlog --output=x"),
        ("ls", "ls -la sub", "ls\u00a0x/e.sh"),
        ("ls", "ls 'sub'", "ls /etc"),
        ("ls", "ls sub && ls", "ls -L sub"),
        ("pytest -q", "pytest x.py", "pytest\u3000x"),
        ("pytest -q", "pytest x.py", "pytest `x`"),
        ("cd sub", "cd .", "cd sub && cd ."),
        ("mkdir x", "mkdir y", "mkdir\u2003y"),
        ("mkdir x", "mkdir -p y/z", "mkdir ../y"),
        ("mkdir x", "mkdir y", "mkdir .git/hooks/y"),
        ("pytest -q", "pytest --junit-xml=a.xml", "pytest --junit-xml=.vscode/tasks.json"),
        ("make test", "make test X=1", "make test SHELL=./x"),
        ("go test", "go test -v ./...", "go test -exec ./x"),
        ("date", "date -u '+%F %T'", "date -f x"),
        ("date", "date --date=yesterday", "date -us 2030-01-01"),
        ("date", "date -Iseconds", "date --se=2030-01-01"),
        ("date", "date -R", "date 01012030"),
        ("file a", "file -b a b", "file -C -m a"),
        ("npm run test", "npm run test -s -- --prefix x", "npm run test --prefix sub"),
        ("npm run test", "npm run test --silent", "npm run test --script-sh=./x -- a"),
        ("npm test", "npm test --if-present", "npm test --node-options --require=./x"),
        ("kubectl get pods", "kubectl get pod x -n a -o yaml", "kubectl get --kubeconfig=x pod"),
        ("kubectl get pods", "kubectl get pods -A -owide", "kubectl get pods -ogo-template-file=x"),
        ("kubectl logs x", "kubectl logs x --tail=5", "kubectl logs x --profile-output=x"),
        ("docker ps", "docker ps -a --filter x=y", "docker ps --x"),
        ("docker build .", "docker build -t x sub", "docker build -o x ."),
        ("docker build .", "docker build -q .", "docker build https://example.org"),
    ],
)
def test_a_prefix_covers_only_words_that_bash_reads_likewise(
    project: Path, command: str, also: str, never: str
) -> None:
    granted = Granted(project)
    granted.add(asked(SHELL, {"command": command}, project).toml)
    assert granted.allows(shell(command))
    assert granted.allows(shell(also))
    assert not granted.allows(shell(never))


def test_making_a_folder_is_not_said_to_run_code(project: Path) -> None:
    assert "code" not in asked(SHELL, {"command": "mkdir x"}, project).words


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("rm -rf build", "delete"),
        ("git push", "discard, publish"),
        ("echo x > a.txt", "writes a file"),
        ("echo $(cat a)", "arguments of another"),
        ("cat << END\nx\nEND", "as if it were a file"),
        ("X=1 make", "a variable is set before it"),
        ("bash -c 'ls'", "runs any code"),
        ("if (", "be parsed"),
        ("", "be parsed"),
        ("date -s 1", "could do more"),
        ("npm test --prefix sub", "could do more"),
        ("kubectl get pods --token=x", "could do more"),
        ("cat /etc/passwd", "outside of the project"),
        ("pytest $X", "a variable"),
        ("echo x; " * 10_000, "be parsed"),
    ],
)
def test_where_no_rule_is_narrow_it_says_why(project: Path, command: str, why: str) -> None:
    like = asked(SHELL, {"command": command}, project)
    assert like.rule is None
    assert like.toml == ""
    assert why in like.words


def test_a_command_elsewhere_is_not_like_one_here(project: Path) -> None:
    granted = Granted(project)
    granted.add(asked(SHELL, {"command": "git add a"}, project).toml)
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
    for spelled in ("src/../src/a.py", "src/a%2epy", "@src/a.py", "src/a\0.py"):
        assert granted.allows(edit(spelled)), spelled
    for other in ("src/b.py", "a.py", "src/a.py/x", "src/a%252epy", "../project2/src/a.py", "", "a\0", 3):
        assert not granted.allows(edit(other)), other
    other_project = Granted(tmp_path / "elsewhere")
    other_project.add(like.toml)
    assert not other_project.allows(edit("src/a.py"))


def test_a_file_that_became_a_link_is_another_one(project: Path, tmp_path: Path) -> None:
    granted = Granted(project)
    granted.add(asked("write_file", {"file_path": "a.txt"}, project).toml)
    (project / "a.txt").symlink_to(tmp_path / "secret")
    assert not granted.allows(edit("a.txt"))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../x", "contains `..`"),
        ("/etc/hosts", "outside"),
        (".git/hooks/x", "affect"),
        ('a"b', "quotes"),
        ("", "no file"),
        ("out/x", "leads out"),
        ("a%2etxt", "a different file"),
        ("@a.txt", "a different file"),
    ],
)
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
