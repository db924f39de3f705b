"""Marks that tell where checkpoints are: at sessions of the list, and at prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as message_with
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from gemtui.errors import GemtuiError
from gemtui.paths import checkpoints_dir
from gemtui.runs.undo import Checkpointed, checkpointed, sessions_with_checkpoints
from gemtui.sessions.summary import Summary
from gemtui.text import counted, relative
from gemtui.transcript.model import Message, Outline, Transcript

NONE = Checkpointed(0, None, frozenset())


class CheckpointedSessions:
    """The ids of the sessions with checkpoints; read again only after some were taken."""

    def __init__(self) -> None:
        self._seen: Mapping[Path, int] | None = None

    def read(self) -> frozenset[str] | None:
        """In a thread: return them; None where nothing has changed or nothing can be read."""
        try:
            seen = {each: each.stat().st_mtime_ns for each in checkpoints_dir().glob("*/*")}
            if seen == self._seen:
                return None
            self._seen = seen
            return sessions_with_checkpoints()
        except OSError:
            return None


def read_checkpoints(session: Summary) -> Checkpointed:
    """In a thread: return what checkpoints there are of a session, as far as they can be read."""
    try:
        return checkpointed(session)
    except (GemtuiError, OSError):
        return NONE


class MarkedPrompts:
    """Marks the prompts of a transcript before which a checkpoint was taken.

    A marked prompt has one outline as long as it does not change: views know messages by that.
    """

    def __init__(self) -> None:
        self.numbers: frozenset[int] = frozenset()
        self._outlines: dict[str, tuple[Outline, Outline]] = {}

    def mark(self, transcript: Transcript) -> Transcript:
        """Return the transcript with marks."""
        if not self.numbers:
            return transcript
        marked, number = dict[int, Outline](), 0
        for place, outline in enumerate(transcript.outlines):
            if outline.prompt and outline.dropped is None:
                number += 1
                if number in self.numbers:
                    marked[place] = self._outline(outline)

        def read(place: int) -> Message:
            message = transcript.read(place)
            return message_with(message, checkpoint=True) if place in marked else message

        outlines = [marked.get(at, each) for at, each in enumerate(transcript.outlines)]
        return Transcript(outlines=outlines, read=read, revision=transcript.revision)

    def _outline(self, outline: Outline) -> Outline:
        known = self._outlines.get(outline.id)
        if known is None or known[0] is not outline:
            known = self._outlines[outline.id] = outline, replace(outline)
        return known[1]


def undo_words(session: Summary, now: datetime) -> str:
    """In a thread: return how a session can be undone, for its facts."""
    found = read_checkpoints(session)
    if found.newest is not None:
        words = f"{counted(found.total, 'checkpoint')}, the newest {relative(found.newest, now)}"
        return f"files and chat; {words}"
    if session.files_written:
        return "files by the record of its file tools, without shell commands; and the chat"
    return "the chat; no files are known"
