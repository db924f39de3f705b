"""The policy pane: the rules, their effects on calls, and the command of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from gemtui.policy.check.pitfalls import fixable, fixed
from gemtui.policy.edit.store import PolicyFile
from gemtui.policy.model.rules import ApprovalMode, Call, Finding
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.screens import DIALOG
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.policy import edits, level_rows
from gemtui.ui.policy.command_preview import CommandPreview
from gemtui.ui.policy.editor import PolicyEditor
from gemtui.ui.policy.labels import draft_state, folder_words
from gemtui.ui.policy.level_rows import LevelRows
from gemtui.ui.policy.main_pane import PolicyMain
from gemtui.ui.policy.pane_base import PolicyPane
from gemtui.ui.policy.rule_keys import FileKeys, RuleKeys
from gemtui.ui.policy.rule_table import RuleTable
from gemtui.ui.policy.side_pane import PolicySide, worst_finding, worst_of
from gemtui.ui.policy.tool_table import PolicyTools
from gemtui.ui.rules.draft import next_mode
from gemtui.ui.simulator import launch
from gemtui.ui.simulator.simulation import Taken

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_OF_A_RULE = {"duplicate", "delete", "switch", "move"}
_OF_RULES = {*_OF_A_RULE, "add", "words", "filter"}
_WHILE_TYPING = {"next_part", "previous_part", "back", "save"}


class PolicyScreen(PolicyPane):
    """The policy pane, which edits one policy at a time.

    It shows the policy as it would apply to runs in `folder`.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.POLICY)
    AUTO_FOCUS = "RuleTable"

    def __init__(self, app: AppBase, folder: Path) -> None:
        super().__init__()
        self.editor = PolicyEditor(app, folder, changed=self.show)
        self.preview = CommandPreview()
        self._of_mode: tuple[Finding, ...] = ()
        self._watched: Path | None = None
        self.rule_keys = RuleKeys(self)
        self.add_parts(self.rule_keys, FileKeys(self))

    def compose(self) -> ComposeResult:
        yield BarLine(id="header")
        with Horizontal(id="policy-panes"):
            yield PolicyMain()
            yield PolicySide()
        yield StatusLine()
        yield FooterLine()

    @work(exclusive=True, group="look")
    async def on_mount(self) -> None:
        """Open the first policy, if there is one."""
        self.show()
        await self.editor.begin()

    @work(exclusive=True, group="look again")
    async def on_screen_resume(self) -> None:
        """Reload what may have changed: other files, settings and facts about Gemini CLI."""
        if self.editor.begun.is_set():
            await self.editor.load_context()

    @work(exclusive=True, group="watch")
    async def _watch(self, file: PolicyFile) -> None:
        await self.editor.watch(file)

    # --- contents ------------------------------------------------------------------------------

    def show(self, place: int | None = None) -> None:
        """Show the current draft in all parts of the pane.

        `place`: the index of the rule to move the cursor to; None leaves the cursor where it is.
        """
        draft = self.draft
        self.main.begun = self.editor.begun.is_set() or draft.changed
        self.main.show(draft, place)
        self._become()
        self._say_rule()
        where = folder_words(self.editor.folder, self.gemtui.glyphs)
        self.header.show_parts(self.gemtui.tabs("app.policies"), [where])
        file = None if draft.opened is None else draft.opened.file
        if file is not None and file.path != self._watched:
            self._watched = file.path
            self._watch(file)

    @work(exclusive=True, group="preview")
    async def _become(self) -> None:
        self.preview = await asyncio.to_thread(self.editor.preview)
        self.main.show_command(self.preview)
        self.side.show_command(self.preview)
        found = await asyncio.to_thread(self.editor.mode_findings)
        self.side.show_examples(await asyncio.to_thread(self.editor.examples))
        if found != self._of_mode:
            self._of_mode = found
            self._say_rule()

    @on(PolicyMain.Moved)
    def _say_rule(self) -> None:
        """Show the findings about the rule under the cursor, and how to fix them."""
        draft, place = self.draft, self.place
        entry = None if place is None else draft.entries[place]
        rule = None if entry is None else entry.rule
        said = () if place is None else draft.document.problems[place]
        self.rule_keys.better = None if rule is None else fixed(rule, said)
        corrected = () if rule is None or self.rule_keys.better is None else fixable(rule, said)
        more = self._of_mode
        self.side.show(draft, place, fixable=corrected, more=more)
        here = [each for each in more if rule is not None and each.rule == rule.index]
        found = (*said, *here) or draft.file_findings
        fixes = worst_of(found) in corrected
        right = list(draft_state(draft, self.side.changes, fixable=fixes))
        self.status.show_parts(list(worst_finding(found, self.gemtui.glyphs)), right)
        self.refresh_bindings()

    @property
    def _covered(self) -> bool:
        """Whether the side pane or the table of tools covers the rules."""
        return self.has_class("-side") or self.has_class("-tools")

    def can(self, action: str) -> bool:
        """Return whether the key for an action is available right now."""
        if self.main.typing and action not in _WHILE_TYPING:
            return False
        if action in _OF_RULES and self._covered:
            return False
        if action in _OF_A_RULE:
            return self.place is not None
        draft, main = self.draft, self.main
        states: dict[str, object] = {
            "fix": self.rule_keys.better,
            "problem": draft.findings,
            "back": self._covered or main.searching or main.simple,
        }
        return bool(states.get(action, True))

    @on(RuleTable.Opened)
    def _opened(self, event: RuleTable.Opened) -> None:
        if event.rows is self.main.rules:
            self.rule_keys.open_rule()
        else:
            self.rule_keys.open_list()

    # --- levels and lists ----------------------------------------------------------------------

    def action_levels(self) -> None:
        self.main.switch(simple=not self.main.simple)
        self._say_rule()

    @on(LevelRows.Chosen)
    async def _chosen(self, event: LevelRows.Chosen) -> None:
        if event.field.id == "mode":
            self.draft.decide_for(ApprovalMode(event.value))
            self.show()
        else:
            await self.edit(level_rows.with_choice(event.field, event.value))

    def action_mode(self) -> None:
        self.draft.decide_for(next_mode(self.draft.mode))
        self.show()

    # --- dialogs -------------------------------------------------------------------------------

    @work(exclusive=True, group=DIALOG)
    async def action_try_call(self) -> None:
        await self._take(launch.try_call(self.gemtui, self.draft))

    @on(PolicyTools.Opened)
    @work(exclusive=True, group=DIALOG)
    async def _try_tool(self, event: PolicyTools.Opened) -> None:
        """Let the user see how calls to a tool are decided, after opening the tool's row."""
        await self._take(launch.try_call(self.gemtui, self.draft, Call(tool=event.tool)))

    @work(exclusive=True, group=DIALOG)
    async def action_replay(self) -> None:
        await self._take(launch.replay_history(self.gemtui, self.draft))

    @work(exclusive=True, group=DIALOG)
    async def action_suggest(self) -> None:
        await self._take(launch.suggest_rules(self.gemtui, self.draft))

    async def _take(self, asked: Awaitable[Taken]) -> None:
        """Wait until the user accepts rules on a screen, and add them in a single edit.

        `asked`: waits for the screen and returns the accepted rules.
        """
        rules = await asked
        if rules:
            await self.edit(lambda document: edits.add_all(document, rules))
        else:
            self.show()

    # --- navigation ----------------------------------------------------------------------------

    def action_filter(self) -> None:
        self.main.search()

    def action_preview(self) -> None:
        """Go to the command, file and findings, or hide them again.

        On a narrow screen, they cover the rules until they are hidden. On a wide one, they are
        always visible, and only get the focus.
        """
        self._put_over("-side", self.side.query_one(LineView))

    def action_decisions(self) -> None:
        """Go to the table with the decision for each tool, or hide it again.

        On a narrow screen, it covers the rules until it is hidden. On a wide one, it is always
        visible, and only gets the focus.
        """
        self._put_over("-tools", self.main.query_one(PolicyTools).rows)

    def _put_over(self, name: str, target: Widget) -> None:
        if self.has_class(name):
            self.action_back()
            return
        self.remove_class("-side", "-tools")
        if self.has_class("-narrow"):
            self.add_class(name)
        self.call_after_refresh(target.focus)

    def action_back(self) -> None:
        if self._covered:
            self.remove_class("-side", "-tools")
            self.main.take_focus()
        elif self.main.simple:
            self.action_levels()
        else:
            self.main.end_search()

    def action_problem(self) -> None:
        self.main.switch(simple=False)
        if not self.main.rules.next_problem():
            self.gemtui.show_message("These findings apply to the whole file.")
