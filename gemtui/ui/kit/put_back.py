"""Dialogs that restore sessions that Gemini CLI no longer has."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gemtui.agent.run_folder import RunFolder
from gemtui.agents import WORDS, Can, why_not
from gemtui.kept.cleanup import retention
from gemtui.kept.restoring import Restored, restore_from_run, restore_from_vault
from gemtui.kept.run_copies import LastCopy, copy_title, last_copies
from gemtui.sessions.catalog.summary import Flag, Summary, id_start, title_of
from gemtui.text import clean_line, counted, ellipsis, size
from gemtui.transcript.model import excerpt
from gemtui.ui.kit.dialogs import Choice, ChooseScreen, confirm

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_MOST = 500
"""Maximum number of sessions in the vault to list."""


async def show_lost(app: AppBase, kept: Sequence[Summary]) -> None:
    """List the sessions that can be restored, and restore the one the user chooses.

    These are the sessions in `kept`, which exist only in the vault (gemtui's own copies), newest
    first, and sessions that only a run still has a copy of.
    """
    ids = {each.id for each in kept}
    found = await asyncio.to_thread(_of_runs, app.runs_dir, app.name_of)
    of_runs = [(copy, title) for copy, title in found if copy.session_id not in ids]
    rows = {copy.folder.id: (copy.session_id, title, copy.size) for copy, title in of_runs}
    rows |= {each.name: (each.id, each.title, each.size) for each in kept[:_MOST]}
    if not rows:
        app.show_message(
            "No sessions are lost: every session that gemtui has a copy of is still there."
        )
        return
    chosen = await app.push_screen_wait(
        ChooseScreen(
            "Restore a session?",
            ("These sessions are no longer in their place, but gemtui has copies of them.",),
            [Choice(key, *_row(app, *row)) for key, row in rows.items()],
        )
    )
    for copy, _ in of_runs:
        if chosen == copy.folder.id:
            await put_back_of_run(app, copy.folder)
    for session in kept:
        if chosen == session.name:
            await _put_back(app, session)


async def put_back_of_run(app: AppBase, folder: RunFolder) -> None:
    """Restore a session's missing files from a run's copy, and show the result.

    `folder`: the folder of the run's own files, which include the copy.
    """
    rule_of = partial(retention, os.environ)
    await _done(app, lambda: restore_from_run(folder, rule_of, app.clock()))


async def put_back(app: AppBase, session: Summary, question: str) -> Summary | None:
    """Restore a session from the vault if the user agrees.

    Returns the restored session's summary, or None if nothing was restored. `question`: the
    question to ask the user.
    """
    reason = why_not(session.agent, Can.RESTORE)
    if reason:
        app.show_message(reason)
        return None
    program = WORDS[session.agent].program
    lines = [
        clean_line(f"{program} can then list and resume it. No other conversation is overwritten."),
        clean_line(f"If {program} would soon delete it again, its date is set to today."),
    ]
    title = clean_line(title_of(session, app.name_of(session.id)))
    if await confirm(app, clean_line(question), title, lines, yes="Restore", no="No"):
        return await _put_back(app, session)
    return None


async def _put_back(app: AppBase, session: Summary) -> Summary | None:
    rule, now = partial(retention, os.environ, session.folder), app.clock()
    restored = await _done(app, lambda: restore_from_vault(session, app.start.home, rule(), now))
    if restored is None:
        return None
    names = tuple(map(str, restored.paths[:1]))
    return replace(session, names=names, copies=(), flags=session.flags - {Flag.KEPT})


async def _done(app: AppBase, restoring: Callable[[], Restored]) -> Restored | None:
    """Call `restoring` on a background thread, and show its result.

    If it fails, the reason is shown and None is returned.
    """
    with app.reporting("The session was not restored"):
        restored = await asyncio.to_thread(restoring)
        app.show_message("; ".join(_words(restored)))
        return restored
    return None


def _words(done: Restored) -> Iterator[str]:
    if done.paths:
        yield f"Restored: {counted(len(done.paths), 'file')}"
    elif not done.in_the_way:
        yield "This run has no copies of missing files."
    if done.replaced is not None:
        yield "the damaged file was moved to the vault"
    if done.renewed:
        yield "its date was set to today"
    if done.removed:
        files = counted(len(done.removed), "file")
        yield f"{files} moved to the vault, so that Gemini CLI does not delete the session again"
    for path, copy in done.in_the_way.items():
        yield f"{path} contains less than {copy}. Move {path.name} away, then try again"


def _of_runs(runs: Path, name_of: Callable[[str], str | None]) -> list[tuple[LastCopy, str]]:
    """Return the runs' copies of lost sessions, each with a title.

    The title is the session's own or, if it has none, the run's prompt.
    """
    return [
        (copy, name_of(copy.session_id) or copy_title(copy) or _prompt(copy.folder))
        for copy in last_copies(runs)
    ]


def _prompt(folder: RunFolder) -> str:
    request = folder.request()
    about = {} if request is None else request.about
    return excerpt(str(about.get("prompt") or "(no prompt)"))


def _row(app: AppBase, id: str, title: str, bytes: int) -> tuple[str, str]:
    label = ellipsis(clean_line(title), 36, mark=app.glyphs.ellipsis)
    return label, clean_line(f"{id_start(id)}  {size(bytes)}")
