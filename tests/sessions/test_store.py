from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from gemtui.sessions.store.projects import Projects, folder_names
from gemtui.sessions.store.store import Store, StoreState
from tests.rows import each_row, table
from tests.sessions import logs
from tests.sessions.stores import hashed, marker, read, session, uuid

TABLES = table("session_files/store.json")


def names(store: Store) -> set[str]:
    return {str(place.path.relative_to(store.tmp)) for place in store.files()}


def test_the_kinds_of_files(tmp_path: Path) -> None:
    for name, *_ in TABLES["kinds"]:
        logs.write(tmp_path / "tmp" / name, [])
    found = {
        str(place.path.relative_to(tmp_path / "tmp")): place for place in Store(tmp_path).files()
    }
    assert len(found) == len(TABLES["kinds"])
    for name, kind, id, parent in TABLES["kinds"]:
        assert (found[name].kind, found[name].name_id, found[name].parent) == (kind, id, parent)


def test_what_is_no_session_file_is_not_opened_and_said(tmp_path: Path) -> None:
    good = session(tmp_path, uuid(1))
    chats = good.parent
    (chats / "session-2026-11-20T23-04-folder00.jsonl").mkdir()
    os.mkfifo(chats / "session-2026-11-20T23-04-fifo0000.jsonl")
    (chats / "session-2026-11-20T23-04-link0000.jsonl").symlink_to(good)
    (chats / "session-2026-11-20T23-04-gone0000.jsonl").symlink_to(tmp_path / "nowhere")
    for junk in (f"{good.name}.unreadable-17", f"{good.name}.tmp-4711", "notes.txt", "x.jsonl"):
        (chats / junk).write_text("{}")
    (tmp_path / "tmp" / "stray.jsonl").write_text("{}")
    assert names(Store(tmp_path)) == {str(good.relative_to(tmp_path / "tmp"))}
    assert {problem.path.name: problem.what for problem in read(tmp_path).unreadable} == TABLES[
        "no session files"
    ]


def test_what_is_no_folder_of_a_project_is_said(tmp_path: Path) -> None:
    tmp = tmp_path / "tmp"
    (tmp / "proj").mkdir(parents=True)
    (tmp / "proj" / "chats").write_text("")
    (tmp / "loop").symlink_to("loop")
    (tmp / "gone").symlink_to("nowhere")
    (tmp / "notes.txt").write_text("")
    store = Store(tmp_path)
    assert store.state is StoreState.EMPTY
    assert {problem.path.name: problem.what for problem in store.problems} == TABLES["no folders"]


def test_a_loop_of_links_is_said_and_the_rest_is_found(tmp_path: Path) -> None:
    good = session(tmp_path, uuid(1))
    bad = tmp_path / "tmp" / "loop" / "chats"
    bad.parent.mkdir()
    bad.symlink_to(bad)
    store = Store(tmp_path)
    assert [place.path for place in store.files()] == [good]
    assert [problem.path for problem in store.problems] == [bad]
    assert "symbolic links" in store.problems[0].what


def test_folders_that_contain_themselves_end(tmp_path: Path) -> None:
    good = session(tmp_path, uuid(1))
    (good.parent / "around").symlink_to(good.parent)
    (tmp_path / "tmp" / "proj" / "again").symlink_to(tmp_path / "tmp")
    assert [place.path for place in Store(tmp_path).files()] == [good]


def test_a_link_to_another_project_is_counted_once(tmp_path: Path) -> None:
    good = session(tmp_path, uuid(1), key="a")
    (tmp_path / "tmp" / "z-link").symlink_to(good.parent.parent)
    assert [place.project_key for place in Store(tmp_path).files()] == ["a"]


def test_a_project_that_is_kept_elsewhere_is_found(tmp_path: Path) -> None:
    session(tmp_path / "disk", uuid(1), key="kept")
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "kept").symlink_to(tmp_path / "disk" / "tmp" / "kept")
    assert [place.project_key for place in Store(tmp_path).files()] == ["kept"]


@pytest.mark.parametrize(("folders", "state"), TABLES["states"])
def test_states(folders: list[str], state: str, tmp_path: Path) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    store = Store(tmp_path)
    assert store.state == state
    assert store.looked[0] == tmp_path / "tmp"
    assert (tmp_path / "tmp" / "proj" / "chats" in store.looked) == ("tmp/bin" in folders)


@pytest.mark.parametrize("name", ["", "tmp"])
def test_a_file_where_the_store_belongs(name: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_text("not a folder")
    store = Store(home)
    assert store.state is StoreState.NO_FOLDER
    assert [(each.path, each.what) for each in store.problems] == [(home / name, "is not a folder")]


def test_a_store_without_permission(other_user: Path) -> None:
    home = other_user / ".gemini"
    session(home, uuid(1))
    home.chmod(0)
    store = Store(home)
    assert store.state is StoreState.UNREADABLE
    assert [problem.path for problem in store.problems] == [home / "tmp"]
    assert "Permission denied" in store.problems[0].what
    home.chmod(0o700)
    (home / "tmp").chmod(0)
    assert Store(home).state is StoreState.UNREADABLE


def test_one_project_and_one_file_without_permission(other_user: Path) -> None:
    home = other_user / ".gemini"
    session(home, uuid(1), key="mine")
    closed = session(home, uuid(2), key="closed").parent.parent
    secret = session(home, uuid(3), key="mine")
    closed.chmod(0)
    secret.chmod(0)
    snapshot = read(home)
    assert [each.id for each in snapshot.sessions] == [uuid(1)]
    assert {problem.path for problem in snapshot.unreadable} == {closed, secret}
    assert snapshot.state is StoreState.OK
    assert snapshot.complete


# --- projects ------------------------------------------------------------------------------------


def root_of(home: Path, key: str) -> str | None:
    return Projects(home, [key]).root_of(key)


@each_row("promise, files, key, root", TABLES["roots"])
def test_the_project_of_a_folder_is_known_as_promised(
    tmp_path: Path, promise: str, files: dict[str, str], key: str, root: str | None
) -> None:
    home = Path(tempfile.mkdtemp(dir=tmp_path))
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    assert root_of(home, key) == root, promise


def test_a_damaged_registry_is_said(tmp_path: Path) -> None:
    path = tmp_path / "projects.json"
    for text in ("", "[]", "{", '{"projects": []}'):
        path.write_text(text)
        assert [each.path for each in Store(tmp_path).problems] == [path]
    path.write_text('{"projects": {"/a": "a"}}')
    assert Store(tmp_path).problems == ()


def test_a_marker_that_is_no_file_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "tmp" / "a").mkdir(parents=True)
    os.mkfifo(tmp_path / "tmp" / "a" / ".project_root")
    os.mkfifo(tmp_path / "projects.json")
    assert root_of(tmp_path, "a") is None


def test_folders_of_a_project_by_its_real_path(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    marker(tmp_path, "slug", str(real))
    projects = Projects(tmp_path, ["slug", hashed(str(real)), "other"])
    names = folder_names(tmp_path / "link")
    projects.learn(names)
    assert projects.keys_in(names) == {"slug", hashed(str(real))}
