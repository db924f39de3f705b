"""Find the prompts that a transcript shows in their stored session.

A transcript may show only a part of its session, or prompts that the session lacks, such as failed
ones. The session may contain prompts that the transcript lacks, and store a prompt differently from
how it was typed: Gemini CLI replaces a custom command with its text. The same text may have been
sent several times. So prompts are matched in order, by their text and by the calls and answers that
follow them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Author, Text, ToolCall, Transcript

_CALLS, _PROMPT, _ANSWER = 8, 2, 1
"""How much it counts that two turns have a call, the prompt's text, or an answer in common."""


class _Turn(NamedTuple):
    """A prompt, its index in the transcript, and what follows it."""

    at: int
    prompt: str
    calls: frozenset[str]
    answers: frozenset[str]


def prompt_numbers(transcript: Transcript, session: Summary) -> dict[int, int]:
    """Map the indexes of a transcript's prompts to their numbers in the stored session.

    Prompts that are not in the session are left out. Numbers are counted from 1. Blocking: reads
    files. Raises OSError, NotASession, SessionTooLarge.
    """
    places = [at for at, each in enumerate(transcript.outlines) if each.is_current_prompt]
    with SessionLog.read(session.path) as log:
        stored = transcript_of(log, in_flight=False)
        prompts = [each.excerpt for each in stored.outlines if each.prompt]
        if prompts == [transcript.outlines[at].excerpt for at in places]:
            return {at: number for number, at in enumerate(places, 1)}
        return _matched(list(_turns(transcript)), list(_turns(stored)))


def _turns(transcript: Transcript) -> Iterator[_Turn]:
    ends = [at for at, each in enumerate(transcript.outlines) if each.is_current_prompt]
    for start, end in zip(ends, [*ends[1:], len(transcript.outlines)], strict=True):
        calls, answers = set[str](), set[str]()
        for at in range(start, end):
            if transcript.outlines[at].author is Author.MODEL:
                blocks = transcript.read(at).blocks
                calls.update(each.id for each in blocks if isinstance(each, ToolCall))
                answers.update(each.text.strip() for each in blocks if isinstance(each, Text))
        yield _Turn(start, transcript.outlines[start].excerpt, frozenset(calls), frozenset(answers))


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
    best = [[0] * (len(stored) + 1) for _ in range(len(shown) + 1)]
    for one in reversed(range(len(shown))):
        for other in reversed(range(len(stored))):
            both = _likeness(shown[one], stored[other])
            pair = both and both + best[one + 1][other + 1]
            best[one][other] = max(pair, best[one + 1][other], best[one][other + 1])
    found, one, other = dict[int, int](), 0, 0
    while one < len(shown) and other < len(stored):
        if best[one][other] == best[one][other + 1]:
            other += 1
        elif best[one][other] == best[one + 1][other]:
            one += 1
        else:
            found[one] = other
            one, other = one + 1, other + 1
    found |= _commands(shown, found, len(stored))
    return {shown[one].at: other + 1 for one, other in sorted(found.items())}


def _commands(shown: Sequence[_Turn], found: dict[int, int], count: int) -> dict[int, int]:
    """Return the matches of custom commands, whose stored text differs from the typed one.

    A command matches if its neighbours do, and nothing else is stored between them. `found`: the
    matches so far, by index. `count`: the number of stored prompts.
    """
    ends = {-1: -1, **found, len(shown): count}
    return {
        at: ends[at - 1] + 1
        for at, each in enumerate(shown)
        if at not in found
        and each.prompt.startswith("/")
        and at - 1 in ends
        and at + 1 in ends
        and ends[at + 1] - ends[at - 1] == 2
    }
