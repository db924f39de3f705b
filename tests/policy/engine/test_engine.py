"""What the policy engine decides, one rule of its behaviour at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemtui.policy.engine.decide import Engine, Explanation, McpTool, Setup, decide
from gemtui.policy.file.policy import Policy, of
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule, Tier
from tests.rows import each_row, table

TABLES = table("policy/engine.json")

ALLOW, DENY, ASK = Decision.ALLOW, Decision.DENY, Decision.ASK_USER
SHELL = "run_shell_command"
SERVERS = {"mcpServers": {"srv": {"command": "x"}, "un_der": {"command": "x"}}}


def rule(tool: str, decision: Decision = ALLOW, priority: int = 100, **more: Any) -> Rule:
    """A rule of a user's file."""
    return Rule(tools=(tool,), decision=decision, priority=priority, source="a.toml", index=1, **more)


def said(
    *rules: Rule,
    tool: str = "write_file",
    mode: str = "default",
    interactive: bool = False,
    settings: dict[str, Any] | None = None,
    mcp_tools: tuple[McpTool, ...] = (),
    allowed_tools: tuple[str, ...] = (),
    workspace: Path | None = None,
    subagent: str | None = None,
    **args: Any,
) -> Explanation:
    """The engine's word on one call."""
    setup = Setup(settings=settings or {}, mcp_tools=mcp_tools, allowed_tools=allowed_tools, workspace=workspace)
    call = Call(tool=tool, args=args, subagent=subagent)
    return decide(of(rules), call, mode, interactive, setup=setup)


# --- order ---------------------------------------------------------------------------------------


def test_the_higher_priority_wins_whatever_the_order() -> None:
    low, high = rule("write_file", DENY, 99), rule("write_file", ALLOW, 100)
    assert said(low, high).rule is high


def test_of_equal_priorities_the_first_loaded_wins() -> None:
    first, second = rule("write_file", DENY), rule("write_file", ALLOW)
    assert said(first, second).decision is DENY
    assert said(second, first).decision is ALLOW


def test_a_higher_tier_beats_any_priority() -> None:
    admin = rule("write_file", DENY, 0, tier=Tier.ADMIN)
    assert said(rule("write_file", ALLOW, 999), admin).decision is DENY


@each_row("priority, expected", TABLES["a_file_wins_over_a_setting_of_the_same_priority"])
def test_a_file_wins_over_a_setting_of_the_same_priority(priority: int, expected: Decision) -> None:
    settings = {"tools": {"allowed": ["write_file"]}}
    assert said(rule("write_file", DENY, priority), settings=settings).decision == expected


def test_a_user_rule_beats_yolo() -> None:
    assert said(rule("read_file", DENY, 0), tool="read_file", mode="yolo").decision is DENY


# --- what a rule is for --------------------------------------------------------------------------


@each_row("modes", [(), ("default",), ("plan", "default")])
def test_a_rule_counts_in_its_modes_and_without_any_in_all(modes: tuple[str, ...]) -> None:
    assert said(rule("write_file", modes=modes)).decision is ALLOW


def test_a_rule_of_another_mode_does_not_count() -> None:
    assert said(rule("write_file", modes=("autoEdit",))).decision is DENY
    assert said(rule("write_file", modes=("autoEdit",)), mode="auto_edit").decision is ALLOW


@each_row("interactive", [True, False])
def test_interactive_rules_count_on_their_side_only(interactive: bool) -> None:
    one = rule("read_file", DENY, interactive=interactive)
    assert said(one, tool="read_file", interactive=interactive).decision is DENY
    assert said(one, tool="read_file", interactive=not interactive).decision is ALLOW


@each_row("name", ["read_*", "ReadFile", "READ_FILE", " read_file", "read"])
def test_only_a_whole_name_or_a_star_matches(name: str) -> None:
    assert said(rule(name, DENY), tool="read_file").decision is ALLOW


def test_a_star_is_for_every_tool() -> None:
    assert said(rule("*", DENY), tool="read_file").decision is DENY


def test_a_list_without_names_is_no_rule() -> None:
    nobody = Rule(tools=(), tool_list=True, decision=DENY, priority=100)
    assert said(nobody, tool="read_file").decision is ALLOW


def test_a_rule_without_any_tool_is_for_all() -> None:
    assert said(Rule(decision=DENY, priority=100), tool="read_file").decision is DENY


def test_a_subagent_rule_counts_for_that_agent_only() -> None:
    one = rule("read_file", DENY, subagent="generalist")
    assert said(one, tool="read_file").decision is ALLOW
    theirs = said(one, tool="read_file", subagent="generalist")
    assert (theirs.decision, theirs.offered) == (DENY, True)


def test_a_star_for_subagents_is_a_name_like_any() -> None:
    one = rule("read_file", DENY, subagent="*")
    assert said(one, tool="read_file", subagent="generalist").decision is ALLOW


def test_only_a_subagent_has_the_tool_that_ends_its_work() -> None:
    assert said(tool="complete_task").found is False
    assert said(tool="complete_task", subagent="generalist").decision is ALLOW


# --- aliases and agents --------------------------------------------------------------------------


def test_the_old_name_of_the_search_runs_though_it_is_not_offered() -> None:
    answer = said(tool="search_file_content", pattern="x")
    assert (answer.decision, answer.offered, answer.found) == (ALLOW, False, True)


def test_a_deny_on_the_old_name_leaves_the_new_one_offered_and_fails_its_calls() -> None:
    answer = said(rule("search_file_content", DENY), tool="grep_search", pattern="x")
    assert (answer.decision, answer.offered) == (DENY, True)


def test_a_deny_on_the_new_name_takes_the_old_one_with_it() -> None:
    answer = said(rule("grep_search", DENY), tool="search_file_content", pattern="x")
    assert (answer.decision, answer.found) == (DENY, False)


def test_the_name_of_an_agent_stands_for_calls_of_it() -> None:
    one = rule("generalist", DENY)
    answer = said(one, tool="invoke_agent", agent_name="generalist", prompt="x")
    assert (answer.decision, answer.offered) == (DENY, True)
    assert said(one, tool="invoke_agent", agent_name="cli_help", prompt="x").decision is ALLOW


def test_a_deny_on_invoke_agent_hides_it_even_if_one_agent_is_allowed() -> None:
    rules = rule("generalist", ALLOW, 200), rule("invoke_agent", DENY, 100)
    answer = said(*rules, tool="invoke_agent", agent_name="generalist", prompt="x")
    assert (answer.offered, answer.found) == (False, False)


# --- MCP -----------------------------------------------------------------------------------------


@each_row("tool, server, matches", TABLES["the_names_of_mcp_tools"])
def test_the_names_of_mcp_tools(tool: str, server: str | None, matches: bool) -> None:
    answer = said(rule(tool, mcp_name=server), tool="mcp_un_der_plain", settings=SERVERS)
    assert (answer.decision is ALLOW) is matches
    assert answer.offered is matches


@each_row("wanted, found, matches", TABLES["annotations_are_compared_as_javascript_does"])
def test_annotations_are_compared_as_javascript_does(
    wanted: dict[str, Any], found: dict[str, Any], matches: bool
) -> None:
    tool = McpTool(server="srv", name="plain", annotations=found)
    one = rule("*", annotations=wanted)
    answer = said(one, tool="mcp_srv_plain", settings=SERVERS, mcp_tools=(tool,))
    assert (answer.decision is ALLOW) is matches


def test_tools_of_the_cli_carry_no_annotations() -> None:
    assert said(rule("*", DENY, annotations={}), tool="read_file").decision is ALLOW


def test_a_trusted_server_is_allowed_but_not_in_plan_mode() -> None:
    settings = {"mcpServers": {"srv": {"command": "x", "trust": True}}}
    assert said(tool="mcp_srv_plain", settings=settings).decision is ALLOW
    assert said(tool="mcp_srv_plain", settings=settings, mode="plan").found is False


def test_an_excluded_server_is_not_there_whatever_the_rules() -> None:
    settings = {**SERVERS, "mcp": {"excluded": ["srv"]}}
    answer = said(rule("mcp_*", ALLOW, 899), tool="mcp_srv_plain", settings=settings)
    assert (answer.decision, answer.found) == (DENY, False)


def test_headless_servers_may_be_allowed_by_a_setting() -> None:
    settings = {**SERVERS, "mcp": {"autoAllowInHeadless": True}}
    assert said(tool="mcp_srv_plain", settings=settings).decision is ALLOW
    assert said(tool="mcp_srv_plain", settings=settings, interactive=True).decision is ASK


@each_row("server", [{"excludeTools": ["plain"]}, {"includeTools": ["other"]}])
def test_a_server_can_leave_out_tools(server: dict[str, Any]) -> None:
    settings = {"mcpServers": {"srv": {"command": "x", **server}}}
    assert said(tool="mcp_srv_plain", mode="yolo", settings=settings).found is False


@each_row("value", TABLES["settings_of_a_server_may_be_anything"])
@each_row("field", ["excludeTools", "includeTools"])
def test_settings_of_a_server_may_be_anything(field: str, value: object) -> None:
    settings = {"mcpServers": {"srv": {"command": "x", field: value}}}
    found = said(tool="mcp_srv_plain", mode="yolo", settings=settings).found
    assert found is (not isinstance(value, list) or field == "excludeTools")


# --- what is offered -----------------------------------------------------------------------------


def test_a_deny_without_a_condition_hides_the_tool() -> None:
    answer = said(rule("read_file", DENY, deny_message="never shown"), tool="read_file")
    assert (answer.offered, answer.found, answer.message) == (False, False, None)


def test_a_deny_with_a_condition_leaves_the_tool_offered() -> None:
    one = rule("read_file", DENY, args_pattern="secret", deny_message="not that one")
    answer = said(one, tool="read_file", file_path="secret.txt")
    assert (answer.decision, answer.offered, answer.message) == (DENY, True, "not that one")
    assert said(one, tool="read_file", file_path="b.txt").decision is ALLOW


def test_an_allow_with_a_condition_lets_the_tool_be_offered() -> None:
    one = rule("write_file", args_pattern='"file_path":"docs/')
    answer = said(one, file_path="src/x.txt", content="")
    assert (answer.decision, answer.offered) == (DENY, True)


def test_an_ask_offers_the_tool_and_refuses_it_headless() -> None:
    answer = said(rule("write_file", ASK), file_path="x", content="")
    assert (answer.decision, answer.offered) == (ASK, True)
    assert (answer.headless, answer.interactive) == (DENY, ASK)


@each_row("tool", ["save_memory", "read_many_files", "ls", "ShellTool", "ask_user"])
def test_a_tool_that_is_not_there_is_not_found_in_yolo_either(tool: str) -> None:
    answer = said(rule("*"), tool=tool, mode="yolo")
    assert (answer.decision, answer.offered, answer.found) == (DENY, False, False)


@each_row("mode, offered, hidden", TABLES["each_mode_offers_its_tools_and_hides_the_others"])
def test_each_mode_offers_its_tools_and_hides_the_others(mode: str, offered: list[str], hidden: list[str]) -> None:
    engine = Engine(Policy(), mode=ApprovalMode(mode))
    assert [name for name in (*offered, *hidden) if engine.outcome(Call(tool=name)).offered] == offered


# --- settings ------------------------------------------------------------------------------------


def test_a_tool_that_tools_core_leaves_out_is_not_reopened_by_a_rule() -> None:
    settings = {"tools": {"core": ["read_file"]}}
    assert said(rule("glob", ALLOW, 999), tool="glob", settings=settings).found is False


@each_row("name", ["glob", "GlobTool", "glob(x)"])
def test_tools_core_knows_tools_by_their_class_names_as_well(name: str) -> None:
    settings = {"tools": {"core": [name]}}
    assert said(rule("glob", ALLOW, 260), tool="glob", settings=settings).found is True


@each_row("excluded, tool", TABLES["tools_exclude_takes_a_tool_away_for_good"])
def test_tools_exclude_takes_a_tool_away_for_good(excluded: str, tool: str) -> None:
    settings = {**SERVERS, "tools": {"exclude": [excluded]}}
    assert said(rule("*", ALLOW, 999), tool=tool, settings=settings).found is False


def test_an_mcp_tool_is_hidden_with_its_namesake_of_the_cli() -> None:
    one = rule("mcp_srv_*")
    assert said(one, tool="mcp_srv_write_file", settings=SERVERS).found is False
    assert said(one, rule("write_file"), tool="mcp_srv_write_file", settings=SERVERS).found


@each_row("how", ["setting", "flag"])
def test_a_shell_command_named_as_allowed_denies_all_others_in_yolo_too(how: str) -> None:
    name = f"{SHELL}(echo)"
    given: dict[str, Any] = {"allowed_tools": (f"glob, {name}",)}
    if how == "setting":
        given = {"settings": {"tools": {"allowed": [name]}}}
    assert said(tool=SHELL, command="echo hi", mode="yolo", **given).decision is ALLOW
    assert said(tool=SHELL, command="touch q", mode="yolo", **given).decision is DENY


def test_the_flag_replaces_the_setting() -> None:
    settings = {"tools": {"allowed": ["replace"]}}
    assert said(settings=settings, allowed_tools=("glob",), tool="replace").decision is DENY


def test_a_confirmation_that_is_required_asks_in_yolo_too() -> None:
    settings = {"tools": {"confirmationRequired": ["read_file"]}}
    assert said(tool="read_file", mode="yolo", settings=settings).decision is ASK


def test_without_always_allow_every_rule_of_that_priority_is_gone_deny_too() -> None:
    settings = {"security": {"disableAlwaysAllow": True}}
    assert said(rule("write_file", ALLOW, 950), settings=settings).decision is DENY
    answer = said(rule("read_file", DENY, 950), tool="read_file", settings=settings)
    assert answer.decision is ALLOW


def test_yolo_that_is_switched_off_stops_the_cli() -> None:
    answer = said(tool="read_file", mode="yolo", settings={"security": {"disableYoloMode": True}})
    assert (answer.decision, answer.offered) == (DENY, False)
    assert "does not start" in answer.because


@each_row("broken", [{"tools": ("",)}, {"mcp_name": ""}, {"subagent": ""}])
def test_an_empty_name_stops_the_cli(broken: dict[str, Any]) -> None:
    one = Rule(**{"tools": ("glob",), "decision": ALLOW, "priority": 1, **broken})
    answer = said(one, tool="read_file")
    assert (answer.decision, answer.offered) == (DENY, False)
    assert "does not start" in answer.because


# --- shell ---------------------------------------------------------------------------------------


def test_every_part_of_a_chain_is_checked() -> None:
    git = rule(SHELL, command_prefixes=("git",))
    assert said(git, tool=SHELL, command="git a && git b").decision is ALLOW
    answer = said(git, tool=SHELL, command="git a && touch q")
    assert answer.decision is DENY
    assert "`touch q`" in answer.because


def test_a_description_never_covers_a_chain() -> None:
    one = rule(SHELL, args_pattern='"description":"safe')
    assert said(one, tool=SHELL, command="touch q", description="safe").decision is ALLOW
    answer = said(one, tool=SHELL, command="touch q && touch r", description="safe")
    assert answer.decision is DENY


def test_a_denied_part_answers_with_its_own_message() -> None:
    rules = (
        rule(SHELL, command_prefixes=("git", "npm", "echo"), prefix_list=True),
        rule(SHELL, DENY, 200, command_prefixes=("npm publish",), deny_message="never publish"),
    )
    answer = said(*rules, tool=SHELL, command="echo $(npm publish)")
    assert (answer.decision, answer.rule, answer.message) == (DENY, rules[1], "never publish")


def test_a_wrapper_is_opened_and_needs_a_rule_of_its_own() -> None:
    git = rule(SHELL, command_prefixes=("git",))
    assert said(git, tool=SHELL, command="bash -c 'git status'").decision is DENY
    push = rule(SHELL, DENY, command_prefixes=("git push",))
    assert said(push, tool=SHELL, mode="yolo", command="bash -c 'git push'").decision is DENY


@each_row("mode, allowed, expected", TABLES["a_redirection_asks_outside_auto_edit_and_yolo"])
def test_a_redirection_asks_outside_auto_edit_and_yolo(mode: str, allowed: bool | None, expected: Decision) -> None:
    one = rule(SHELL, command_prefixes=("git",), allow_redirection=allowed)
    assert said(one, tool=SHELL, mode=mode, command="git log > o").decision == expected


def test_an_ask_without_a_condition_allows_what_is_known_to_be_safe() -> None:
    answer = said(rule(SHELL, ASK), tool=SHELL, command="ls -la")
    assert (answer.decision, answer.headless) == (ALLOW, ALLOW)
    assert "safe" in answer.because
    asked = said(rule(SHELL, ASK, command_prefixes=("ls",)), tool=SHELL, command="ls -la")
    assert asked.decision is ASK


def test_an_allow_without_a_condition_asks_for_what_is_dangerous() -> None:
    assert said(rule(SHELL), tool=SHELL, command="rm -rf q").decision is ASK
    assert said(rule("*"), tool=SHELL, command="rm -rf q").decision is ASK
    prefix = rule(SHELL, command_prefixes=("rm",))
    assert said(prefix, tool=SHELL, command="rm -rf q").decision is ALLOW
    assert said(rule(SHELL), tool=SHELL, mode="yolo", command="rm -rf q").decision is ALLOW


@each_row("mode, interactive, prefix, expected", TABLES["what_can_not_be_parsed_is_left_to_the_default"])
def test_what_can_not_be_parsed_is_left_to_the_default(
    mode: str, interactive: bool, prefix: str, expected: Decision
) -> None:
    one = rule(SHELL, command_prefixes=(prefix,))
    answer = said(one, tool=SHELL, mode=mode, interactive=interactive, command="git 'x")
    assert answer.decision == expected


def test_an_empty_prefix_is_no_condition_and_an_empty_list_no_rule() -> None:
    assert said(rule(SHELL, command_prefixes=("",)), tool=SHELL, command="touch q").offered
    nothing = rule(SHELL, command_prefixes=(), prefix_list=True)
    assert not said(nothing, tool=SHELL, command="touch q").offered


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


@each_row("name", ["package.json.bak", "requirements.txt", "MAKEFILE", "dockerfile"])
def test_other_files_are_no_build_files(name: str) -> None:
    assert said(mode="yolo", file_path=name, content="").decision is ALLOW


def test_a_link_to_a_build_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("x")
    (tmp_path / "notes.txt").symlink_to("Makefile")
    answer = said(mode="yolo", workspace=tmp_path, file_path="notes.txt", content="")
    assert answer.decision is DENY


@pytest.mark.parametrize("name", ["x" * 5000, "\ud83d", "a\0b", "", "/", ".."])
def test_paths_that_no_file_can_have_are_no_build_files(name: str, tmp_path: Path) -> None:
    answer = said(mode="yolo", workspace=tmp_path, file_path=name, content="")
    assert answer.decision is ALLOW


def test_build_files_are_kept_from_mcp_tools_with_an_edit_word() -> None:
    def decision(tool: str) -> Decision:
        return said(tool=tool, mode="yolo", settings=SERVERS, path="pom.xml").decision

    assert decision("mcp_srv_write_thing") is DENY
    assert decision("mcp_srv_rewrite") is ALLOW


def test_plans_are_written_by_plain_names_and_nothing_else_in_plan_mode() -> None:
    def decision(path: str) -> Decision:
        return said(mode="plan", file_path=path, content="").decision

    assert decision("plan.md") is decision("./plans/plan-2.md") is ALLOW
    assert decision("docs/a.md") is decision("a b.md") is decision("plan.txt") is DENY


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


@each_row(
    "rules, call, because",
    [
        ((), {}, "A built-in rule of Gemini CLI denies it for all arguments, so the"),
        ((), {"tool": "mcp_srv_x"}, "No rule applies to it, which means deny in headless runs"),
        ((), {"tool": "save_memory"}, "The tool does not exist here, so calls to it fail"),
        ((rule("write_file", ASK),), {}, "Rule 1 of a.toml asks first. Headless runs can't"),
        (
            (rule(SHELL, ASK),),
            {"tool": SHELL, "command": "ls"},
            "Rule 1 of a.toml matches and would ask first, but Gemini CLI allows it: it is known",
        ),
        ((), {"tool": "search_file_content"}, "A built-in rule of Gemini CLI allows it. This is an older"),
    ],
)
def test_a_sentence_says_why(rules: tuple[Rule, ...], call: dict[str, Any], because: str) -> None:
    assert said(*rules, **call).because.startswith(because)


def test_words_from_elsewhere_are_harmless_in_an_explanation() -> None:
    one = Rule(tools=("read_file",), decision=ASK, priority=1, source="a\x1b[31m\u202e.toml", index=2)
    answer = said(one, tool="read_file")
    assert "\x1b" not in answer.because
    assert "\u202e" not in answer.because


def test_the_quick_answer_is_the_explained_one() -> None:
    engine = Engine(of([rule(SHELL, command_prefixes=("git",))]))
    for command in ("git status", "touch q", "git a > o"):
        call = Call(tool=SHELL, args={"command": command})
        quick, explained = engine.outcome(call), engine.explain(call)
        assert (quick.decision, quick.rule) == (explained.decision, explained.rule)
