"""A session of the demo that is told while it happens: to its log, and to stdout."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemtui.demo.chat import Chat, as_line
from gemtui.demo.workspace import Call, Json, Workspace


class Said:
    """Stdout as `--output-format=stream-json` has it: one object a line, at once."""

    def __call__(self, kind: str, **fields: Any) -> None:
        """Say one event."""
        now = datetime.now(UTC)
        stamp = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}Z"
        sys.stdout.write(as_line({"type": kind, "timestamp": stamp, **fields}))
        sys.stdout.flush()


class LiveChat(Chat):
    """The session `id` in the folder `chats`; its clock is the real one.

    `resumed`: its log, which goes on; None = a new one. Every record is in the log as soon as it is
    told. Raises OSError.
    """

    def __init__(
        self, work: Workspace, id: str, chats: Path, *, model: str, resumed: Path | None = None
    ) -> None:
        began = datetime.now(UTC)
        super().__init__(work, f"{id} {time.time_ns()}", start=began, model=model)
        self.id = self._header["sessionId"] = id
        self.used = dict.fromkeys(("input", "output", "cached", "total"), 0)
        """Tokens so far, as the stream counts them."""
        self.path = resumed or chats / f"{self._name()}.jsonl"
        if resumed is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lines = self._opening()
            self._write_out()
        else:
            self._read += self.path.stat().st_size // 4

    def answer(self, text: str, calls: tuple[Call, ...], thoughts: tuple[str, ...]) -> Json:
        """The model has answered, with these calls to come; the record."""
        self._wait(0)
        record = self._answer(text, calls, thoughts)
        for name in self.used:
            self.used[name] += record["tokens"][name]
        self._log(record)
        return record

    def call_ids(self, calls: tuple[Call, ...]) -> list[str]:
        """The ids under which the calls are told and stored."""
        self._wait(0)
        return self._call_ids(calls)

    def ended(self, record: Json, ids: list[str], calls: tuple[Call, ...]) -> None:
        """All calls of an answer have come back."""
        self._wait(0)
        self._ended(record, ids, calls)

    def _wait(self, seconds: float) -> None:
        del seconds
        self.clock = datetime.now(UTC)

    def _log(self, record: Json) -> None:
        super()._log(record)
        self._write_out()

    def _again(self, record: Json) -> None:
        super()._again(record)
        self._write_out()

    def _write_out(self) -> None:
        with self.path.open("a", encoding="utf-8", newline="\n") as log:
            log.write("".join(map(as_line, self._lines)))
        self._lines.clear()


def find_log(chats: Path, id: str) -> Path | None:
    """The log of a stored session, None where there is none.

    A session of an older CLI gets a log beside its file, as the CLI does it.
    """
    logs = sorted(chats.glob(f"session-*-{id[:8]}.jsonl"), key=lambda log: log.stat().st_size)
    if logs:
        return logs[-1]
    for old in chats.glob(f"session-*-{id[:8]}.json"):
        stored = json.loads(old.read_text("utf-8"))
        messages = stored.pop("messages")
        log = old.with_suffix(".jsonl")
        log.write_text("".join(map(as_line, (stored, *messages))), encoding="utf-8", newline="\n")
        return log
    return None
