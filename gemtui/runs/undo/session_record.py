"""Get file changes from a session's record, for calls without checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gemtui.calls.paths import tool_path
from gemtui.checkpoints.store import CheckpointStore
from gemtui.checkpoints.undo import RecordedChange
from gemtui.runs.undo.checkpointing import name_in
from gemtui.runs.undo.hooked_checkpoints import HOOKED, hooked_use
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import FORKED_FROM, SessionLog
from gemtui.transcript.model import DiffDisplay, ToolCall, ToolStatus, excerpt
from gemtui.transcript.parts import string
from gemtui.transcript.tools import WRITING, kind_of, may_write, named_file
from gemtui.transcript.writes import text_after, text_before

_MOST_NAMED = 20
"""The most calls that the notes for the user name one by one."""


class PlacedCall(NamedTuple):
    """A call that may have changed files, and its place in the session.

    `prompt`: the number of the prompt that the call follows. `use`: the id that checkpoints use for
    the call. `sessions`: the ids of the call's session and of the one it was forked from; a hook
    may have reported the call for either of them.
    """

    call: ToolCall
    prompt: int
    use: str
    sessions: frozenset[str] = frozenset()


def placed_calls(session: Summary) -> list[PlacedCall]:
    """Return a session's calls that may have changed files, in order.

    Calls that a rewind removed from the conversation are included. Order and prompts are determined
    by position, not by time, because continuing a session gives all its records new times
    (assets/gemini-cli.md#ghosts).
    """
    placed, prompt = list[PlacedCall](), 0
    with SessionLog.read(session.path) as log:
        transcript = transcript_of(log, dropped=True, in_flight=False)
        sessions = frozenset((session.id, string(log.metadata.get(FORKED_FROM)))) - {""}
        for at, outline in enumerate(transcript.outlines):
            prompt += outline.prompt and outline.dropped is None
            if outline.calls:
                for block in transcript.read(at).blocks:
                    if isinstance(block, ToolCall) and may_write(block.name):
                        placed.append(PlacedCall(block, prompt, block.id, sessions))
    return placed


_NOT_MADE = (ToolStatus.DENIED, ToolStatus.CANCELLED, ToolStatus.REFUSED)


def with_uses(placed: Sequence[PlacedCall], store: CheckpointStore) -> list[PlacedCall]:
    """Return the calls, with the ids that checkpoints use for those reported by hooks.

    `placed`: the calls with Gemini CLI's ids, which hooks don't report. Therefore calls are matched
    by their arguments, in order. Calls in `store` that belong to unrelated sessions are ignored.
    """
    sessions = set[str]()
    for placed_call in placed:
        for session in placed_call.sessions:
            sessions |= store.lineage(session)
    calls = sorted(store.calls().values(), key=lambda call: call.began)
    stored_uses = {call.use for call in calls}
    hooked: dict[str, list[str]] = {}
    for call in calls:
        if call.use.startswith(HOOKED) and call.session in sessions:
            hooked.setdefault(call.use.rpartition(" ")[0], []).append(call.use)
    result = []
    for placed_call in placed:
        made = placed_call.call
        uses = hooked.get(hooked_use(made.name, made.args))
        if uses and placed_call.use not in stored_uses and made.status not in _NOT_MADE:
            placed_call = placed_call._replace(use=uses.pop(0))
        result.append(placed_call)
    return result


class SessionRecord:
    """The changes made by calls without checkpoints, from the session's record.

    `root`: the project's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.changes: list[RecordedChange] = []
        self.left: list[str] = []
        """Descriptions of the calls whose changes can't be undone."""

    def add(self, call: ToolCall) -> None:
        """Add a call's change or, if it can't be undone, a description to `left`."""
        if call.status in _NOT_MADE or not may_write(call.name):
            return
        if kind_of(call.name) not in WRITING:
            command = string(call.args.get("command"))
            self.left.append(f"{call.name}: {excerpt(command)}" if command else call.name)
            return
        if call.status is ToolStatus.ERROR:
            return
        diff = call.display if isinstance(call.display, DiffDisplay) else None
        path = named_file(call, self._file)
        name = name_in(self._root, path)
        before, after = text_before([call]), text_after([call])
        if name is None:
            self.left.append(f"{call.name}: {path} (outside of the project)")
        elif before is None or after is None:
            self.left.append(f"{call.name}: {path} (its earlier content is not recorded)")
        else:
            crlf = _has_crlf(self._root / os.fsdecode(name))
            was = None if diff is not None and diff.is_new else _bytes(before, crlf=crlf)
            when = 0.0 if call.time is None else call.time.timestamp()
            became = _bytes(after, crlf=crlf)
            self.changes.append(RecordedChange(name, when, was, became, call.name, call.id))

    def _file(self, asked: str) -> str:
        """Return the file that the CLI writes if a call names `asked`."""
        with suppress(OSError, ValueError):
            return tool_path(asked, str(self._root))
        return asked

    def notes(self) -> Iterator[str]:
        """Yield notes for the user about changes that can't be undone."""
        for call in self.left[:_MOST_NAMED]:
            yield f"Can't be undone, because there is no checkpoint of it: {call}"
        if len(self.left) > _MOST_NAMED:
            yield f"and {len(self.left) - _MOST_NAMED} more calls"


def _has_crlf(path: Path) -> bool:
    """Return whether a file has CRLF line endings.

    The file itself is read, because session records convert all line endings to line feeds.
    """
    try:
        with path.open("rb") as file:
            return b"\r\n" in file.read(64 * 1024)
    except OSError:
        return False


def _bytes(text: str, *, crlf: bool) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if crlf else data
