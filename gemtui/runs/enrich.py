"""Add the stored session's contents to the transcript of a finished run.

The run's output stream contains no thoughts, diffs or exit codes, only one sum of tokens, and,
after a dropped connection, an answer's text twice (assets/gemini-cli.md#events). The session
contains all of these, and each text once. Parts that the session lacks (an interrupted answer, a
failed prompt, errors) are kept from the stream.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace as message_with
from itertools import takewhile
from pathlib import Path

from msgspec.structs import replace

from gemtui.errors import GemtuiError
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Author, Block, Message, Text, ToolCall, ToolStatus, Transcript


def enrich(live: Transcript, home: Path, session_id: str | None) -> Transcript:
    """Return a run's transcript with additions from its stored session.

    `live`: the transcript from the run's output stream. `home`: the store. Messages keep their ids
    and their order, so that a view keeps its scroll position. Returns `live` itself if the session,
    or this run in the session, can't be found. Blocking: call it from a background thread,
    because files are read.
    """
    messages = list(live)
    stored = stored_part(messages, home, session_id) if session_id else ()
    if not stored:
        return live
    return Transcript.of(tuple(_woven(messages, stored)), revision=live.revision + 1)


def stored_part(live: Sequence[Message], home: Path, session_id: str) -> tuple[Message, ...]:
    """Return the messages that a run added to its stored session, prompt first.

    `live`: the run's messages from its output stream. Returns () if they aren't found. They are
    found by the run's tool calls or, if there are none, by its messages' text. Times can't be used,
    because when a session is resumed, all older records get the time of the resume.
    """
    try:
        path = Index(home, cache=None).find(session_id).path
        with SessionLog.read(path) as log:
            transcript = transcript_of(log, in_flight=False)
            prompts = max(1, sum(message.prompt for message in live))
            newest: tuple[Message, ...] = ()
            for part in _parts(transcript, prompts):
                if _is_of(part, live):
                    if _asked(part) == _asked(live):
                        return part
                    newest = newest or part
            return newest
    except (GemtuiError, OSError):
        return ()


def _parts(transcript: Transcript, prompts: int) -> Iterator[tuple[Message, ...]]:
    """Yield each part of a session that contains `prompts` prompts, newest part first.

    Each part consists of consecutive messages. It starts with a prompt and ends right before a
    later prompt, or at the session's end.
    """
    ends = [len(transcript)] * prompts
    for start in range(len(transcript) - 1, -1, -1):
        if transcript.outlines[start].prompt:
            yield tuple(transcript.read(at) for at in range(start, ends[0]))
            ends = [*ends[1:], start]


def _is_of(part: Sequence[Message], live: Sequence[Message]) -> bool:
    """Return whether part of a session has the run's calls or, if none, its text.

    `live`: the run's messages from its output stream.
    """
    theirs, ours = set(_ids(part)), set(_ids(live))
    if theirs or ours:
        return bool(theirs & ours) or (not theirs and _is_beginning(part, live))
    texts = [text for message in part for text in _texts(message)]
    whole = "\n".join(text for message in live for text in _texts(message))
    return bool(texts) and all(text in whole for text in texts)


def _is_beginning(part: Sequence[Message], live: Sequence[Message]) -> bool:
    """Return whether part of a session, without calls, is the start of a run.

    This happens if the run was interrupted, so that its calls are only in the output stream.
    `live`: the run's messages from that stream.
    """
    texts = [text for message in part for text in _texts(message)]
    shown = [text for message in live for text in _texts(message)]
    answered = any(message.author is Author.MODEL for message in part)
    return answered and texts == shown[: len(texts)] and _asked(part) == _asked(live)


def _ids(messages: Sequence[Message]) -> Iterator[str]:
    return (call.id for message in messages for call in _calls(message))


def _calls(message: Message) -> Iterator[ToolCall]:
    return (block for block in message.blocks if isinstance(block, ToolCall))


def _texts(message: Message) -> Iterator[str]:
    if message.author is Author.MODEL:
        for block in message.blocks:
            if isinstance(block, Text) and block.text.strip():
                yield block.text.strip()


def _asked(messages: Sequence[Message]) -> str:
    """Return the text of the first prompt."""
    prompts = (message for message in messages if message.prompt)
    blocks = next((message.blocks for message in prompts), ())
    return "".join(block.text for block in blocks if isinstance(block, Text)).strip()


# --- weaving -----------------------------------------------------------------------------------


def _woven(live: Sequence[Message], stored: Sequence[Message]) -> Iterator[Message]:
    """Yield the stream's messages in order, merged with their stored counterparts.

    `live`: the messages from the stream. A stored message without a counterpart in the stream is
    yielded before the next stored message that has one. No call and no text is yielded twice.
    """
    left = dict(enumerate(stored))
    places = {id: at for at in reversed(left) for id in _ids([stored[at]])}
    shown = _Shown()
    for message in live:
        mate = _mate(message, left, places)
        if mate is None:
            messages = [shown.rest(message)]
        else:
            part = [left.pop(at) for at in _due(message, mate, left)]
            messages = [*part[:-1], _joined(message, part, places)]
            shown.add(part, message)
        for woven in messages:
            if woven.blocks:
                yield woven
    yield from left.values()


def _due(message: Message, mate: int, left: Mapping[int, Message]) -> list[int]:
    """Return the positions of the stored messages to show in place of `message`.

    `left`: the stored messages that have not been shown yet. `mate`: the position of the stored
    counterpart of `message`, which comes last in the result. It is preceded by those earlier stored
    messages whose text `message` contains completely; the other stored messages are left to be
    matched with other messages.
    """
    whole = "\n".join(_texts(message))
    before = takewhile(lambda at: at < mate, left)
    silent = (at for at in before if all(text in whole for text in _texts(left[at])))
    return [*silent, mate]


class _Shown:
    """Stored contents already shown, before the stream gets to them.

    Remembering them avoids showing the same contents twice.
    """

    def __init__(self) -> None:
        self._calls: set[str] = set()
        self._texts: list[str] = []

    def add(self, stored: Sequence[Message], message: Message) -> None:
        """Record that the stored messages `stored` were shown in place of `message`."""
        text = "\n".join(_texts(message))
        self._calls.update(_ids(stored))
        self._texts += [t for shown in stored for t in _texts(shown) if t not in text]

    def rest(self, message: Message) -> Message:
        """Return a message from the stream without contents that have already been shown.

        This is needed because old versions of the CLI store all calls in one record, so that calls
        may be shown before their own message in the stream.
        """
        if self._calls.isdisjoint(_ids([message])) and not self._texts:
            return message
        return message_with(message, blocks=tuple(b for b in message.blocks if not self._has(b)))

    def _has(self, block: Block) -> bool:
        if isinstance(block, ToolCall):
            return block.id in self._calls
        if not isinstance(block, Text):
            return False
        rest = [text for text in self._texts if text not in block.text]
        has_any = len(rest) < len(self._texts)
        self._texts = rest
        return has_any


def _mate(message: Message, left: Mapping[int, Message], places: Mapping[str, int]) -> int | None:
    """Return the position of the stored message that corresponds to a streamed one.

    Messages are matched by their calls or by their text. `left`: the stored messages that have not
    been matched yet. `places`: maps the ids of stored calls to their messages' positions. Returns
    None if no stored message matches.
    """
    if message.prompt:
        return next((at for at in left if left[at].prompt), None)
    if message.author is not Author.MODEL:
        return None
    by_call = [places[id] for id in _ids([message]) if places.get(id) in left]
    if by_call:
        return min(by_call)
    whole = "\n".join(_texts(message))
    for at, stored in left.items():
        if any(_calls(stored)):
            return None
        texts = list(_texts(stored))
        if texts and all(text in whole for text in texts):
            return at
    # If the run was interrupted, its last calls were not stored: an answer that has only such calls
    # corresponds to the next stored answer, if that has no text either.
    ids = list(_ids([message]))
    if not ids or whole or any(id in places for id in ids):
        return None
    for at, stored in left.items():
        if stored.author is Author.MODEL:
            return None if any(_texts(stored)) else at
    return None


def _joined(message: Message, stored: Sequence[Message], stored_calls: Container[str]) -> Message:
    """Merge a message from the stream into the stored one that corresponds to it.

    `stored`: the stored messages to show in place of `message`; the last one corresponds to it. The
    result has everything in that one, plus what only `message` has. The text from the stream is
    kept only if it contains none of the stored messages' text. `stored_calls`: the ids of all
    stored calls.
    """
    mate = stored[-1]
    calls = {call.id: call for call in _calls(message)}
    blocks = list[Block]()
    if not message.prompt:
        whole = "\n".join(_texts(message))
        stored_texts = [text for other in stored for text in _texts(other)]
        if not any(text in whole for text in stored_texts):
            blocks += [block for block in message.blocks if isinstance(block, Text)]
    for block in mate.blocks:
        if isinstance(block, ToolCall):
            block = completed_call(block, calls.get(block.id))
        blocks.append(block)
    if not message.prompt:
        blocks += [call for call in calls.values() if call.id not in stored_calls]
    return message_with(
        mate, id=message.id, blocks=tuple(blocks) or message.blocks, time=message.time or mate.time
    )


def completed_call(stored: ToolCall, live: ToolCall | None) -> ToolCall:
    """Return the stored call, completed with facts that only the stream has.

    `live`: the call in the stream; None if it isn't there. Among these facts are the duration, and
    the status if the session does not confirm one. The stream also decides between “denied” and
    “failed”, because only the run's policy determines whether a tool is hidden or doesn't exist.
    """
    if live is None:
        return stored
    unsure = stored.status is ToolStatus.UNCONFIRMED
    judged = {live.status, stored.status} == {ToolStatus.DENIED, ToolStatus.ERROR}
    return replace(
        stored,
        status=live.status if unsure or judged else stored.status,
        output=stored.output if stored.output is not None or stored.error else live.output,
        display=stored.display or live.display,
        duration=live.duration,
    )
