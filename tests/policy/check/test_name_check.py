"""Rules that name a tool as Gemini CLI does not, and what is offered instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.check.name_check import same_names, unmatched_names
from gemtui.policy.check.pitfalls import fixed
from gemtui.policy.engine.decide import Engine, McpTool, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.mcp_names import cli_name
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, FindingKind, Rule, Severity
from tests.policy.rule_tables import rule_or_call
from tests.rows import each_row, table

TABLES = table("policy/name_check.json", rule_or_call)
ROVO = "atlassian-rovo-mcp-server"


def deny(*tools: str, mcp: str | None = None, **more: Any) -> Rule:
    return Rule(
        tools=tools,
        tool_list=len(tools) > 1,
        mcp_name=mcp,
        decision=Decision.DENY,
        priority=100,
        **more,
    )


@each_row("rule, name, better", TABLES["a_name_that_no_tool_has"])
@each_row("decision", [Decision.DENY, Decision.ASK_USER])
def test_a_rule_for_a_name_that_no_tool_has_is_an_error_with_the_right_name(
    rule: Rule, name: str, better: Rule | None, decision: Decision
) -> None:
    said = [
        each
        for each in check_text(rules_to_toml([replace(rule, decision=decision)]), "deny.toml")
        if each.kind
    ]
    (finding,) = said
    assert (finding.kind, finding.severity, finding.rule) == (
        FindingKind.NEVER_MATCHES,
        Severity.ERROR,
        1,
    )
    assert name in f"{finding.message}: {finding.way_out}"
    if decision is Decision.DENY:
        assert fixed(rule) == better
        assert better is None or [*unmatched_names(better)] == []


@each_row("rule", TABLES["a_name_that_gemini_cli_matches_is_no_finding"])
def test_a_name_that_gemini_cli_matches_is_no_finding(rule: Rule) -> None:
    assert [*unmatched_names(rule)] == []


def test_a_wildcard_that_misses_long_names_of_a_server_is_an_error_where_it_denies() -> None:
    rule = deny("*", mcp=f"{ROVO}-cloud")
    ((draft, better),) = unmatched_names(rule)
    assert (draft.severity, draft.kind) == (Severity.ERROR, None)
    assert "more than 27 characters" in draft.message
    assert better == deny("*", annotations={"_serverName": f"{ROVO}-cloud"})
    ((draft, _),) = unmatched_names(replace(rule, decision=Decision.ALLOW))
    assert draft.severity is Severity.WARNING


NAMES = st.text(st.sampled_from("abmcp_ .-:/é*0"), min_size=1, max_size=50)


@example(server="_0_/0", tool="0")
@example(server="_0_*", tool="0")
@given(server=NAMES.filter(lambda name: name != "*"), tool=NAMES.filter(lambda name: name != "*"))
def test_a_deny_of_any_servers_tool_hides_it_or_is_corrected_so_that_it_does(
    server: str, tool: str
) -> None:
    setup, call = (
        Setup(mcp_tools=(McpTool(server=server, name=tool),)),
        Call(cli_name(server, tool)),
    )

    def hides(rule: Rule) -> bool:
        return (
            not Engine(Policy(rules=(rule,)), mode=ApprovalMode.YOLO, setup=setup)
            .outcome(call)
            .offered
        )

    one, every = deny(tool, mcp=server), deny("*", mcp=server)
    for rule in (one, every):
        found = [*unmatched_names(rule)]
        if hides(rule):
            assert all(draft.kind is None for draft, _ in found)
        else:
            assert found
            if "*" not in rule.tools[0] or rule is every:
                better = fixed(rule)
                assert better is not None or (rule is one and "*" in server)
                assert better is None or hides(better)


@each_row("pair", TABLES["two_tools_with_one_name"])
def test_two_tools_with_one_name_are_told_where_rules_name_both(pair: tuple[Rule, Rule]) -> None:
    found = same_names(pair, {})
    assert set(found) == {0, 1}
    (draft,) = found[0]
    assert draft.kind is FindingKind.SAME_NAME
    assert cli_name(str(pair[0].mcp_name), pair[0].tools[0]) in draft.message
    assert same_names((pair[0], pair[0]), {}) == {}


@each_row("rule, settings", TABLES["two_tools_with_one_name_are_told_where_the_settings_name_them"])
def test_two_tools_with_one_name_are_told_where_the_settings_name_them(
    rule: Rule, settings: Mapping[str, Any]
) -> None:
    ((draft,),) = same_names((rule,), {"mcpServers": settings}).values()
    assert (draft.kind, draft.severity) == (FindingKind.SAME_NAME, Severity.WARNING)


@each_row(
    "rule, field",
    [
        (Rule(tools=("x",), mcp_name="Docs", decision=Decision.DENY, priority=1), "mcpName"),
        (Rule(tools=("mcp_DOCS_x",), decision=Decision.DENY, priority=1), "toolName"),
    ],
)
def test_a_server_that_the_settings_write_in_another_case_is_told(rule: Rule, field: str) -> None:
    ((draft,),) = same_names((rule,), {"mcpServers": {"docs": {}}}).values()
    assert draft.field == field
    assert '"docs"' in draft.way_out
    assert same_names((rule,), {"mcpServers": {"docs": {}, "Docs": {}, "DOCS": {}}}) == {}
    assert same_names((rule,), {"mcpServers": {"other": {}}}) == {}
