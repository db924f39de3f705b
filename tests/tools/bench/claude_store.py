"""Stores shaped like those of Claude Code 2.1: the sessions of `make_store` in its lines.

Most bytes are lines that hold nothing of the conversation, as in recorded sessions: requests, and
what the program tells the model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from tests.tools.bench.make_store import NOW, PROJECTS, SOURCE, Author, Record

HOME = ".claude"
SESSIONS = f"{HOME}/projects/*/*.jsonl"
_TOOLS = {
    "read_file": "Read",
    "replace": "Edit",
    "run_shell_command": "Bash",
    "grep_search": "Grep",
}


class ClaudeAuthor(Author):
    """Writes one session: what stands at its beginning, then lines turn by turn."""

    def __init__(self, seed: int, *, project: Path, start: Any) -> None:
        super().__init__(seed, project=project, start=start)
        self._parent: str | None = None
        self._is_new = True

    def _context(self) -> Iterator[Record]:
        """The lines after the first prompt."""
        for kind, size in (
            ("agent_listing", 4_000),
            ("skill_listing", 14_000),
            ("snapshot", 8_000),
        ):
            yield self._attachment(kind, size)
        yield self._request("api-request-shape", 43_000)

    def spoken(self) -> Iterator[Record]:
        """The lines of a turn."""
        for record in self.turn():
            match record.get("type"):
                case "user" if "text" in record["content"][0]:
                    yield {"type": "queue-operation", "operation": "enqueue", "sessionId": self.id}
                    yield self._line("user", {"content": record["content"][0]["text"]})
                    if self._is_new:
                        yield from self._context()
                    self._is_new = False
                case "gemini":
                    yield from self._answered(record)
        if self._parent is not None and self.random.random() < 0.4:
            yield self._attachment("prompt_snapshot", 63_000)

    def _answered(self, record: Record) -> Iterator[Record]:
        """The lines of an answer; the one without its calls, which is written first, has none."""
        calls = record.get("toolCalls", [])
        if not calls and not record["content"]:
            return
        yield self._request("api-request", 1_300)
        message: Record = {"id": f"msg_{record['id']}", "model": "claude-sonnet-5"}
        tokens = record["tokens"]
        message["usage"] = {
            "input_tokens": tokens["input"] - tokens["cached"],
            "cache_read_input_tokens": tokens["cached"],
            "output_tokens": tokens["output"],
        }
        thought = record["thoughts"][0]["description"]
        blocks = [{"type": "thinking", "thinking": thought, "signature": "c2lnbmVk" * 40}]
        if record["content"]:
            blocks.append({"type": "text", "text": record["content"]})
        for call in calls:
            used = {"id": call["id"], "name": _TOOLS[call["name"]], "input": call["args"]}
            blocks.append({"type": "tool_use", **used})
        for block in blocks:
            yield self._line("assistant", {**message, "role": "assistant", "content": [block]})
        for call in calls:
            yield self._result(call)

    def _result(self, call: Record) -> Record:
        (part,) = call["result"]
        output = part["functionResponse"]["response"]["output"]
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
        line = self._line("user", {"role": "user", "content": [block]})
        shown = call["resultDisplay"]
        if isinstance(shown, dict) and "fileDiff" in shown:
            hunk = shown["fileDiff"].splitlines()[5:]
            counts = {"oldLines": len(hunk), "newLines": len(hunk)}
            line["toolUseResult"] = {
                "filePath": shown["filePath"],
                "oldString": call["args"]["old_string"],
                "newString": call["args"]["new_string"],
                "originalFile": shown["originalContent"],
                "structuredPatch": [{"oldStart": 10, "newStart": 10, **counts, "lines": hunk}],
            }
        else:
            line["toolUseResult"] = {"stdout": output, "stderr": ""}
        return line

    def _line(self, kind: str, message: Record) -> Record:
        id, parent = self._uuid(), self._parent
        self._parent = id
        head = {"parentUuid": parent, "isSidechain": False, "type": kind, "message": message}
        return head | {"uuid": id, "timestamp": self._now(), **self._envelope()}

    def _attachment(self, kind: str, size: int) -> Record:
        id, parent = self._uuid(), self._parent
        self._parent = id
        attachment = {"type": kind, "content": self._words(size // 6)}
        head = {"parentUuid": parent, "isSidechain": False, "attachment": attachment}
        return head | {"type": "attachment", "uuid": id, "timestamp": self._now()}

    def _envelope(self) -> Record:
        return {"cwd": str(self.project), "sessionId": self.id, "version": "2.1.332"}

    def _request(self, kind: str, size: int) -> Record:
        return {"type": kind, "sessionId": self.id, "shape": self._words(size // 6)}


def make_claude_session(path: Path, *, size: int, seed: int, start: Any = NOW) -> None:
    """Write a session of at least `size` bytes."""
    author = ClaudeAuthor(seed, project=SOURCE / path.parent.name, start=start)
    with path.open("wb") as file:
        while file.tell() < size:
            for line in author.spoken():
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    author.leave(path)


def make_claude(home: Path, sessions: int) -> int:
    """`home/.claude` with so many sessions; bytes of all of them."""
    chance = random.Random(sessions)
    total = 0
    for index in range(sessions):
        folder = home / HOME / "projects" / f"-home-dev-src-{chance.choice(PROJECTS)}"
        folder.mkdir(parents=True, exist_ok=True)
        size = int(min(chance.lognormvariate(11.9, 1.0), 5_000_000))
        path = folder / f"{random.Random(index).getrandbits(48):012x}.jsonl"
        start = NOW - timedelta(minutes=index * 40 + 40)
        make_claude_session(path, size=size, seed=index, start=start)
        total += path.stat().st_size
    return total
