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
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind
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


def in_use(home: Path) -> Path:
    return only(read(home)).path


def test_the_last_update_decides(tmp_path: Path) -> None:
    old = legacy(tmp_path, ID, talk(ID)[1:-1], key="proj", seconds=5)
    new = session(tmp_path, ID, talk(ID, seconds=6))
    found = only(read(tmp_path))
    assert found.files == (new, old)
    assert [copy.path for copy in found.copies] == [old]
    assert found.copies[0].flags >= {Flag.DUPLICATE}
    assert Flag.DUPLICATE not in found.flags


def test_an_old_cli_that_goes_on_with_the_json_wins_again(tmp_path: Path) -> None:
    new = session(tmp_path, ID, talk(ID, seconds=6))
    old = legacy(tmp_path, ID, talk(ID, turns=3)[1:-1], key="proj", seconds=7)
    assert only(read(tmp_path)).files == (old, new)


def test_of_two_with_the_same_update_the_one_with_more_messages_wins(tmp_path: Path) -> None:
    session(tmp_path, ID, talk(ID, turns=1), minute="2026-11-20T23-09")
    more = session(tmp_path, ID, talk(ID, turns=2))
    assert in_use(tmp_path) == more


def test_a_ghost_never_wins(tmp_path: Path) -> None:
    real = session(tmp_path, ID, talk(ID, seconds=5))
    ghost = session(
        tmp_path, ID, [logs.header(ID, lastUpdated=logs.at(900)), logs.context()],
        minute="2026-11-20T23-19",
    )  # fmt: skip
    found = only(read(tmp_path))
    assert found.files == (real, ghost)
    assert not found.hidden
    assert found.copies[0].flags >= {Flag.GHOST, Flag.DUPLICATE}
    assert Flag.EMPTY not in found.copies[0].flags
    assert found.copies[0].hidden


def test_what_the_cli_noted_down_is_no_conversation(tmp_path: Path) -> None:
    notes = [logs.info(f"i{number}", "Update available") for number in range(9)]
    real = session(tmp_path, ID, talk(ID, seconds=5))
    noted = session(tmp_path, ID, [logs.header(ID, lastUpdated=logs.at(900)), *notes], minute="2026-11-20T23-19")
    found = only(read(tmp_path))
    assert found.files == (real, noted)
    assert Flag.GHOST in found.copies[0].flags
    real.unlink()
    alone = only(read(tmp_path))
    assert (Flag.EMPTY in alone.flags, alone.hidden, alone.messages) == (True, True, 9)


def test_a_failed_prompt_is_more_than_an_empty_start(tmp_path: Path) -> None:
    failed = [logs.header(ID), logs.context(), logs.user("u", "Do it"), logs.restore()]
    kept = session(tmp_path, ID, failed)
    session(tmp_path, ID, [logs.header(ID, lastUpdated=logs.at(900))], minute="2026-11-20T23-19")
    found = only(read(tmp_path))
    assert found.path == kept
    assert found.title_source == "failed_prompt"


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
    assert [(each.id, each.project) for each in found] == [("nightly", "/srv/a"), ("nightly", "/srv/b")]
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
    logs.write(real.parent / uuid(2) / f"{ID}.jsonl", [*talk(ID, seconds=99), {"$set": {"kind": "subagent"}}])
    found = {each.kind: each for each in read(tmp_path).sessions}
    assert found[SessionKind.MAIN].files == (real,)
    assert found[SessionKind.SUBAGENT].parent == uuid(2)


def test_a_subagent_at_the_top_is_told_by_its_header(tmp_path: Path) -> None:
    session(tmp_path, ID, [logs.header(ID, kind="subagent"), logs.user("u", "Find it")])
    assert only(read(tmp_path)).hidden


def test_newest_first_by_last_update_else_by_the_files_time(tmp_path: Path) -> None:
    session(tmp_path, uuid(1), talk(uuid(1), seconds=50))
    session(tmp_path, uuid(2), talk(uuid(2), seconds=70))
    timeless = [{"sessionId": uuid(3), "projectHash": "0"}, logs.user("u", "Hello")]
    set_time(session(tmp_path, uuid(3), timeless), logs.START.timestamp() + 60)
    assert [each.id for each in read(tmp_path).sessions] == [uuid(2), uuid(3), uuid(1)]


@pytest.mark.parametrize("paths", ["header", "writes"])
def test_paths_met_in_sessions_name_a_hash_folder(paths: str, tmp_path: Path) -> None:
    root = "/home/dev/src/deep"
    more = {"directories": ["/elsewhere", root]} if paths == "header" else {}
    call = logs.call("c", name="write_file", args={"file_path": f"{root}/pkg/a.py"})
    calls = [call] if paths == "writes" else []
    records = [logs.header(ID, **more), logs.user("u", "Hi"), logs.gemini("g", "", toolCalls=calls)]
    session(tmp_path, ID, records, key=hashed(root))
    assert only(read(tmp_path)).project == root


def test_the_current_folder_names_a_hash_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


# --- titles and counts ---------------------------------------------------------------------------


def titled(home: Path, *records: object) -> Summary:
    session(home, ID, [logs.header(ID), logs.context(), *records])
    return only(read(home))


@pytest.mark.parametrize(
    ("prompts", "title"),
    [
        (["Fix it"], "Fix it"),
        (["/help", "?", "Fix it"], "Fix it"),
        (["/help", "?"], "/help"),
        (["\n\n   spread \t out\nsecond line"], "spread out"),
        (["x" * 5000], "x" * 200),
        (["<state_snapshot>all that was</state_snapshot>", "Go on"], "Go on"),
    ],
)
def test_titles_from_prompts(prompts: list[str], title: str, tmp_path: Path) -> None:
    found = titled(tmp_path, *(logs.user(f"u{i}", text) for i, text in enumerate(prompts)))
    assert (found.title, found.title_source) == (title, "prompt")


def test_what_was_typed_is_the_title(tmp_path: Path) -> None:
    record = logs.user("u", "Explain @a.py\n--- Content from referenced files ---\nx = 1")
    found = titled(tmp_path, record | {"displayContent": "Explain @a.py"})
    assert found.title == "Explain @a.py"


def test_a_summary_is_the_title(tmp_path: Path) -> None:
    found = titled(tmp_path, logs.user("u", "Hi"), {"$set": {"summary": " Greets\n\tthe user "}})
    assert (found.title, found.title_source) == ("Greets the user", "summary")


def test_an_empty_start(tmp_path: Path) -> None:
    found = titled(tmp_path)
    assert (found.title, found.title_source) == ("(empty)", "none")
    assert found.flags - {Flag.LIVE} == {Flag.EMPTY}
    assert found.hidden


def test_a_failed_prompt_beside_a_good_one_is_no_failed_session(tmp_path: Path) -> None:
    good = (logs.user("u1", "Works"), logs.gemini("g1", "Yes"))
    found = titled(tmp_path, *good, logs.user("u2", "Fails"), logs.restore(logs.context(), *good))
    assert found.title == "Works"
    assert Flag.FAILED_PROMPT not in found.flags


def test_a_compressed_session_keeps_its_first_prompt_as_title(tmp_path: Path) -> None:
    snapshot = logs.user("s", "<state_snapshot>all that was</state_snapshot>", 9)
    found = titled(tmp_path, logs.user("u1", "Build it"), logs.gemini("g1", "Done"), logs.restore(snapshot))
    assert (found.title, found.title_source) == ("Build it", "prompt")
    assert Flag.BURIED in found.flags


def test_unknown_tokens_are_null_and_known_ones_are_summed(tmp_path: Path) -> None:
    some = {"input": 5, "output": 1, "total": 6}
    found = titled(
        tmp_path,
        logs.user("u", "Hi"),
        logs.gemini("g1", "a", tokens=some),
        logs.gemini("g2", "b", tokens=None),
        logs.gemini("g3", "c", tokens=some | {"cached": 0}),
    )
    assert found.to_dict()["tokens"] == {
        "input": 10, "output": 2, "cached": 0, "thoughts": None, "tool": None, "total": 12,
    }  # fmt: skip


@pytest.mark.parametrize("junk", [7, "soon", "0001-01-01T00:00:00+23:59", None, [], {}])
def test_odd_header_values_are_unknown(junk: object, tmp_path: Path) -> None:
    odd = dict.fromkeys(("startTime", "lastUpdated", "summary", "directories", "kind"), junk)
    records = [{"sessionId": ID, "projectHash": junk} | odd, logs.user("u", "Hello")]
    session(tmp_path, ID, records)
    found = only(read(tmp_path))
    assert found.title in ("Hello", junk)
    assert found.to_dict()["updated"] is None
