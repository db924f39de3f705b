"""Marks on the prompts that have a checkpoint before them."""

from __future__ import annotations

from dataclasses import replace as message_with

from msgspec.structs import replace

from gemtui.transcript.model import Message, Outline, Transcript


class MarkedPrompts:
    """Marks the prompts of a transcript that have a checkpoint before them.

    A marked prompt that has not changed keeps its outline object, because views use it to recognise
    messages.
    """

    def __init__(self) -> None:
        self.numbers: frozenset[int] = frozenset()
        self._outlines: dict[str, tuple[Outline, Outline]] = {}

    def mark(self, transcript: Transcript) -> Transcript:
        """Return the transcript with its prompts marked."""
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
