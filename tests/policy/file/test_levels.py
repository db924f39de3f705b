"""Permission levels -> rules."""

from __future__ import annotations

import itertools
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent.options import AgentOptions, option_value, with_values
from gemtui.errors import OptionError
from gemtui.policy.file.levels import Level, PermissionPolicy, Permissions, rule_mode, rules
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule
from tests.rows import each_row, table

TOOLS = {
    "file_write": ["replace", "write_file"],
    "shell_execute": ["run_shell_command"],
    "network_access": ["google_web_search", "web_fetch"],
}


def short(found: tuple[Rule, ...]) -> list[tuple[str, str, int]]:
    return [(rule.tools[0], rule.decision.value, int(rule.priority)) for rule in found]


@each_row("levels", itertools.product(Level, repeat=3))
def test_every_combination_of_levels(levels: tuple[Level, Level, Level]) -> None:
    policy = PermissionPolicy(**dict(zip(TOOLS, levels, strict=True)))
    found = rules(Permissions(levels=policy))
    wanted = {
        (tool, *{"allow": ("allow", 997), "ask": ("ask_user", 997), "deny": ("deny", 999)}[level])
        for name, level in zip(TOOLS, levels, strict=True)
        for tool in TOOLS[name]
    }
    assert set(short(found)) == wanted
    assert len(found) == 5
    read = tomllib.loads(rules_to_toml(found))["rule"]
    assert all(rule["interactive"] is False for rule in read)


def permissions(
    mode: str | None = None, levels: dict[str, str] | None = None, **tools: list[str]
) -> Permissions:
    """Permissions as a table has them."""
    return Permissions(
        mode=None if mode is None else ApprovalMode(mode),
        levels=None if levels is None else PermissionPolicy(**levels),
        **{option: tuple(names) for option, names in tools.items()},
    )


@each_row("promise, case", table("policy/permissions.json").items())
def test_permissions_become_the_promised_rules(
    promise: str, case: tuple[dict[str, Any], list[Any]]
) -> None:
    fields, expected = case
    assert [list(rule) for rule in short(rules(permissions(**fields)))] == expected, promise


def test_empty_levels_ask_for_all() -> None:
    found = rules(Permissions(levels=PermissionPolicy()))
    assert {rule.decision for rule in found} == {Decision.ASK_USER}
    assert len(found) == 5


@each_row("mode", ApprovalMode)
@each_row("level", Level)
@each_row("named", TOOLS)
def test_a_level_that_is_left_out_writes_no_rule_in_any_mode(
    mode: ApprovalMode, level: Level, named: str
) -> None:
    found = rules(Permissions(mode=mode, levels=PermissionPolicy(**{named: level})))
    kept = level is not Level.ALLOW or mode in (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT)
    assert {rule.tools[0] for rule in found} == (set(TOOLS[named]) if kept else set())


@each_row("name", ["", "bad*name", "\ud800"])
def test_names_that_would_be_misread_are_refused_with_their_place(name: str) -> None:
    with pytest.raises(OptionError, match=r"allowedTools\[1\] \(only_tools\)"):
        rules(Permissions(only_tools=("good", name)))


PORTABLE = {
    "auto": ApprovalMode.YOLO,
    "bypass": ApprovalMode.YOLO,
    "bypassPermissions": ApprovalMode.YOLO,
    "acceptEdits": ApprovalMode.AUTO_EDIT,
    "autoEdit": ApprovalMode.AUTO_EDIT,
}


@each_row("name", [*PORTABLE, "YOLO", "Yolo", " yolo", "auto-edit", "y", "true", ""])
def test_a_run_accepts_only_the_modes_own_names(name: str) -> None:
    with pytest.raises(
        OptionError, match="approval_mode must be one of default, auto_edit, plan, yolo, not"
    ) as error:
        AgentOptions(approval_mode=name)
    assert repr(name) in str(error.value)


@each_row("name", [*ApprovalMode, None])
def test_a_run_accepts_each_mode_by_its_name(name: str | None) -> None:
    assert AgentOptions(approval_mode=name).approval_mode == name


@each_row("name", PORTABLE)
def test_permission_levels_accept_the_mode_names_of_other_agents(name: str) -> None:
    levels = PermissionPolicy(file_write=Level.ALLOW, shell_execute=Level.DENY)
    assert levels.policy(name) == levels.policy(PORTABLE[name])
    with pytest.raises(OptionError):
        levels.policy("frob")


@each_row("name", [*PORTABLE.keys() - {"autoEdit"}, "YOLO"])
def test_decisions_accept_only_the_modes_own_names_and_those_in_rules(name: str) -> None:
    assert rule_mode("autoEdit") is ApprovalMode.AUTO_EDIT
    with pytest.raises(OptionError):
        rule_mode(name)


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="*"), min_size=1, max_size=12
)


@given(name=NAMES | st.just('q"b\\s\nl\x01\x7f🙂'))
def test_any_name_makes_valid_toml_that_reads_back(name: str) -> None:
    text = rules_to_toml(rules(Permissions(disallowed_tools=(name,))))
    (rule,) = tomllib.loads(text)["rule"]
    assert rule == {"toolName": name, "decision": "deny", "priority": 999, "interactive": False}


@each_row(
    "name, called",
    [
        ("mcp_My Docs_delete page", "mcp_My_Docs_delete_page"),
        (f"mcp_server_{'a' * 60}", f"mcp_server_{'a' * 19}...{'a' * 30}"),
    ],
)
@each_row("option", ["only_tools", "approved_tools", "disallowed_tools"])
def test_a_run_refuses_names_of_mcp_tools_that_gemini_cli_never_uses(
    name: str, called: str, option: str
) -> None:
    with pytest.raises(OptionError, match=f"did you mean {re.escape(called)}"):
        with_values(AgentOptions(), {option: [name]})
    assert option_value(with_values(AgentOptions(), {option: [called]}), option) == (called,)
