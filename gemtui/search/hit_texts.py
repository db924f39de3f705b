"""Read hits' text from their files, because the index doesn't store any text."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from gemtui.files import open_regular
from gemtui.search.documents import UNREADABLE
from gemtui.search.results import Hit
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import message_on_line
from gemtui.transcript.model import Message, Transcript
from gemtui.transcript.search import block_text

if TYPE_CHECKING:
    from gemtui.sessions.read.session_log import SessionLog


class HitTexts:
    """Reads the text of hits, and keeps the most recently opened files in memory.

    Not thread-safe.
    """

    _KEPT = 4

    def __init__(self) -> None:
        self._logs: OrderedDict[tuple[str, int, datetime], tuple[SessionLog, Transcript]]
        self._logs = OrderedDict()

    def close(self) -> None:
        """Close all open logs."""
        for log, _ in self._logs.values():
            log.close()
        self._logs.clear()

    def text(self, hit: Hit) -> str | None:
        """Return the text of a hit, or None if it no longer exists."""
        message = self._on_line(hit) or self._in_transcript(hit)
        if message is None or hit.block >= len(message.blocks):
            return None
        return block_text(message.blocks[hit.block])

    def _on_line(self, hit: Hit) -> Message | None:
        if hit.line is None:
            return None
        offset, length = hit.line
        with suppress(OSError), open_regular(hit.file.path) as stream:
            stream.seek(offset)
            return message_on_line(stream.read(length), hit.message)
        return None

    def _in_transcript(self, hit: Hit) -> Message | None:
        with suppress(*UNREADABLE):
            transcript = self._transcript(hit.file)
            for number, outline in enumerate(transcript.outlines):
                if outline.id == hit.message:
                    return transcript.read(number)
        return None

    def _transcript(self, file: Summary) -> Transcript:
        key = file.name, file.size, file.modified
        if (kept := self._logs.get(key)) is not None:
            return kept[1]
        from gemtui.sessions.read.conversation import transcript_of
        from gemtui.sessions.read.session_log import SessionLog

        log = SessionLog(file.path)
        log.refresh()
        transcript = transcript_of(log, dropped=True, in_flight=False)
        self._logs[key] = log, transcript
        if len(self._logs) > self._KEPT:
            self._logs.popitem(last=False)[1][0].close()
        return transcript
