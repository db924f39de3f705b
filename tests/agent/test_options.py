"""Options of a run: which are refused before anything starts."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from gemtui.agent.options import AgentOptions, OptionKind, run_options
from gemtui.errors import OptionError
from gemtui.policy.file.levels import CAPABILITIES
from tests.rows import each_row, table

TABLES = table("agent/options.json")


@each_row("field", ["only_tools", "approved_tools", "disallowed_tools"])
@each_row("name, problem", TABLES["a mistaken tool name is refused by the constructor"])
def test_a_mistaken_tool_name_is_refused_by_the_constructor(
    field: str, name: str, problem: str
) -> None:
    with pytest.raises(OptionError) as caught:
        AgentOptions(**cast(Any, {field: ("glob", name)}))
    assert f"Tools[1] ({field}): " in str(caught.value)
    assert problem in str(caught.value)
    assert caught.value.option == field


@each_row(
    "name",
    [
        "read_file",
        "search_file_content",
        "save_memory",
        "codebase_investigator",
        "mcp_s_x",
        "server__tool",
        "discovered_tool_x",
        "custom-tool",
    ],
)
def test_names_of_old_agents_servers_and_unknown_tools_are_taken(name: str) -> None:
    AgentOptions(only_tools=(name,), approved_tools=(name,), disallowed_tools=(name,)).check()


@each_row(
    "given, words",
    [
        *TABLES["a value of another kind names its option"],
        ({"cwd": b"x"}, "cwd must be str or PathLike"),
    ],
)
def test_a_value_of_another_kind_names_its_option(given: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        AgentOptions(**given)


def test_what_is_near_enough_is_taken() -> None:
    taken = AgentOptions(cwd="~", policies=["p.toml"], approval_mode="yolo", timeout=5)
    assert (taken.cwd, taken.policies) == (Path.home(), (Path("p.toml"),))


def test_every_option_is_declared_and_may_be_given_to_a_checked_program() -> None:
    declared = {each.name for each in run_options()} - set(CAPABILITIES) | {"permissions"}
    assert declared == {each.name for each in fields(AgentOptions)}
    assert {each.name for each in run_options() if each.default is None} >= {
        "model",
        "cwd",
        "only_tools",
    }
    flags = [flag for each in run_options() for flag in each.flags]
    assert len(flags) == len(set(flags))
    for each in run_options():
        if each.kind is OptionKind.CHOICE and each.label:
            assert set(each.choices) - {""} == set(each.values)


def test_an_option_that_the_agent_lacks_is_refused_by_its_name() -> None:
    with pytest.raises(OptionError, match="agent must be one of gemini, qwen, claude, not 'other'"):
        AgentOptions(agent="other")
    with pytest.raises(OptionError, match="Claude Code has no such option") as caught:
        AgentOptions(agent="claude", trust=True).check()
    assert caught.value.option == "trust"
