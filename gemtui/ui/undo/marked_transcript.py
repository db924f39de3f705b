"""A transcript whose prompts and calls are marked if they have checkpoints."""

from __future__ import annotations

from dataclasses import replace as message_with
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from gemtui.errors import GemtuiError
from gemtui.transcript.model import Block, Message, Outline, ToolCall, Transcript
from gemtui.transcript.tools import may_write
from gemtui.ui.undo.checkpoint_marks import find_stored, read_checkpoints

if TYPE_CHECKING:
    from gemtui.ui.kit.app_base import AppBase


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
