"""Files of one session over the whole store: which is in use, which are copies."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.kept.deletion import plan_deletion
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.store.store import SessionKind
from tests.rows import each_row, table
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

ID = uuid(1)


def stored(home: Path, file: dict[str, Any]) -> Path:
    """Write a file of a table's row."""
    records = (
        talk(ID, **file["talk"])
        if "talk" in file
        else [logs.header(ID, **file["head"]), *file["records"]]
    )
    if file.get("form") == "json":
        return legacy(home, ID, records[1:-1], key="proj", seconds=file["talk"]["seconds"])
    return session(
        home,
        ID,
        records,
        key=file.get("key", "proj"),
        minute=file.get("minute", "2026-11-20T23-04"),
    )


@each_row("promise, row", table("session_files/merge.json", logs.built).items())
def test_files_of_a_session_are_told_as_promised(
    tmp_path: Path, promise: str, row: dict[str, Any]
) -> None:
    home = tmp_path / promise
    files = [stored(home, file) for file in row.pop("files")]
    found = only(read(home))
    facts = found.to_dict() | {
        "order": [files.index(path) for path in found.files],
        "flags": [sorted(file.flags - {Flag.LIVE}) for file in (found, *found.copies)],
        "hidden": [file.hidden for file in (found, *found.copies)],
    }
    assert {name: facts[name] for name in row} == row, promise


def test_migration_copies_know_the_project_from_each_other(tmp_path: Path) -> None:
    old = legacy(tmp_path, ID, talk(ID)[1:-1], key="0" * 64)
    new = tmp_path / "tmp" / "proj" / "chats" / old.name
    new.parent.mkdir(parents=True)
    shutil.copy2(old, new)
    marker(tmp_path, "proj", "/srv/proj")
    found = only(read(tmp_path))
    assert found.path == new
    assert {found.project, found.copies[0].project} == {"/srv/proj"}
    append(old.with_suffix(".jsonl"), *talk(ID, seconds=99))
    found = only(read(tmp_path))
    assert found.project_key == "0" * 64
    assert found.project == "/srv/proj"


def test_ids_that_begin_alike_are_different_sessions(tmp_path: Path) -> None:
    other = ID[:8] + "-ffff-4000-8000-000000000000"
    session(tmp_path, ID)
    session(tmp_path, other, minute="2026-11-20T23-05")
    assert {each.id for each in read(tmp_path).sessions} == {ID, other}


def test_files_without_an_id_do_not_meet_by_eight_characters(tmp_path: Path) -> None:
    for minute in ("2026-11-20T23-04", "2026-11-20T23-05"):
        session(tmp_path, ID, [logs.user("u", "Hello")], minute=minute)
    assert len(read(tmp_path).sessions) == 2


def nightly(home: Path, name: str, **more: Any) -> Path:
    """A session that was given its id, in a project of its own."""
    root = f"/srv/{name}"
    marker(home, name, root)
    records = talk("nightly", f"Work on {name}", **more)
    records[0] |= {"projectHash": hashed(root)}
    return session(home, "nightly", records, key=name)


def test_two_projects_may_give_their_sessions_the_same_id(tmp_path: Path) -> None:
    paths = {nightly(tmp_path, "a", seconds=7), nightly(tmp_path, "b")}
    found = read(tmp_path).sessions
    assert [(each.id, each.project) for each in found] == [
        ("nightly", "/srv/a"),
        ("nightly", "/srv/b"),
    ]
    assert {each.files for each in found} == {(path,) for path in paths}
    for each in found:
        assert {item.path for item in plan_deletion(each, tmp_path).items} == {each.path}


def test_what_tells_its_project_otherwise_is_told_apart_too(tmp_path: Path) -> None:
    """By the marker of its folder, where its header has no hash."""
    for name in ("a", "b"):
        path = nightly(tmp_path, name)
        path.write_bytes(path.read_bytes().replace(hashed(f"/srv/{name}").encode(), b""))
    assert {each.project for each in read(tmp_path).sessions} == {"/srv/a", "/srv/b"}


def test_copies_of_either_project_go_with_theirs(tmp_path: Path) -> None:
    mine, other = nightly(tmp_path, "a"), nightly(tmp_path, "b")
    copy = tmp_path / "tmp" / hashed("/srv/a") / "chats" / mine.name
    copy.parent.mkdir(parents=True)
    shutil.copy2(mine, copy)
    ghost = mine.with_name("session-2026-11-20T23-59-nightly.jsonl")
    logs.write(ghost, [{"sessionId": "nightly"}])
    found = {each.project: each for each in read(tmp_path).sessions}
    assert set(found["/srv/a"].files) == {mine, copy, ghost}
    assert found["/srv/b"].files == (other,)


def test_what_names_no_project_goes_with_the_only_one(tmp_path: Path) -> None:
    mine = nightly(tmp_path, "a")
    stray = session(tmp_path, "nightly", [{"sessionId": "nightly"}, logs.user("u", "Hi")])
    assert set(only(read(tmp_path)).files) == {mine, stray}
    nightly(tmp_path, "b")
    assert (stray,) in {each.files for each in read(tmp_path).sessions}


def test_the_right_one_of_two_follows_its_file(tmp_path: Path) -> None:
    nightly(tmp_path, "a"), nightly(tmp_path, "b")
    with closing(Index(tmp_path, cache=None)) as index:
        before = {each.project: each for each in load(index).sessions}
        append(before["/srv/a"].path, logs.user("n", "More"))
        after = {each.project: each for each in index.update([before["/srv/a"].path]).sessions}
        assert after["/srv/b"] is before["/srv/b"]
        assert (after["/srv/a"].prompts, after["/srv/b"].prompts) == (2, 1)


def test_checkpoints_of_two_projects_may_share_a_tag(tmp_path: Path) -> None:
    for key in ("a", "b"):
        path = tmp_path / "tmp" / key / "checkpoint-mine.json"
        path.parent.mkdir(parents=True)
        path.write_text('{\n"history": [{"role": "user", "parts": [{"text": "Hello"}]}]\n}')
    found = read(tmp_path).sessions
    assert [(each.kind, each.title, each.id) for each in found] == 2 * [
        (SessionKind.CHECKPOINT, "mine", "checkpoint-mine")
    ]
    assert all(each.hidden for each in found)


def test_a_subagent_never_stands_for_a_session(tmp_path: Path) -> None:
    real = session(tmp_path, ID)
    logs.write(
        real.parent / uuid(2) / f"{ID}.jsonl",
        [*talk(ID, seconds=99), {"$set": {"kind": "subagent"}}],
    )
    found = {each.kind: each for each in read(tmp_path).sessions}
    assert found[SessionKind.MAIN].files == (real,)
    assert found[SessionKind.SUBAGENT].parent == uuid(2)


def test_newest_first_by_last_update_else_by_the_files_time(tmp_path: Path) -> None:
    session(tmp_path, uuid(1), talk(uuid(1), seconds=50))
    session(tmp_path, uuid(2), talk(uuid(2), seconds=70))
    timeless = [{"sessionId": uuid(3), "projectHash": "0"}, logs.user("u", "Hello")]
    set_time(session(tmp_path, uuid(3), timeless), logs.START.timestamp() + 60)
    assert [each.id for each in read(tmp_path).sessions] == [uuid(2), uuid(3), uuid(1)]


def test_the_current_folder_names_a_hash_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session(tmp_path, ID, key=hashed(str(tmp_path)))
    assert only(read(tmp_path)).project == str(tmp_path)


def test_live_is_what_is_written_now_and_not_what_is_copied_now(tmp_path: Path) -> None:
    now = {"$set": {"lastUpdated": datetime.now(UTC).isoformat()}}
    set_time(session(tmp_path, uuid(1)), LONG_AGO)
    session(tmp_path, uuid(2), [*talk(uuid(2)), now])
    session(tmp_path, uuid(3))
    live = {each.id: Flag.LIVE in each.flags for each in read(tmp_path).sessions}
    assert live == {uuid(1): False, uuid(2): True, uuid(3): False}


@pytest.mark.parametrize("junk", [7, "soon", "0001-01-01T00:00:00+23:59", None, [], {}])
def test_odd_header_values_are_unknown(junk: object, tmp_path: Path) -> None:
    odd = dict.fromkeys(("startTime", "lastUpdated", "summary", "directories", "kind"), junk)
    records = [{"sessionId": ID, "projectHash": junk} | odd, logs.user("u", "Hello")]
    session(tmp_path, ID, records)
    found = only(read(tmp_path))
    assert found.title in ("Hello", junk)
    assert found.to_dict()["updated"] is None
