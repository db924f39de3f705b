"""Key actions on stored sessions.

They show or export sessions' data, change the user's marks on them, continue or review a session,
or go back to an earlier state of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from gemtui.agents import Can, why_not
from gemtui.extension.live import AT_WORK, GONE
from gemtui.sessions.catalog.summary import Flag, Summary, named
from gemtui.sessions.store.store import Problem, SessionKind
from gemtui.text import clean_line
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.messages import ContinueRequested, NewRunRequested
from gemtui.ui.kit.screens import background, dialog
from gemtui.ui.sessions.live_sessions import LiveSessions
from gemtui.ui.sessions.marks import Marking, tags_in_use
from gemtui.ui.sessions.pane_base import SessionsPane, SessionsPart
from gemtui.ui.sessions.store_feed import SETTLE
from gemtui.ui.undo.checkpoint_marks import (
    FoundCheckpoints,
    find_checkpointed,
    last_prompt,
    prompt_at,
)

if TYPE_CHECKING:
    from gemtui.marks import MarkEdit
    from gemtui.ui.undo.checkpoint_marks import Number

_TIME_TO_READ = 30.0
"""Seconds for which an important message is shown at startup."""


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
        from gemtui.ui.sessions.export import export_sessions

        screen = self.screen
        if wanted := screen.targets:
            await export_sessions(
                screen.gemtui, wanted, screen.store.home, screen.marks.marks, screen.left_off
            )

    @background("compare", exclusive=True)
    async def action_compare(self) -> None:
        """Show the two selected sessions side by side, and the difference of what they wrote."""
        from gemtui.stats.prices import load_prices
        from gemtui.ui.kit.text_view import show_text
        from gemtui.ui.sessions.comparing import compared

        screen = self.screen
        wanted = [named(session, screen.marks.marks) for session in screen.targets]
        if len(wanted) != 2:
            screen.gemtui.show_message("Select two sessions to compare: space selects.")
            return
        with screen.gemtui.reporting("The sessions could not be compared"):
            lines = await asyncio.to_thread(
                lambda: list(
                    compared(
                        wanted,
                        load_prices(),
                        home=screen.store.home,
                        cache=screen.gemtui.start.cache,
                    )
                )
            )
            show_text(screen.gemtui, "Two sessions", "\n".join(lines), what="the comparison")

    def action_patch(self) -> None:
        from gemtui.sessions.catalog.selection import sessions_with_calls
        from gemtui.ui.sessions.patch_screen import Patching, PatchScreen

        gemtui, store, wanted = self.screen.gemtui, self.screen.store, self.screen.targets
        snapshot = store.snapshot
        if snapshot is None or not wanted:
            return
        root, *others = {each.project for each in wanted}
        if others:
            gemtui.show_message(
                "The selected sessions belong to several projects, but a patch covers only one."
            )
            return
        if root is None:
            gemtui.show_message(
                "No patch can be made, because this session's project folder is unknown."
            )
            return

        def sessions() -> list[Summary]:
            return [part for each in wanted for part in sessions_with_calls(snapshot, session=each)]

        gemtui.push_screen(PatchScreen(Patching(Path(root), sessions), store.home))

    @dialog
    async def action_info(self) -> None:
        from gemtui.kept.contents import deletion_reason
        from gemtui.ui.sessions.about_dialog import AboutScreen
        from gemtui.ui.undo.checkpoint_marks import undo_words

        screen, store = self.screen, self.screen.store
        if (summary := screen.chosen) is None:
            return
        live = self._live.of(summary)
        now, words = screen.gemtui.clock(), ""
        if store.snapshot is not None:
            words = await asyncio.to_thread(
                deletion_reason, summary, store.snapshot, os.environ, now
            )
        undo = await asyncio.to_thread(undo_words, summary, now)
        about = AboutScreen(summary, store.sessions, screen.marks.marks, live, words, undo)
        relative = await screen.gemtui.push_screen_wait(about)
        if relative is not None:
            screen.navigation.show(relative)

    def action_stats(self) -> None:
        from gemtui.ui.sessions.stats_screen import StatsScreen

        store, project = self.screen.store, self.screen.sessions.project
        everywhere = self.screen.sessions.view.everywhere
        self.screen.app.push_screen(
            StatsScreen(store.sessions, store.home, project, everywhere=everywhere)
        )

    def action_problems(self) -> None:
        """Show what couldn't be read in the store, with the file and line of each problem."""
        screen = self.screen
        snapshot, marks = screen.store.snapshot, screen.marks.problem
        unreadable = () if snapshot is None else snapshot.unreadable
        no_marks = () if marks is None else (Problem(path=marks.path, line=None, what=str(marks)),)
        problems = (*screen.pane.problems, *no_marks, *unreadable)
        if not problems:
            screen.gemtui.show_message("All session files could be read.")
            return
        from gemtui.ui.kit.text_view import show_text

        lines = [
            f"{each.path}{'' if each.line is None else f', line {each.line}'}: {each.what}"
            for each in problems
        ]
        show_text(screen.gemtui, "Unreadable files", "\n".join(lines), what="the list")


class MarkKeys(SessionsPart):
    """Key actions that change the user's marks on sessions: name, tags, note and pin.

    The changes can be undone.
    """

    def can(self, action: str) -> bool:
        """Return whether there are sessions to mark."""
        del action
        return self.screen.chosen is not None or bool(self.screen.sessions.selection.keys)

    @dialog
    async def action_marks(self) -> None:
        from gemtui.marks import MarkEdit
        from gemtui.ui.sessions.marks_dialog import MarksScreen

        app, feed, sessions = self.screen.gemtui, self.screen.marks, self.screen.targets
        if not sessions or self._say_no_marks():
            return
        marks = [feed.of(id) for id in dict.fromkeys(each.id for each in sessions)]
        about = clean_line(sessions[0].title if len(marks) == 1 else f"{len(marks):,} sessions")
        tried: list[Marking] = []

        async def keep(edit: MarkEdit) -> None:
            renames = edit.name and edit == MarkEdit(name=edit.name)
            tried.append(self._change(sessions, edit, "renamed" if renames else "marked"))
            await tried[-1].wait_saved()

        ids = " ".join(each.id for each in sessions)
        shown = MarksScreen(about, marks, tags_in_use(feed.marks), keep, subject=ids)
        if await app.push_screen_wait(shown):
            tried[-1].report()

    def action_pin(self) -> None:
        """Pin the selected sessions; if all of them are pinned already, unpin them."""
        self._toggle("pinned")

    def action_archive(self) -> None:
        """Archive the selected sessions; if all are archived already, unarchive them."""
        self._toggle("archived")
        self.screen.sessions.selection.keep_listed()

    def _toggle(self, state: Literal["pinned", "archived"]) -> None:
        from gemtui.marks import MarkEdit

        if not self._say_no_marks():
            sessions = self.screen.targets
            on = not all(getattr(self.screen.marks.of(each.id), state) for each in sessions)
            edit = MarkEdit(pinned=on) if state == "pinned" else MarkEdit(archived=on)
            off = {"pinned": "unpinned", "archived": "unarchived"}[state]
            self._finish(self._change(sessions, edit, state if on else off))
        self.screen.refresh_bindings()

    @background("keep")
    async def _finish(self, marking: Marking) -> None:
        await marking.finish()

    def _change(self, sessions: Sequence[Summary], edit: MarkEdit, done: str) -> Marking:
        marking = Marking(self.screen.gemtui, self.screen.marks, sessions, edit, done)
        self.screen.done.add(marking)
        return marking

    def _say_no_marks(self) -> bool:
        """If marks can't be changed, show why and return True; otherwise return False.

        A corrupt file is renamed, so that the next mark starts a new file.
        """
        broken = self.screen.marks.problem is not None
        if broken:
            self._set_aside()
        return broken

    @background("keep")
    async def _set_aside(self) -> None:
        with self.screen.gemtui.reporting():
            await asyncio.shield(asyncio.wrap_future(self.screen.marks.set_aside()))
            self.screen.gemtui.show_message("Marks work again. Press the key again.")


_NEEDS = {"go_on": Can.RESUME, "fork": Can.FORK}
"""What gemtui must be able to do with an agent's sessions for an action."""


class Continuing(SessionsPart):
    """Actions that continue a session in a run, or go back to an earlier state of it."""

    def __init__(self, screen: SessionsPane, live: LiveSessions) -> None:
        super().__init__(screen)
        self._live = live
        self._checkpointed: FoundCheckpoints | None = None
        self._checkpoints_read = False

    def can(self, action: str) -> bool:
        """Return whether an action is available; without a session, only a new run is."""
        return action == "new_run" or self.screen.chosen is not None

    def only_says_why(self, action: str) -> bool:
        """Return whether the key only explains that gemtui can't do this with the agent."""
        needs, session = _NEEDS.get(action), self.screen.chosen
        return bool(needs and session and why_not(session.agent, needs))

    def _may(self, action: str, session: Summary) -> bool:
        """Return whether this can be done with a session; if not, say why."""
        reason = why_not(session.agent, _NEEDS[action])
        if not reason:
            return True
        if action == "go_on":
            reason += f" In the list, {BY_ID['list.copy_resume'].footer()} copies this command."
        self.screen.gemtui.show_message(reason)
        return False

    def action_new_run(self) -> None:
        summary = self.screen.chosen
        folder = None if summary is None else summary.folder
        message = NewRunRequested(folder or self.screen.start.folder)
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
        if not self._may("go_on", summary):
            return
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

    @background("checkpoints", exclusive=True)
    async def look_for_checkpoints(self) -> None:
        """Mark sessions with checkpoints in the list, and prompts in the open session."""
        await asyncio.sleep(SETTLE)
        found = await asyncio.to_thread(find_checkpointed, self._checkpointed)
        if not self._checkpoints_read:
            self._checkpoints_read = True
            self._report_interrupted_undo()
        if found is not None:
            self._checkpointed = found
            self.screen.pane.update_undoable(found.sessions)

    @background("interrupted")
    async def _report_interrupted_undo(self) -> None:
        """Tell the user if an undo or other change to the project's files was interrupted."""
        from gemtui.runs.undo.undo import interrupted_change

        start = self.screen.start
        if start.project is None or start.demo:
            return
        found = await asyncio.to_thread(interrupted_change, start.project)
        if found is not None:
            back, undo = BY_ID["sessions.redo"].footer(), BY_ID["sessions.undo_to"].footer()
            ways = {
                "undo": (
                    f"On a session of this folder, press {undo} to finish it, or {back} to "
                    "reverse it."
                ),
                "redo": f"Press {back} on a session of this folder to finish it.",
            }
            other = f"To finish it, run: {found.finish}"
            words = f"{found.words} {ways.get(found.kind, other)}"
            self.screen.gemtui.show_message(words, problem=True, seconds=_TIME_TO_READ)

    @dialog
    async def action_undo_to(self) -> None:
        """Undo the prompt at the cursor and all later ones, in the files and the chat.

        In the list of sessions, this applies to the session's last prompt.
        """
        from gemtui.ui.undo.undo_screen import UndoRequest, UndoScope, UndoScreen

        gemtui, store = self.screen.gemtui, self.screen.store
        summary = self._main_session()
        live = None if summary is None else self._live.of(summary)
        if live is not None and live.state in AT_WORK:
            gemtui.show_message(
                f"Process {live.pid} is working in this session. Wait for it, or stop it there."
            )
        elif summary is not None:
            number, folder = self._prompt_number(), summary.folder
            scopes = tuple(UndoScope)
            if why_not(summary.agent, Can.FORK):
                scopes = (UndoScope.FILES,)
                if not summary.files_written:
                    gemtui.show_message(
                        "Nothing can be undone: this session has written no known files, and "
                        "gemtui can't fork its chat."
                    )
                    return
            request = UndoRequest(
                folder=folder, home=store.home, find=lambda: summary, number=number, scopes=scopes
            )
            await gemtui.push_screen_wait(UndoScreen(request))
            store.reload()

    @dialog
    async def action_redo(self) -> None:
        from gemtui.ui.undo.undo_screen import UndoRequest, UndoScreen

        if (summary := self.screen.chosen) is not None:
            request = UndoRequest(folder=summary.folder, home=self.screen.store.home)
            await self.screen.gemtui.push_screen_wait(UndoScreen(request))

    @dialog
    async def action_fork(self) -> None:
        """Start a new chat that branches off just before the prompt at the cursor.

        In the list of sessions, this applies to the session's last prompt.
        """
        from gemtui.ui.undo.undo_screen import show_fork

        store = self.screen.store
        summary = self._main_session()
        if summary is not None and self._may("fork", summary):
            number, folder = self._prompt_number(), summary.folder
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
        view = self.screen.pane.view
        return prompt_at(view.page.transcript, view.index) if self.screen.reading else last_prompt
