"""The live sessions in the sessions pane."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from gemtui.config import Ring
from gemtui.extension.live import LiveSession, LiveState
from gemtui.sessions.catalog.summary import Summary, named
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.list_pane import SessionPane
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart
from gemtui.ui.sessions.store_feed import SETTLE

if TYPE_CHECKING:
    from gemtui.ui.sessions.live_question import LiveQuestionScreen


class LiveSessions(SessionsPart):
    """The sessions that gemtui's extension for Gemini CLI reports as live.

    They are kept up to date once `follow` has been called.
    """

    def __init__(self, screen: SessionsPane) -> None:
        super().__init__(screen)
        self._live: tuple[LiveSession, ...] | None = None

    def of(self, summary: Summary) -> LiveSession | None:
        """Return what the extension's hooks report about a session, or None if nothing."""
        return next((each for each in self._live or () if each.session == summary.id), None)

    @background("live", exclusive=True)
    async def follow(self) -> None:
        """Show what sessions are doing, now and after every change."""
        await asyncio.sleep(SETTLE)
        from gemtui.ui.sessions.live import follow_live

        await follow_live(self._take)

    def _take(self, live: tuple[LiveSession, ...]) -> None:
        """Show the sessions' states, and notify the user of new questions.

        The user isn't notified of a session that is already on screen.
        """
        screen = self.screen
        if not screen.app.is_running:
            return
        before, self._live = self._live, live
        screen.query_one(SessionPane).update_live(live, screen.gemtui.glyphs)
        screen.pane.update_live({each.session: each.state for each in live})
        if (top := screen.app.screen).id == "live-question":
            cast("LiveQuestionScreen", top).update_live(live)
        known = {(each.session, each.question) for each in before or ()}
        for each in _waiting(live) if before is not None else ():
            by_run = each.question is not None and each.question.run  # runs notify themselves
            if (each.session, each.question) not in known and not by_run:
                self._ring(each, seen=self._on_screen(each))

    def _on_screen(self, live: LiveSession) -> bool:
        """Return whether the user can see the session, as a row or as a transcript."""
        screen = self.screen
        if not screen.app.app_focus or not screen.is_active:
            return False
        read = screen.pane.summary if screen.reading or screen.side_by_side else None
        shown = screen.side_by_side or not screen.reading
        return (read is not None and read.id == live.session) or (
            shown and screen.sessions.sees(live.session)
        )

    @background("ring")
    async def _ring(self, live: LiveSession, *, seen: bool) -> None:
        """Notify the user that a session is waiting, unless another gemtui has done so.

        `seen`: whether the session is on screen. If so, the user isn't notified, but the
        notification counts as sent, so no other gemtui sends it.
        """
        from gemtui.extension.live import LiveFolder
        from gemtui.ui.sessions.live import waiting_notice

        screen = self.screen
        if screen.gemtui.config.ring is Ring.OFF and not seen:
            return
        if not await asyncio.to_thread(LiveFolder().claim, live) or seen:
            return
        session = screen.store.find(live.session)
        name = "" if session is None else named(session, screen.marks.marks).title
        screen.gemtui.ring(waiting_notice(live, name))

    # --- waiting sessions ----------------------------------------------------------------------

    @dialog
    async def action_waiting(self) -> None:
        from gemtui.extension.live import terminal_of
        from gemtui.ui.sessions.live_question import LiveQuestionScreen

        gemtui = self.screen.gemtui
        asking = self._asking(after=None)
        if asking is None:
            gemtui.show_message(await asyncio.to_thread(_none_waits))
        while asking is not None:
            self._highlight_everywhere(asking.session)
            tty = await asyncio.to_thread(terminal_of, asking.pid)
            shown = LiveQuestionScreen(asking, tty=tty)
            more = await gemtui.push_screen_wait(shown)
            asking = self._asking(after=asking.session) if more else None

    def _asking(self, *, after: str | None) -> LiveSession | None:
        """Return a waiting session, or None if no session is waiting.

        If `after` is the id of a waiting session, this is the next one. If `after` is None, it is
        the chosen session if that is waiting. Otherwise, it is the first waiting session.
        """
        waiting = _waiting(self._live or ())
        ids = [each.session for each in waiting]
        chosen = None if self.screen.chosen is None else self.screen.chosen.id
        if after is not None:
            at = ids.index(after) + 1 if after in ids else 0
        else:
            at = ids.index(chosen) if chosen in ids else 0
        return waiting[at % len(waiting)] if waiting else None

    def _highlight_everywhere(self, id: str) -> None:
        """Move the list's cursor to a session, even if it isn't listed at the moment.

        If necessary, the search is cleared and all projects are listed.
        """
        screen, session = self.screen, self.screen.store.find(id)
        if session is None or (screen.chosen is not None and screen.chosen.id == id):
            return
        screen.sessions.focus()
        if not screen.sessions.highlight(session):
            screen.sessions.filter("")
            screen.sessions.scope(everywhere=True)
            screen.sessions.highlight(session)


def _none_waits() -> str:
    from gemtui.extension.status import HookState, extension_state

    extension = extension_state()
    if extension.state is HookState.READY:
        return "No session is waiting for you."
    if extension.state is HookState.UNSUPPORTED:
        return f"Can't tell which sessions need you: {extension.problem}."
    return "Can't tell which sessions need you: install the extension (Extension in ^p)."


def _waiting(live: Sequence[LiveSession]) -> list[LiveSession]:
    return [each for each in live if each.state is LiveState.WAITING]
