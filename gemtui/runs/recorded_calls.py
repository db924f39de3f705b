"""Read a working run's tool calls from its stored session, as far as that has them.

A run's output has neither the exit codes of commands nor the diffs of edits
(assets/gemini-cli.md#events). Gemini CLI stores both as soon as all calls of a turn have ended. The
calls that it dropped as repetitions are only in the session, too (assets/gemini-cli.md#loops).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as message_with
from datetime import datetime
from pathlib import Path

from gemtui.errors import GemtuiError
from gemtui.kept.run_copies import session_files
from gemtui.runs.enrich import completed_call
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.store import SessionKind, Store
from gemtui.transcript.model import Author, Message, Notice, Outline, ToolCall, Transcript, outline
from gemtui.transcript.rows import OutlineRow, of_rows

_DROPPED = re.compile(
    (
        r"System: Potential loop detected\. Details: Repeated tool call: (.*)\. Please take a step "
        r"back and confirm"
    ),
    re.DOTALL,
)
"""The CLI's message to the model after it has dropped a call; it looks like the user's."""


@dataclass(frozen=True, slots=True)
class DroppedCall:
    """A call that the CLI took for the repetition of earlier ones, and did not make.

    `prompt`: the first line of the prompt that led to it. `call`: the tool and its arguments, in
    the CLI's words.
    """

    prompt: str
    call: str


class RecordedCalls:
    """Reads the calls of one run from its session while the session grows.

    `home`: Gemini CLI's folder, which contains the session.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._logs: dict[Path, SessionLog] = {}
        self._read: dict[Path, dict[int, Outline]] = {}
        """The messages that have been read, by file and position."""
        self._calls: dict[str, ToolCall] = {}
        self._made: dict[int, tuple[Outline, tuple[ToolCall | None, ...], Message, Outline]] = {}

    def read(self, session: str, wanted: Collection[str]) -> tuple[ToolCall, ...]:
        """Return those of the wanted calls that the session contains by now.

        `session`: its id. `wanted`: the ids of the calls. Blocking: reads what has been added to
        the session's file since the last time.
        """
        try:
            for path in self._paths(session):
                log = self._logs.setdefault(path, SessionLog(path))
                if log.refresh() or path not in self._read:
                    self._calls.update((call.id, call) for call in self._new_calls(path, log))
        except (GemtuiError, OSError):
            return ()
        return tuple(self._calls[id] for id in wanted if id in self._calls)

    def dropped(self, session: str, since: datetime) -> tuple[DroppedCall, ...]:
        """Return the calls that the CLI dropped as repetitions; () if the session can't be read.

        `session`: its id. `since`: when the run began; earlier runs' calls are left out. Blocking.
        """
        self.read(session, ())
        for log in self._logs.values():
            if calls := tuple(_dropped(transcript_of(log, dropped=True, in_flight=False), since)):
                return calls
        return ()

    def close(self) -> None:
        """Close the session's files."""
        for log in self._logs.values():
            log.close()

    def _paths(self, session: str) -> Collection[Path]:
        """Return the session's files; once there is one, they are not looked for again."""
        if self._logs:
            return tuple(self._logs)
        places = session_files(Store(self._home), session)
        return tuple(file.path for file in places if file.kind is SessionKind.MAIN)

    def _new_calls(self, path: Path, log: SessionLog) -> Iterator[ToolCall]:
        transcript, read = transcript_of(log, in_flight=False), self._read.setdefault(path, {})
        for at, line in enumerate(transcript.outlines):
            if line.calls and read.get(at) is not line:
                read[at] = line
                yield from _calls(transcript.read(at))

    def complete(self, transcript: Transcript) -> Transcript:
        """Return a run's transcript, its calls completed with what `read` has found.

        Unchanged messages keep their `Outline` objects.
        """
        if not self._calls:
            return transcript
        return of_rows(transcript, [self._row(transcript, at) for at in range(len(transcript))])

    def _row(self, transcript: Transcript, at: int) -> OutlineRow:
        line = transcript.outlines[at]
        if not line.calls:
            return line, at
        message = transcript.read(at)
        recorded = tuple(self._calls.get(call.id) for call in _calls(message))
        if not any(recorded):
            return line, at
        made = self._made.get(at)
        if made is None or made[0] is not line or made[1] != recorded:
            completed = _completed(message, self._calls)
            made = self._made[at] = line, recorded, completed, outline(completed)
        return made[3], made[2]


def _calls(message: Message) -> Iterator[ToolCall]:
    return (block for block in message.blocks if isinstance(block, ToolCall))


def _dropped(transcript: Transcript, since: datetime) -> Iterator[DroppedCall]:
    """Yield the calls that were dropped since then; the session may have lost the CLI's message."""
    prompt = ""
    for at, line in enumerate(transcript.outlines):
        if line.prompt:
            prompt = line.excerpt
        elif line.author is Author.SYSTEM and line.time is not None and line.time >= since:
            call = _DROPPED.match(_text(transcript.read(at)))
            if call is not None:
                yield DroppedCall(prompt, call[1])


def _text(message: Message) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, Notice))


def _completed(message: Message, recorded: Mapping[str, ToolCall]) -> Message:
    blocks = (
        completed_call(recorded[block.id], block)
        if isinstance(block, ToolCall) and block.id in recorded
        else block
        for block in message.blocks
    )
    return message_with(message, blocks=tuple(blocks))
