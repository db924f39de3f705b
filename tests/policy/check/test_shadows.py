from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.policy.check.check_policy import related
from gemtui.policy.engine.decide import Engine, McpTool, Setup
from gemtui.policy.file.policy import of
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Rule
from tests.policy.rule_tables import rule_or_call
from tests.rows import each_row, table

TABLES = table("policy/shadows.json", rule_or_call)

SHELL = "run_shell_command"
ALLOW, ASK, DENY = Decision.ALLOW, Decision.ASK_USER, Decision.DENY


def rule(decision: Decision, priority: int, *tools: str, **fields: Any) -> Rule:
    fields.setdefault("source", "work.toml")
    return Rule(decision=decision, priority=priority, tools=tools, **fields)


def prefix(decision: Decision, priority: int, *prefixes: str) -> Rule:
    return rule(decision, priority, SHELL, command_prefixes=prefixes, prefix_list=True)


def numbered(rules: list[Rule]) -> list[Rule]:
    return [replace(each, index=number) for number, each in enumerate(rules, 1)]


def said(*rules: Rule) -> list[tuple[int, str]]:
    """Rule numbers, and what is said of each."""
    found = related(numbered(list(rules)))
    return sorted((place + 1, one.message) for place, every in found.items() for one in every)


@each_row("first, second", TABLES["a_rule_that_never_applies"])
def test_a_rule_below_one_that_covers_it_never_applies(first: Rule, second: Rule) -> None:
    ((number, message),) = said(first, second)
    assert number == 2
    assert f"never applies, because rule 1 (priority {first.priority}, deny) is" in message
    way = "loaded first and has the same priority" if first.priority == 100 else "checked first"
    assert message.endswith(way)


def test_the_order_of_the_file_does_not_matter_where_priorities_differ() -> None:
    found = said(rule(ALLOW, 100, "glob"), rule(DENY, 300, "glob"))
    assert found == [
        (1, "this rule never applies, because rule 2 (priority 300, deny) is checked first")
    ]


def test_each_tool_of_a_rule_may_be_covered_by_another_rule() -> None:
    rules = (rule(DENY, 300, "glob"), rule(ASK, 200, "ls"), rule(ALLOW, 100, "glob", "ls"))
    ((number, message),) = said(*rules)
    assert number == 3
    assert "rule 1 (priority 300, deny) and rule 2 (priority 200, ask_user) are" in message


@each_row("first, second", TABLES["a_rule_that_has_something_left_is_not_spoken_of"])
def test_a_rule_that_has_something_left_is_not_spoken_of(first: Rule, second: Rule) -> None:
    assert said(first, second) == []


def test_a_rule_of_equal_priority_that_decides_otherwise_is_a_tie() -> None:
    ((number, message),) = said(prefix(ALLOW, 100, "git"), rule(DENY, 100, SHELL))
    assert number == 2
    assert message.startswith("rule 1 (priority 100, allow) has the same priority and comes first")


@each_row("first, second", TABLES["rules_that_never_meet_are_no_tie"])
def test_rules_that_never_meet_are_no_tie(first: Rule, second: Rule) -> None:
    assert said(first, second) == []


# --- against the engine --------------------------------------------------------------------------

TOOLS = [
    "*",
    "glob",
    "grep_search",
    "search_file_content",
    "mcp_*",
    "mcp_s_*",
    "mcp_s_x",
    "mcp_t_x",
    "generalist",
    "invoke_agent",
]
PREFIXES = ["git", "git push", "npm", "ls"]
CALLS = [
    *(
        Call(tool=tool, args=args, subagent=agent)
        for tool in ("glob", "grep_search", "search_file_content", "mcp_s_x", "mcp_s_y", "mcp_t_x")
        for args in ({}, {"p": "a"}, {"p": "b"})
        for agent in (None, "generalist")
    ),
    Call(tool="invoke_agent", args={"agent_name": "generalist", "prompt": "a"}),
    *(
        Call(tool=SHELL, args={"command": command})
        for command in ("git", "git push", "git  push", "npm test", "ls", "pwd")
    ),
]
SETUP = Setup(mcp_tools=tuple(McpTool(server=s, name=n) for s in "st" for n in "xy"))
RULE = st.builds(
    lambda what, **fields: Rule(source="work.toml", **what, **fields),
    st.one_of(
        st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2).map(
            lambda tools: {"tools": tuple(tools)}
        ),
        st.lists(st.sampled_from(PREFIXES), max_size=2).map(
            lambda found: {
                "tools": (SHELL,),
                "command_prefixes": tuple(found),
                "prefix_list": bool(found),
            }
        ),
        st.sampled_from("x*").map(lambda tool: {"tools": (tool,), "mcp_name": "s"}),
    ),
    decision=st.sampled_from(Decision),
    priority=st.sampled_from([1, 2, 3]),
    modes=st.sampled_from([(), ("plan",), ("default", "yolo")]),
    interactive=st.sampled_from([None, True, False]),
    subagent=st.sampled_from([None, None, "generalist"]),
    args_pattern=st.sampled_from([None, None, "a"]),
)


@settings(deadline=None)
@given(st.lists(RULE, min_size=2, max_size=4), st.sampled_from(ApprovalMode), st.booleans())
def test_no_call_is_decided_by_a_rule_that_never_applies(
    rules: list[Rule], mode: ApprovalMode, interactive: bool
) -> None:
    every = numbered(rules)
    dead = {
        place + 1
        for place, found in related(every).items()
        if any("never applies" in one.message for one in found)
    }
    engine = Engine(of(every), mode=mode, interactive=interactive, setup=SETUP)
    for call in CALLS if dead else ():
        decided = engine.outcome(call).rule
        assert decided is None or decided.source != "work.toml" or decided.index not in dead


def test_many_rules_with_many_tools_each_are_compared_by_what_they_share() -> None:
    """Pair by pair, tool by tool, this would take minutes."""
    rules = [
        rule(DENY if number % 2 else ALLOW, 100, *(f"t{number}_{each}" for each in range(20)))
        for number in range(400)
    ]
    assert said(*rules, rule(ASK, 100, "t7_7")) == [
        (
            401,
            (
                "this rule never applies, because rule 8 (priority 100, deny) is loaded first and "
                "has "
                "the same priority"
            ),
        )
    ]
