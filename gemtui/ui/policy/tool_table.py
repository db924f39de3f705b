"""A table of the current policy's decisions by tool, headless and interactive."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gemtui.errors import GemtuiError
from gemtui.policy.engine.decide import Engine, Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.mcp_names import cli_name
from gemtui.policy.model.rules import ApprovalMode, Call, Tier
from gemtui.policy.model.tool_catalog import TOOLS
from gemtui.text import clean_line
from gemtui.ui.draw.lines import Line, Piece, strip_of
from gemtui.ui.draw.theme import Role, look_of
from gemtui.ui.kit.row_list import GUTTER, RowList
from gemtui.ui.rules.draft import Draft
from gemtui.ui.rules.draw import ToolRow, tool_head, tool_row

_BAR = 1
"""How many cells are reserved for the scroll bar."""


class PolicyTools(Vertical):
    """A table with one row per tool; the pane calls `show` after every change."""

    DEFAULT_CSS = "PolicyTools { height: 1fr; } PolicyTools RowList { height: 1fr; }"

    @dataclass
    class ToolOpened(Message):
        """Posted when the user wants to see how calls to a tool are decided."""

        tool: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows = RowList[ToolRow](tool_row, key=lambda row: row.tool, empty="deciding")

    def compose(self) -> ComposeResult:
        yield _Head()
        yield self.rows

    def show(self, draft: Draft) -> None:
        """Show the decisions under a draft's policy, computed on a background thread."""
        self._decide(draft.policy, draft.mode, draft.setup)

    @work(exclusive=True)
    async def _decide(self, policy: Policy, mode: ApprovalMode, setup: Setup) -> None:
        try:
            self.rows.show(await asyncio.to_thread(tool_rows, policy, mode, setup))
        except GemtuiError as error:
            self.rows.empty = clean_line(str(error))
            self.rows.show(())

    @on(RowList.Opened)
    def _opened(self, event: RowList.Opened) -> None:
        event.stop()
        if (row := self.rows.chosen) is not None:
            self.post_message(self.ToolOpened(row.tool))


class _Head(Widget):
    """The column headings above the table."""

    DEFAULT_CSS = "_Head { height: 1; }"

    def render_line(self, y: int) -> Strip:  # noqa: ARG002
        look = look_of(self.app, self.size.width)
        front = Piece(" " * GUTTER, look[Role.MUTED])
        line = Line((front, *tool_head(look.narrowed(GUTTER + _BAR))))
        return (
            strip_of(line, look.width).adjust_cell_length(look.width).apply_style(self.rich_style)
        )


def tool_rows(policy: Policy, mode: ApprovalMode, setup: Setup) -> tuple[ToolRow, ...]:
    """Return what the policy decides for each tool, for a call without arguments.

    Slow: call this on a background thread.
    """
    names = [tool.name for tool in TOOLS]
    names += [cli_name(tool.server, tool.name) for tool in setup.mcp_tools]
    engines = [
        Engine(policy, mode=mode, interactive=interactive, setup=setup)
        for interactive in (False, True)
    ]
    return tuple(
        ToolRow(
            tool=name,
            headless=engines[0].outcome(Call(tool=name)),
            interactive=engines[1].outcome(Call(tool=name)),
            rules=_rules_on_arguments(policy, name, mode),
        )
        for name in dict.fromkeys(names)
    )


def _rules_on_arguments(policy: Policy, tool: str, mode: ApprovalMode) -> int:
    """Return how many file-defined rules depend on a tool's arguments in this mode."""
    return sum(
        rule.conditional
        and rule.tier > Tier.BUILTIN
        and (not rule.modes or mode.in_rules in rule.modes)
        and (not rule.tools or tool in rule.tools or "*" in rule.tools)
        for rule in policy.rules
    )
