"""Paths recorded on Windows, read on another system: found by file, by project and by name."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from gemtui.calls.paths import recorded_path, separator, typed_place
from gemtui.recover.history import recover_file
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.listing import project_labels
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.sessions.catalog.summary import project_name
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import recorded_writes, writes_by_file
from tests.rows import each_row, table
from tests.sessions import logs, stores


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / ".gemini"


TABLES = table("session_files/windows.json")
ROOT = r"C:\Users\Ada\Shop App"


@each_row("path, project, system, recorded", TABLES["recorded"])
def test_a_recorded_path_is_one_of_its_own_system(
    path: str, project: str, system: str, recorded: str
) -> None:
    pure = PureWindowsPath if system == "windows" else PurePosixPath
    assert recorded_path(path, project) == pure(recorded)
    assert PurePosixPath("/A/x") != recorded_path("/a/x")


def test_a_typed_path_of_windows_is_not_one_in_the_current_folder(tmp_path: Path) -> None:
    for typed in (ROOT, "c:/Shop", r"\\server\share"):
        assert typed_place(Path(typed), tmp_path) == Path(typed)
    assert typed_place(Path("a/../b"), tmp_path) == tmp_path / "b"
    assert [separator(recorded_path(each)) for each in (ROOT, "/a")] == ["\\", "/"]


@pytest.mark.parametrize("key", ["shop-app", stores.hashed(ROOT)])
def test_one_file_by_several_spellings_is_one_file_of_its_project(store: Path, key: str) -> None:
    names = [ROOT + r"\src\till.ts", ROOT.lower() + "/src/till.ts", "src/till.ts"]
    calls = [
        logs.call(
            f"c{at}", name="write_file", args={"file_path": name, "content": "sold\n"}, seconds=at
        )
        for at, name in enumerate(names, 3)
    ]
    stores.session(
        store,
        stores.uuid(1),
        [logs.header(), logs.user("u", "a"), logs.gemini("g", "", toolCalls=calls)],
        key=key,
    )
    if key == "shop-app":
        stores.marker(store, key, ROOT.lower())
    snapshot = stores.read(store)
    (session,) = snapshot.sessions
    assert session.project in (ROOT, ROOT.lower())
    assert project_name(session.project, key) in ("Shop App", "shop app")
    assert list(project_labels(snapshot.sessions).values()) == [project_name(session.project, key)]
    for spelling in (ROOT, ROOT.upper(), ROOT.lower().replace("\\", "/")):
        assert list(listed_sessions(snapshot, project=Path(spelling), hidden=False)) == [session]
        if key == "shop-app" or spelling == ROOT:  # a hash is that of one spelling
            assert Index(store, cache=None).find("latest", project=Path(spelling)) == session
    assert not list(listed_sessions(snapshot, project=Path(ROOT + " 2"), hidden=False))
    recorded = recorded_writes(snapshot.sessions, home=store, cache=None)
    (writes,) = writes_by_file(each for each in recorded if not isinstance(each, Problem)).values()
    assert len(writes) == 3
    found = recover_file(Path(ROOT + r"\src\TILL.ts"), snapshot.sessions)
    assert found.rebuilt is not None
    moved = recover_file(Path("/mnt/Shop App/src/till.ts"), snapshot.sessions)
    assert (moved.rebuilt is not None) is (session.project is not None)
    assert [line.text for line in found.rebuilt.listed] == ["sold"]


def test_a_folder_has_the_same_sessions_by_each_path_that_leads_to_it(
    store: Path, tmp_path: Path
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    for number, root in enumerate((real, link)):
        key = f"proj-{number}"
        stores.marker(store, key, str(root))
        stores.session(store, stores.uuid(number), key=key)
    snapshot = stores.read(store)
    for folder in (real, link):
        assert len(list(listed_sessions(snapshot, project=folder, hidden=False))) == 2
        assert len(Index(store, cache=None).files(folder)) == 2


def test_a_hash_folder_is_named_by_the_folders_that_were_trusted(store: Path) -> None:
    for number, root in enumerate(("/home/ada/one", "/home/ada")):
        stores.session(store, stores.uuid(number), key=stores.hashed(root))
    (store / "trustedFolders.json").write_text('// mine\n{"/home/ada/one": "TRUST_PARENT"}')
    assert {each.project for each in stores.read(store).sessions} == {"/home/ada/one", "/home/ada"}


@each_row("name, tag", TABLES["tags"])
def test_a_saved_chat_has_the_tag_that_was_typed(store: Path, name: str, tag: str) -> None:
    path = store / "tmp" / "proj" / f"checkpoint-{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('[{"role": "user", "parts": [{"text": "hi"}]}]')
    assert stores.only(stores.read(store)).title == tag
    path.unlink()
