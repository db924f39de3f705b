"""The index: newest first, then everything, then every change."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.sessions.catalog.catalog import Catalog, Snapshot
from gemtui.sessions.catalog.index import LOGS, Index
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.store.projects import Projects
from gemtui.sessions.store.store import StoreState
from tests.patience import PATIENCE
from tests.sessions import logs
from tests.sessions.stores import (
    LONG_AGO,
    append,
    hashed,
    legacy,
    load,
    marker,
    only,
    read,
    session,
    set_time,
    talk,
    uuid,
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    index = Index(tmp_path, cache=None)
    yield index
    index.close()


def aged(path: Path, minutes: float) -> Path:
    """A file that was changed so many minutes after LONG_AGO."""
    set_time(path, LONG_AGO + 60 * minutes)
    return path


def fill(home: Path, count: int, *, key: str = "proj") -> list[str]:
    """So many sessions, the newest last; their ids."""
    ids = [uuid(number) for number in range(count)]
    for number, id in enumerate(ids):
        aged(session(home, id, talk(id, f"Prompt {number}", seconds=number), key=key), number)
    return ids


# --- the first rows ------------------------------------------------------------------------------


def test_quick_gives_the_newest(index: Index, tmp_path: Path) -> None:
    ids = fill(tmp_path, 9)
    found = index.quick(project=None, limit=3)
    assert [each.id for each in found.sessions] == ids[:5:-1]
    assert (found.done, found.total, found.complete) == (3, 9, False)


def test_quick_looks_further_where_the_newest_are_hidden(index: Index, tmp_path: Path) -> None:
    ids = fill(tmp_path, 4)
    for number in range(4, 8):
        empty = [logs.header(uuid(number)), logs.context()]
        aged(session(tmp_path, uuid(number), empty), number)
    shown = [each.id for each in index.quick(project=None, limit=4).sessions if not each.hidden]
    assert shown == ids[::-1]


def test_quick_of_one_project(index: Index, tmp_path: Path) -> None:
    mine = str(tmp_path / "mine")
    marker(tmp_path, "slug", mine)
    aged(session(tmp_path, uuid(1), key="slug"), 1)
    aged(session(tmp_path, uuid(2), key=hashed(mine)), 2)
    aged(session(tmp_path, uuid(3), key="other"), 3)
    found = index.quick(project=Path(mine), limit=9)
    assert {each.id: each.project for each in found.sessions} == {uuid(1): mine, uuid(2): mine}


def test_quick_in_a_folder_without_sessions_reads_those_of_all(
    index: Index, tmp_path: Path
) -> None:
    session(tmp_path, uuid(1), key="other")
    assert only(index.quick(project=tmp_path / "mine", limit=9)).id == uuid(1)


def test_quick_reads_only_the_head_of_a_large_file(index: Index, tmp_path: Path) -> None:
    long = [logs.gemini(f"long{number}", "x" * 50_000) for number in range(5)]
    large = [*talk(uuid(1), turns=3), *long, logs.user("u9", "Last")]
    path = aged(session(tmp_path, uuid(1), large), 7)
    found = only(index.quick(project=None, limit=9))
    assert (found.title, found.partial, found.prompts) == ("Hello", True, 3)
    assert found.when == datetime.fromtimestamp(LONG_AGO + 7 * 60, UTC)
    assert found.size == path.stat().st_size
    whole = only(load(index))
    assert (whole.partial, whole.prompts) == (False, 4)


# --- everything ----------------------------------------------------------------------------------


def test_load_publishes_and_ends_complete(index: Index, tmp_path: Path) -> None:
    fill(tmp_path, 5)
    published: list[Snapshot] = []
    found = index.load(publish=published.append, cancelled=lambda: False)
    assert (found.done, found.total, found.complete) == (5, 5, True)
    assert published[0].total == 5
    assert not published[0].complete
    assert found.state is StoreState.OK


def test_load_can_be_cancelled_and_taken_up_again(index: Index, tmp_path: Path) -> None:
    fill(tmp_path, 5)
    asked = iter(range(99))
    found = index.load(publish=lambda _: None, cancelled=lambda: next(asked) > 6)
    assert 0 < found.done < 5
    assert not found.complete
    assert load(index).complete


def test_what_can_not_be_read_is_said_and_hides_nothing(index: Index, tmp_path: Path) -> None:
    good = session(tmp_path, uuid(1))
    bad = session(tmp_path, uuid(2), [])
    worse = session(tmp_path, uuid(3), [[1, 2], "no session"])
    (good.parent / "session-binary.jsonl").write_bytes(bytes(range(256)))
    torn = session(tmp_path, uuid(4))
    torn.write_bytes(torn.read_bytes() + b'{"id": "half')
    broken = session(tmp_path, uuid(5))
    broken.write_bytes(broken.read_bytes() + b"not json\n")
    found = load(index)
    assert {each.id: each.problems for each in found.sessions} == {
        uuid(1): 0,
        uuid(4): 0,
        uuid(5): 1,
    }
    whats = {problem.path: problem.what for problem in found.unreadable}
    assert whats.keys() == {bad, worse, good.parent / "session-binary.jsonl"}
    assert whats[bad] == "is empty"
    assert (found.done, found.total, found.complete) == (6, 6, True)
    assert {Flag.TORN} == {f for each in found.sessions for f in each.flags} - {Flag.LIVE}


def test_a_store_that_comes_later(index: Index, tmp_path: Path) -> None:
    assert load(index).state is StoreState.MISSING
    (tmp_path / "tmp").mkdir()
    assert index.update([tmp_path / "tmp"]).state is StoreState.EMPTY
    path = session(tmp_path, uuid(1))
    assert only(index.update([path])).id == uuid(1)
    shutil.rmtree(tmp_path / "tmp")
    gone = index.update([tmp_path / "tmp"])
    assert (gone.state, gone.sessions, gone.total) == (StoreState.MISSING, (), 0)


# --- changes -------------------------------------------------------------------------------------


def spoil(path: Path) -> None:
    """Overwrite the middle of a file where it stands, so that a second reading would show it."""
    with path.open("r+b") as file:
        file.seek(40)
        file.write(b"#" * (path.stat().st_size - 140))


def test_only_new_bytes_of_a_log_are_read(index: Index, tmp_path: Path) -> None:
    path = session(tmp_path, uuid(1), talk(uuid(1), turns=2))
    load(index)
    append(path, logs.user("n1", "New"))
    assert only(index.update([path])).prompts == 3
    spoil(path)
    append(path, logs.user("n2", "Newer"))
    assert only(index.update([path])).prompts == 4
    assert only(read(tmp_path)).problems > 0


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_many_growing_logs_do_not_stay_open(index: Index, tmp_path: Path) -> None:
    paths = [session(tmp_path, uuid(number)) for number in range(LOGS + 5)]
    before = open_files()
    index.update(paths)
    assert open_files() <= before + LOGS
    for path in paths:
        append(path, logs.user("n", "New"))
    assert {each.prompts for each in index.update(paths).sessions} == {2}


def test_sessions_that_did_not_change_stay_the_same_objects(index: Index, tmp_path: Path) -> None:
    fill(tmp_path, 3)
    before = {each.id: each for each in load(index).sessions}
    path = before[uuid(1)].path
    append(path, logs.user("n", "New"), {"$set": {"lastUpdated": logs.at(90)}})
    after = index.update([path]).sessions
    assert after[0].id == uuid(1)
    assert [each for each in after if each is before[each.id]] == [*after[1:]]
    assert index.update([tmp_path / "tmp"]).sessions[1] is after[1]


def test_a_deleted_session_goes(index: Index, tmp_path: Path) -> None:
    fill(tmp_path, 3)
    path = load(index).sessions[0].path
    path.unlink()
    found = index.update([path])
    assert [each.id for each in found.sessions] == [uuid(1), uuid(0)]
    assert (found.done, found.total) == (2, 2)


def test_when_the_file_in_use_goes_a_copy_takes_its_place(index: Index, tmp_path: Path) -> None:
    new = session(tmp_path, uuid(1), talk(uuid(1), seconds=9))
    old = legacy(tmp_path, uuid(1), talk(uuid(1))[1:-1], key="proj")
    assert only(load(index)).path == new
    new.unlink()
    assert only(index.update([new])).files == (old,)


def test_a_new_folder_with_sessions(index: Index, tmp_path: Path) -> None:
    fill(tmp_path, 1)
    load(index)
    session(tmp_path, uuid(7), key="fresh")
    marker(tmp_path, "fresh", "/srv/fresh")
    found = {each.id: each.project for each in index.update([tmp_path / "tmp" / "fresh"]).sessions}
    assert found == {uuid(0): None, uuid(7): "/srv/fresh"}


def test_a_registry_that_learns_a_project(index: Index, tmp_path: Path) -> None:
    session(tmp_path, uuid(1), key=hashed("/srv/a"))
    session(tmp_path, uuid(2), key="b")
    assert {each.project for each in load(index).sessions} == {None}
    registry = tmp_path / "projects.json"
    registry.write_text('{"projects": {"/srv/a": "a", "/srv/b": "b"}}')
    assert {each.project for each in index.update([registry]).sessions} == {"/srv/a", "/srv/b"}


def test_a_legacy_file_that_is_being_rewritten_stays_as_it_was(
    index: Index, tmp_path: Path
) -> None:
    path = legacy(tmp_path, uuid(1), talk(uuid(1), turns=2)[1:-1], key="proj")
    assert only(load(index)).prompts == 2
    whole = path.read_bytes()
    path.write_bytes(whole[:30])
    found = index.update([path])
    assert only(found).prompts == 2
    assert found.complete
    path.write_bytes(whole.replace(b"Hello", b"Howdy"))
    assert only(index.update([path])).title == "Howdy"


def test_a_file_whose_session_changes_its_id(index: Index, tmp_path: Path) -> None:
    path = session(tmp_path, uuid(1))
    load(index)
    append(path, {"$set": {"sessionId": uuid(2)}})
    assert only(index.update([path])).id == uuid(2)


def test_odd_paths_change_nothing(index: Index, tmp_path: Path) -> None:
    fill(tmp_path, 2)
    before = load(index)
    odd = [tmp_path / "tmp" / "proj" / "logs.json", tmp_path / "x" / "y", Path("/")]
    assert index.update(odd).sessions == before.sessions


def test_update_while_load_runs(index: Index, tmp_path: Path) -> None:
    """A session may grow while all others are still being read."""
    fill(tmp_path, 40)
    path = session(tmp_path, uuid(99), key="late")
    halfway, updated = threading.Event(), threading.Event()
    asked = iter(range(10_000))

    def cancelled() -> bool:
        if next(asked) == 20:
            halfway.set()
            assert updated.wait(PATIENCE)
        return False

    def grow() -> None:
        assert halfway.wait(PATIENCE)
        append(path, logs.user("n", "New"))
        index.update([path])
        updated.set()

    other = threading.Thread(target=grow)
    other.start()
    found = index.load(publish=lambda _: None, cancelled=cancelled)
    other.join()
    assert found.complete
    assert len(found.sessions) == 41
    assert {each.id: each.prompts for each in found.sessions}[uuid(99)] == 2


# --- live ----------------------------------------------------------------------------------------


def test_a_session_is_live_for_a_minute(tmp_path: Path) -> None:
    said = datetime.fromtimestamp(LONG_AGO, UTC).isoformat()
    aged(session(tmp_path, uuid(1), [*talk(uuid(1)), {"$set": {"lastUpdated": said}}]), 0)
    catalog = Catalog(Projects(tmp_path))
    catalog.put((0, 0, 0), only(read(tmp_path)))
    for seconds, live in ((0, True), (59, True), (60, False)):
        (found,) = catalog.sessions(datetime.fromtimestamp(LONG_AGO + seconds, UTC))
        assert (Flag.LIVE in found.flags) is live


def test_an_answer_that_says_nothing_waits_for_its_tools(tmp_path: Path) -> None:
    records = [logs.header(uuid(1)), logs.context(), logs.user("u", "Hi")]
    ended = logs.gemini("g", "", toolCalls=[logs.call("c")])
    told = logs.gemini("g", "I look.")
    for more, waits in (([logs.gemini("g", "")], True), ([ended], False), ([told], False)):
        session(tmp_path, uuid(1), [*records, *more])
        assert only(read(tmp_path)).waits is waits


@pytest.mark.parametrize(("updated", "busy"), [(20, True), (40, False)])
def test_a_session_is_live_and_waits_while_a_subagent_of_it_is_at_work(
    tmp_path: Path, updated: float, busy: bool
) -> None:
    aged(session(tmp_path, uuid(1), talk(uuid(1), seconds=updated)), -60)
    start = logs.header(uuid(2)) | {"startTime": logs.at(30), "kind": "subagent"}
    said = {"$set": {"lastUpdated": datetime.fromtimestamp(LONG_AGO, UTC).isoformat()}}
    place = tmp_path / "tmp" / "proj" / "chats" / uuid(1) / f"{uuid(2)}.jsonl"
    aged(logs.write(place, [start, logs.user("u", "Find it"), said]), 0)
    catalog = Catalog(Projects(tmp_path))
    for number, each in enumerate(read(tmp_path).sessions):
        catalog.put((number, 0, 0), each)
    for seconds, live in ((59, busy), (60, False)):
        now = datetime.fromtimestamp(LONG_AGO + seconds, UTC)
        found = next(each for each in catalog.sessions(now) if each.id == uuid(1))
        assert (found.waits, Flag.LIVE in found.flags) == (live, live)


def test_a_file_that_is_too_large_is_not_read_again_while_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(tmp_path, uuid(1), talk(uuid(1), turns=20))
    monkeypatch.setattr("gemtui.sessions.read.session_log.HELD_LIMIT", 10)
    index = Index(tmp_path, cache=None)
    assert len(load(index).unreadable) == 1
    monkeypatch.setattr("gemtui.sessions.read.session_log.HELD_LIMIT", 1000)
    with path.open("ab") as log:
        log.write(b"{}\n" * 10)
    for changed in (path, tmp_path / "tmp"):
        found = index.update([changed])
        assert (found.sessions, len(found.unreadable)) == ((), 1)
    logs.write(path, talk(uuid(1)))
    found = index.update([path])
    assert (len(found.sessions), found.unreadable) == (1, ())


def test_an_update_that_is_cancelled_reads_no_more(tmp_path: Path) -> None:
    first = session(tmp_path, uuid(1))
    index = Index(tmp_path, cache=None)
    before = load(index).sessions
    session(tmp_path, uuid(2))
    append(first, logs.user("more", "More"))
    for changed in (tmp_path / "tmp", first):
        assert index.update([changed], cancelled=lambda: True).sessions == before
    found = index.update([tmp_path / "tmp", first])
    assert {each.id: each.prompts for each in found.sessions} == {uuid(1): 2, uuid(2): 1}
    index.close()


def test_a_session_whose_head_alone_can_be_read_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path, uuid(1), talk(uuid(1), turns=1500))
    session(tmp_path, uuid(2))
    monkeypatch.setattr("gemtui.sessions.read.session_log.HELD_LIMIT", 1000)
    index = Index(tmp_path, cache=None)
    assert len(index.quick(project=None, limit=9).sessions) == 2
    found = load(index)
    assert ([each.id for each in found.sessions], found.complete) == ([uuid(2)], True)
    assert len(found.unreadable) == 1
