"""Rules that name a tool as Gemini CLI does not, and what is offered instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gemtui.policy.check.check_policy import check_text
from gemtui.policy.check.name_check import same_names, unmatched_names
from gemtui.policy.check.pitfalls import fixed
from gemtui.policy.engine.decide import Engine, McpTool, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.mcp_names import cli_name
from gemtui.policy.model.rules import ApprovalMode, Call, Decision, FindingKind, Rule, Severity
from tests.rows import each_row

ROVO = "atlassian-rovo-mcp-server"
LONG = "deleteConfluencePageWithAttachmentsAndPermissions"
CUT = "mcp_atlassian-rovo-mcp-server_...eWithAttachmentsAndPermissions"
BY_SERVER = {"_serverName": "My Docs"}


def deny(*tools: str, mcp: str | None = None, **more: Any) -> Rule:
    return Rule(tools=tools, tool_list=len(tools) > 1, mcp_name=mcp, decision=Decision.DENY, priority=100, **more)


NEVER: tuple[tuple[Rule, str, Rule | None], ...] = (
    (deny(LONG, mcp=ROVO), CUT, deny(CUT)),
    (deny(f"mcp_{ROVO}_{LONG}"), CUT, deny(CUT)),
    (deny(LONG, "x", mcp=ROVO), CUT, deny(CUT, f"mcp_{ROVO}_x")),
    (deny("delete page", mcp="My Docs"), "mcp_My_Docs_delete_page", deny("mcp_My_Docs_delete_page")),
    (deny("delete_page", mcp="My Docs"), "mcp_My_Docs_delete_page", deny("mcp_My_Docs_delete_page")),
    (deny("mcp_My Docs_delete page"), "mcp_My_Docs_delete_page", deny("mcp_My_Docs_delete_page")),
    (deny("*", mcp="My Docs"), "mcp_My_Docs_", deny("*", annotations=BY_SERVER)),
    (deny("mcp_My Docs_*"), "mcp_My_Docs_", deny("*", annotations=BY_SERVER)),
    (deny("*", mcp="My Docs", args_pattern="x"), "mcp_My_Docs_", None),
    (deny("delete page", mcp="docs"), "mcp_docs_delete_page", deny("delete_page", mcp="docs")),
    (deny("mcp_docs_delete page", mcp="docs"), "mcp_docs_delete_page", deny("delete_page", mcp="docs")),
    (deny("a/b", "ok", mcp="docs"), "mcp_docs_a_b", deny("a_b", "ok", mcp="docs")),
    (deny("löschen", mcp="büro"), "mcp_b_ro_l_schen", deny("mcp_b_ro_l_schen")),
    (deny("make", mcp="mcp_things"), "mcp_things_make", deny("mcp_things_make")),
    (deny("make", mcp="mcp"), "mcp_make", deny("mcp_make", mcp="mcp")),
    (deny("srv__drop"), "mcp_srv_drop", deny("mcp_srv_drop")),
    (deny("ShellTool"), "run_shell_command", deny("run_shell_command")),
    (deny("run_shell_comand", "glob"), "run_shell_command", deny("run_shell_command", "glob")),
)


@each_row("rule, name, better", NEVER)
@each_row("decision", [Decision.DENY, Decision.ASK_USER])
def test_a_rule_for_a_name_that_no_tool_has_is_an_error_with_the_right_name(
    rule: Rule, name: str, better: Rule | None, decision: Decision
) -> None:
    said = [each for each in check_text(rules_to_toml([replace(rule, decision=decision)]), "deny.toml") if each.kind]
    (finding,) = said
    assert (finding.kind, finding.severity, finding.rule) == (FindingKind.NEVER_MATCHES, Severity.ERROR, 1)
    assert name in f"{finding.message}: {finding.way_out}"
    if decision is Decision.DENY:
        assert fixed(rule) == better
        assert better is None or [*unmatched_names(better)] == []


@each_row(
    "rule",
    [
        *(deny(name) for name in ("*", "mcp_*", "mcp_s_*", "mcp_un_der_*", "mcp_s_x", "mcp_s_a.b:c-d", CUT)),
        deny("x", "*", mcp="s"),
        deny("mcp_s_x", mcp="s"),
        deny("mcp_My_Docs_delete_page", mcp="My Docs"),
        deny("mcp_My Docs_mcp_My_Docs_delete_page"),
        deny("*", mcp=ROVO),
        deny("*", mcp="*"),
        deny("*", annotations=BY_SERVER),
    ],
)
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


@given(server=NAMES.filter(lambda name: name != "*"), tool=NAMES.filter(lambda name: name != "*"))
def test_a_deny_of_any_servers_tool_hides_it_or_is_corrected_so_that_it_does(server: str, tool: str) -> None:
    setup, call = Setup(mcp_tools=(McpTool(server=server, name=tool),)), Call(cli_name(server, tool))

    def hides(rule: Rule) -> bool:
        return not Engine(Policy(rules=(rule,)), mode=ApprovalMode.YOLO, setup=setup).outcome(call).offered

    one, every = deny(tool, mcp=server), deny("*", mcp=server)
    for rule in (one, every):
        found = [*unmatched_names(rule)]
        if hides(rule):
            assert all(draft.kind is None for draft, _ in found)
        else:
            assert found
            if "*" not in rule.tools[0] or rule is every:
                better = fixed(rule)
                assert better is not None
                assert hides(better)


SAME = (
    (deny("a b", mcp="docs"), deny("a_b", mcp="docs")),
    (deny("x", mcp="My Docs"), deny("x", mcp="My_Docs")),
    (deny(f"{LONG}", mcp=ROVO), deny(LONG.replace("ConfluencePag", "JiraIssu"), mcp=ROVO)),
)


@each_row("pair", SAME)
def test_two_tools_with_one_name_are_told_where_rules_name_both(pair: tuple[Rule, Rule]) -> None:
    found = same_names(pair, {})
    assert set(found) == {0, 1}
    (draft,) = found[0]
    assert draft.kind is FindingKind.SAME_NAME
    assert cli_name(str(pair[0].mcp_name), pair[0].tools[0]) in draft.message
    assert same_names((pair[0], pair[0]), {}) == {}


@each_row(
    "rule, settings",
    [
        (deny("x", mcp="My_Docs"), {"My Docs": {}, "My_Docs": {}}),
        (deny("*", mcp="My Docs"), {"My Docs": {}, "My_Docs": {}}),
        (deny("a_b", mcp="docs"), {"docs": {"includeTools": ["a b", "a_b"]}}),
        (deny("a_b", mcp="docs"), {"docs": {"excludeTools": ["a b"]}}),
    ],
)
def test_two_tools_with_one_name_are_told_where_the_settings_name_them(rule: Rule, settings: Mapping[str, Any]) -> None:
    ((draft,),) = same_names((rule,), {"mcpServers": settings}).values()
    assert (draft.kind, draft.severity) == (FindingKind.SAME_NAME, Severity.WARNING)
