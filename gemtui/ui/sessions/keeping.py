"""Key actions that delete and restore sessions, and the archiving in the vault.

Files are archived on a background thread of their own, one step at a time. If that thread has to
wait for another program, nothing else is delayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gemtui.agents import Can, why_not
from gemtui.errors import reason_of
from gemtui.sessions.catalog.summary import Flag, Summary, named
from gemtui.text import clean_line
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart

_PAUSE = 4
"""The pause after a step of archiving, as a multiple of the time that the step took.

Each step compares a log with its copy, which takes long for a long one.
"""
_TOLD = 0.1
"""Minimum number of seconds between two progress updates."""

_NEEDS = {"restore": Can.RESTORE, "delete": Can.DELETE}
"""What gemtui must be able to do with an agent's sessions for an action."""


class SessionKeeping(SessionsPart):
    """Archives sessions in the vault while it is on; deletes and restores sessions.

    The vault holds gemtui's own copies of sessions.
    """

    def __init__(self, screen: SessionsPane) -> None:
        super().__init__(screen)
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
        """Return whether the key would now only say that there is nothing to undo, or why not."""
        if action == "undo":
            return self.screen.done.last is None
        needs, chosen = _NEEDS.get(action), self.screen.chosen
        return bool(needs and chosen and why_not(chosen.agent, needs))

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
            self.screen.navigation.show(answer)
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
            self.screen.navigation.highlight(back[0])
        self.screen.refresh_bindings()


class VaultFeed:
    """Archives the store under `home` in the vault while the vault is on.

    `show`: called in the event loop whenever `progress` or `problem` has changed. `progress`: the
    number of files archived so far and the total, or None when idle. `problem`: why some files
    couldn't be archived, or None.
    """

    def __init__(self, home: Path, show: Callable[[], None]) -> None:
        self.progress: tuple[int, int] | None = None
        self.problem: str | None = None
        self._home, self._show = home, show
        self._thread = ThreadPoolExecutor(1, "vault")
        self._changed: set[Path] = set()
        self._all = False
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Archive what `archive_new` and `changed` ask for, until cancelled."""
        reading, loop = Reading(every=_TOLD), asyncio.get_running_loop()
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                began = loop.time()
                wanted = None if self._all else self._changed
                self._all, self._changed = False, set()
                before = self.problem
                self.problem = await loop.run_in_executor(self._thread, self._keep, wanted, reading)
                if self.progress is not None or before != self.problem:
                    self.progress = None
                    self._show()
                await asyncio.sleep(_PAUSE * (loop.time() - began))
        finally:
            reading.stop()
            self._thread.shutdown(wait=False, cancel_futures=True)

    def archive_new(self) -> None:
        """Archive every stored session that hasn't been archived yet."""
        self._all = True
        self._news.set()

    def changed(self, paths: Iterable[Path]) -> None:
        """Archive these changed files; a folder among them stands for the whole store."""
        self._changed |= set(paths)
        self._news.set()

    def _keep(self, paths: set[Path] | None, reading: Reading) -> str | None:
        """Archive these files, or the whole store if `paths` is None.

        Returns what went wrong, or None. Does nothing while the vault is off. Blocking: call this
        on the vault's thread.
        """
        from gemtui.kept.vault import is_on, keep_all, keep_changed
        from gemtui.sessions.store.store import name_of

        def told(done: int, total: int) -> None:
            if reading.is_due():
                reading.show(self._take_progress, done, total)

        if not is_on():
            return None
        try:
            if paths is None or any(name_of(path, self._home) is None for path in paths):
                keep_all(self._home, told=told, cancelled=reading.is_stopped)
            else:
                keep_changed(paths, self._home)
        except OSError as error:
            return reason_of(error)
        return None

    def _take_progress(self, done: int, total: int) -> None:
        self.progress = done, total
        self._show()
