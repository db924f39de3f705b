"""Remove from the vault what it alone has: all of it, what is old, or what is of one project."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.kept.contents import Removal, only_kept, removal, remove
from gemtui.sessions.summary import Summary
from gemtui.text import clean_line, relative, short_path, size
from gemtui.ui.kit.dialogs import Choice, ChooseScreen, ConfirmForGoodScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

_AGES = (30, 90, 365)
"""Days."""
_MOST = 500
"""Sessions that are named."""


async def prune(app: AppBase, sessions: Sequence[Summary]) -> None:
    """Ask which, tell what that takes, ask again, and remove it for good."""
    kept = only_kept(sessions)
    if not kept:
        app.say("Gemini CLI has every file that the vault has.")
        return
    parts = await asyncio.to_thread(_removals, kept, app.clock())
    choices = [Choice(name, clean_line(name), clean_line(str(it))) for name, it in parts.items()]
    about = [clean_line("What Gemini CLI still has stays, here and there.")]
    asked = ChooseScreen(clean_line("Remove which kept sessions?"), about, choices)
    chosen = await app.push_screen_wait(asked)
    if chosen is not None:
        await _remove(app, chosen, parts[chosen])


def _removals(kept: Sequence[Summary], now: datetime) -> Mapping[str, Removal]:
    return {name: removal(files) for name, files in _parts(kept, now)}


def _parts(kept: Sequence[Summary], now: datetime) -> Iterator[tuple[str, Sequence[Summary]]]:
    yield "all of them", kept
    more = kept
    for days in _AGES:
        old = [each for each in kept if now - each.when > timedelta(days=days)]
        if old and len(old) < len(more):
            more = old
            yield f"not used for {days} days", old
    for project, files in _by_project(kept).items():
        if len(files) < len(kept):
            yield f"of {short_path(Path(project)) if project else 'an unknown project'}", files


def _by_project(kept: Sequence[Summary]) -> Mapping[str, Sequence[Summary]]:
    found: dict[str, list[Summary]] = {}
    for each in kept:
        found.setdefault(each.project or "", []).append(each)
    return found


async def _remove(app: AppBase, what: str, found: Removal) -> None:
    now = app.clock()
    named = found.sessions[:_MOST]
    question = ConfirmForGoodScreen(
        clean_line("Remove from the vault for good?"),
        clean_line(f"{what}: {found}"),
        [clean_line(f"{relative(each.when, now):>4}  {each.title}") for each in named],
        yes="Remove for good",
        no="Keep",
    )
    if not await app.push_screen_wait(question):
        return
    try:
        freed = await asyncio.to_thread(remove, found)
    except OSError as error:
        app.say(f"Not all of it could be removed: {error}", problem=True)
    else:
        app.say(f"Removed from the vault: {size(freed)}")
