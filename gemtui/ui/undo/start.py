"""Open the screens for undo, redo and fork after their keys have been pressed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gemtui.errors import UndoError
from gemtui.runs.undo.fork import Fork, fork_session
from gemtui.runs.undo.undo import Prompt, prompts_of
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import Clean, clean_line
from gemtui.transcript.model import Transcript
from gemtui.ui.kit.dialogs import Choice, ChooseScreen
from gemtui.ui.kit.messages import ChatRequested
from gemtui.ui.undo.undo_screen import UndoRequest, UndoScreen

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase

Number = Callable[[Sequence[Prompt]], int]
"""A function that chooses one of a session's prompts; returns its 1-based number.

It may raise UndoError.
"""


def prompt_at(transcript: Transcript, message: int) -> Number:
    """Return a function that finds the prompt to which a message belongs.

    A message before the first prompt belongs to the first one. `message`: the message's index in
    the transcript. The returned function takes all of the session's prompts and returns the
    prompt's number. It looks for the transcript's prompts among them, from the end, because the
    transcript may show only a part of the session.
    """
    shown = [each for each in enumerate(transcript.outlines) if _counts(transcript, each[0])]
    words = [outline.excerpt for _, outline in shown]
    at = max(0, sum(place <= message for place, _ in shown) - 1)

    def number(prompts: Sequence[Prompt]) -> int:
        stored = [each.text for each in prompts]
        for first in reversed(range(len(stored) - len(words) + 1)):
            if words and stored[first : first + len(words)] == words:
                return first + at + 1
        if words and stored.count(words[at]) == 1:
            return stored.index(words[at]) + 1
        raise UndoError("this prompt is not in the stored session")

    return number


def _counts(transcript: Transcript, place: int) -> bool:
    outline = transcript.outlines[place]
    return outline.prompt and outline.dropped is None


def find_stored(app: AppBase, session: str) -> Summary:
    """Return the stored session with this id. Raises GemtuiError, OSError."""
    return Index(app.start.home, cache=app.start.cache).find(session)


async def show_undo(app: AppBase, find: Callable[[], Summary], number: Number, folder: Path | None, home: Path) -> None:
    """Preview an undo to just before a prompt; the user can then carry it out.

    `find`: returns the session. `number`: takes the session's prompts, and returns the number of
    the one to go back to. `folder`: the session's project, if known. `home`: Gemini CLI's folder.
    """
    request = UndoRequest(folder=folder, home=home, find=find, number=number)
    await app.push_screen_wait(UndoScreen(request))


async def show_redo(app: AppBase, folder: Path | None, home: Path) -> None:
    """Preview the reversal of a folder's newest undo; the user can then carry it out."""
    await app.push_screen_wait(UndoScreen(UndoRequest(folder=folder, home=home)))


async def show_fork(app: AppBase, find: Callable[[], Summary], number: Number, folder: Path | None, home: Path) -> None:
    """Ask how to fork a session just before a prompt, fork it, and show the new chat.

    The chat is shown in the run pane. The parameters are those of `show_undo`.
    """
    with app.reporting("The chat was not forked"):
        session, prompts, at = await asyncio.to_thread(_place, find, number)
        about = (clean_line(prompts[at - 1].text), Clean(""))
        choices = (
            Choice("before", Clean("Before this prompt"), Clean("files are not changed")),
            Choice("files", Clean("With the files as they were"), Clean("preview first")),
            Choice("whole", Clean("The whole chat"), Clean("files are not changed")),
        )
        title = clean_line(f"New chat from prompt {at} of {len(prompts)}")
        answer = await app.push_screen_wait(ChooseScreen(title, about, choices))
        if answer == "files":
            await show_undo(app, lambda: session, number, folder, home)
        elif answer is not None:
            await _make_fork(app, session, home, at if answer == "before" else None)


def _place(find: Callable[[], Summary], number: Number) -> tuple[Summary, list[Prompt], int]:
    session = find()
    prompts = prompts_of(session)
    if not prompts:
        raise UndoError("this session has no prompts")
    return session, prompts, number(prompts)


async def _make_fork(app: AppBase, session: Summary, home: Path, before: int | None) -> None:
    fork: Fork = await asyncio.to_thread(partial(fork_session, session, home, before=before))
    if fork.project is None:
        app.show_message("The new chat is in the list of sessions. Its folder is unknown.")
        return
    app.post_message(ChatRequested(fork.project, fork.session_id, fork.path, fork.prompt or ""))
