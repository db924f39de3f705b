"""The newest sessions are those of a whole look, and few files are read for them."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing, suppress
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import pytest

from gemtui.sessions.catalog import index as of_all
from gemtui.sessions.catalog.cache import FILE
from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.newest import NewestSessions, SessionLine, Unsure
from gemtui.sessions.catalog.selection import latest_update, listed_sessions
from gemtui.sessions.catalog.stored_file import StoredFile
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.store.store import ChatFile
from tests.sessions import logs, stores

ADA, BOB = Path("/home/ada/parser"), Path("/home/bob")
KEYS = ("ada", "bob", stores.hashed(str(ADA)))
MANY = 60


@pytest.fixture
def store(home: Path) -> Path:
    """Copies, ghosts, subagents, checkpoints, ids that two projects have, files out of order.

    And folders named by a hash, whose path only sessions name that lists hide, or none does.
    """
    gemini, chosen = home / ".gemini", random.Random(5)
    stores.marker(gemini, "ada", str(ADA))
    stores.marker(gemini, "bob", str(BOB))
    for number in range(MANY):
        id, key = stores.uuid(number), chosen.choice(KEYS)
        hash = stores.hashed(str(BOB if key == "bob" else ADA))
        talk = stores.talk(id, seconds=chosen.randrange(40))
        talk[0] = logs.header(id, projectHash=hash)
        path = stores.session(gemini, id, talk[: chosen.choice((1, 2, 9))], key=key)
        if number % 6 == 0:
            said = [logs.user("u", "copied")]
            stores.legacy(gemini, id, said, key=chosen.choice(KEYS), seconds=chosen.randrange(60))
        if number % 10 == 0:
            child = [logs.header(f"child{number}", kind="subagent"), logs.user("u", "asked")]
            stores.set_time(logs.write(path.parent / id / f"child{number}.jsonl", child), 9e8)
        if number % 30 == 0:
            logs.write(gemini / "tmp" / key / f"checkpoint-{number}.json", [])
        stores.set_time(path, stores.LONG_AGO + chosen.randrange(9**9))
    (gemini / "tmp/ada/chats/session-2026-11-20T23-04-broken.jsonl").write_text("none")
    for number, root in enumerate(("/src/named", "/src/written", "/src/unknown"), MANY + 10):
        id = stores.uuid(number)
        stores.session(gemini, id, stores.talk(id, seconds=number), key=stores.hashed(root))
    names = logs.header(stores.uuid(MANY + 20), directories=["/src/named"])
    stores.session(gemini, stores.uuid(MANY + 20), [names], key="ada")
    call = logs.call("c", name="write_file", args={"file_path": "/src/written/pkg/a.py"})
    child = [logs.header("writer", kind="subagent"), logs.gemini("m", "", toolCalls=[call])]
    chats = gemini / "tmp" / stores.hashed("/src/written") / "chats"
    stores.set_time(logs.write(chats / stores.uuid(MANY + 11) / "writer.jsonl", child), 9e8)
    return gemini


def shown(each: Summary | SessionLine) -> Any:
    """The JSON value of a session, or of its line."""
    return each.to_dict(files=False) if isinstance(each, Summary) else orjson.loads(each.text)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("project", [None, ADA, BOB, Path("/nowhere")])
def test_the_newest_and_the_lines_are_those_of_a_whole_look(
    store: Path, tmp_path: Path, project: Path | None, hidden: bool
) -> None:
    for change in range(3):
        whole = stores.read(store)
        with closing(Index(store, cache=tmp_path / "cache")) as index:
            newest = NewestSessions(index)
            lines = list(map(shown, newest.lines(project=project, hidden=hidden)))
            found = list(newest.listed(project=project, hidden=hidden))
            assert found == list(listed_sessions(whole, project=project, hidden=hidden))
            assert lines == list(map(shown, found))
            ids = {each.id for each in whole.sessions}
            assert newest.ids_like({id[:1] for id in ids}) == ids
            assert newest.unreadable == len(whole.unreadable)
            assert set(newest.problems()) == set(whole.unreadable)
            every = listed_sessions(stores.read(store), project=None, hidden=True)
            assert set(newest.stored()) == set(map(StoredFile.of, every))
        stores.session(store, stores.uuid(change), stores.talk("new", seconds=90), key="bob")
        (store / f"tmp/ada/chats/session-2026-11-20T23-04-{change}.jsonl").write_text("none")
        gone, grown, *_ = sorted((store / "tmp/ada/chats").glob("*[0-9a-f].jsonl"))
        gone.unlink()
        with grown.open("ab") as file:
            file.write(orjson.dumps(logs.user("late", "more", seconds=70 + change)) + b"\n")


def test_few_files_are_read_for_the_newest(store: Path, tmp_path: Path) -> None:
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        NewestSessions(index)
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        newest = NewestSessions(index)
        assert len(list(islice(newest.listed(project=None, hidden=False), 5))) == 5
        assert len(index.known()) < MANY
    next(store.glob("tmp/bob/chats/*.jsonl")).unlink()
    stores.session(store, stores.uuid(MANY), stores.talk("new"), key="bob")
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        cache = index.complete_cache()
        assert cache is not None
        assert len(cache.sessions()) > MANY
        assert len(index.known()) == 1


def test_cached_lines_are_used_while_file_and_project_are_the_same(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> tuple[list[Any], int]:
        with closing(Index(store, cache=tmp_path / "cache")) as index:
            newest = NewestSessions(index)
            lines = list(map(shown, newest.lines(project=None, hidden=False)))
            return lines, len(index.known())

    def whole() -> list[Any]:
        return list(map(shown, listed_sessions(stores.read(store), project=None, hidden=False)))

    projects = {each["project"] for each in whole()}
    assert {"/src/named", "/src/written", None} < projects
    assert read()[0] == whole()
    lines, before = read()
    assert lines == whole()
    assert before < MANY  # only those with copies
    changed = next(store.glob("tmp/bob/chats/*[0-9a-f].jsonl"))
    with changed.open("ab") as file:
        file.write(orjson.dumps(logs.user("late", "more")) + b"\n")
    lines, count = read()
    assert lines == whole()
    assert count <= before + 1
    last = datetime.fromisoformat(lines[0]["updated"])
    stores.set_time(Path(lines[0]["files"][0]), last.timestamp() + 1)
    assert read()[0][0]["flags"] == []
    monkeypatch.setattr(time, "time", lambda: last.timestamp() + 30)
    monkeypatch.setattr(of_all, "_now", lambda: last + timedelta(seconds=30))
    assert read()[0][0]["flags"] == ["live"]
    stores.marker(store, "bob", "/home/robert")
    lines, _ = read()
    assert lines == whole()
    assert any(each["project"] == "/home/robert" for each in lines)


@pytest.mark.parametrize(
    "harm",
    [
        "summary set data = x'95'",
        "summary set stamp = 'text'",
        "summary set json = null",
        "summary set time = time + 1",
        "summary set checksum = 1",
        "listing set files = 'text'",
        "listing set sessions = x'95'",
        "listing set sessions = json",
        "listing set json = 'text'",
    ],
)
def test_a_damaged_cache_is_made_anew_and_the_newest_are_the_same(
    harm: str, store: Path, tmp_path: Path
) -> None:
    expected = list(listed_sessions(stores.read(store), project=None, hidden=False))
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        list(NewestSessions(index).lines(project=None, hidden=False))
    with closing(sqlite3.connect(tmp_path / "cache" / FILE)) as database, database:
        database.execute(f"update {harm}")
    for _ in range(2):
        with closing(Index(store, cache=tmp_path / "cache")) as index, suppress(Unsure):
            lines = list(NewestSessions(index).lines(project=None, hidden=False))
            assert list(map(shown, lines)) == list(map(shown, expected))
            assert list(NewestSessions(index).listed(project=None, hidden=False)) == expected
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        newest = NewestSessions(index)
        assert list(newest.listed(project=None, hidden=False)) == expected
        assert list(map(shown, newest.lines(project=None, hidden=False))) == list(map(shown, lines))


@pytest.mark.parametrize("project", [None, ADA, BOB, Path("/nowhere")])
def test_the_sessions_that_count_are_those_of_a_whole_look(
    store: Path, tmp_path: Path, project: Path | None
) -> None:
    with closing(Index(store, cache=None)) as index:
        whole = counted_sessions(of_all.read_store(index, project=project).sessions, project)
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        counted = NewestSessions(index).counted(project)
    assert sorted(counted) == sorted(whole)
    assert bool(counted) is (project != Path("/nowhere"))


@pytest.mark.parametrize("harm", ["", "summary set time = time + 1", "summary set kind = 'text'"])
def test_the_latest_session_is_found_in_the_cache_and_among_what_has_changed(
    harm: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Index(store, cache=tmp_path / "cache")) as index:
        stores.load(index)
    if harm:
        with closing(sqlite3.connect(tmp_path / "cache" / FILE)) as database, database:
            database.execute(f"update {harm}")
    changed = next(store.glob("tmp/bob/chats/*.jsonl"))
    looked: list[str] = []

    def at_file(place: ChatFile) -> float:
        looked.append(place.name)
        return latest_update(place)

    monkeypatch.setattr(of_all, "latest_update", at_file)
    for look in range(2):
        with closing(Index(store, cache=None)) as index:
            expected = index.find("latest")
        looked.clear()
        with closing(Index(store, cache=tmp_path / "cache")) as index:
            assert index.find("latest") == expected
        assert harm or looked == [str(changed)] * look
        stores.append(changed, logs.user("later", "More", 10**6))


def test_a_subagent_at_work_needs_a_whole_look(home: Path) -> None:
    gemini = home / ".gemini"
    path = stores.session(gemini, stores.uuid(1))
    logs.write(path.parent / stores.uuid(1) / "child.jsonl", [logs.header("child")])
    with closing(Index(gemini, cache=None)) as index, pytest.raises(Unsure):
        NewestSessions(index)
