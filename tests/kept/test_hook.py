"""What the hook of the extension keeps: one shell script, run as Gemini CLI runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gemtui.extension.content import write
from gemtui.kept.vault import keep, keep_all, switch_off
from gemtui.paths import extension_dir, vault_dir
from gemtui.sessions.catalog.vault_files import COPIES, in_tree, store_with_kept
from tests.kept.test_keeping import kept
from tests.sessions import logs
from tests.sessions.stores import append, legacy, session, talk, uuid


@pytest.fixture(autouse=True)
def extension() -> None:
    """Its files are in place."""
    write()


def turn_ends(path: Path, id: str = uuid(1), event: str = "AfterAgent") -> None:
    """A turn of a session has ended."""
    told = {"session_id": id, "transcript_path": str(path), "cwd": "/", "prompt": '"x"'}
    done = subprocess.run(
        ["sh", str(extension_dir() / "hook.sh"), event, "4711"],
        input=json.dumps(told, separators=(",", ":")).encode(),
        capture_output=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == b"{}\n"


def test_a_session_and_what_belongs_to_it_are_kept_at_the_end_of_a_turn(store: Path) -> None:
    path = session(store, uuid(1))
    agent = logs.write(path.parent / uuid(1) / "helper.jsonl", talk("helper"))
    project = path.parents[1]
    output = logs.write(project / f"tool-outputs/session-{uuid(1)}/shell 1.txt", ["Much"])
    plan = logs.write(project / uuid(1) / "plans/plan.md", ["First"])
    turn_ends(path)
    turn_ends(path)
    for each in (path, agent, output, plan):
        assert kept(each) == [each.read_bytes()]
        assert each.stat().st_nlink == 1
    assert not keep(path)
    assert {each.stat().st_mode & 0o77 for each in vault_dir().rglob("*") if each.is_dir()} == {0}


def test_without_the_vault_nothing_is_kept(store: Path) -> None:
    switch_off()
    path = session(store, uuid(1))
    turn_ends(path)
    assert kept(path) == []


def test_it_puts_nothing_in_the_place_of_what_is_kept(store: Path) -> None:
    path = session(store, uuid(1))
    states = []
    for word in ("first", "second", "third"):
        path.unlink()
        logs.write(path, [logs.header(uuid(1)), logs.user("u", word)])
        states.append(path.read_bytes())
        turn_ends(path)
        turn_ends(path)
    assert sorted(kept(path)) == sorted(states)


@pytest.mark.parametrize("place", ["chats/../../secret.jsonl", 'chats/a"b.jsonl', "secret.jsonl"])
def test_odd_paths_are_left_to_gemtui(store: Path, place: str) -> None:
    path = store / "tmp/proj" / place
    (store / "tmp/proj/chats").mkdir(parents=True)
    path.write_text("{}")
    turn_ends(path)
    assert not list(vault_dir().rglob("*.jsonl"))


def test_a_symbolic_link_is_not_followed(store: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("{}")
    path = session(store, uuid(1))
    path.unlink()
    path.symlink_to(secret)
    turn_ends(path)
    assert not list(vault_dir().rglob("*.jsonl"))


def test_the_copy_goes_on_with_its_log_and_is_moved_aside_for_another(store: Path) -> None:
    path = session(store, uuid(1))
    turn_ends(path)
    assert kept(path) == [path.read_bytes()]
    append(path, logs.user("late", "One more"))
    turn_ends(path)
    whole = path.read_bytes()
    assert kept(path) == [whole]
    assert not any(each.kept for each in store_with_kept(store).files())
    path.write_bytes(b"")
    turn_ends(path)
    assert kept(path) == [whole]
    logs.write(path, [logs.header(uuid(1)), logs.user("other", "Begun anew")])
    turn_ends(path)
    assert sorted(kept(path)) == sorted([whole, path.read_bytes()])
    assert not keep(path)


def test_an_object_of_an_older_version_that_changed_is_left_to_gemtui(store: Path) -> None:
    path = legacy(store, uuid(1), [logs.user("u", "Hello")], key="proj")
    turn_ends(path)
    before = path.read_bytes()
    assert kept(path) == [before]
    legacy(store, uuid(1), [logs.user("another", "Hello")], key="proj", seconds=9)
    turn_ends(path)
    assert kept(path) == [before]


def test_what_has_not_changed_is_not_copied_again(store: Path) -> None:
    path = session(store, uuid(1))
    keep_all(store)
    copy = in_tree(vault_dir() / COPIES, path)
    before = copy.stat().st_ino
    turn_ends(path)
    assert copy.stat().st_ino == before
    os.utime(path, (0, 0))
    turn_ends(path)
    assert kept(path) == [path.read_bytes()]
