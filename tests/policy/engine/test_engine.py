"""What the policy engine decides, one rule of its behaviour at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemtui.policy.engine.decide import Engine, Explanation, McpTool, Setup, decide
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from tests.policy.rule_tables import rule_or_call
from tests.rows import each_row, table

TABLES = table("policy/engine.json")

ALLOW, DENY, ASK = Decision.ALLOW, Decision.DENY, Decision.ASK_USER
SHELL = "run_shell_command"
SERVERS = {"mcpServers": {"srv": {"command": "x"}, "un_der": {"command": "x"}}}


def rule(tool: str, decision: Decision = ALLOW, priority: int = 100, **more: Any) -> Rule:
    """A rule of a user's file."""
    return Rule(
        tools=(tool,), decision=decision, priority=priority, source="a.toml", index=1, **more
    )


def said(
    *rules: Rule,
    tool: str = "write_file",
    mode: str = "default",
    interactive: bool = False,
    settings: dict[str, Any] | None = None,
    mcp_tools: tuple[McpTool, ...] = (),
    workspace: Path | None = None,
    **args: Any,
) -> Explanation:
    """The engine's word on one call."""
    setup = Setup(settings=settings or {}, mcp_tools=mcp_tools, workspace=workspace)
    call = Call(tool=tool, args=args)
    return decide(of(rules), call, mode, interactive, setup=setup)


@each_row("promise, cases", table("policy/decisions.json", rule_or_call).items())
def test_a_call_is_decided_as_promised(promise: str, cases: list[dict[str, Any]]) -> None:
    for case in cases:
        setup = Setup(
            settings=case.get("settings", {}), allowed_tools=tuple(case.get("allowed_tools", ()))
        )
        mode, interactive = case.get("mode", "default"), case.get("interactive", False)
        answer = decide(of(case.get("rules", ())), case["call"], mode, interactive, setup=setup)
        expected = case["answer"]
        assert {name: getattr(answer, name) for name in expected} == expected, promise
        assert answer.because.startswith(case.get("says", "")), promise


def test_the_higher_priority_wins_whatever_the_order() -> None:
    low, high = rule("write_file", DENY, 99), rule("write_file", ALLOW, 100)
    assert said(low, high).rule is high


def test_a_higher_tier_beats_any_priority() -> None:
    admin = rule("write_file", DENY, 0, tier=Tier.ADMIN)
    assert said(rule("write_file", ALLOW, 999), admin).decision is DENY


def test_a_rule_without_any_tool_is_for_all() -> None:
    assert said(Rule(decision=DENY, priority=100), tool="read_file").decision is DENY


@each_row("wanted, found, matches", TABLES["annotations_are_compared_as_javascript_does"])
def test_annotations_are_compared_as_javascript_does(
    wanted: dict[str, Any], found: dict[str, Any], matches: bool
) -> None:
    tool = McpTool(server="srv", name="plain", annotations=found)
    one = rule("*", annotations=wanted)
    answer = said(one, tool="mcp_srv_plain", settings=SERVERS, mcp_tools=(tool,))
    assert (answer.decision is ALLOW) is matches


@each_row("value", TABLES["settings_of_a_server_may_be_anything"])
@each_row("field", ["excludeTools", "includeTools"])
def test_settings_of_a_server_may_be_anything(field: str, value: object) -> None:
    settings = {"mcpServers": {"srv": {"command": "x", field: value}}}
    found = said(tool="mcp_srv_plain", mode="yolo", settings=settings).found
    assert found is (not isinstance(value, list) or field == "excludeTools")


@each_row("mode, offered, hidden", TABLES["each_mode_offers_its_tools_and_hides_the_others"])
def test_each_mode_offers_its_tools_and_hides_the_others(
    mode: str, offered: list[str], hidden: list[str]
) -> None:
    engine = Engine(Policy(), mode=ApprovalMode(mode))
    assert [
        name for name in (*offered, *hidden) if engine.outcome(Call(tool=name)).offered
    ] == offered


@each_row("broken", [{"tools": ("",)}, {"mcp_name": ""}, {"subagent": ""}])
def test_an_empty_name_stops_the_cli(broken: dict[str, Any]) -> None:
    one = Rule(**{"tools": ("glob",), "decision": ALLOW, "priority": 1, **broken})
    answer = said(one, tool="read_file")
    assert (answer.decision, answer.offered) == (DENY, False)
    assert "does not start" in answer.because


# --- shell ---------------------------------------------------------------------------------------


def test_a_denied_part_answers_with_its_own_message() -> None:
    rules = (
        rule(SHELL, command_prefixes=("git", "npm", "echo"), prefix_list=True),
        rule(SHELL, DENY, 200, command_prefixes=("npm publish",), deny_message="never publish"),
    )
    answer = said(*rules, tool=SHELL, command="echo $(npm publish)")
    assert (answer.decision, answer.rule, answer.message) == (DENY, rules[1], "never publish")


def test_commands_that_hold_one_another_deeply_end() -> None:
    command = "echo " + "$(echo " * 40 + "x" + ")" * 40
    one = rule(SHELL, command_prefixes=("echo",))
    assert said(one, tool=SHELL, command=command).decision in (ALLOW, DENY)


# --- protected files -----------------------------------------------------------------------------


@each_row("name", ["package.json", "a/Makefile", "x/../setup.py", "a.MK", "a\\BUILD"])
@each_row("interactive", [True, False])
def test_no_rule_allows_writing_a_build_file(name: str, interactive: bool) -> None:
    one = rule("*", ALLOW, 999, tier=Tier.ADMIN)
    answer = said(one, mode="yolo", interactive=interactive, file_path=name, content="")
    assert answer.decision is (ASK if interactive else DENY)
    assert answer.offered
    assert "build file" in answer.because


def test_a_link_to_a_build_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("x")
    (tmp_path / "notes.txt").symlink_to("Makefile")
    answer = said(mode="yolo", workspace=tmp_path, file_path="notes.txt", content="")
    assert answer.decision is DENY


@each_row("name", ["x" * 5000, "\ud83d", "a\0b", "", "/", ".."])
def test_paths_that_no_file_can_have_are_no_build_files(name: str, tmp_path: Path) -> None:
    answer = said(mode="yolo", workspace=tmp_path, file_path=name, content="")
    assert answer.decision is ALLOW


# --- words ---------------------------------------------------------------------------------------


def test_an_explanation_names_the_rules_in_the_order_in_which_they_are_looked_at() -> None:
    rules = (
        rule("write_file", DENY, 300, args_pattern="secret"),
        rule("read_file", DENY, 250),
        rule("write_file", ALLOW, 200),
        rule("write_file", DENY, 100),
    )
    answer = said(*rules, file_path="x", content="")
    ours = [each for each in answer.considered if each.rule.tier is Tier.USER]
    assert [each.rule for each in ours] == list(rules)
    assert [each.matches for each in ours] == [False, False, True, False]
    assert [each.why for each in ours] == [
        "the arguments do not match secret",
        "it is for read_file",
        "it is for this tool, with any arguments",
        "it is never checked, because rule 1 of a.toml has already decided",
    ]
    assert answer.because == "Rule 1 of a.toml allows it."


def test_words_from_elsewhere_are_harmless_in_an_explanation() -> None:
    one = Rule(
        tools=("read_file",), decision=ASK, priority=1, source="a\x1b[31m\u202e.toml", index=2
    )
    answer = said(one, tool="read_file")
    assert "\x1b" not in answer.because
    assert "\u202e" not in answer.because


def test_the_quick_answer_is_the_explained_one() -> None:
    engine = Engine(of([rule(SHELL, command_prefixes=("git",))]))
    for command in ("git status", "touch q", "git a > o"):
        call = Call(tool=SHELL, args={"command": command})
        quick, explained = engine.outcome(call), engine.explain(call)
        assert (quick.decision, quick.rule) == (explained.decision, explained.rule)
