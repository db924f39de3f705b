"""Whatever the file system refuses, and whenever: nothing is raised, nothing vanishes unnamed."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest

from gemtui.errors import GemtuiError
from gemtui.kept.deletion import plan_deletion
from gemtui.runs.call_history import recorded_calls
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store import watch as watching
from gemtui.sessions.store.typed_prompts import typed_prompts
from gemtui.sessions.store.watch import network_file_system
from gemtui.ui.sessions.session_loader import SessionLoader
from tests.sessions import logs
from tests.sessions.faults import Faults, injected
from tests.sessions.stores import hashed, legacy, load, marker, session, talk, uuid

REFUSALS = [errno.EACCES, errno.EIO, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE]
GONE = [errno.ENOENT, errno.ENOTDIR]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with everything that a look meets: a link, a subagent, a checkpoint, a marker."""
    home = tmp_path / ".gemini"
    chats = session(home, uuid(1), key="marked").parent
    logs.write(chats / uuid(1) / "agent.jsonl", [logs.header("agent", kind="subagent")])
    marker(home, "marked", "/srv/marked")
    session(home, uuid(2), key="plain")
    legacy(home, uuid(3), talk(uuid(3))[1:-1], key=hashed("/srv/legacy"))
    (home / "tmp" / "plain" / "checkpoint-mine.json").write_text(
        '{"history": [{"role": "user", "parts": [{"text": "Hello"}]}]}'
    )
    session(tmp_path / "elsewhere", uuid(4), key="linked")
    (home / "tmp" / "linked").symlink_to(tmp_path / "elsewhere" / "tmp" / "linked")
    (home / "projects.json").write_text('{"projects": {"/srv/plain": "plain"}}')
    return home


def started(home: Path) -> Snapshot:
    return load(Index(home, cache=None))


def first_rows(home: Path) -> Snapshot:
    return Index(home, cache=None).quick(project=None, limit=40)


Look = Callable[[Index, Iterable[Path]], Snapshot]


def whole(index: Index, paths: Iterable[Path]) -> Snapshot:
    return index.update([index.home / "tmp"])


def files(index: Index, paths: Iterable[Path]) -> Snapshot:
    return index.update(paths)


def nothing_is_lost(before: Snapshot, found: Snapshot) -> None:
    """Every file is listed, or it is named, or something above it."""
    listed = {path for each in found.sessions for path in each.files}
    named = {each.path for each in found.unreadable}
    for path in (path for each in before.sessions for path in each.files):
        assert path in listed or named & {path, *path.parents}, f"{path} vanished"


def each_call(faults: Faults, most: int = 10_000) -> Iterator[int]:
    """One call after the other fails, each with another error, until there are no more calls."""
    for number in range(1, most):
        faults.fail_at(number, REFUSALS[number % len(REFUSALS)])
        yield number
        if not faults.hit:
            return


@pytest.mark.parametrize("look", [started, first_rows])
def test_any_one_failure_of_a_start(
    look: Callable[[Path], Snapshot], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = look(home)
    assert len(before.sessions) >= 1
    with injected(monkeypatch) as faults:
        found = [look(home) for _ in each_call(faults)]
    assert len(found) > 20
    for each in found:
        nothing_is_lost(before, each)


@pytest.mark.parametrize("look", [whole, files])
def test_any_one_failure_of_a_change(
    look: Look, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = started(home)
    paths = [path for each in before.sessions for path in each.files]
    for number in count(1):
        index = Index(home, cache=None)
        load(index)
        with injected(monkeypatch) as faults:
            faults.fail_at(number, REFUSALS[number % len(REFUSALS)])
            nothing_is_lost(before, look(index, paths))
        again = {each.id for each in whole(index, paths).sessions}
        assert again == {each.id for each in before.sessions}
        index.close()
        if not faults.hit:
            break
    assert number > 5


@pytest.mark.parametrize("error", [*REFUSALS, *GONE])
@pytest.mark.parametrize("look", [whole, files])
def test_places_that_stay_closed(
    look: Look, error: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One place after the other, with all below it: the other sessions are listed all the time."""
    before = started(home)
    paths = [path for each in before.sessions for path in each.files]
    places = {place for path in paths for place in (path, *path.parents[:3]) if place != home}
    for place in sorted(places - {home / "tmp"}):
        index = Index(home, cache=None)
        load(index)
        with injected(monkeypatch) as faults:
            faults.fail_below(place, error)
            found = look(index, paths)
        others = {path for path in paths if not path.is_relative_to(place)}
        assert others <= {path for each in found.sessions for path in each.files}
        if error in REFUSALS:
            nothing_is_lost(before, found)
            assert found.unreadable
        index.close()


def test_reading_one_session_fails_with_what_is_documented(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(
        home, uuid(9), [*talk(uuid(9)), logs.gemini("g", "", toolCalls=[logs.call("c")])]
    )
    sessions = sessions_with_calls(started(home))
    with injected(monkeypatch) as faults:
        for _ in each_call(faults):
            reader = SessionLoader(path)
            try:
                reader.read_first()
                reader.rest()
            except (GemtuiError, OSError):
                assert faults.hit
            reader.close()
        for _ in each_call(faults, 30):
            assert sum(step.problem is not None for step in recorded_calls(sessions)) <= 1
        for _ in each_call(faults, 60):
            try:
                found = Index(home, cache=None).find(uuid(9))
            except (GemtuiError, OSError):
                continue
            try:
                plan_deletion(found, home)
            except GemtuiError:
                continue


def test_a_body_that_can_not_be_read_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = session(home, uuid(9))
    with injected(monkeypatch) as faults, SessionLog(path) as log:
        log.refresh()
        transcript = transcript_of(log)
        faults.fail_below(path, errno.EIO)
        assert all("can't be read any more" in str(message.blocks) for message in transcript)


def test_watching_looks_on_whatever_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with injected(monkeypatch) as faults:
        for _ in each_call(faults):
            watching._look(home)
            watching._nearest(home / "tmp")
            network_file_system(home / "tmp")


def test_prompts_in_a_closed_store_are_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with injected(monkeypatch) as faults:
        faults.fail_below(home, errno.EACCES)
        assert typed_prompts(home, uuid(1)) == []


def test_the_closed_folder_of_another_agent_closes_no_store(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "GEMINI_CLI_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with injected(monkeypatch) as faults:
        faults.fail_below(tmp_path / ".claude", errno.EACCES)
        assert started(home).sessions
