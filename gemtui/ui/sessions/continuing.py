"""Actions that start from a stored session: continue, review, undo and fork."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gemtui.extension.live import GONE, LiveState
from gemtui.paths import current_folder
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.ui.kit.messages import ContinueRequested, NewRunRequested
from gemtui.ui.kit.screens import dialog
from gemtui.ui.sessions.live_sessions import LiveSessions
from gemtui.ui.sessions.marking import named
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart

if TYPE_CHECKING:
    from gemtui.ui.undo.start import Number


class Continuing(SessionsPart):
    """Actions that continue a session in a run, or go back to an earlier state of it."""

    def __init__(self, screen: SessionsPane, live: LiveSessions) -> None:
        super().__init__(screen)
        self._live = live

    def can(self, action: str) -> bool:
        """Return whether an action is available; without a session, only a new run is."""
        return action == "new_run" or self.screen.chosen is not None

    def action_new_run(self) -> None:
        summary = self.screen.chosen
        folder = None if summary is None else _folder_of(summary)
        message = NewRunRequested(folder or self.screen.start.project or current_folder())
        self.screen.post_message(message)

    @dialog
    async def action_go_on(self) -> None:
        """Continue the chosen session in the run pane.

        If the session exists only in the vault (gemtui's own copies), it is restored first, if the
        user agrees.
        """
        if (summary := self.screen.chosen) is not None:
            await self._go_on(summary)

    @dialog
    async def action_review(self) -> None:
        """Let the user review the session's changes hunk by hunk.

        Comments that the user writes there become the next prompt.
        """
        from gemtui.ui.review.screen import review_session

        if (summary := self.screen.chosen) is not None:
            title = named(summary, self.screen.marks.marks).title
            review = review_session(summary, title)
            if text := await self.screen.gemtui.push_screen_wait(review):
                await self._go_on(summary, text)

    async def _go_on(self, summary: Summary, prompt: str = "") -> None:
        gemtui, live = self.screen.gemtui, self._live.of(summary)
        if live is not None and live.state not in GONE:
            gemtui.show_message(f"Process {live.pid} has this session open. Close it there first.")
            return
        if live is not None:  # recently written, but its process has ended
            summary = replace(summary, flags=summary.flags - {Flag.LIVE})
        back: Summary | None = summary
        if Flag.KEPT in summary.flags:
            from gemtui.ui.kit.put_back import put_back

            back = await put_back(gemtui, summary, "Restore this session and continue?")
            self.screen.store.reload()
        if back is not None:
            self.screen.post_message(ContinueRequested(back, prompt))

    # --- going back to a prompt ----------------------------------------------------------------

    @dialog
    async def action_undo_to(self) -> None:
        """Undo the prompt at the cursor and all later ones, in the files and the chat.

        In the list of sessions, this applies to the session's last prompt.
        """
        from gemtui.ui.undo.start import show_undo

        gemtui, store = self.screen.gemtui, self.screen.store
        summary = self._main_session()
        live = None if summary is None else self._live.of(summary)
        if live is not None and live.state in (LiveState.WORKING, LiveState.WAITING):
            gemtui.show_message(f"Process {live.pid} is working in this session. Wait for it, or stop it there.")
        elif summary is not None:
            number, folder = self._prompt_number(), _folder_of(summary)
            await show_undo(gemtui, lambda: summary, number, folder, store.home)
            store.reload()

    @dialog
    async def action_redo(self) -> None:
        from gemtui.ui.undo.start import show_redo

        if (summary := self.screen.chosen) is not None:
            await show_redo(self.screen.gemtui, _folder_of(summary), self.screen.store.home)

    @dialog
    async def action_fork(self) -> None:
        """Start a new chat that branches off just before the prompt at the cursor.

        In the list of sessions, this applies to the session's last prompt.
        """
        from gemtui.ui.undo.start import show_fork

        store = self.screen.store
        if (summary := self._main_session()) is not None:
            number, folder = self._prompt_number(), _folder_of(summary)
            await show_fork(self.screen.gemtui, lambda: summary, number, folder, store.home)
            store.reload()

    def _main_session(self) -> Summary | None:
        """Return the chosen session, or None if it is a subagent's.

        In the latter case, a message tells the user to open the parent session.
        """
        summary = self.screen.chosen
        if summary is not None and summary.kind is SessionKind.SUBAGENT:
            words = "This session belongs to a subagent. Open the session that called it."
            self.screen.gemtui.show_message(words)
            return None
        return summary

    def _prompt_number(self) -> Number:
        """Return a function that finds the number of the prompt at the cursor.

        In the list of sessions, it finds the number of the session's last prompt.
        """
        from gemtui.ui.undo.start import prompt_at

        view = self.screen.pane.view
        return prompt_at(view.page.transcript, view.index) if self.screen.reading else len


def _folder_of(summary: Summary) -> Path | None:
    return None if summary.project is None else Path(summary.project)
