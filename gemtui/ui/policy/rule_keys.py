"""The policy pane's keys that change rules, or act on the policy's file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gemtui.policy.edit.document import Document
from gemtui.policy.model.rules import Call, Rule
from gemtui.ui.kit.messages import RunWithPolicyRequested
from gemtui.ui.kit.screens import dialog
from gemtui.ui.policy import edits, files, level_rows
from gemtui.ui.policy.command_preview import NAMED
from gemtui.ui.policy.edits import EditedDocument
from gemtui.ui.policy.pane_base import PolicyPart
from gemtui.ui.policy.words_dialog import WordsScreen
from gemtui.ui.rules.form import RuleForm
from gemtui.ui.simulator.base import form_allowing
from gemtui.ui.simulator.simulation import Simulation


class RuleKeys(PolicyPart):
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
        screen = self.screen
        chosen = screen.main.levels.chosen
        await screen.edit(await level_rows.edit_tool_list(screen.gemtui, screen.draft, chosen))

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

    async def _fill_in(self, form: RuleForm, place: int | None = None) -> None:
        screen, seen = self.screen, self.screen.draft.document
        wanted = await screen.gemtui.push_screen_wait(form)
        if wanted is not None:
            await screen.edit(edits.edit_from_form(seen, place, wanted))
            screen.main.take_focus()

    @dialog
    async def offer(self, call: Call, policies: Sequence[Path]) -> None:
        """Show a form with a rule that would allow a call, so that the user can add it.

        `policies`: the policy files of the run that made the call. If one of them is gemtui's own,
        the rule is added there.
        """
        screen, editor = self.screen, self.screen.editor
        await editor.begun.wait()
        await editor.open_own_policy(policies)
        screen.main.switch(simple=False)
        form = await form_allowing(screen.gemtui, Simulation(screen.draft, editor.folder), call)
        if form is not None:
            await self._fill_in(form)

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
            await self.screen.edit(edits.edit_by_index(seen, lambda document: make(document, place)))

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


class FileKeys(PolicyPart):
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
            file = editor.draft.opened.file
            given = (file.path,) if file.origin in NAMED else ()
            self.screen.post_message(RunWithPolicyRequested(given, editor.draft.mode))

    def action_copy_command(self) -> None:
        app, preview = self.screen.gemtui, self.screen.preview
        if preview.script:
            app.copy(preview.script, "the command, which reads the prompt from prompt.txt")
        else:
            app.show_message(preview.problem or "The command is not ready yet.")

    def action_copy_text(self) -> None:
        self.screen.gemtui.copy(self.screen.draft.document.text, "the policy")
