"""A session that a run resumes: the copy before, the ghost after, and the way back."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import psutil
import pytest

from gemtui.agent.folder import Exit, Owner, Request, RunFolder
from gemtui.runs.resume import (
    Aftermath,
    Kept,
    ResumeGuard,
    aftermath_of,
    keep,
    restore,
    settle,
    settle_left,
)

ID = "0a1b2c3d-1111-4222-8333-444455556666"
OTHER = "0a1b2c3d-9999-4222-8333-444455556666"
CONTEXT = {"id": "c", "type": "user", "content": [{"text": "<session_context>\nhere"}]}
PROMPT = {"id": "p", "type": "user", "content": [{"text": "A word?"}]}
ANSWER = {"id": "a", "type": "gemini", "content": "Plum."}


def lines(*objects: object) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in objects)


def header(id: str = ID) -> dict[str, str]:
    return {"sessionId": id, "projectHash": "h", "startTime": "2026-01-02T03:04:05.000Z"}


REAL = lines(header(), CONTEXT, PROMPT, ANSWER)
GHOST = lines(header(), {"$set": {"messages": [CONTEXT]}})


class Home:
    """A store with one session, and the folder of a run that resumes it."""

    def __init__(self, path: Path) -> None:
        self.path = path / ".gemini"
        self.chats = self.path / "tmp" / "greeter" / "chats"
        self.chats.mkdir(parents=True)
        self.real = self.add("session-2026-01-02T03-04-0a1b2c3d.jsonl", REAL)
        self.folder = RunFolder.create(path / "runs", "r1")

    def add(self, name: str, content: bytes) -> Path:
        path = self.chats / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def ghost(self, content: bytes = GHOST) -> Path:
        return self.add("session-2026-01-02T03-09-0a1b2c3d.jsonl", content)

    def keep(self) -> Kept:
        return keep(self.folder, self.path, ID)

    def files(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in self.path.rglob("*") if p.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_every_file_of_the_session_is_copied(home: Home) -> None:
    sub = home.add(f"{ID}/sub.jsonl", REAL)
    old = home.add("session-2026-01-01T03-04-0a1b2c3d.json", b"{}")
    home.add("session-2026-01-01T03-05-0a1b2c3d.jsonl", lines(header(OTHER), PROMPT))
    kept = home.keep()
    assert set(kept.files) == {home.real, old, sub}
    for path, copy in kept.files.items():
        assert copy.read_bytes() == path.read_bytes()
        assert copy.parent == home.folder.path
        assert copy.stat().st_mode & 0o777 == 0o600


def test_the_ghost_goes_and_nothing_else(home: Home) -> None:
    other = home.add("session-2026-01-02T03-08-0a1b2c3d.jsonl", lines(header(OTHER), CONTEXT))
    early = home.add("session-2026-01-02T03-05-0a1b2c3d.jsonl", GHOST)
    kept = home.keep()
    ghost = home.ghost()
    before = home.files()
    assert settle(home.folder, kept) == Aftermath(ghosts=(ghost,))
    before.pop(str(ghost))
    assert home.files() == before
    assert other.exists()
    assert early.exists()


@pytest.mark.parametrize(
    "content",
    [
        lines(header(), CONTEXT, PROMPT),
        lines(header(OTHER), {"$set": {"messages": [CONTEXT]}}),
        GHOST + b'{"id": "half',
        GHOST + b"garbage\n",
        lines(header(), CONTEXT, PROMPT, {"$set": {"messages": [CONTEXT]}}),
        b"",
    ],
    ids=["prompt", "other id", "torn", "damaged", "failed prompt", "empty"],
)
def test_a_new_file_that_is_no_ghost_stays(home: Home, content: bytes) -> None:
    kept = home.keep()
    path = home.ghost(content)
    assert settle(home.folder, kept) == Aftermath()
    assert path.read_bytes() == content


def test_a_ghost_stays_where_no_other_file_says_anything(home: Home) -> None:
    kept = home.keep()
    home.real.unlink()
    ghost = home.ghost()
    assert settle(home.folder, kept) == Aftermath(lost=(home.real,))
    assert ghost.exists()


def test_a_resume_in_the_same_minute_is_harmless(home: Home) -> None:
    kept = home.keep()
    again = lines(header(), {"$set": {"messages": [CONTEXT]}})
    restored = lines({"$set": {"messages": [CONTEXT, PROMPT, ANSWER]}})
    home.real.write_bytes(REAL + again + restored)
    assert settle(home.folder, kept) == Aftermath()


def test_a_session_that_vanished_is_put_back(home: Home) -> None:
    sub = home.add(f"{ID}/sub.jsonl", REAL)
    kept = home.keep()
    before = home.files()
    times = home.real.stat().st_mtime_ns
    home.real.unlink()
    sub.unlink()
    sub.parent.rmdir()
    assert set(settle(home.folder, kept).lost) == {home.real, sub}
    assert set(restore(kept)) == {home.real, sub}
    assert home.files() == before
    assert home.real.stat().st_mtime_ns == times
    assert home.real.stat().st_mode & 0o777 == 0o600
    assert restore(kept) == ()


def test_a_file_that_is_there_is_never_replaced(home: Home) -> None:
    kept = home.keep()
    home.real.write_bytes(b"something else\n")
    assert settle(home.folder, kept).changed == (home.real,)
    assert restore(kept) == ()
    assert home.real.read_bytes() == b"something else\n"


def test_the_guard_keeps_and_settles_once(home: Home) -> None:
    environ = {"GEMINI_CLI_HOME": str(home.path.parent)}
    guard = ResumeGuard()
    request = Request(id="r1", argv=("g",), cwd="/", environ={}, about={"resume": ID})
    guard.before(home.folder, request, environ)
    ghost = home.ghost()
    guard.after(home.folder)
    assert aftermath_of(home.folder) == Aftermath(ghosts=(ghost,))
    later = home.ghost()
    guard.after(home.folder)
    assert later.exists()


def test_a_run_that_resumes_nothing_is_left_alone(home: Home) -> None:
    guard = ResumeGuard()
    request = Request(id="r1", argv=("g",), cwd="/", environ={}, about={"resume": None})
    guard.before(home.folder, request, {"GEMINI_CLI_HOME": str(home.path.parent)})
    guard.after(home.folder)
    assert list(home.folder.path.iterdir()) == []


def test_what_an_earlier_run_left_is_put_right_before_the_next(home: Home) -> None:
    home.keep()
    ghost = home.ghost()
    next_run = RunFolder.create(home.folder.path.parent, "r2")
    request = Request(id="r2", argv=("g",), cwd="/", environ={}, about={})
    home.folder.own(Owner(pid=os.getpid(), began=psutil.Process().create_time()))
    ResumeGuard().before(next_run, request, {})
    assert ghost.exists(), "that run still goes on"
    home.folder.finish(Exit(code=0, started=None, ended=None))
    ResumeGuard().before(next_run, request, {})
    assert aftermath_of(home.folder) == Aftermath(ghosts=(ghost,))
    assert not ghost.exists()


def test_a_run_whose_supervisor_was_killed_is_put_right(home: Home) -> None:
    home.keep()
    ghost = home.ghost()
    home.folder.own(Owner(pid=os.getpid(), began=0))
    assert settle_left(home.folder.path.parent) == (home.folder,)
    assert not ghost.exists()
    assert settle_left(home.folder.path.parent) == ()
