"""A session that a run resumes: the copy before, the ghost after, and the way back."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import orjson
import psutil
import pytest

from gemtui.agent.options import AgentOptions
from gemtui.agent.run_folder import Exit, Owner, Request, RunFolder
from gemtui.errors import OptionError
from gemtui.kept.cleanup import Retention
from gemtui.kept.restoring import restore_from_run
from gemtui.kept.resume_guard import ResumeGuard, SessionKeeper, settle_abandoned
from gemtui.kept.run_copies import (
    Aftermath,
    KeptSession,
    aftermath_of,
    backup_of,
    drop_kept,
    keep_before,
    write_newest,
)
from gemtui.kept.vault import keep as vault_keep
from gemtui.runs.adapter import GeminiAdapter

ID = "0a1b2c3d-1111-4222-8333-444455556666"
OTHER = "0a1b2c3d-9999-4222-8333-444455556666"
CONTEXT = {"id": "c", "type": "user", "content": [{"text": "<session_context>\nhere"}]}
PROMPT = {"id": "p", "type": "user", "content": [{"text": "A word?"}]}
ANSWER = {"id": "a", "type": "gemini", "content": "Plum."}


def lines(*objects: object) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in objects)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def header_of(id: str = ID) -> dict[str, str]:
    return {"sessionId": id, "projectHash": "h", "startTime": "2026-01-02T03:04:05.000Z"}


REAL = lines(header_of(), CONTEXT, PROMPT, ANSWER)
GHOST = lines(header_of(), {"$set": {"messages": [CONTEXT]}})


class Home:
    """A store with one session, and the folder of a run that resumes it."""

    def __init__(self, path: Path) -> None:
        self.path = path / ".gemini"
        self.chats = self.path / "tmp/greeter/chats"
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

    def keep(self) -> KeptSession:
        return keep_before(self.folder, self.path, ID)

    def settled(self, kept: KeptSession) -> Aftermath:
        return SessionKeeper(self.folder, kept).close()

    def files(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in self.path.rglob("*") if p.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def put_back(home: Home) -> tuple[Path, ...]:
    """Put back what the run keeps, where the CLI removes nothing for its age."""
    rule, now = Retention(enabled=False), datetime.now(UTC)
    return restore_from_run(home.folder, lambda _: rule, now).paths


def test_a_session_that_only_the_vault_has_starts_no_run(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home.path.parent))
    vault_keep(home.real)
    home.real.unlink()
    with pytest.raises(OptionError, match=f"Restore it first: gemtui vault restore {ID}"):
        GeminiAdapter(cli=tmp_path / "gemini").start("Go", AgentOptions(resume=ID))


def test_every_file_of_the_session_is_copied(home: Home) -> None:
    sub = home.add(f"{ID}/sub.jsonl", REAL)
    old = home.add("session-2026-01-01T03-04-0a1b2c3d.json", b"{}")
    home.add("session-2026-01-01T03-05-0a1b2c3d.jsonl", lines(header_of(OTHER), PROMPT))
    kept = home.keep()
    assert set(kept.files) == {home.real, old, sub}
    for path, copy in kept.files.items():
        assert copy.read_bytes() == path.read_bytes()
        assert copy.parent == home.folder.path
        assert copy.stat().st_mode & 0o777 == 0o600


def test_the_ghost_goes_and_nothing_else(home: Home) -> None:
    other = home.add("session-2026-01-02T03-08-0a1b2c3d.jsonl", lines(header_of(OTHER), CONTEXT))
    early = home.add("session-2026-01-02T03-05-0a1b2c3d.jsonl", GHOST)
    kept = home.keep()
    ghost = home.ghost()
    before = home.files()
    assert home.settled(kept) == Aftermath(ghosts=(ghost,))
    before.pop(str(ghost))
    assert home.files() == before
    assert other.exists()
    assert early.exists()


@pytest.mark.parametrize(
    "content",
    [
        lines(header_of(), CONTEXT, PROMPT),
        lines(header_of(OTHER), {"$set": {"messages": [CONTEXT]}}),
        GHOST + b'{"id": "half',
        GHOST + b"garbage\n",
        lines(header_of(), CONTEXT, PROMPT, {"$set": {"messages": [CONTEXT]}}),
        b"",
    ],
    ids=["prompt", "other id", "torn", "damaged", "failed prompt", "empty"],
)
def test_a_new_file_that_is_no_ghost_stays(home: Home, content: bytes) -> None:
    kept = home.keep()
    path = home.ghost(content)
    assert home.settled(kept) == Aftermath()
    assert path.read_bytes() == content


def test_a_ghost_stays_where_no_other_file_says_anything(home: Home) -> None:
    home.real.write_bytes(GHOST)
    kept = home.keep()
    ghost = home.ghost()
    assert home.settled(kept) == Aftermath()
    assert ghost.exists()


def test_a_resume_in_the_same_minute_is_harmless(home: Home) -> None:
    kept = home.keep()
    again = lines(header_of(), {"$set": {"messages": [CONTEXT]}})
    restored = lines({"$set": {"messages": [CONTEXT, PROMPT, ANSWER]}})
    home.real.write_bytes(REAL + again + restored)
    assert home.settled(kept) == Aftermath()


def test_a_session_that_vanished_is_put_back_and_leaves_no_ghost(home: Home) -> None:
    sub = home.add(f"{ID}/sub.jsonl", REAL)
    kept = home.keep()
    before = home.files()
    times = home.real.stat().st_mtime_ns
    home.real.unlink()
    sub.unlink()
    sub.parent.rmdir()
    ghost = home.ghost()
    found = home.settled(kept)
    assert (found.ghosts, set(found.restored), found.lost) == ((ghost,), {home.real, sub}, ())
    assert home.files() == before
    assert home.real.stat().st_mtime_ns == times
    assert put_back(home) == ()


def test_what_could_not_be_put_back_is_lost(home: Home) -> None:
    kept = home.keep()
    home.real.unlink()
    home.chats.rmdir()
    home.chats.touch()
    found = home.settled(kept)
    assert (found.restored, found.lost) == ((), (home.real,))
    assert str(home.real) in found.problems[0]
    home.chats.unlink()
    assert put_back(home) == (home.real,)
    assert home.real.read_bytes() == REAL


# --- while the run goes on -----------------------------------------------------------------------


MORE = lines({"id": "p2", "type": "user", "content": [{"text": "Which?"}]})
ANSWERED = lines({"id": "a2", "type": "gemini", "content": "Plum again."})


@pytest.fixture
def keeper(home: Home) -> SessionKeeper:
    """A keeper that has looked once."""
    keeper = SessionKeeper(home.folder, home.keep())
    keeper.check()
    return keeper


def states(home: Home) -> dict[Path, bytes]:
    """What the run has of the session's files."""
    kept = backup_of(home.folder)
    assert kept is not None
    return {path: copy.read_bytes() for path, copy in kept.states.items()}


def test_a_ghost_goes_once_the_cli_has_spoken(home: Home, keeper: SessionKeeper) -> None:
    ghost = home.ghost()
    keeper.check()
    assert ghost.exists(), "it may still be written to"
    home.folder.stdout.write_text("{}\n")
    keeper.check()
    assert not ghost.exists()
    home.add("session-2026-01-02T03-10-0a1b2c3d.jsonl", lines(header_of(OTHER), CONTEXT))
    assert keeper.close() == Aftermath(ghosts=(ghost,))


def test_the_ghost_of_a_cli_that_waits_goes_once_it_is_complete(
    home: Home, keeper: SessionKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.folder.write("waiting.json", "{}")
    ghost = home.ghost()
    keeper.check()
    assert ghost.exists(), "it may still be written to"
    monkeypatch.setattr("gemtui.kept.resume_guard._COMPLETE", 0.0)
    keeper.check()
    assert not ghost.exists()
    assert keeper.close() == Aftermath(ghosts=(ghost,))


def test_what_a_run_adds_is_added_to_the_copy(home: Home, keeper: SessionKeeper) -> None:
    append(home.real, MORE)
    assert keeper.close() == Aftermath()
    assert states(home) == {home.real: REAL + MORE}
    assert len(list(home.folder.path.glob("*.jsonl"))) == 1
    home.real.unlink()
    assert put_back(home) == (home.real,)
    assert home.real.read_bytes() == REAL + MORE


def test_a_log_that_began_anew_is_joined(home: Home, keeper: SessionKeeper) -> None:
    home.real.unlink()
    home.real.write_bytes(MORE)
    aftermath = keeper.close()
    assert (aftermath.restored, aftermath.lost, aftermath.changed) == ((home.real,), (), ())
    assert "may be missing" in aftermath.notes(home.folder)[0]
    assert home.real.read_bytes() == REAL + MORE
    assert states(home) == {home.real: REAL + MORE}


def test_a_log_that_the_cli_writes_whole_again_is_the_newest(
    home: Home, keeper: SessionKeeper
) -> None:
    again = lines(header_of(), PROMPT, ANSWER) + MORE
    home.real.write_bytes(again)
    assert keeper.close().changed == (home.real,)
    assert states(home) == {home.real: again}
    kept = backup_of(home.folder)
    assert kept is not None
    assert kept.files[home.real].read_bytes() == REAL
    home.real.unlink()
    assert put_back(home) == (home.real,)
    assert home.real.read_bytes() == again


def test_files_that_come_with_the_run_are_kept_too(home: Home, keeper: SessionKeeper) -> None:
    home.add(f"{ID}/sub.jsonl", REAL)
    home.add("session-2026-01-02T03-11-0a1b2c3d.jsonl", REAL + MORE)
    output = home.chats.parent / f"tool-outputs/session-{ID}/shell_1.txt"
    output.parent.mkdir(parents=True)
    output.write_text("all of it")
    before = home.files()
    assert keeper.close() == Aftermath()
    assert {str(path): data for path, data in states(home).items()} == before


def test_no_state_takes_the_place_of_another(home: Home, keeper: SessionKeeper) -> None:
    first = home.add(f"{ID}/first.jsonl", REAL)
    second = home.add(f"{ID}/second.jsonl", ANSWERED)
    keeper.close()
    kept = backup_of(home.folder)
    assert kept is not None
    kept.newest[first].unlink()
    first.unlink()
    third = home.add(f"{ID}/third.jsonl", REAL + MORE)
    SessionKeeper(home.folder, backup_of(home.folder) or kept).close()
    assert states(home) == {home.real: REAL, second: ANSWERED, third: REAL + MORE}


def test_the_links_of_an_earlier_version_are_read(home: Home) -> None:
    kept = home.keep()
    link = home.folder.path / "now-0.jsonl"
    link.hardlink_to(home.real)
    write_newest(home.folder, {home.real: link}, Aftermath())
    append(home.real, MORE)
    link.with_name("end-now-0.jsonl").write_bytes(REAL + MORE)
    append(home.real, ANSWERED)
    assert states(home) == {home.real: REAL + MORE + ANSWERED}
    home.real.write_bytes(b"")
    assert states(home) == {home.real: REAL + MORE}
    drop_kept(home.folder)
    assert not list(home.folder.path.glob("*.jsonl"))
    assert kept.files


def test_another_session_of_the_same_short_id_is_left_alone(
    home: Home, keeper: SessionKeeper
) -> None:
    other = home.add("session-2026-01-02T03-08-0a1b2c3d.jsonl", lines(header_of(OTHER), PROMPT))
    keeper.check()
    other.unlink()
    assert keeper.close() == Aftermath()
    assert not other.exists()


def test_somebody_else_can_finish_what_a_keeper_began(home: Home, keeper: SessionKeeper) -> None:
    ghost = home.ghost()
    home.folder.stdout.write_text("{}\n")
    keeper.check()
    home.real.unlink()
    home.folder.write_owner(Owner(pid=os.getpid(), began=0))
    assert settle_abandoned(home.folder.path.parent) == (home.folder,)
    assert home.real.read_bytes() == REAL
    assert aftermath_of(home.folder) == Aftermath(ghosts=(ghost,), restored=(home.real,))


def test_a_file_that_is_there_is_never_replaced(home: Home) -> None:
    kept = home.keep()
    home.real.write_bytes(b"something else\n")
    assert home.settled(kept).changed == (home.real,)
    assert put_back(home) == ()
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
    home.folder.write_owner(Owner(pid=os.getpid(), began=psutil.Process().create_time()))
    ResumeGuard().before(next_run, request, {})
    assert ghost.exists(), "that run still goes on"
    home.folder.finish(Exit(code=0, started=None, ended=None))
    ResumeGuard().before(next_run, request, {})
    assert aftermath_of(home.folder) == Aftermath(ghosts=(ghost,))
    assert not ghost.exists()


def test_a_run_whose_supervisor_was_killed_is_put_right(home: Home) -> None:
    home.keep()
    ghost = home.ghost()
    home.folder.write_owner(Owner(pid=os.getpid(), began=0))
    assert settle_abandoned(home.folder.path.parent) == (home.folder,)
    assert not ghost.exists()
    assert settle_abandoned(home.folder.path.parent) == ()
