"""A project that was renamed takes its sessions along, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemtui.errors import MoveFailed
from gemtui.sessions.store import moved_project
from gemtui.sessions.store.moved_project import carry_out, plan_move
from tests.rows import table
from tests.sessions import stores
from tests.sessions.stores import uuid


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with one session of the folder `old`, which is `new` now; another project beside
    it.
    """
    home = tmp_path / ".gemini"
    (tmp_path / "new").mkdir()
    registered = {str(tmp_path / "old"): "proj", "/home/ada/other": "other"}
    for number, (root, key) in enumerate(registered.items()):
        stores.session(home, uuid(number), key=key)
        for place in ("tmp", "history"):
            (home / place / key).mkdir(parents=True, exist_ok=True)
            (home / place / key / ".project_root").write_text(root)
    (home / "projects.json").write_text(json.dumps({"projects": registered, "later": 1}))
    return home


def slug_of(home: Path, folder: Path) -> str | None:
    """The folder in which Gemini CLI 0.61.0 finds the sessions of a project
    (`ProjectRegistry.getShortId`).
    """

    def owner(place: str, slug: str) -> str | None:
        marker = home / place / slug / ".project_root"
        return marker.read_text() if marker.exists() else None

    slug = json.loads((home / "projects.json").read_text())["projects"].get(str(folder))
    if slug is not None and {owner("tmp", slug), owner("history", slug)} <= {None, str(folder)}:
        return str(slug)
    for place in ("tmp", "history"):
        for found in sorted((home / place).iterdir()):
            owners = {owner("tmp", found.name), owner("history", found.name)}
            if owner(place, found.name) == str(folder) and owners <= {None, str(folder)}:
                return found.name
    return None


def move(home: Path, old: str = "old", new: str = "new") -> None:
    carry_out(home, lambda: plan_move(home, home.parent / old, home.parent / new))


def has_moved(home: Path) -> bool:
    """Whether registry and markers say that the sessions are those of `new`, and nothing else has
    changed.
    """
    new = str(home.parent / "new")
    markers = [
        (home / place / "proj" / ".project_root").read_text() for place in ("tmp", "history")
    ]
    registry = json.loads((home / "projects.json").read_text())
    expected = {"projects": {new: "proj", "/home/ada/other": "other"}, "later": 1}
    return (
        markers == [new, new]
        and registry == expected
        and not (home / "projects.json.lock").exists()
    )


def test_the_sessions_belong_to_the_new_folder_for_gemini_cli_and_for_gemtui(home: Path) -> None:
    move(home)
    assert has_moved(home)
    assert slug_of(home, home.parent / "new") == "proj"
    roots = {session.project_key: session.project for session in stores.read(home).sessions}
    assert roots == {"proj": str(home.parent / "new"), "other": "/home/ada/other"}


def start_in_new(home: Path) -> None:
    """Start Gemini CLI once in the new folder, without a prompt."""
    stores.marker(home, "new", str(home.parent / "new"))
    registry = json.loads((home / "projects.json").read_text())
    registry["projects"][str(home.parent / "new")] = "new"
    (home / "projects.json").write_text(json.dumps(registry))


def lose_registry_entry(home: Path) -> None:
    (home / "projects.json").write_text(
        json.dumps({"projects": {"/home/ada/other": "other"}, "later": 1})
    )


@pytest.mark.parametrize("before", [None, start_in_new, lose_registry_entry])
def test_killed_after_any_step_the_sessions_belong_to_one_folder_and_the_same_move_ends_it(
    home: Path, before: Callable[[Path], None] | None
) -> None:
    old, new = home.parent / "old", home.parent / "new"
    if before is not None:
        before(home)
    steps = [step.words for step in plan_move(home, old, new).steps]
    assert len(steps) >= 4
    for words in steps[:-1]:
        plan_move(home, old, new).steps[0].do()
        assert "proj" in (slug_of(home, old), slug_of(home, new)), words
    move(home)
    assert has_moved(home)


def prepare(home: Path, row: dict[str, Any]) -> None:
    """Make of the store of this module's fixture what a table's row says."""
    if "started" in row:
        start_in_new(home)
    for name in row.get("removed", ()):
        path = home / name
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    for name in row.get("folders", ()):
        (home / name).mkdir()
    for name, text in row.get("files", {}).items():
        (home / name).write_text(text.replace("OLD", str(home.parent / "old")))
    for key in row.get("sessions", ()):
        stores.session(
            home,
            uuid(3),
            key=stores.hashed(str(home.parent / "new")) if key == "hash of new" else key,
        )


@pytest.mark.parametrize(("why", "row"), table("session_files/refused_moves.json"))
def test_a_move_that_would_lose_something_is_refused_and_changes_nothing(
    home: Path, why: str, row: dict[str, Any]
) -> None:
    prepare(home, row)
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with pytest.raises(MoveFailed, match=why):
        move(home)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == files


def test_the_old_path_may_be_another_name_of_the_same_folder(home: Path) -> None:
    (home.parent / "old").symlink_to("new")
    move(home)
    assert has_moved(home)


def test_a_folder_that_is_named_by_a_hash_gets_the_hash_of_the_new_path(tmp_path: Path) -> None:
    home, old, new = tmp_path / ".gemini", tmp_path / "old", tmp_path / "new"
    new.mkdir()
    stores.session(home, uuid(1), key=stores.hashed(str(old)))
    move(home)
    assert [path.name for path in (home / "tmp").iterdir()] == [stores.hashed(str(new))]


def test_a_lock_is_respected_and_one_that_a_killed_process_left_is_removed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = home / "projects.json.lock"
    lock.mkdir()
    monkeypatch.setattr(moved_project, "_PAUSE", 0)
    with pytest.raises(MoveFailed, match="is changing"):
        move(home)
    os.utime(lock, (1, 1))
    move(home)
    assert has_moved(home)
