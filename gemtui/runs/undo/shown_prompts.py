"""Find the prompts that a transcript shows in their stored session.

A transcript may show only a part of its session, or prompts that the session lacks, such as failed
ones. The session may contain prompts that the transcript lacks, and store a prompt differently from
how it was typed: Gemini CLI replaces a custom command with its text. The same text may have been
sent several times. So prompts are matched in order, by their text and by the calls and answers that
follow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Author, Text, ToolCall, Transcript

_CALLS, _PROMPT, _ANSWER = 8, 2, 1
"""The weights of a call, the prompt's text, and an answer that two turns have in common."""


class _Turn(NamedTuple):
    """A prompt, its index in the transcript, and what follows it."""

    at: int
    prompt: str
    calls: set[str]
    answers: set[str]


def prompt_numbers(transcript: Transcript, session: Summary) -> dict[int, int]:
    """Map the indexes of a transcript's prompts to their numbers in the stored session.

    Prompts that are not in the session are left out. Numbers are counted from 1. Blocking: reads
    files. Raises OSError, NotASession, SessionTooLarge.
    """
    outlines = transcript.outlines
    shown = {at: line.excerpt for at, line in enumerate(outlines) if line.is_current_prompt}
    with SessionLog.read(session.path) as log:
        stored = transcript_of(log, in_flight=False)
        if list(shown.values()) == [line.excerpt for line in stored.outlines if line.prompt]:
            return {at: number for number, at in enumerate(shown, 1)}
        return _matched(_turns(transcript), _turns(stored))


def _turns(transcript: Transcript) -> list[_Turn]:
    turns = list[_Turn]()
    for at, line in enumerate(transcript.outlines):
        if line.is_current_prompt:
            turns.append(_Turn(at, line.excerpt, set(), set()))
        elif turns and line.author is Author.MODEL:
            for block in transcript.read(at).blocks:
                if isinstance(block, ToolCall):
                    turns[-1].calls.add(block.id)
                elif isinstance(block, Text):
                    turns[-1].answers.add(block.text.strip())
    return turns


def _likeness(shown: _Turn, stored: _Turn) -> int:
    """Return how much speaks for two turns being the same; 0 if they can't be."""
    if not shown.calls.isdisjoint(stored.calls):
        return _CALLS
    if shown.prompt != stored.prompt or (shown.calls and stored.calls):
        return 0
    return _PROMPT + (0 if shown.answers.isdisjoint(stored.answers) else _ANSWER)


def _matched(shown: Sequence[_Turn], stored: Sequence[_Turn]) -> dict[int, int]:
    """Map the shown prompts to the numbers of stored ones, in the most likely way.

    Among equally likely ways, the one with the latest stored prompts is chosen.
    """
    # best[one][other]: how alike the turns from there on are at most
    best = [[0] * (len(stored) + 1) for _ in range(len(shown) + 1)]
    for one in reversed(range(len(shown))):
        for other in reversed(range(len(stored))):
            both = _likeness(shown[one], stored[other])
            pair = both and both + best[one + 1][other + 1]
            best[one][other] = max(pair, best[one + 1][other], best[one][other + 1])
    matches, one, other = {-1: -1, len(shown): len(stored)}, 0, 0
    while one < len(shown) and other < len(stored):
        if best[one][other] == best[one][other + 1]:
            other += 1
        elif best[one][other] == best[one + 1][other]:
            one += 1
        else:
            matches[one] = other
            one, other = one + 1, other + 1
    numbers = {}
    for at, turn in enumerate(shown):
        before, after = matches.get(at - 1), matches.get(at + 1)
        if at in matches:
            numbers[turn.at] = matches[at] + 1
        elif turn.prompt.startswith("/") and before is not None and after == before + 2:
            # a custom command, which is stored as its text: its neighbours match
            numbers[turn.at] = before + 2
    return numbers
