"""Stores of any size, shaped like those that Gemini CLI 0.61 writes; the same seed, the same store.

    python -m tests.tools.bench.make_store FOLDER [SESSIONS]

makes FOLDER/.gemini with so many sessions (200). Their sizes are spread as in a store that is
used for work: half are below 20 KB, one in a hundred above 250 KB, about 40 KB on average.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

PROJECTS = ("parser", "api", "website", "notes", "infra", "game", "thesis", "dotfiles")
MODELS = ("gemini-2.5-pro", "gemini-2.5-pro", "gemini-2.5-flash")
PROSE = (
    "the parser keeps a tail until its line feed comes so that nothing is read twice when a file "
    "grows while we look at it and each record replaces the one that had its id before which is "
    "how tokens and tool results arrive after the answer that asked for them was written down"
)
WORDS = PROSE.split()
CODE = (
    "def read(path, since=0):",
    "    with open(path, 'rb') as file:",
    "        file.seek(since)",
    "        return file.read()",
    "for line in data.split(b'\\n'):",
    "    record = orjson.loads(line)",
    "    records[record['id']] = record",
)
SOURCE = Path("/home/dev/src")
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

Record = dict[str, Any]


class Author:
    """Writes one session: a header, then records turn by turn, with a clock of its own."""

    def __init__(self, seed: int, *, project: Path, start: datetime) -> None:
        self.random = random.Random(seed)
        self.project = project
        self.clock = start
        self.id = self._uuid()
        self.model = self.random.choice(MODELS)

    def head(self) -> Iterator[Record]:
        """The header and the session context."""
        yield {
            "sessionId": self.id,
            "projectHash": hashlib.sha256(str(self.project).encode()).hexdigest(),
            "startTime": self._now(),
            "lastUpdated": self._now(),
            "kind": "main",
        }
        context = f"<session_context>\nThis is the Gemini CLI.\n{self._words(80)}</session_context>"
        yield {"$set": {"messages": [self._user([{"text": context}])]}}

    def leave(self, path: Path) -> None:
        """Let a file be as old as the last word in it."""
        os.utime(path, (self.clock.timestamp(),) * 2)

    def exchange(self) -> Iterator[Record]:
        """A prompt and its answer."""
        yield self._user([{"text": f"{self._words(8).capitalize()}?"}])
        yield self._answer(self._words(20))

    def turn(self) -> Iterator[Record]:
        """A prompt, up to six answers that call tools, and the last answer."""
        yield self._user([{"text": self._words(self.random.randint(5, 40)).capitalize() + "?"}])
        yield self._stamp()
        for _ in range(self.random.randint(0, 6)):
            yield from self._tool_step()
        yield self._answer(self._markdown())
        yield self._stamp()

    def _tool_step(self) -> Iterator[Record]:
        asked = self._answer("")
        yield asked
        yield self._stamp()
        call = self._call()
        yield asked | {"toolCalls": [call]}
        yield self._user(call["result"])
        yield self._stamp()

    def _answer(self, content: str) -> Record:
        self.clock += timedelta(seconds=self.random.randint(2, 20))
        put, out = self.random.randint(2_000, 90_000), self.random.randint(20, 900)
        counts = {"input": put, "output": out, "cached": put // 2, "thoughts": 90, "tool": 0}
        subject = self._words(4).capitalize()
        return {
            "id": self._uuid(),
            "timestamp": self._now(),
            "type": "gemini",
            "content": content,
            "thoughts": [
                {"subject": subject, "description": self._words(30), "timestamp": self._now()}
            ],
            "tokens": {**counts, "total": put + out + 90},
            "model": self.model,
        }

    def _call(self) -> Record:
        kind = self.random.choices((self._read, self._edit, self._shell, self._grep), (4, 2, 2, 1))
        name, args, output, display = kind[0]()
        self.clock += timedelta(milliseconds=self.random.randint(5, 9_000))
        id = f"{name}__{name}_{self.random.getrandbits(40)}_0"
        return {
            "id": id,
            "name": name,
            "args": args,
            "result": [
                {"functionResponse": {"id": id, "name": name, "response": {"output": output}}}
            ],
            "status": "error" if self.random.random() < 0.05 else "success",
            "timestamp": self._now(),
            "description": next(iter(args.values())),
            "displayName": name,
            "resultDisplay": display,
            "renderOutputAsMarkdown": True,
        }

    def _read(self) -> tuple[str, Record, str, Any]:
        lines = int(min(self.random.lognormvariate(4.6, 1), 2_000))
        return "read_file", {"file_path": self._path()}, self._code(lines, lines), ""

    def _edit(self) -> tuple[str, Record, str, Any]:
        path, old, new = self._path(), self._code(2, 8), self._code(2, 12)
        before, after = old.splitlines(), new.splitlines()
        lines = [f"-{line}" for line in before] + [f"+{line}" for line in after]
        hunk = f"@@ -10,{len(before)} +10,{len(after)} @@\n"
        diff = f"Index: {path}\n{'=' * 67}\n--- {path}\tCurrent\n+++ {path}\tProposed\n{hunk}"
        display = {
            "fileDiff": diff + "\n".join(lines) + "\n",
            "fileName": Path(path).name,
            "filePath": str(self.project / path),
            "originalContent": old,
            "newContent": new,
            "diffStat": {"model_added_lines": len(after), "model_removed_lines": len(before)},
            "isNewFile": False,
        }
        args = {"file_path": path, "instruction": self._words(12)}
        return "replace", {**args, "old_string": old, "new_string": new}, "Modified.", display

    def _shell(self) -> tuple[str, Record, str, Any]:
        count = int(min(self.random.lognormvariate(3, 1.2), 5_000))
        lines = [f"tests/test_{self.random.choice(WORDS)}.py PASSED" for _ in range(count)]
        code = self.random.choice((0, 0, 0, 1))
        output = f"<untrusted_context>\nOutput: {chr(10).join(lines)}\nExit Code: {code}\n"
        args = {"command": "python -m pytest -q", "description": self._words(6)}
        return "run_shell_command", args, output + "</untrusted_context>", "\n".join(lines)

    def _grep(self) -> tuple[str, Record, str, Any]:
        found = [
            {"filePath": (path := self._path()), "absolutePath": str(self.project / path)}
            | {"lineNumber": self.random.randint(1, 400), "line": self.random.choice(CODE)}
            for _ in range(self.random.randint(1, 30))
        ]
        summary = f"Found {len(found)} matches"
        return "grep_search", {"pattern": "record"}, summary, {"summary": summary, "matches": found}

    def _user(self, content: list[Record]) -> Record:
        self.clock += timedelta(seconds=1)
        stamp = self._now()
        return {"id": self._uuid(), "timestamp": stamp, "type": "user", "content": content}

    def _stamp(self) -> Record:
        return {"$set": {"lastUpdated": self._now()}}

    def _markdown(self) -> str:
        return (
            f"{self._words(40).capitalize()}.\n\n## {self._words(3).capitalize()}\n\n"
            f"* **{self._words(2)}**: {self._words(14)}\n* `{self._path()}`: {self._words(9)}\n\n"
            f"```python\n{self._code(3, 20)}\n```\n\n{self._words(25).capitalize()}."
        )

    def _words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, k=count))

    def _code(self, least: int, most: int) -> str:
        return "\n".join(self.random.choices(CODE, k=self.random.randint(least, most)))

    def _path(self) -> str:
        return f"src/{self.random.choice(WORDS)}/{self.random.choice(WORDS)}.py"

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def _now(self) -> str:
        return f"{self.clock:%Y-%m-%dT%H:%M:%S}.{self.clock.microsecond // 1000:03}Z"


def make_many(home: Path, sessions: int) -> int:
    """As `make_store`, but each session is a prompt and an answer: many take little room."""
    tmp = lay_out(home)
    for index in range(sessions):
        name = PROJECTS[index % len(PROJECTS)]
        start = NOW - timedelta(minutes=index * 4 + 40)
        author = Author(index, project=SOURCE / name, start=start)
        path = tmp / name / "chats" / f"session-{start:%Y-%m-%dT%H-%M}-{author.id[:8]}.jsonl"
        path.write_bytes(_lines(chain(author.head(), author.exchange())))
        author.leave(path)
    return sessions


def make_session(folder: Path, *, size: int, seed: int = 1, start: datetime = NOW) -> Path:
    """One `.jsonl` of at least `size` bytes in `folder`; the path of it."""
    author = Author(seed, project=SOURCE / folder.parent.name, start=start)
    path = folder / f"session-{start:%Y-%m-%dT%H-%M}-{author.id[:8]}.jsonl"
    with path.open("wb") as file:
        written = file.write(_lines(author.head()))
        while written < size:
            written += file.write(_lines(author.turn()))
    author.leave(path)
    return path


def more_records(count: int, *, seed: int = 2) -> bytes:
    """`count` lines as the CLI would append them to a session."""
    author = Author(seed, project=SOURCE / "parser", start=NOW)
    lines: list[bytes] = []
    while len(lines) < count:
        lines += _lines(author.turn()).splitlines(keepends=True)
    return b"".join(lines[:count])


def make_store(home: Path, sessions: int) -> int:
    """`home/.gemini` with so many sessions, one in ten of the legacy form; bytes of all of them."""
    chance = random.Random(sessions)
    tmp = lay_out(home)
    total = 0
    for index in range(sessions):
        name = chance.choice(PROJECTS)
        size = int(min(chance.lognormvariate(9.9, 1.15), 2_000_000))
        start = NOW - timedelta(minutes=index * 40 + 40)
        path = make_session(tmp / name / "chats", size=size, seed=index, start=start)
        if index % 10 == 9:
            path = as_object(path)
        total += path.stat().st_size
    return total


def store_in(folder: Path, sessions: int, make: Callable[[Path, int], int] = make_store) -> Path:
    """The home folder, in `folder`, of a store of so many sessions; it is made if it isn't
    there.
    """
    home = folder / f"{make.__name__.removeprefix('make_')}-{sessions}"
    if not home.exists():
        begun = folder / "begun"
        shutil.rmtree(begun, ignore_errors=True)
        make(begun, sessions)
        begun.rename(home)
    return home


def lay_out(home: Path) -> Path:
    """`home/.gemini` with its projects and no sessions; the folder `tmp` in it."""
    tmp = home / ".gemini" / "tmp"
    roots = {name: SOURCE / name for name in PROJECTS}
    for name, root in roots.items():
        (tmp / name / "chats").mkdir(parents=True)
        (tmp / name / ".project_root").write_text(str(root))
    registry = {"projects": {str(root): name for name, root in roots.items()}}
    (home / ".gemini" / "projects.json").write_bytes(orjson.dumps(registry))
    return tmp


def as_object(path: Path, *, keep: bool = False) -> Path:
    """The session as versions up to 0.38 kept it: one indented object. `keep`: beside the log."""
    lines = path.read_bytes().splitlines()
    records = [orjson.loads(line) for line in lines if line.endswith(b"}")]
    messages: dict[str, Record] = {}
    for record in records:
        for each in record.get("$set", {}).get("messages", [record]):
            if "id" in each:
                messages[each["id"]] = each
    last = max(message["timestamp"] for message in messages.values())
    whole = records[0] | {"lastUpdated": last, "messages": list(messages.values())}
    legacy = path.with_suffix(".json")
    legacy.write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2))
    shutil.copystat(path, legacy)
    if not keep:
        path.unlink()
    return legacy


def _lines(records: Iterator[Record]) -> bytes:
    return b"".join(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in records)


if __name__ == "__main__":
    folder, *count = sys.argv[1:]
    print(f"{make_store(Path(folder), int(count[0]) if count else 200):,} bytes")
