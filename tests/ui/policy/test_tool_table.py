"""The table of tools: what becomes of each, headless and interactive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult

from gemtui.policy.engine.decide import McpTool, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.rules import ApprovalMode, Decision
from gemtui.ui.draw.lines import plain
from gemtui.ui.policy.tool_table import PolicyTools, tool_rows
from gemtui.ui.rules.draft import PolicyContext
from gemtui.ui.rules.draw import ToolRow, tool_head, tool_row
from tests.ui.histories import POLICY, draft_of
from tests.ui.talks import look

EXCLUDED = Setup(settings={"tools": {"exclude": ["web_fetch"]}})


def rows(policy: str = "", **setup: Any) -> dict[str, ToolRow]:
    found = tool_rows(Policy.parse(policy), ApprovalMode.DEFAULT, Setup(**setup))
    return {row.tool: row for row in found}


def test_each_tool_is_decided_headless_and_interactively() -> None:
    found = rows()
    assert found["read_file"].headless.decision is Decision.ALLOW
    assert found["write_file"].headless.decision is Decision.DENY
    assert not found["write_file"].headless.offered
    assert found["write_file"].interactive.decision is Decision.ASK_USER


def test_a_tool_that_the_model_is_not_told_of_says_so() -> None:
    found = rows(settings={"tools": {"exclude": ["web_fetch"]}})
    assert not found["web_fetch"].headless.offered
    assert "not offered" in plain(tool_row(found["web_fetch"], look(100)))


def test_rules_on_arguments_are_counted() -> None:
    found = rows(POLICY)
    assert found["run_shell_command"].rules == 2
    assert found["read_file"].rules == 0
    assert "+2 rules by arguments" in plain(tool_row(found["run_shell_command"], look(120)))


def test_tools_of_servers_are_there_too() -> None:
    found = rows(mcp_tools=(McpTool(server="git", name="log"),))
    assert "mcp_git_log" in found


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_columns_stand_below_their_heads(width: int) -> None:
    wide = look(width)
    head, row = plain(tool_head(wide)), plain(tool_row(rows()["write_file"], wide))
    assert head.index("headless") == row.index("◌")
    assert head.index("interactive") == row.index("?")


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield PolicyTools()


async def test_the_table_follows_the_draft(tmp_path: Path) -> None:
    app = Shown()
    async with app.run_test(size=(100, 40)) as pilot:
        tools = app.query_one(PolicyTools)
        draft = draft_of("")

        async def until(tool: str, decision: Decision) -> None:
            for _ in range(2000):
                found = {row.tool: row for row in tools.rows.items}
                if tool in found and found[tool].headless.decision is decision:
                    return
                await pilot.pause()
            raise AssertionError(tools.rows.items)

        tools.show(draft)
        await until("web_fetch", Decision.DENY)
        draft.decide_for(ApprovalMode.YOLO)
        tools.show(draft)
        await until("web_fetch", Decision.ALLOW)
        draft.set_context(PolicyContext(setup=EXCLUDED))
        tools.show(draft)
        await until("web_fetch", Decision.DENY)
