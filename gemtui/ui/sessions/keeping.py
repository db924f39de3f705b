"""Key actions that delete and restore sessions, and the archiving in the vault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.text import clean_line
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.marking import named
from gemtui.ui.sessions.navigation import Navigation
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart
from gemtui.ui.sessions.vault_feed import VaultFeed


class SessionKeeping(SessionsPart):
    """Archives sessions in the vault while it is on; deletes and restores sessions.

    The vault holds gemtui's own copies of sessions.
    """

    def __init__(self, screen: SessionsPane, navigation: Navigation) -> None:
        super().__init__(screen)
        self._navigation = navigation
        self._vault = self._new_feed()

    def _new_feed(self) -> VaultFeed:
        return VaultFeed(self.screen.store.home, self.screen.update_status)

    def can(self, action: str) -> bool:
        """Return whether there is a session to delete or to restore."""
        chosen = self.screen.chosen
        match action:
            case "restore":
                return chosen is not None and Flag.KEPT in chosen.flags
            case "delete":
                return chosen is not None or bool(self.screen.sessions.selection.keys)
        return True

    def only_says_why(self, action: str) -> bool:
        """Return whether undo would now only say that there is nothing to undo."""
        return action == "undo" and self.screen.done.last is None

    # --- the vault -----------------------------------------------------------------------------

    @background("vault", exclusive=True)
    async def follow(self) -> None:
        """Archive stored sessions while the vault is on (never in the demo)."""
        self._vault = self._new_feed()
        if not self.screen.start.demo:
            await self._vault.run()

    def archive_new(self) -> None:
        """Archive every stored session that hasn't been archived yet, if the vault is on."""
        self._vault.archive_new()

    def changed(self, paths: Iterable[Path]) -> None:
        """Archive these changed files, if the vault is on."""
        self._vault.changed(paths)

    @property
    def words(self) -> Iterator[str]:
        """Words about the vault's progress and any problem with it."""
        if (keeping := self._vault.progress) is not None:
            yield f"saving to the vault: {keeping[0]:,} of {keeping[1]:,}"
        if self._vault.problem is not None:
            glyph = self.screen.gemtui.glyphs.warning
            yield clean_line(f"{glyph} the vault is incomplete: {self._vault.problem}")

    @dialog
    async def action_vault(self) -> None:
        """Show what is in the vault and what Gemini CLI will delete next.

        The user can turn the vault on or off there.
        """
        from gemtui.ui.sessions.vault_dialog import show_vault

        gemtui, store = self.screen.gemtui, self.screen.store
        if self.screen.start.demo:
            gemtui.show_message("Not available in the demo.")
            return
        if store.snapshot is None:
            return
        answer = await show_vault(gemtui, store.snapshot)
        if answer is True:
            self._vault.archive_new()
        elif isinstance(answer, Summary):
            self.screen.show(answer)
        store.reload()

    @dialog
    async def action_restore(self) -> None:
        from gemtui.ui.kit.put_back import put_back

        if (summary := self.screen.chosen) is not None:
            await put_back(self.screen.gemtui, summary, "Restore this session?")

    # --- deleting ------------------------------------------------------------------------------

    @dialog
    async def action_delete(self) -> None:
        from gemtui.ui.sessions.deletion import Deleting

        screen = self.screen
        deleting = Deleting(screen.gemtui, screen.store.home)
        screen.done.add(deleting)
        await deleting.run([named(each, screen.marks.marks) for each in screen.targets])
        for each in deleting.gone:
            if each.whole:
                screen.pane.forget(each.session)
        if screen.reading and screen.pane.summary is None:
            screen.sessions.focus()
        screen.store.reload()
        screen.refresh_bindings()

    @background("undo")
    async def action_undo(self) -> None:
        if self.screen.done.last is None:
            self.screen.gemtui.show_message("There is nothing to undo since gemtui was started.")
        elif back := await self.screen.done.undo():
            self._navigation.highlight(back[0])
        self.screen.refresh_bindings()
