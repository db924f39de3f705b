"""A session of the demo that is written in real time, both to its log and to stdout."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemtui.demo.tools import Bench, DemoCall, Json

_SYSTEM_PROMPT = 6800
"""The number of tokens that every request has in addition to the conversation."""


class EventWriter:
    """Writes events to stdout in the format of `--output-format=stream-json`."""

    def __call__(self, kind: str, **fields: Any) -> None:
        """Write one event and flush it."""
        sys.stdout.write(_as_line({"type": kind, "timestamp": _now(), **fields}))
        sys.stdout.flush()


class LiveChat:
    """The session `id` in the folder `chats`, written as the CLI writes it.

    `resumed`: the log to continue; None for a new session. When a method that writes a record
    returns, the record is in the log. Raises OSError.
    """

    def __init__(
        self, bench: Bench, id: str, chats: Path, *, model: str, resumed: Path | None = None
    ) -> None:
        self.id = id
        self.used = dict.fromkeys(("input", "output", "cached", "total"), 0)
        """The tokens used so far, as the stream counts them."""
        self._bench, self._model = bench, model
        self._read, self._cached = _SYSTEM_PROMPT, 0
        name = f"session-{datetime.now(UTC):%Y-%m-%dT%H-%M}-{id[:8]}.jsonl"
        self.path = resumed or chats / name
        if resumed is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._begin()
        else:
            self._read += self.path.stat().st_size // 4

    def ask(self, prompt: str) -> None:
        """Record a prompt."""
        record = _message("user", [{"text": prompt}])
        self._read += len(json.dumps(record)) // 4
        self._log(record)

    def answer(self, text: str, calls: Sequence[DemoCall], thoughts: Sequence[str]) -> Json:
        """Record an answer that makes these calls, and return its record.

        Each thought has the form "subject: description".
        """
        record = _message("gemini", text)
        record["thoughts"] = [_thought(thought) for thought in thoughts]
        record["tokens"] = self._tokens(text, calls, thoughts)
        record["model"] = self._model
        for name in self.used:
            self.used[name] += record["tokens"][name]
        self._log(record)
        return record

    def call_ids(self, calls: Sequence[DemoCall]) -> list[str]:
        """Return new ids for the calls, used in events and in the log."""
        stamp = f"{datetime.now(UTC).timestamp() * 1000:.0f}"
        return [f"{call.name}__{call.name}_{stamp}_{place}" for place, call in enumerate(calls)]

    def ended(self, record: Json, ids: list[str], calls: Sequence[DemoCall]) -> None:
        """Record an answer again, now with the results of its calls."""
        entries = [call.entry(id, _now()) for id, call in zip(ids, calls, strict=True)]
        self._write(record | {"toolCalls": entries})
        replies = [call.reply(id) for id, call in zip(ids, calls, strict=True)]
        self._read += len(json.dumps(replies)) // 4
        self._log(_message("user", replies))

    def _begin(self) -> None:
        """Write the beginning of a log: header and session context."""
        now, bench = _now(), self._bench
        header = {"sessionId": self.id, "projectHash": bench.hash, "startTime": now}
        root, home = bench.root, bench.root.parent.parent
        text = (
            "<session_context>\nThis is the Gemini CLI. We are setting up the context for our "
            f"chat.\nToday's date is {datetime.now(UTC):%A, %B %d, %Y} (formatted according to the "
            "user's locale).\nMy operating system is: linux\nThe project's temporary directory "
            f"is: {home}/.gemini/tmp/{bench.slug}\n- **Workspace Directories:**\n  - {root}\n"
            "- **Directory Structure:**\n\nShowing up to 200 items (files + folders).\n\n"
            f"{root}/\n{bench.tree()}\n\n\n</session_context>"
        )
        context = _message("user", [{"text": text}]) | {"id": "d04923d38bb0f6017037e74183378ef4"}
        self._write(
            header | {"lastUpdated": now, "kind": "main"},
            {"$set": {"messages": [context], "lastUpdated": now}},
        )

    def _tokens(self, text: str, calls: Sequence[DemoCall], thoughts: Sequence[str]) -> Json:
        output = (len(text) + sum(len(json.dumps(call.args)) for call in calls)) // 4 + 8
        thinking = sum(len(thought) for thought in thoughts) * 3
        tokens = {
            "input": self._read,
            "output": output,
            "cached": self._cached,
            "thoughts": thinking,
            "tool": 0,
            "total": self._read + output + thinking,
        }
        self._cached = self._read * 9 // 10
        self._read += output
        return tokens

    def _log(self, record: Json) -> None:
        self._write(record, {"$set": {"lastUpdated": _now()}})

    def _write(self, *records: Json) -> None:
        with self.path.open("a", encoding="utf-8", newline="\n") as log:
            log.write("".join(map(_as_line, records)))


def find_log(chats: Path, id: str) -> Path | None:
    """Return the log of a stored session; None if there is none.

    For a session of an older CLI, a new log is created next to the session's file, as the CLI does.
    """
    logs = sorted(chats.glob(f"session-*-{id[:8]}.jsonl"), key=lambda log: log.stat().st_size)
    if logs:
        return logs[-1]
    for old in chats.glob(f"session-*-{id[:8]}.json"):
        stored = json.loads(old.read_text("utf-8"))
        messages = stored.pop("messages")
        log = old.with_suffix(".jsonl")
        log.write_text("".join(map(_as_line, (stored, *messages))), encoding="utf-8", newline="\n")
        return log
    return None


def _message(kind: str, content: object) -> Json:
    return {"id": str(uuid.uuid4()), "timestamp": _now(), "type": kind, "content": content}


def _thought(thought: str) -> Json:
    subject, _, description = thought.partition(": ")
    return {"subject": subject, "description": description, "timestamp": _now()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _as_line(value: Json) -> str:
    return f"{json.dumps(value, ensure_ascii=False)}\n"
