"""The keys that open, save, copy and run a policy's file."""

from __future__ import annotations

from gemtui.ui.kit.full_screen import dialog
from gemtui.ui.kit.messages import RunWithPolicyRequested
from gemtui.ui.policy import files
from gemtui.ui.policy.command_preview import NAMED
from gemtui.ui.policy.pane_base import PolicyPart


class FileKeys(PolicyPart):
    """Actions on the whole file and on its command."""

    @dialog
    async def action_save(self) -> None:
        """Save the file."""
        await self.screen.editor.save()

    @dialog
    async def action_files(self) -> None:
        """Choose another policy."""
        await self.screen.editor.choose()

    def action_open_file(self) -> None:
        """Open the file in the editor; reload it after it has been saved there."""
        files.edit(self.screen.gemtui, self.screen.draft)

    @dialog
    async def action_run(self) -> None:
        """Switch to the run pane, ready for a run with this policy and mode."""
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
        """Copy the command."""
        app, preview = self.screen.gemtui, self.screen.preview
        if preview.script:
            app.copy(preview.script, "the command (reads the prompt from prompt.txt)")
        else:
            app.say(preview.problem or "The command is not ready yet.")

    def action_copy_text(self) -> None:
        """Copy the policy as edited."""
        self.screen.gemtui.copy(self.screen.draft.document.text, "the policy")
