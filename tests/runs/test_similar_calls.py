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
from tests.rows import each_row

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


OPTIONS = {
    "git cherry-pick a": "-x b|-nx b|--strategy=ours b|-X theirs b|-m 1 b",
    "git revert a": "--no-edit b|-n b",
    "git merge a": "--no-ff -m x b|-X ignore-all-space b|-s ort b",
    "git rev-list a": "--count b|-n 3 b|--format=%H b|--pretty=oneline b",
    "git for-each-ref": "--format='%(refname:short) %(objectname)' --sort=-committerdate",
    "git shortlog": "-sn|--group=author",
    "git add a": "-A|-u b|-- b",
    "git commit -m a": "-am b|--message=b --author 'A <a@b>'",
    "git blame a": "-L 1,5 b|-w -M b",
    "cargo test": "--release -p core|x -- --nocapture --test-threads=2",
    "cargo build": "--bin a --features a,b -j 4",
    "go test": "-race -run TestA -count=1 ./a|-coverprofile new.out ./...",
    "make test": "-j4 -k V=1|--silent",
    "pytest": "-xvs tests/a.py|-k 'a or b' --tb=short --maxfail=1|-n auto",
    "python -m pytest": "-q tests",
    "uv run pytest": "-q tests",
    "npx eslint .": "src --fix --ext ts,tsx --max-warnings 0|-f json src",
    "npx tsc": "--noEmit -p tsconfig.build.json",
    "npm install a": "-D b@^1.2.0 @scope/c|--save-exact b",
    "pip install a": "-U 'b[extra]==1.2' c|-r requirements-dev.txt",
    "ruff check .": "--fix src|--select E,F src",
    "mypy .": "--strict src",
    "docker compose up": "-d web|--build",
    "docker ps": "--format '{{.Names}}'",
    "kubectl get a": "pods -o jsonpath='{.items}'",
    "gh pr view 1": "2 --json title -R o/r",
    "grep x a": "-rn --include='*.py' y .|-e x -A2 b",
    "diff a b": "-u c d|-U5 c d",
    "mkdir a": "-pv b/c",
}
"""A command for each kind of program, and arguments that are similar, separated by `|`."""

UNKNOWN = {
    "git cherry-pick a": "--strategy=x/evil b|--strategy x/evil b|--strat=x/evil b|-X x b|-S b|-Sx b|-nS b"
    "|--gpg-sign b"
    "|-e b|--edit b|--continue|--cleanup=x b",
    "git revert a": "--strategy=x/evil b|-e b|-S b|--edit b",
    "git merge a": "-s x/evil b|-sx/evil b|--strategy=x/evil b|-e b|-S b|--verify-signatures b|--no-verify b"
    "|-F /etc/x b",
    "git rev-list a": "--format=%G? b|--format=%h%GK b|--pretty=format:%GG b|--pretty=mine b|--format=%(trailers) b"
    "|--show-signature b|--stdin",
    "git for-each-ref": "--format='%(signature)'|--format '%(signature:grade)'|--sort=signature"
    "|--format='%(contents:trailers)'|--sort signature",
    "git shortlog": "--group=format:%G?|--group=trailer:x|--format=%GK|--output=x",
    "git add a": "-p|-i|-e|-Ap|--patch|--interactive|--edit|--pathspec-from-file=x|--chmod=+x b|/etc/x",
    "git commit -m a": "-S -m b|-Skey -m b|-aS|-p -m b|-em b|--amend|--trailer a=b -m b|-c HEAD|-t x|-n -m b"
    "|--fixup=reword:x",
    "git blame a": "-S x b|--contents=x b|--ignore-revs-file=x b|--textconv b",
    "git cat-file -p a": "--textconv b|--filters b|--text b",
    "git log": "--exec=x|--ext-diff|--textconv|-c core.pager=x|--output=x|--pretty=%Gs|-O/etc/x",
    "git init": "--template=x|--separate-git-dir=x|--bare|../x",
    "git mv a b": "-f c d|../c d",
    "cargo test": "--config x=y|--target-dir x|--manifest-path x|-Zx|--target ./x.json|-C x|-- --logfile x|+x",
    "cargo build": "--config=x|--artifact-dir x|--out-dir x|-Z x|--target x.json|--ignore-rust-version",
    "go test": "-exec ./x|--exec=./x|-toolexec ./x|-ldflags=-x ./a|-gcflags=x|-o x|-C x|-args -x"
    "|-modfile=x|x.org/evil"
    "|-coverprofile .vscode/a.out",
    "make test": "-f x|-C x|--file=x|-I x|--eval=x|CC=./x|SHELL=x|A='$(shell x)'|MAKEFLAGS=1|lint|-E x|-o x",
    "pytest": "-p x|-c x|--rootdir=x|-o addopts=x|-W error::x.Y|--pdb|--pdbcls=x:y|--basetemp=x"
    "|--confcutdir=x|@x|../x"
    "|-xp x|--pastebin=all|--cov-config=x|--import-mode=x|--junit-xml=a.py|--junit-xml=.idea/a.xml|--pyargs x",
    "python -m pytest": "-p x|--rootdir x",
    "uv run pytest": "-p x",
    "npx eslint .": "--rulesdir x|-c x|--plugin x|--parser ./x|-f ./x|--resolve-plugins-relative-to x|-o x"
    "|--cache-location x",
    "npx tsc": "-p ../x|--outDir x|--plugins x|-b|--outFile x|@x|-w",
    "npm install a": "./x|../x|file:x|git+https://x.org/a|o/r|x.tgz|x@npm:y|-g b|--prefix x b|--script-shell=x b"
    "|--registry=x b",
    "npm run test": "--script-shell=./x|--script-sh=./x|--node-options=x|--prefix x|-c x|--ignore-scripts=x|/etc/x",
    "pip install a": "-e x|./x|x.whl|x.tar.gz|git+https://x.org/a|-i x b|--index-url=x b|--target x b|-r x.txt"
    "|-c x b|--log x b"
    "|--config-settings=x b|--pre-x b|--pro=x b|--python x b",
    "ruff check .": "--config x|--output-file x|-o x|--cache-dir x|@x|--add-noqa",
    "mypy .": "--config-file x|--python-executable ./x|--cache-dir x|--junit-xml x|--install-types|@x"
    "|--pdb|--html-report x",
    "docker compose up": "-f x|--env-file x|--attach x|--scale a=1|-v",
    "docker ps": "-H x|--host=x|--config x",
    "docker build .": "--secret id=x|--ssh x|--file x|-f x .|--output x|--allow x|--build-context a=b"
    "|github.com/a/b|git@a:b|-",
    "docker logs a": "-f b",
    "kubectl get a": "-f x|-k x|--raw /x|--kubeconfig x|-o go-template-file=x|--template=x|--as x|--token=x"
    "|--cache-dir=x|-s x",
    "gh pr view 1": "-w|--web|--jq env|-q env|--template x|-R evil.org/o/r|-t x",
    "grep x a": "-f x|-R x .|-rf x|--fil=x|-e * b|-D read x b",
    "diff a b": "-r c d|-l c d|--paginate c d|--from-file=x|--to-file=x|../x b|-X x",
    "date": "-s 1|--set=1|-f x|--file=x|-r x|0101",
    "mkdir a": "-Z x|--context=x b|../b|.git/b|-m u+s b",
    "sleep 1": "--x|x",
    "cat a": "../b|/etc/passwd|-e @x ../b",
}
"""A command for each kind of program, and arguments about which the person is asked again."""


@each_row(("command", "arguments"), [(command, each) for command, all_ in OPTIONS.items() for each in all_.split("|")])
def test_similar_covers_known_options_of_an_allowed_command(project: Path, command: str, arguments: str) -> None:
    granted = Granted(project)
    like = asked(SHELL, {"command": command}, project)
    granted.add(like.toml)
    assert like.rule is not None, like.words
    assert granted.allows(shell(f"{like.rule.command_prefixes[0]} {arguments}"))


@each_row(("command", "arguments"), [(command, each) for command, all_ in UNKNOWN.items() for each in all_.split("|")])
def test_similar_covers_no_option_that_is_not_known(project: Path, command: str, arguments: str) -> None:
    granted = Granted(project)
    like = asked(SHELL, {"command": command}, project)
    granted.add(like.toml)
    assert like.rule is not None, like.words
    assert granted.allows(shell(command))
    assert not granted.allows(shell(f"{like.rule.command_prefixes[0]} {arguments}"))


@pytest.mark.parametrize(
    "command", ["./build.sh a", "node build.js 'a b'", "just build", "npx unknown-tool --fix", "jq . a"]
)
def test_of_a_program_that_is_not_known_only_the_same_command_is_similar(project: Path, command: str) -> None:
    like = asked(SHELL, {"command": command}, project)
    assert like.words == f"exactly {command}, in this folder"
    granted = Granted(project)
    granted.add(like.toml)
    (project / "sub").mkdir()
    assert granted.allows(shell(command))
    assert not granted.allows(shell(f"{command} --more"))
    assert not granted.allows(shell(command.partition(" ")[0]))
    assert not granted.allows(Call(SHELL, {"command": command, "dir_path": "sub"}))
    assert not granted.allows(shell(f"cd sub && {command}"))


def test_a_file_pattern_is_not_the_same_command_each_time(project: Path) -> None:
    assert "pattern" in asked(SHELL, {"command": "./build.sh *.js"}, project).words


def test_the_words_say_that_other_options_are_asked_about(project: Path) -> None:
    assert asked(SHELL, {"command": "git add a && ./x.sh"}, project).words == (
        "exactly ./x.sh, in this folder; commands that start with git add, on files of the repository; "
        "gemtui asks again about options and arguments that it doesn't know"
    )


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
