"""Checkpoints on the screen: which sessions, prompts and calls have some.

The core's module about undo takes 0.2 s to import, so it is imported only when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace as message_with
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from gemtui.agents import Can, why_not
from gemtui.errors import GemtuiError, UndoError
from gemtui.files import stat_if_present
from gemtui.paths import checkpoints_dir
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import counted, relative
from gemtui.transcript.model import Block, Message, Outline, ToolCall, Transcript
from gemtui.transcript.tools import may_write

if TYPE_CHECKING:
    from gemtui.runs.undo.undo import Checkpointed
    from gemtui.ui.kit.app_base import AppBase

_FILES = (".sqlite3", ".sqlite3-wal")
"""The suffixes of the files that checkpoints are stored in."""


class CheckpointMarks(NamedTuple):
    """The prompts and calls to mark in a transcript.

    `prompts`: the 1-based numbers of prompts before which there is a checkpoint. `calls`: the ids
    of calls whose changes are in a checkpoint.
    """

    prompts: frozenset[int] = frozenset()
    calls: frozenset[str] = frozenset()


class MarkedTranscript:
    """Marks the prompts and calls in a transcript that have checkpoints.

    The outline of an unchanged message stays the same object, because views use its identity to
    tell which messages have changed.
    """

    def __init__(self) -> None:
        self.marks = CheckpointMarks()
        self._outlines: dict[str, tuple[Outline, Outline]] = {}

    def replace(self, marks: CheckpointMarks) -> bool:
        """Set what to mark; return False if it is the same as before."""
        if marks == self.marks:
            return False
        self.marks, self._outlines = marks, {}
        return True

    def mark(self, transcript: Transcript) -> Transcript:
        """Return a transcript in which the prompts and calls are marked."""
        if self.marks == CheckpointMarks():
            return transcript
        prompts, outlines, number = set[int](), list[Outline](), 0
        for place, outline in enumerate(transcript.outlines):
            if outline.is_current_prompt:
                number += 1
                if number in self.marks.prompts:
                    prompts.add(place)
            changed = place in prompts or self._may_mark(outline)
            outlines.append(self._outline(outline) if changed else outline)

        def read(place: int) -> Message:
            message = transcript.read(place)
            if place in prompts:
                return message_with(message, checkpoint=True)
            if self._may_mark(transcript.outlines[place]):
                return message_with(message, blocks=tuple(map(self._block, message.blocks)))
            return message

        return Transcript(outlines=outlines, read=read, revision=transcript.revision)

    def _may_mark(self, outline: Outline) -> bool:
        return bool(self.marks.calls) and any(map(may_write, outline.tools))

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolCall) and block.id in self.marks.calls:
            return replace(block, checkpoint=True)
        return block

    def _outline(self, outline: Outline) -> Outline:
        known = self._outlines.get(outline.id)
        if known is None or known[0] is not outline:
            known = self._outlines[outline.id] = outline, replace(outline)
        return known[1]


def read_checkpoints(session: Summary) -> Checkpointed:
    """Return which of a session's prompts and calls have checkpoints.

    If the checkpoints can't be read, the result is empty. Blocking: reads files.
    """
    from gemtui.runs.undo.undo import Checkpointed, checkpointed

    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return Checkpointed()


def shown_checkpoints(app: AppBase, session: str, transcript: Transcript) -> CheckpointMarks:
    """Return which prompts and calls in a transcript have checkpoints.

    `session`: the id of the stored session; the transcript may show only a part of it. If the
    checkpoints can't be read, the result is empty. Blocking: reads files.
    """
    from gemtui.runs.undo.shown_prompts import prompt_numbers

    try:
        summary = find_stored(app, session)
        numbers = prompt_numbers(transcript, summary)
    except (GemtuiError, OSError):
        return CheckpointMarks()
    found = read_checkpoints(summary)
    shown = (at for at, each in enumerate(transcript.outlines) if each.is_current_prompt)
    prompts = frozenset(
        count for count, at in enumerate(shown, 1) if numbers.get(at) in found.prompts
    )
    return CheckpointMarks(prompts, found.calls)


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
