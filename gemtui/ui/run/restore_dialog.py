"""Sessions that are gone from the store, and of which a run keeps a copy: put back by a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.agent.run_folder import RunFolder
from gemtui.kept.run_copies import LastCopy, last_copies, restore, title_of
from gemtui.text import Clean, clean_line, counted, ellipsis, size
from gemtui.transcript.model import excerpt
from gemtui.ui.kit.dialogs import Choice, ChooseScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


async def show_lost(app: AppBase) -> None:
    """Offer the sessions of which only a run's copy is left; put back the one that is chosen."""
    lost = await asyncio.to_thread(_lost, app.runs_dir, app.name_of)
    if not lost:
        app.say("No session is lost of which a run keeps a copy.")
        return
    chosen = await app.push_screen_wait(
        ChooseScreen(
            Clean("Put a session back?"),
            (Clean("Gemini CLI's folder no longer has them; gemtui kept a copy for a run."),),
            [Choice(copy.folder.id, *_row(app, copy, title)) for copy, title in lost],
        )
    )
    copy = next((each for each, _ in lost if each.folder.id == chosen), None)
    if copy is not None:
        await restore_from(app, copy.folder)


async def restore_from(app: AppBase, folder: RunFolder) -> None:
    """Put back what a run keeps of a session and what is gone, and say what came of it."""
    try:
        restored = await asyncio.to_thread(restore, folder)
    except OSError as error:
        app.say(f"It could not be put back: {error}", problem=True)
        return
    if restored:
        app.say(f"Put back: {counted(len(restored), 'file')} of the session")
    else:
        app.say("This run keeps no copy of a file that is gone.")


def _lost(runs: Path, name_of: Callable[[str], str | None]) -> list[tuple[LastCopy, str]]:
    """Each copy with the title of its session, else with the prompt of the run that keeps it."""
    return [
        (copy, name_of(copy.session_id) or title_of(copy) or _prompt(copy.folder))
        for copy in last_copies(runs)
    ]


def _prompt(folder: RunFolder) -> str:
    request = folder.request()
    about = {} if request is None else request.about or {}
    return excerpt(str(about.get("prompt") or "(no prompt)"))


def _row(app: AppBase, copy: LastCopy, title: str) -> tuple[Clean, Clean]:
    label = ellipsis(clean_line(title), 36, mark=app.glyphs.ellipsis)
    return label, clean_line(f"{copy.session_id[:8]}  {size(copy.size)}")
