"""Deletion of sessions, after a question that lists all their files, and its undo."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.errors import DeletionFailed, message_of
from gemtui.files import path_exists
from gemtui.kept.contents import forget_kept
from gemtui.kept.deletion import (
    Deleted,
    Deletion,
    DeletionItem,
    Trash,
    Trashed,
    delete_planned,
    plan_deletion,
    restore_trashed,
)
from gemtui.kept.run_copies import forget_copies
from gemtui.kept.vault import is_on
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.text import clean, clean_line, counted, ellipsis, short_path, size
from gemtui.ui.kit.dialogs import ConfirmForGoodScreen, ConfirmScreen
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.kit.text_view import show_text

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_TO_TRASH = "It will be moved to the system's trash, from which you can restore it."
_ALL_TO_TRASH = "They will be moved to the system's trash, from which you can restore them."
_STAYS = "The vault keeps a copy, which stays in the list (marked kept) until you delete it too."
_ONLY_KEPT = (
    "Gemini CLI has already deleted it. The vault has the only copy, so this can't be undone."
)
_NO_TRASH = "It can't be moved to the system's trash, so it would be deleted permanently."
_LIVE = "It is still being written, so Gemini CLI may be using it."
_TITLE = 40
"""Maximum width in cells of a session's title in a message."""
_LISTED = 500
"""Maximum number of sessions whose files are listed in a question."""
_BUSY = "A run is using this session. Stop the run first."


@dataclass
class DeletedSession:
    """A deleted session, with those of its files that are in the trash.

    `home`: Gemini CLI's folder. `whole`: whether all of the session's files were deleted.
    """

    session: Summary
    home: Path
    trash: Trash = field(default_factory=Trash)
    whole: bool = False


class Deleting:
    """A deletion of sessions that can be undone.

    `gone`: the sessions that have been wholly or partly deleted so far.
    """

    def __init__(self, app: AppBase, home: Path) -> None:
        self.gone: list[DeletedSession] = []
        self._app, self._home = app, home
        self._done: list[tuple[Summary, Deleted]] = []
        self._problems: list[tuple[Summary, str]] = []

    @property
    def undoable(self) -> bool:
        """Whether any of the deleted files are in the trash."""
        return any(each.trash.items for each in self.gone)

    async def run(self, sessions: Sequence[Summary]) -> None:
        """Ask the user, delete these sessions, and show the result.

        If one of them can't be deleted, the rest are still deleted.
        """
        kept = [each for each in sessions if Flag.KEPT in each.flags]
        sessions = [each for each in sessions if each not in kept]
        if kept:
            await self._delete_kept(kept)
        if sessions:
            await self._delete_stored(sessions)

    async def _delete_kept(self, sessions: Sequence[Summary]) -> None:
        """Permanently delete sessions whose only copy is in the vault, if the user agrees."""
        many = f"{len(sessions):,} kept sessions" if len(sessions) > 1 else "this kept session"
        about = clean_line(sessions[0].title if len(sessions) == 1 else many)
        lines = [clean_line(_ONLY_KEPT), *(clean_line(each.title) for each in sessions[1:_LISTED])]
        asked = ConfirmForGoodScreen(
            clean_line(f"Delete {many} permanently?"),
            about,
            lines,
            yes="Delete permanently",
            no="Keep",
        )
        if not await self._app.push_screen_wait(asked):
            return
        with self._app.reporting("Some files could not be deleted from the vault"):
            freed = await asyncio.to_thread(lambda: sum(map(forget_kept, sessions)))
            self.gone += [DeletedSession(each, self._home, whole=True) for each in sessions]
            for each in sessions:
                await self._forget(each)
            self._app.show_message(f"Deleted {size(freed)} from the vault.")

    async def _delete_stored(self, sessions: Sequence[Summary]) -> None:
        idle = [each for each in sessions if not await self._is_busy(each)]
        deletions = await asyncio.to_thread(self._plans, idle)
        if deletions and await self._sure(deletions):
            refused = await self._carry_out(deletions)
            if refused and await self._sure_for_good(refused):
                await self._carry_out([rest for rest, _ in refused], permanent=True)
        elif deletions:
            return
        self._say(len(sessions))

    async def _is_busy(self, session: Summary) -> bool:
        busy = await self._app.is_running_in(session.id)
        if busy:
            self._problems.append((session, _BUSY))
        return busy

    def _plans(self, sessions: Sequence[Summary]) -> list[Deletion]:
        """Return the plans for deleting these sessions, one per session.

        Sessions whose files are all deleted along with a different session's are left out.
        """
        plans = []
        for session in sessions:
            try:
                plans.append(plan_deletion(session, self._home))
            except DeletionFailed as error:
                self._problems.append((session, str(error)))
        owners: dict[Path, int] = {}
        for at, deletion in enumerate(plans):
            for item in deletion.items:
                owners.setdefault(item.path, at)
        return [each for at, each in enumerate(plans) if not _goes_with_another(each, at, owners)]

    async def _carry_out(
        self, deletions: Sequence[Deletion], *, permanent: bool = False
    ) -> list[tuple[Deletion, str]]:
        """Delete sessions; return those that couldn't be moved to the trash, with reasons.

        Each of these is returned as a plan for deleting the files that are left. `permanent`: don't
        use the trash.
        """
        refused = []
        for deletion in deletions:
            if await self._is_busy(deletion.session):
                continue
            going = DeletedSession(deletion.session, self._home)
            self.gone.append(going)
            try:
                done = await asyncio.to_thread(
                    delete_planned, deletion, permanent=permanent, trash=going.trash
                )
            except DeletionFailed as error:
                rest = None if permanent else await asyncio.to_thread(_rest, deletion)
                if rest is None:
                    self._problems.append((deletion.session, str(error)))
                else:
                    refused.append((rest, error.left[0][1]))
            else:
                going.whole = True
                self._done.append((deletion.session, done))
                await self._forget(deletion.session)
        return refused

    async def _forget(self, session: Summary) -> None:
        """Delete runs' copies of a deleted session.

        If they stayed, the session would seem to be lost, and gemtui would offer to restore it.
        """
        try:
            await asyncio.to_thread(forget_copies, self._app.runs_dir, self._home, session.id)
        except OSError as error:
            said = f"A run's copy could not be deleted: {message_of(error)}"
            self._problems.append((session, said))

    # --- questions -----------------------------------------------------------------------------

    async def _sure(self, deletions: Sequence[Deletion]) -> bool:
        many = len(deletions) > 1
        said = [_ALL_TO_TRASH if many else _TO_TRASH]
        said += [_STAYS] if await asyncio.to_thread(is_on) else []
        said += [f"{session.title}: {why}" for session, why in self._problems]
        what = f"{len(deletions):,} sessions" if many else "this session"
        return await self._ask(ConfirmScreen, f"Delete {what}?", said, deletions, "Delete")

    async def _sure_for_good(self, refused: Sequence[tuple[Deletion, str]]) -> bool:
        said = [_NO_TRASH, f"The system reported: {refused[0][1]}"]
        rests = [rest for rest, _ in refused]
        what = f" {len(rests):,} sessions" if len(rests) > 1 else ""
        question = f"Delete{what} permanently?"
        return await self._ask(ConfirmForGoodScreen, question, said, rests, "Delete permanently")

    async def _ask(
        self,
        screen: type[ConfirmScreen | ConfirmForGoodScreen],
        question: str,
        said: Sequence[str],
        deletions: Sequence[Deletion],
        yes: str,
    ) -> bool:
        one = deletions[0].session if len(deletions) == 1 else None
        about = clean_line(_words_of_all(deletions) if one is None else one.title)
        if one is not None and Flag.LIVE in one.flags:
            said = [*said, _LIVE]
        bytes = sum(deletion.size for deletion in deletions)
        lines = [*map(clean_line, said), ""]
        lines += [clean_line(f"In {short_path(self._home)}, {size(bytes)}:")]
        for deletion in deletions[:_LISTED]:
            lines += _titled(deletion.session) if one is None else ()
            lines += [_line(item, self._home) for item in deletion.items]
        if more := len(deletions[_LISTED:]):
            lines += ["", clean_line(f"and {more:,} more selected sessions")]
        asked = screen(clean_line(question), about, lines, yes=yes, no="Keep")
        return await self._app.push_screen_wait(asked)

    # --- undo ----------------------------------------------------------------------------------

    async def undo(self) -> list[Summary]:
        """Restore files from the trash; return the sessions that are complete again.

        A list shows the files that couldn't be restored, with the reason and where they are now.
        """
        waiting = [each for each in reversed(self.gone) if each.trash.items]
        left = await asyncio.to_thread(
            lambda: [restore_trashed(each.trash, each.home) for each in waiting]
        )
        back = [each.session for each, items in zip(waiting, left, strict=True) if not items]
        lines = [f"{item.path}: {why}{_lies(item)}" for items in left for item, why in items]
        if lines:
            title = "Files that were not restored"
            show_text(self._app, title, "\n".join(lines), what="the list")
        elif len(back) == 1:
            self._app.show_message(f"Restored: {back[0].title}")
        else:
            self._app.show_message(f"Restored {len(back):,} sessions.")
        return back

    # --- texts ---------------------------------------------------------------------------------

    def _say(self, wanted: int) -> None:
        if self._done:
            lasting = sum(len(deleted.paths) for _, deleted in self._done if not deleted.trashed)
            what = f"{len(self._done):,} sessions"
            if len(self._done) == 1:
                mark = self._app.glyphs.ellipsis
                what = f"“{ellipsis(self._done[0][0].title, _TITLE, mark=mark)}”"
            forever = f", {counted(lasting, 'path')} permanently" if lasting else ""
            known = any(each.trash.is_known for each in self.gone)
            undo = f" – {BY_ID['sessions.undo'].footer()} to undo" if known else ""
            self._app.show_message(f"Deleted {what}{forever}{undo}")
        if wanted == 1 and self._problems:
            self._app.show_message(self._problems[0][1], problem=True)
        elif self._problems:
            lines = [f"{session.title}: {why}" for session, why in self._problems]
            title = f"{counted(len(lines), 'problem')} while deleting {wanted:,} sessions"
            show_text(self._app, title, "\n".join(lines), what="the list")


def _goes_with_another(deletion: Deletion, at: int, owners: dict[Path, int]) -> bool:
    return all(
        any(owners.get(path, at) != at for path in (item.path, *item.path.parents))
        for item in deletion.items
    )


def _rest(deletion: Deletion) -> Deletion | None:
    """Return a plan for deleting the files that are left after an attempt.

    Returns None if it would delete files that the user hasn't agreed to, or if planning fails.
    """
    try:
        rest = plan_deletion(deletion.session, deletion.home)
    except DeletionFailed:
        return None
    return rest if set(rest.items) <= set(deletion.items) else None


def _words_of_all(deletions: Sequence[Deletion]) -> str:
    files = sum(item.files for deletion in deletions for item in deletion.items)
    return f"{len(deletions):,} sessions, {counted(files, 'file')}"


def _titled(session: Summary) -> Iterator[str]:
    yield ""
    yield clean_line(session.title)
    if Flag.LIVE in session.flags:
        yield clean_line(_LIVE)


def _line(item: DeletionItem, home: Path) -> str:
    """Return a line about a file to delete.

    The file's size comes first because long paths are wrapped.
    """
    path = item.path.relative_to(home) if item.path.is_relative_to(home) else item.path
    inside = f"/  {counted(item.files, 'file')}" if item.folder else ""
    return clean(f"{size(item.size):>9}  {path}{inside}")


def _lies(item: Trashed) -> str:
    return (
        "" if item.place is None or not path_exists(item.place) else f" (it is now in {item.place})"
    )
