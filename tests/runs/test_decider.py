"""What a run of another agent does about its calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.agents import Agent
from gemtui.calls.effect import Effect, EffectKind
from gemtui.errors import PolicyError
from gemtui.policy.model.rules import ApprovalMode, Call
from gemtui.runs.gate.decider import AgentPolicy
from gemtui.runs.gate.policy import Judgement, Way
from tests.rows import each_row

ALLOWS = """
[[rule]]
toolName = ["write_file", "replace", "read_file"]
decision = "allow"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "npm test"
decision = "allow"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "git push"
decision = "deny"
priority = 200
denyMessage = "Nobody pushes."
"""
PROGRAMS = {"PATH": "/usr/bin:/bin"}
READS_OUTSIDE = "It reads outside of the run's folders."


class Decides:
    """A project, and what an agent's policy says about calls in it."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "app"
        (self.project / "src").mkdir(parents=True)
        self.project.joinpath("link").symlink_to("/etc")
        self.rules = folder / "rules.toml"
        self.rules.write_text(ALLOWS)

    def policy(self, mode: ApprovalMode = ApprovalMode.DEFAULT, *more: Path) -> AgentPolicy:
        policies = (self.rules, *more)
        return AgentPolicy(Agent.CLAUDE, policies, self.project, mode=mode, environ=PROGRAMS)

    def about(self, tool: str, effect: Effect | None = None, **args: Any) -> Judgement:
        return self.policy().judge(Call(tool, args), effect)

    def command(self, command: str, folder: str = ".", **args: Any) -> Judgement:
        args = {"command": command, **args}
        place = str(self.project / folder)
        does = Effect(kind=EffectKind.COMMAND, tool="Bash", arguments=args, folder=place)
        return self.about("Bash", does, **args)

    def write(self, name: str, tool: str = "Write") -> Judgement:
        path = str(self.project / name)
        does = Effect(kind=EffectKind.FILE, tool=tool, arguments={}, path=path)
        return self.about(tool, does, file_path=path)


@pytest.fixture
def decides(tmp_path: Path) -> Decides:
    return Decides(tmp_path.resolve())


def test_what_no_rule_allows_is_asked(decides: Decides) -> None:
    for judgement in (
        decides.about("WebFetch", url="https://x.org"),
        decides.about("Task", prompt="x"),
        decides.about("SomethingNew"),
        decides.about("mcp__s__t"),
        decides.command("npm publish"),
        decides.command("ls > src/a"),
        decides.command("ls", ".."),
        decides.command("npm test", dangerouslyDisableSandbox=True),
    ):
        assert judgement.way is Way.ASK
        assert judgement.why


def test_a_rule_denies_with_its_message(decides: Decides) -> None:
    judgement = decides.command("git push")

    assert judgement.way is Way.REFUSE
    assert judgement.why == "Tool execution denied by policy. Nobody pushes."


def test_reads_and_safe_commands_in_the_project_need_no_question(decides: Decides) -> None:
    for judgement in (
        decides.command("ls -l src"),
        decides.command("ls", "src"),
        decides.about("Grep", pattern="x"),
        decides.about("Glob", pattern="**/*.py", path="src"),
        decides.about("TodoWrite", todos=[]),
    ):
        assert judgement == Judgement(way=Way.THROUGH)
    assert decides.command("npm test").rule == "rule 2 of rules.toml"


@each_row(
    "tool, args",
    [
        ("Read", {"file_path": "/etc/passwd"}),
        ("Read", {"file_path": "~/.ssh/id_rsa"}),
        ("Read", {"file_path": "link/passwd"}),
        ("Read", {"file_path": "src/../../x"}),
        ("Grep", {"pattern": "x", "path": "/etc"}),
        ("Glob", {"pattern": "/etc/*"}),
        ("Glob", {"pattern": "../*"}),
        ("Glob", {"pattern": "*", "path": ".."}),
    ],
)
def test_reads_outside_of_the_project_are_asked(
    decides: Decides, tool: str, args: dict[str, Any]
) -> None:
    assert decides.about(tool, **args) == Judgement(way=Way.ASK, why=READS_OUTSIDE)


def test_a_rule_with_a_condition_allows_reads_outside_of_the_project(decides: Decides) -> None:
    pattern = 'argsPattern = \'"file_path":"/etc/hosts"\''
    rule = f'[[rule]]\ntoolName = "read_file"\n{pattern}\ndecision = "allow"\npriority = 900\n'
    decides.rules.write_text(ALLOWS + rule)

    assert decides.about("Read", file_path="/etc/hosts").way is Way.THROUGH
    assert decides.about("Read", file_path="/etc/passwd").way is Way.ASK


def test_writes_that_a_rule_allows_are_asked_if_they_may_do_more(decides: Decides) -> None:
    assert decides.write("src/a.txt").way is Way.THROUGH
    for name in ("../a.txt", ".claude/settings.json", ".git/hooks/pre-commit", "Makefile"):
        assert decides.write(name).way is Way.ASK, name
    unknown = decides.about("NotebookEdit", notebook_path=str(decides.project / "a.ipynb"))
    assert unknown.why == "gemtui does not know which file this changes."


def test_in_yolo_mode_only_rules_keep_calls_back(decides: Decides) -> None:
    yolo = decides.policy(ApprovalMode.YOLO)

    assert yolo.judge(Call("Bash", {"command": "npm publish"})).way is Way.THROUGH
    assert yolo.judge(Call("Bash", {"command": "git push"})).way is Way.REFUSE


def test_a_policy_with_a_rule_that_would_be_ignored_is_refused(decides: Decides) -> None:
    broken = decides.rules.with_name("broken.toml")
    broken.write_text('[[rule]]\ntoolName = "replace"\ndecision = "forbid"\npriority = 1\n')

    with pytest.raises(PolicyError, match=r"broken\.toml"):
        decides.policy(ApprovalMode.DEFAULT, broken)
    with pytest.raises(PolicyError):
        decides.policy(ApprovalMode.DEFAULT, decides.rules.with_name("missing.toml"))
