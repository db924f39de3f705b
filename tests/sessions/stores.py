"""Small stores on disk, built file by file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from tests.sessions import logs

DATA = Path(__file__).parent.parent / "data" / "sessions"
MAIN = DATA / "main" / ".gemini"
LONG_AGO = 1_700_000_000
"""Seconds since the epoch: a time at which no file of a test is live."""


def talk(id: str, prompt: str = "Hello", *, seconds: float = 5, turns: int = 1) -> list[Any]:
    """The records of a session with so many prompts and answers, last updated at `seconds`."""
    records = [logs.header(id), logs.context()]
    for turn in range(turns):
        records.append(logs.user(f"u{turn}", prompt if turn == 0 else f"More {turn}", turn + 1))
        records.append(logs.gemini(f"g{turn}", f"Answer {turn}", turn + 1.5))
    return [*records, {"$set": {"lastUpdated": logs.at(seconds)}}]


def session(
    home: Path,
    id: str,
    records: Iterable[object] | None = None,
    *,
    key: str = "proj",
    minute: str = "2026-11-20T23-04",
) -> Path:
    """One `.jsonl` session, named as the CLI names it."""
    path = home / "tmp" / key / "chats" / f"session-{minute}-{id[:8]}.jsonl"
    return logs.write(path, talk(id) if records is None else records)


def saying(
    home: Path, id: str, *records: object, key: str = "proj", minute: str = "2026-11-20T23-04"
) -> Path:
    """One session with these records below its header."""
    return session(home, id, [logs.header(id), *records], key=key, minute=minute)


def several(home: Path, count: int) -> list[Path]:
    """So many sessions, with the first ids that `uuid` gives."""
    return [session(home, uuid(number)) for number in range(count)]


def legacy(home: Path, id: str, records: Iterable[Any], *, key: str, seconds: float = 5) -> Path:
    """One `.json` session of an older version."""
    path = home / "tmp" / key / "chats" / f"session-2026-11-20T23-04-{id[:8]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = logs.header(id) | {"lastUpdated": logs.at(seconds)}
    path.write_bytes(orjson.dumps(head | {"messages": list(records)}, option=orjson.OPT_INDENT_2))
    return path


def uuid(number: int) -> str:
    """A session id; two numbers differ in the first eight characters."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def marker(home: Path, key: str, root: str) -> None:
    """Say which folder a project folder belongs to."""
    place = home / "tmp" / key / ".project_root"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(root)


def typed(home: Path, prompts: Iterable[tuple[str, str]], *, key: str = "proj") -> None:
    """Write to `logs.json` what was typed: pairs of a session's id and a prompt."""
    entry = {"messageId": 0, "type": "user", "timestamp": "2026-01-02T03:04:05.000Z"}
    path = home / "tmp" / key / "logs.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        orjson.dumps([entry | {"sessionId": id, "message": text} for id, text in prompts])
    )


def hashed(root: str) -> str:
    """The name of a legacy project folder."""
    return hashlib.sha256(root.encode()).hexdigest()


def set_time(path: Path, seconds: float) -> None:
    """Give a file a time of change, in seconds since the epoch."""
    os.utime(path, (seconds, seconds))


def append(path: Path, *records: object) -> None:
    """Let a session grow."""
    with path.open("ab") as file:
        file.write(logs.lines(records))


def load(index: Index) -> Snapshot:
    """All of a store."""
    return index.load(publish=lambda _: None, cancelled=lambda: False)


def read(home: Path) -> Snapshot:
    """All of a store, without a cache."""
    return load(Index(home, cache=None))


def only(snapshot: Snapshot) -> Summary:
    """The one session of a store."""
    (session,) = snapshot.sessions
    return session
