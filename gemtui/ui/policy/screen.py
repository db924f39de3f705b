"""The policy pane: the rules, their effects on calls, and the command of a run.

The keys that change rules, and those that act on the policy's file, are in two parts of the screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from gemtui.policy.check.pitfalls import fixable, fixed
from gemtui.policy.edit.document import Document
from gemtui.policy.edit.store import PolicyFile
from gemtui.policy.model.rules import ApprovalMode, Call, Finding, Rule
from gemtui.ui.kit.bars import BarLine, FooterLine, StatusLine
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.messages import RunWithPolicyRequested
from gemtui.ui.kit.screens import DIALOG, FullScreen, ScreenPart, dialog
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.policy import edits, files
from gemtui.ui.policy.editor import CommandPreview, PolicyEditor, UnmatchedRules
from gemtui.ui.policy.edits import EditedDocument, Make
from gemtui.ui.policy.levels import LISTS, LevelRows, ToolListScreen, choose_level, choose_tools
from gemtui.ui.policy.main_pane import PolicyMain, draft_state, folder_words
from gemtui.ui.policy.rule_table import RuleTable
from gemtui.ui.policy.side_pane import PolicySide, worst_finding, worst_of
from gemtui.ui.policy.tool_table import PolicyTools
from gemtui.ui.policy.words_dialog import WordsScreen
from gemtui.ui.rules.draft import Draft, next_mode
from gemtui.ui.rules.form import RuleForm
from gemtui.ui.simulator.call_scan import CallHistory
from gemtui.ui.simulator.simulation import Simulation, SimulatorScreen, form_allowing

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_OF_A_RULE = {"duplicate", "delete", "switch", "move"}
_OF_RULES = {*_OF_A_RULE, "add", "words", "filter"}
_WHILE_TYPING = {"next_part", "previous_part", "back", "save"}


class RuleKeys(ScreenPart["PolicyScreen"]):
    """Adds, changes and removes rules; every change can be undone."""

    better: Rule | None = None
    """The fix that is suggested for the rule under the cursor; None if there is none."""

    @dialog
    async def action_add(self) -> None:
        await self._form(edits.NEW_RULE)

    @dialog
    async def action_words(self) -> None:
        screen, draft = self.screen, self.screen.draft
        if draft.document.locked:
            screen.gemtui.show_message(draft.document.locked, problem=True)
            return
        shown = WordsScreen(draft, screen.editor.folder)
        rules = await screen.gemtui.push_screen_wait(shown)
        if rules:
            screen.main.switch(simple=False)
            await screen.edit(lambda document: edits.add_missing(document, rules))
            screen.main.take_focus()

    @dialog
    async def open_list(self) -> None:
        """Let the user edit the list of tools under the cursor in the simple view."""
        screen, row = self.screen, self.screen.main.levels.chosen
        if row is None or row.id not in LISTS:
            return
        tools = await screen.gemtui.push_screen_wait(ToolListScreen(row, screen.draft.document))
        if tools is not None:
            await screen.edit(choose_tools(row, tools))

    @dialog
    async def open_rule(self) -> None:
        """Show a form to edit the rule under the cursor."""
        place = self.screen.place
        rule = None if place is None else self.screen.draft.entries[place].rule
        if rule is not None:
            await self._form(rule, place)
        elif place is not None:
            words = "This rule can't be read. Press o to open the file in your editor."
            self.screen.gemtui.show_message(words)

    async def _form(self, rule: Rule, place: int | None = None) -> None:
        document = self.screen.draft.document
        if document.locked:
            self.screen.gemtui.show_message(document.locked, problem=True)
        else:
            form = RuleForm(document, rule, project=self.screen.editor.folder, place=place)
            await self._fill_in(form, place)

    async def _fill_in(self, form: RuleForm, place: int | None = None) -> bool:
        """Show a form, and return whether the draft has the rule in it now."""
        screen, seen = self.screen, self.screen.draft.document
        wanted = await screen.gemtui.push_screen_wait(form)
        if wanted is None:
            return False
        await screen.edit(edits.edit_from_form(seen, place, wanted))
        screen.main.take_focus()
        return screen.draft.document is not seen

    @dialog
    async def offer(self, call: Call, policies: Sequence[Path]) -> None:
        """Show a form with a rule that would allow a call of a run, and go back to the run.

        If the user adds the rule, it is saved, unless the policy had unsaved changes before.
        `policies`: the policy files of the next run. If one of them is gemtui's own, the rule is
        added there; otherwise, the run will use the policy with the rule, too.
        """
        screen, editor = self.screen, self.screen.editor
        await editor.begun.wait()
        await editor.open_own_policy(policies)
        screen.main.switch(simple=False)
        form = await form_allowing(screen.gemtui, Simulation(screen.draft, editor.folder), call)
        others_unsaved = screen.draft.changed
        if form is not None and await self._fill_in(form):
            if not others_unsaved:
                await editor.save()
            policies = (*policies, *(file for file in editor.named_files if file not in policies))
        screen.post_message(RunWithPolicyRequested(tuple(policies), None))

    # --- the selected rule ---------------------------------------------------------------------

    async def action_duplicate(self) -> None:
        await self._edit_chosen(edits.duplicate)

    async def action_delete(self) -> None:
        await self._edit_chosen(edits.remove_rule)

    async def action_switch(self) -> None:
        await self._edit_chosen(edits.switch)

    async def action_move(self, step: int) -> None:
        """Move the rule below the next one (`step` 1), or above the previous one (-1)."""
        if (other := self.screen.main.rules.neighbour(step)) is not None:
            await self._edit_chosen(partial(edits.move, other=other, above=step < 0))

    async def action_fix(self) -> None:
        if (better := self.better) is not None:
            await self._edit_chosen(partial(edits.replace_rule, rule=better))

    async def _edit_chosen(self, make: Callable[[Document, int], EditedDocument | None]) -> None:
        if (place := self.screen.place) is not None:
            seen = self.screen.draft.document
            await self.screen.edit(
                edits.edit_by_index(seen, lambda document: make(document, place))
            )

    def action_undo(self) -> None:
        if self.screen.draft.can_undo:
            self._stepped("Undone", self.screen.draft.undo())
        else:
            self.screen.gemtui.show_message("Nothing to undo.")

    def action_redo(self) -> None:
        if self.screen.draft.can_redo:
            self._stepped("Redone", self.screen.draft.redo())
        else:
            self.screen.gemtui.show_message("Nothing to redo.")

    def only_says_why(self, action: str) -> bool:
        """Return whether a key would now only explain that there is nothing to do.

        `action`: "undo" or "redo"; for any other action, the result is False.
        """
        draft = self.screen.draft
        return {"undo": not draft.can_undo, "redo": not draft.can_redo}.get(action, False)

    def _stepped(self, said: str, what: str) -> None:
        self.screen.show()
        self.screen.gemtui.show_message(f"{said}: {what}")


class FileKeys(ScreenPart["PolicyScreen"]):
    """Acts on the policy's file as a whole, and on the command of a run."""

    @dialog
    async def action_save(self) -> None:
        await self.screen.editor.save()

    @dialog
    async def action_files(self) -> None:
        await self.screen.editor.choose()

    def action_open_file(self) -> None:
        """Open the file in the user's editor; it is reloaded once it has been saved there."""
        files.edit_saved(self.screen.gemtui, self.screen.draft)

    @dialog
    async def action_run(self) -> None:
        app, editor = self.screen.gemtui, self.screen.editor
        if not editor.draft.changed:
            answer: str | None = "saved"
        elif editor.draft.opened is None:
            answer = "save" if await files.save_to_run(app) else None
        else:
            answer = await files.ask_before_run(app, editor.draft)
        ready = answer == "saved" or (answer == "save" and await editor.save())
        if ready and editor.draft.opened is not None:
            named = editor.named_files
            self.screen.post_message(RunWithPolicyRequested(named, editor.draft.mode))

    def action_copy_command(self) -> None:
        app, preview = self.screen.gemtui, self.screen.preview
        if preview.script:
            app.copy(preview.script, "the command, which reads the prompt from prompt.txt")
        else:
            app.show_message(preview.problem or "The command is not ready yet.")

    def action_copy_text(self) -> None:
        self.screen.gemtui.copy(self.screen.draft.document.text, "the policy")


class PolicyScreen(FullScreen[None]):
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
        self._unmatched = UnmatchedRules()
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

    @property
    def main(self) -> PolicyMain:
        """The left half, with the rules or levels."""
        return self.query_one(PolicyMain)

    @property
    def side(self) -> PolicySide:
        """The right half, with the command, the file and the findings."""
        return self.query_one(PolicySide)

    @property
    def draft(self) -> Draft:
        """The policy being edited."""
        return self.editor.draft

    @property
    def place(self) -> int | None:
        """The index in the file of the rule under the cursor; None if there is no such rule.

        After the draft has lost rules, the table may show the old ones for a moment.
        """
        place = self.main.place
        return place if place is not None and place < len(self.draft.entries) else None

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

    async def edit(self, make: Make) -> None:
        """Apply an edit, and show the result and any message about it."""
        made = await self.editor.edit(make)
        if made is not None:
            self.show(made.place)
            if made.description:
                self.gemtui.show_message(made.description)

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
        with self.gemtui.reporting():
            unmatched = await asyncio.to_thread(self.editor.unmatched_rules)
            if unmatched != self._unmatched:
                self._unmatched = unmatched
                self._say_rule()

    @on(PolicyMain.Moved)
    def _say_rule(self) -> None:
        """Show the findings about the rule under the cursor, and how to fix them."""
        draft, place = self.draft, self.place
        entry = None if place is None else draft.entries[place]
        rule = None if entry is None else entry.rule
        said = () if place is None else draft.document.problems[place]
        self.rule_keys.better, corrected = self._fix(rule, said)
        more = (*self._of_mode, *self._unmatched.findings())
        self.side.show(draft, place, fixable=corrected, more=more)
        here = [each for each in more if rule is not None and each.rule == rule.index]
        found = (*said, *here) or draft.file_findings
        fixes = worst_of(found) in corrected
        right = list(draft_state(draft, self.side.changes, fixable=fixes))
        self.status.show_parts(list(worst_finding(found, self.gemtui.glyphs)), right)
        self.refresh_bindings()

    def _fix(
        self, rule: Rule | None, said: Sequence[Finding]
    ) -> tuple[Rule | None, Sequence[Finding]]:
        """Return what to replace a rule with, and the findings that this corrects.

        `said`: the findings about the rule.
        """
        if rule is None:
            return None, ()
        better = self._unmatched.better(rule)
        if better is not None:
            all_found = self._unmatched.findings()
            return better, [found for found in all_found if found.rule == rule.index]
        better = fixed(rule, said)
        return better, () if better is None else fixable(rule, said)

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

    @on(LevelRows.ValueChosen)
    async def _chosen(self, event: LevelRows.ValueChosen) -> None:
        if event.field.id == "mode":
            self.draft.decide_for(ApprovalMode(event.value))
            self.show()
        else:
            await self.edit(choose_level(event.field, event.value))

    def action_mode(self) -> None:
        self.draft.decide_for(next_mode(self.draft.mode))
        self.show()

    # --- dialogs -------------------------------------------------------------------------------

    @work(exclusive=True, group=DIALOG)
    async def action_try_call(self, call: Call | None = None) -> None:
        """Let the user see what the policy decides about a call, and why.

        `call`: the call to start with; None means an empty form.
        """
        from gemtui.ui.simulator.try_call import TryScreen

        await self._simulate(partial(TryScreen, call=call))

    @on(PolicyTools.ToolOpened)
    def _try_tool(self, event: PolicyTools.ToolOpened) -> None:
        self.action_try_call(Call(tool=event.tool))

    @work(exclusive=True, group=DIALOG)
    async def action_history(self) -> None:
        from gemtui.ui.simulator.history import PolicyHistoryScreen

        await self._simulate(PolicyHistoryScreen)

    @work(exclusive=True, group=DIALOG)
    async def action_suggest(self) -> None:
        from gemtui.ui.simulator.history import PolicyHistoryScreen

        await self._simulate(partial(PolicyHistoryScreen, at_rules=True))

    async def _simulate(self, screen: Callable[[Simulation, CallHistory], SimulatorScreen]) -> None:
        """Show a screen of the simulator, and add the rules accepted there in a single edit."""
        app = self.gemtui
        history = CallHistory(app.start.home, cache=app.start.cache, name_of=app.name_of)
        rules = await app.push_screen_wait(
            screen(Simulation(self.draft, self.editor.folder), history)
        )
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
