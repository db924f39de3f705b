"""Key actions that show or export sessions' data: info, export, patch and stats."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import Problem
from gemtui.ui.kit.screens import dialog
from gemtui.ui.sessions.live_sessions import LiveSessions
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart


class SessionKeys(SessionsPart):
    """Key actions that show or export sessions' data.

    Depending on the key, this is the data of the chosen, the selected or all sessions.
    """

    def __init__(self, screen: SessionsPane, live: LiveSessions) -> None:
        super().__init__(screen)
        self._live = live

    def can(self, action: str) -> bool:
        """Return whether there is a session to which the action applies."""
        chosen = self.screen.chosen is not None
        match action:
            case "info":
                return chosen
            case "export" | "patch":
                return chosen or bool(self.screen.sessions.selection.keys)
        return True

    @dialog
    async def action_export(self) -> None:
        from gemtui.ui.sessions import actions

        screen = self.screen
        if wanted := screen.targets:
            await actions.export_sessions(screen.gemtui, wanted, screen.store.home, screen.marks.marks)

    def action_patch(self) -> None:
        from gemtui.sessions.catalog.selection import sessions_with_calls
        from gemtui.ui.sessions.patch_screen import Patching, PatchScreen

        gemtui, store, wanted = self.screen.gemtui, self.screen.store, self.screen.targets
        snapshot = store.snapshot
        if snapshot is None or not wanted:
            return
        root, *others = {each.project for each in wanted}
        if others:
            gemtui.show_message("The selected sessions belong to several projects, but a patch covers only one.")
            return
        if root is None:
            gemtui.show_message("No patch can be made, because this session's project folder is unknown.")
            return

        def sessions() -> list[Summary]:
            return [part for each in wanted for part in sessions_with_calls(snapshot, session=each)]

        gemtui.push_screen(PatchScreen(Patching(Path(root), sessions), store.home))

    @dialog
    async def action_info(self) -> None:
        from gemtui.kept.contents import deletion_reason
        from gemtui.ui.sessions.about_dialog import AboutScreen
        from gemtui.ui.sessions.checkpoint_marks import undo_words

        screen, store = self.screen, self.screen.store
        if (summary := screen.chosen) is None:
            return
        live = self._live.of(summary)
        now, words = screen.gemtui.clock(), ""
        if store.snapshot is not None:
            words = await asyncio.to_thread(deletion_reason, summary, store.snapshot, os.environ, now)
        undo = await asyncio.to_thread(undo_words, summary, now)
        about = AboutScreen(summary, store.sessions, screen.marks.marks, live, words, undo)
        relative = await screen.gemtui.push_screen_wait(about)
        if relative is not None:
            screen.show(relative)

    def action_stats(self) -> None:
        from gemtui.ui.sessions.stats_screen import StatsScreen

        store, project = self.screen.store, self.screen.start.project
        self.screen.app.push_screen(StatsScreen(store.sessions, store.home, project))

    def action_problems(self) -> None:
        from gemtui.ui.sessions import actions

        screen = self.screen
        snapshot, marks = screen.store.snapshot, screen.marks.problem
        unreadable = () if snapshot is None else snapshot.unreadable
        no_marks = () if marks is None else (Problem(path=marks.path, line=None, what=str(marks)),)
        actions.show_problems(screen.gemtui, (*screen.pane.problems, *no_marks, *unreadable))
