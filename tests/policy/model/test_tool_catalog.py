from __future__ import annotations

import json
from pathlib import Path

from gemtui.policy.model.tool_catalog import AGENTS, FORMER, TOOLS, nearest, tool
from tests.rows import each_row

DATA = Path(__file__).parents[2] / "data/policy/cases.jsonl"


def test_every_tool_that_was_called_in_an_observed_case_takes_the_arguments_it_was_given() -> None:
    seen = set()
    for line in DATA.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        found = tool(case["tool"])
        if found is None or case["outcome"] not in ("allowed", "denied_by_policy"):
            continue
        seen.add(found.name)
        assert {*found.required} <= {*case["args"]} | {"instruction"}, case["id"]
    assert {"run_shell_command", "write_file", "replace", "read_file", "glob"} <= seen


def test_required_arguments_come_first() -> None:
    found = tool("run_shell_command")
    assert found is not None
    assert found.arguments[:2] == ("command", "description")
    assert len({each.name for each in TOOLS}) == len(TOOLS)


def test_an_alias_is_its_tool_and_a_former_name_is_none() -> None:
    assert tool("search_file_content") is tool("grep_search")
    assert tool("ShellTool") is None
    assert all(tool(new) for new in FORMER.values())
    assert not any(tool(old) for old in FORMER)


@each_row(
    "name, meant",
    [
        ("write_fil", "write_file"),
        ("WriteFile", "write_file"),
        ("writefile", "write_file"),
        ("read-file", "read_file"),
        ("run_shell_comand", "run_shell_command"),
        ("ShellTool", "run_shell_command"),
        ("generalists", "generalist"),
        ("frobnicate", None),
        ("", None),
    ],
)
def test_what_was_probably_meant(name: str, meant: str | None) -> None:
    assert nearest(name) == meant
    assert not set(AGENTS) & {each.name for each in TOOLS}
