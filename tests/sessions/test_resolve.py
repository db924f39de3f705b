"""Which session an id, a prefix, a path or "latest" means."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gemtui import list_sessions, load_session
from gemtui.errors import NotASession, SessionAmbiguous, SessionNotFound, StoreUnreadable
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Summary
from tests.rows import each_row, table
from tests.sessions import logs
from tests.sessions.stores import (
    DATA,
    LONG_AGO,
    MAIN,
    hashed,
    legacy,
    load,
    marker,
    session,
    set_time,
    talk,
    uuid,
)


def find(home: Path, wanted: str, project: Path | None = None) -> Summary:
    return Index(home, cache=None).find(wanted, project=project)


@each_row("wanted, id", table("session_files/resolve.json"))
def test_recorded_sessions(wanted: str, id: str) -> None:
    assert find(MAIN, wanted).id.startswith(id)


def test_a_session_is_found_with_all_its_copies() -> None:
    found = find(MAIN, "27523a93")
    assert len(found.files) == 2
    assert found.project == "/home/dev/work/inventory"


def test_a_ghost_is_not_found_in_place_of_its_session() -> None:
    assert find(MAIN, "cc1b3512").prompts == 2
    assert find(MAIN, "latest", Path("/home/dev/notes")).id.startswith("63a18d40")


def test_an_ambiguous_prefix_names_the_candidates_newest_first(tmp_path: Path) -> None:
    for number in (0xA1, 0xA2, 0xA3):
        session(tmp_path, uuid(number), talk(uuid(number), seconds=number))
    with pytest.raises(SessionAmbiguous) as caught:
        find(tmp_path, "000000a")
    assert caught.value.candidates == (uuid(0xA3), uuid(0xA2), uuid(0xA1))
    assert "000000a" in str(caught.value)


def test_hidden_sessions_do_not_make_a_prefix_ambiguous(tmp_path: Path) -> None:
    session(tmp_path, uuid(0xA1))
    session(tmp_path, uuid(0xA2), [logs.header(uuid(0xA2)), logs.context()])
    assert find(tmp_path, "000000a").id == uuid(0xA1)
    assert find(tmp_path, uuid(0xA2)).hidden


def test_a_full_id_is_never_ambiguous(tmp_path: Path) -> None:
    session(tmp_path, "my-run-1")
    session(tmp_path, "my-run-12", minute="2026-11-20T23-05")
    assert find(tmp_path, "my-run-1").id == "my-run-1"
    assert find(tmp_path, "my-run-12").id == "my-run-12"


def test_of_two_projects_with_the_same_id_the_project_decides(tmp_path: Path) -> None:
    paths = []
    for name in ("a", "b"):
        marker(tmp_path, name, f"/srv/{name}")
        records = talk("nightly", seconds=9 if name == "b" else 5)
        records[0] |= {"projectHash": hashed(f"/srv/{name}")}
        paths.append(session(tmp_path, "nightly", records, key=name))
    assert find(tmp_path, "nightly", Path("/srv/a")).path == paths[0]
    assert find(tmp_path, "night", Path("/srv/b")).path == paths[1]
    with pytest.raises(SessionAmbiguous, match="2 projects have a session nightly") as caught:
        find(tmp_path, "nightly")
    assert caught.value.candidates == (str(paths[1]), str(paths[0]))
    assert [find(tmp_path, each).path for each in caught.value.candidates] == paths[::-1]
    session(tmp_path, "nightly-2", key="a", minute="2026-11-20T23-06")
    with pytest.raises(SessionAmbiguous, match="starts with night") as caught:
        find(tmp_path, "night")
    assert set(caught.value.candidates) == {*map(str, paths), "nightly-2"}


def test_a_renamed_file_is_found_by_the_id_inside(tmp_path: Path) -> None:
    path = session(tmp_path, uuid(1))
    renamed = path.rename(path.with_name("session-2026-11-20T23-04-mine.jsonl"))
    assert find(tmp_path, uuid(1)).path == renamed


@pytest.mark.parametrize("wanted", ["feedbeef", "", " ", "*", "session"])
def test_an_unknown_id(wanted: str) -> None:
    with pytest.raises(SessionNotFound) as caught:
        find(MAIN, wanted)
    assert MAIN / "tmp" / "greeter" / "chats" in caught.value.searched


def test_only_the_files_that_may_fit_are_read(tmp_path: Path) -> None:
    session(tmp_path, uuid(1))
    other = session(tmp_path, uuid(2 << 28))
    index = Index(tmp_path, cache=None)
    index.find(uuid(1))
    other.write_bytes(b"")
    assert index.quick(project=None, limit=0).done == 1


# --- latest --------------------------------------------------------------------------------------


def test_latest_is_by_last_update_not_by_the_files_time(tmp_path: Path) -> None:
    """A migration copies old sessions into new files."""
    for number in range(20):
        path = session(tmp_path, uuid(number), talk(uuid(number), seconds=100 - number))
        set_time(path, logs.START.timestamp() + 1000 + number)
    assert find(tmp_path, "latest").id == uuid(0)


@pytest.mark.parametrize("form", ["jsonl", "json"])
@pytest.mark.parametrize("cached", [False, True])
def test_latest_may_be_a_backup_that_was_put_back(form: str, cached: bool, tmp_path: Path) -> None:
    """With the time of the backup, however old that is."""
    for number in range(20):
        path = session(tmp_path, uuid(number), talk(uuid(number), seconds=number))
        set_time(path, logs.START.timestamp() + number)
    if form == "json":
        back = legacy(tmp_path, uuid(99), talk(uuid(99), "x" * 9999)[1:-1], key="b", seconds=90)
    else:
        back = session(tmp_path, uuid(99), talk(uuid(99), "x" * 9999, seconds=90), key="b")
    set_time(back, LONG_AGO)
    cache = tmp_path / "cache" if cached else None
    for _ in range(2):
        with closing(Index(tmp_path, cache=cache)) as index:
            assert index.find("latest").id == uuid(99)
            if cached:
                load(index)


def test_latest_of_a_project(tmp_path: Path) -> None:
    marker(tmp_path, "slug", "/srv/mine")
    session(tmp_path, uuid(1), talk(uuid(1), seconds=10), key="slug")
    legacy(tmp_path, uuid(2), talk(uuid(2))[1:-1], key=hashed("/srv/mine"), seconds=20)
    session(tmp_path, uuid(3), talk(uuid(3), seconds=30), key="other")
    assert find(tmp_path, "latest", Path("/srv/mine")).id == uuid(2)
    with pytest.raises(SessionNotFound, match="no sessions of /srv/none"):
        find(tmp_path, "latest", Path("/srv/none"))


def test_latest_passes_over_what_lists_hide(tmp_path: Path) -> None:
    session(tmp_path, uuid(1))
    session(tmp_path, uuid(2), [logs.header(uuid(2), lastUpdated=logs.at(900)), logs.context()])
    assert find(tmp_path, "latest").id == uuid(1)


def test_latest_does_not_read_older_files(tmp_path: Path) -> None:
    new = session(tmp_path, uuid(1))
    set_time(new, logs.START.timestamp() + 6)
    set_time(session(tmp_path, uuid(2)), LONG_AGO)
    index = Index(tmp_path, cache=None)
    assert index.find("latest").id == uuid(1)
    assert index.quick(project=None, limit=0).done == 1


def test_nothing_stored(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound, match="Gemini CLI stores them there") as caught:
        find(tmp_path, "latest")
    assert caught.value.searched == (tmp_path / "tmp",)


def test_an_unreadable_store(tmp_path: Path) -> None:
    (tmp_path / "tmp").symlink_to(tmp_path / "tmp")
    with pytest.raises(StoreUnreadable) as caught:
        find(tmp_path, "latest")
    assert caught.value.path == tmp_path


# --- whose they are ----------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["hash", "slug"])
def test_a_folder_whose_project_only_the_hash_names(key: str, tmp_path: Path) -> None:
    """Listed, found and read first alike, from whatever folder one asks."""
    root = tmp_path / "somewhere" / "else"
    records = talk(uuid(1))
    records[0] |= {"projectHash": hashed(str(root))}
    session(tmp_path, uuid(1), records, key=hashed(str(root)) if key == "hash" else "proj")
    session(tmp_path, uuid(2), key="other")
    assert [each.id for each in list_sessions(project=root, home=tmp_path)] == [uuid(1)]
    assert load_session(project=root, home=tmp_path).session.id == uuid(1)
    assert find(tmp_path, "0000", root).project == str(root)
    with closing(Index(tmp_path, cache=None)) as index:
        load(index)
        quick = index.quick(project=root, limit=0)
        assert {each.id: each.project for each in quick.sessions}[uuid(1)] == str(root)
        assert index.find("latest", project=root).id == uuid(1)
    with pytest.raises(SessionNotFound):
        find(tmp_path, uuid(2), root)


# --- paths ---------------------------------------------------------------------------------------


def test_a_file_of_the_store_knows_its_project() -> None:
    copy = next(MAIN.glob("tmp/*/chats/session-2026-11-20T23-05-63a18d40.json"))
    found = find(MAIN, str(copy))
    assert (found.files, found.project) == ((copy,), "/home/dev/notes")


def test_a_file_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logs.write(tmp_path / "saved copy.jsonl", talk(uuid(5), "Saved"))
    (tmp_path / "link.jsonl").symlink_to("saved copy.jsonl")
    for wanted in ("saved copy.jsonl", "./link.jsonl", str(tmp_path / "link.jsonl")):
        assert find(MAIN, wanted).title == "Saved"


def test_a_file_set_aside_by_the_cli_can_be_read(tmp_path: Path) -> None:
    path = session(tmp_path, uuid(1))
    aside = path.rename(path.with_name(f"{path.name}.unreadable-1795215934123"))
    assert find(tmp_path, str(aside)).id == uuid(1)


def test_paths_that_hold_no_session(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound, match="does not exist"):
        find(MAIN, "/nowhere/at-all.jsonl")
    with pytest.raises(SessionNotFound, match="not a regular file"):
        find(MAIN, str(DATA))
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(NotASession):
        find(MAIN, str(tmp_path / "x.json"))
