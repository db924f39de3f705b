"""Watch what sessions in all terminals are doing, with words and symbols for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePath

from textual.content import Content
from textual.style import Style

from gemtui.extension.live import LiveFolder, LiveSession, LiveState
from gemtui.folder_events import watching
from gemtui.notify import Notification
from gemtui.paths import make_own_folder
from gemtui.text import clean_line, ellipsis
from gemtui.ui.draw.theme import Glyphs, Role
from gemtui.ui.kit.keys import BY_ID

TICK = 2.0
"""Seconds between checks that are made even without changes.

They find processes that were killed, which changes no file.
"""
_GATHER = 0.1
"""Seconds in which changes are collected before they are shown."""

STATE_WORDS = {
    LiveState.WAITING: ("waiting", Role.WARNING),
    LiveState.WORKING: ("working", Role.SUCCESS),
    LiveState.IDLE: ("idle", Role.MUTED),
    LiveState.KILLED: ("killed", Role.WARNING),
}
"""The words and the colour role for each state that the list shows."""
_NAME = 30
"""Maximum width of a project's name in cells."""
_JUMP = "sessions.waiting"


async def follow_live(show: Callable[[tuple[LiveSession, ...]], None]) -> None:
    """Call `show` with all live sessions now and after each change, until cancelled.

    A live session is one that a Gemini CLI process has open. `show` is called in the event loop.
    """
    folder = LiveFolder()
    await asyncio.to_thread(_prepare, folder)
    shown: tuple[LiveSession, ...] | None = None
    with watching(folder.folder) as stirs:
        while True:
            live = await asyncio.to_thread(folder.read)
            if live != shown:
                shown = live
                show(live)
            await stirs.next(_GATHER, TICK if live else None)


def _prepare(live: LiveFolder) -> None:
    """Create the folder to watch, and delete old files from it."""
    with suppress(OSError):
        make_own_folder(live.folder)
    live.clear()


def live_glyph(state: LiveState, glyphs: Glyphs) -> str:
    """Return the symbol for one of the states in `STATE_WORDS`."""
    match state:
        case LiveState.WAITING:
            return glyphs.ask
        case LiveState.WORKING:
            return glyphs.running
        case LiveState.IDLE:
            return glyphs.idle
        case _:
            return glyphs.interrupted


def state_words(state: LiveState, glyphs: Glyphs) -> Content:
    """Return the symbol and the words for one of the states in `STATE_WORDS`, in its colour."""
    words, role = STATE_WORDS[state]
    style = "dim" if role is Role.MUTED else f"$text-{role}"
    return Content.styled(f"{live_glyph(state, glyphs)} {words}", style)


def project_name(live: LiveSession) -> str:
    """Return the name of a session's folder or, if unknown, its process ID."""
    name = PurePath(live.project).name if live.project else f"process {live.pid}"
    return ellipsis(clean_line(name), _NAME)


def line_words(live: Sequence[LiveSession], glyphs: Glyphs) -> Iterator[Content]:
    """Yield the parts of the line above the list.

    Nothing is yielded if no session is working or waiting.
    """
    link = Style.from_meta({"key": _JUMP})
    count = Counter(each.state for each in live)
    if waiting := count[LiveState.WAITING]:
        names = {project_name(each): None for each in live if each.state is LiveState.WAITING}
        words = f"{live_glyph(LiveState.WAITING, glyphs)} {waiting} waiting"
        where = f": {next(iter(names))}" if len(names) == 1 else ""
        yield Content.styled(f"{words}{where}", "bold $text-warning").stylize(link)
        key = (BY_ID[_JUMP].footer(), "bold $text-accent")
        yield Content.assemble(key, (" shows", "dim")).stylize(link)
    if working := count[LiveState.WORKING]:
        words = f"{live_glyph(LiveState.WORKING, glyphs)} {working} working"
        yield Content.styled(words, "$text-success")


def waiting_notice(live: LiveSession, title: str) -> Notification:
    """Return the notification that a session is waiting for the user.

    `title`: the session's title, or "" if unknown.
    """
    asked = live.question.message if live.question is not None else ""
    name = f"{title[:60]}: " if title else ""
    return Notification(
        title=clean_line(f"gemtui: {project_name(live)}"),
        text=clean_line(f"{name}waiting for you: {asked[:200]}"),
    )
