"""Checkpoints on the screen: which sessions, prompts and calls have some.

The core's module about undo takes 0.2 s to import, so it is imported only when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gemtui.agents import Can, why_not
from gemtui.errors import GemtuiError, UndoError
from gemtui.files import stat_if_present
from gemtui.paths import checkpoints_dir
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import counted, relative

if TYPE_CHECKING:
    from gemtui.runs.undo.undo import Checkpointed
    from gemtui.transcript.model import Transcript
    from gemtui.ui.kit.app_base import AppBase

_FILES = (".sqlite3", ".sqlite3-wal")
"""The suffixes of the files that checkpoints are stored in."""


def read_checkpoints(session: Summary) -> Checkpointed:
    """Return which of a session's prompts and calls have checkpoints.

    If the checkpoints can't be read, the result is empty. Blocking: reads files.
    """
    from gemtui.runs.undo.undo import Checkpointed, checkpointed

    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return Checkpointed()


class FoundCheckpoints(NamedTuple):
    """The ids of the sessions that have checkpoints, and the times of the files that were read."""

    sessions: frozenset[str]
    times: Mapping[Path, int]


def find_checkpointed(known: FoundCheckpoints | None) -> FoundCheckpoints | None:
    """Return which sessions have checkpoints; None if nothing has changed, or they can't be read.

    `known`: an earlier result. Blocking: call this on a background thread.
    """
    from gemtui.runs.undo.undo import sessions_with_checkpoints

    try:
        files = (each for each in checkpoints_dir().glob("*/*") if each.suffix in _FILES)
        facts = {each: stat_if_present(each) for each in files}
        times = {each: seen.st_mtime_ns for each, seen in facts.items() if seen is not None}
        if known is not None and times == known.times:
            return None
        return FoundCheckpoints(sessions_with_checkpoints(), times)
    except OSError:
        return None


def undo_words(session: Summary, now: datetime) -> str:
    """Return words that say how a session's changes can be undone.

    They are shown among the facts about the session. Blocking: call this on a background thread.
    """
    found = read_checkpoints(session)
    if found.newest is not None:
        words = f"{counted(found.total, 'checkpoint')}, the newest {relative(found.newest, now)}"
        return f"files and chat; {words}"
    files = "files written by file tools (not by shell commands)" if session.files_written else ""
    if why_not(session.agent, Can.FORK):
        return files or "nothing; no written files are known"
    return f"chat, and {files}" if files else "chat only; no written files are known"


Number = Callable[[Summary], int]
"""A function that chooses one of a session's prompts; returns its 1-based number.

It may raise UndoError, and the errors of reading the session.
"""


def last_prompt(session: Summary) -> int:
    """Return the number of a session's last prompt."""
    from gemtui.runs.undo.undo import prompts_of

    return len(prompts_of(session))


def prompt_at(transcript: Transcript, message: int) -> Number:
    """Return a function that finds the prompt to which a message belongs.

    A message before the first prompt belongs to the first one. `message`: the message's index in
    the transcript, which may show only a part of the session.
    """

    def number(session: Summary) -> int:
        from gemtui.runs.undo.shown_prompts import prompt_numbers

        numbers = prompt_numbers(transcript, session)
        shown = [at for at, each in enumerate(transcript.outlines) if each.is_current_prompt]
        place = max((at for at in shown if at <= message), default=min(shown, default=message))
        if place not in numbers:
            raise UndoError(
                "can't find this prompt in the stored chat: open the session in 1 and press U there"
            )
        return numbers[place]

    return number


def find_stored(app: AppBase, session: str) -> Summary:
    """Return the stored session with this id. Raises GemtuiError, OSError."""
    from gemtui.sessions.catalog.index import Index

    return Index(app.start.home, cache=app.start.cache).find(session)
