"""Export a transcript as an HTML page that plays it back at its recorded times.

Each step is the beginning of a message or one of its blocks, at its recorded time. Without scripts,
and in print, the page shows everything at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from gemtui.transcript.export_html import (
    block_elements,
    message_end,
    message_head,
    note,
    page_head,
)
from gemtui.transcript.export_words import ExportHeading, passages
from gemtui.transcript.model import Block, Message, Thought, ToolCall, Transcript
from gemtui.transcript.replay_page import PLAYER, REPLAY_STYLE, SCRIPT


def to_replay(
    transcript: Transcript, summary: ExportHeading, *, dropped: bool = False
) -> Iterator[str]:
    """Yield a transcript as a page that plays it back, one message at a time."""
    yield from page_head(summary, REPLAY_STYLE, script=SCRIPT)
    yield PLAYER
    clock = _Clock()
    for passage in passages(transcript, dropped=dropped):
        if isinstance(passage, str):
            yield _step(clock.now, note(passage))
        else:
            yield "".join(_message(passage, clock))
    yield f"</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


class _Clock:
    """Counts milliseconds since the first known time, and never goes back."""

    def __init__(self) -> None:
        self.now = 0
        self._first: datetime | None = None

    def at(self, time: datetime | None) -> int:
        if time is not None:
            self._first = self._first or time
            self.now = max(self.now, (time - self._first) // timedelta(milliseconds=1))
        return self.now


def _message(message: Message, clock: _Clock) -> Iterator[str]:
    head = message_head(message).removeprefix("<article ")
    yield f'<article data-at="{clock.at(message.time)}" {head}'
    for index, block in enumerate(message.blocks):
        elements = "".join(block_elements(block))
        time = _time(block)
        yield elements if index == 0 and time is None else _step(clock.at(time), elements)
    yield message_end(message)


def _time(block: Block) -> datetime | None:
    return block.time if isinstance(block, Thought | ToolCall) else None


def _step(at: int, elements: str) -> str:
    return f'<div data-at="{at}">\n{elements}</div>\n'
