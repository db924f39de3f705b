"""Replay the lines of agents that put them into Claude Code's envelope (`dialect.py`).

A line names the line that it follows (`parentUuid`). The lines are no plain tree: results of calls
that ran at the same time hang on different lines of one answer, and lines that are skipped are
links of the chain, too. So only a person's prompt begins a branch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gemtui.sessions.read.dialect import Dialect, Record
from gemtui.sessions.read.replay import Replay, Slot, facts_of
from gemtui.sessions.store.projects import path_hash
from gemtui.transcript.parts import instant, string

_PARENT = re.compile(rb'\{(?:"uuid":"[^"]*",)?"parentUuid":"([^"]*)"')
_ID = b'"uuid":"'
"""It stands at the beginning of Qwen Code's lines, and near the end of Claude Code's."""
_LONGEST = 60
"""Maximum number of characters of a type that are told."""


class EnvelopeReplay:
    """Feeds the lines of a file to a replay, and keeps what joins them.

    What is kept grows with the records, not with the lines that are skipped.
    """

    def __init__(self, dialect: Dialect, replay: Replay) -> None:
        self._dialect = dialect
        self._replay = replay
        replay.calls_are_late = False
        self._skipped: dict[str, str] = {}
        """For the last of the skipped lines in a row, the record that they follow."""
        self._answers: dict[str, str] = {}
        """The first record of each answer."""
        self._first: dict[str, str] = {}
        """For the other records of an answer, its first one."""

    def skips(self, line: bytes) -> bool:
        """Return whether a line is skipped unparsed; if so, it is still a link of the chain."""
        if self._dialect.wants(line):
            return False
        parent = _PARENT.match(line)
        if parent is not None:
            at = 1 if line.startswith(_ID, 1) else line.rfind(_ID)
            id, _, _ = line[at + len(_ID) :].partition(b'"')
            self._skip(id.decode(errors="replace"), parent[1].decode(errors="replace"))
        return True

    def feed(self, line: Mapping[str, Any], offset: int, length: int) -> str | None:
        """Apply a parsed line; return a note on what is left out, or None."""
        self._read_header(line)
        if self._is_of_another_session(line):
            return None
        record = self._dialect.translate(line)
        id, parent = string(line.get("uuid")), string(line.get("parentUuid"))
        if record is None or "id" not in record:
            self._skip(id, parent)
            return None if record is None else self._change(record, offset, length)
        parent = string(record.get("parent")) or parent
        if record.get("prompt") is True:
            parent = self._skipped.get(parent, parent)
            self._replay.branch(self._first.get(parent, parent))
        if "answer" in record:
            self._replay.metadata.pop("cost", None)  # an earlier count lacks this answer
        if self._continues(id, string(record.get("answer")), record, Slot(offset, length)):
            return None
        return self._replay.feed(record, offset, length)

    def _change(self, record: Record, offset: int, length: int) -> str | None:
        """Apply a change of the header; return a note on anything else, whose type is unknown."""
        if "$set" in record:
            return self._replay.feed(record, offset, length)
        return f"left out because its type is unknown: {string(record.get('type'))[:_LONGEST]}"

    def _read_header(self, line: Mapping[str, Any]) -> None:
        header = self._replay.metadata
        session, folder = string(line.get("sessionId")), string(line.get("cwd"))
        if session and "sessionId" not in header:
            agent = string(line.get("agentId")) if line.get("isSidechain") is True else ""
            header |= {"sessionId": agent, "kind": "subagent"} if agent else {"sessionId": session}
        if folder and "directories" not in header:
            header |= {"directories": [folder], "projectHash": path_hash(folder)}
        time = instant(line.get("timestamp"))
        if time is not None:
            header["lastUpdated"] = line["timestamp"]
            self._replay.started = self._replay.started or time

    def _is_of_another_session(self, line: Mapping[str, Any]) -> bool:
        """Return whether a line is a subagent's in the file of its caller, as in older versions."""
        return line.get("isSidechain") is True and "kind" not in self._replay.metadata

    def _skip(self, id: str, parent: str) -> None:
        if id:
            self._skipped[id] = self._skipped.pop(parent, parent)

    def _continues(self, id: str, answer: str, record: Record, slot: Slot) -> bool:
        """Return whether a record was added to the answer that it continues."""
        first = self._answers.setdefault(answer, id) if answer else id
        if first == id or not self._replay.extend(first, facts_of(record, slot.length), slot):
            return False
        self._first[id] = first
        return True
