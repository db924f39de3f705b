"""Kept sessions among those of the store."""

from __future__ import annotations

import os
from pathlib import Path

from gemtui import list_sessions, load_session
from gemtui.kept.vault import keep, keep_all
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.summary import Flag, Summary
from tests.sessions import logs
from tests.sessions.stores import append, load, marker, only, read, session, talk, uuid

KEPT = frozenset({Flag.KEPT})


def by_id(home: Path) -> dict[str, Summary]:
    """The sessions of a store, without a cache."""
    return {each.id: each for each in read(home).sessions}


def test_a_session_that_the_cli_removed_is_listed_as_kept_and_can_be_read(store: Path) -> None:
    marker(store, "proj", "/work/proj")
    path = session(store, uuid(1), talk(uuid(1), "Where is it?"))
    other = session(store, uuid(2))
    keep_all(store)
    path.unlink()
    found = by_id(store)
    assert found[uuid(1)].flags == KEPT
    assert found[uuid(1)].project == "/work/proj"
    assert found[uuid(1)].title == "Where is it?"
    assert found[uuid(2)].flags == frozenset()
    assert found[uuid(2)].files == (other,)
    assert [each.id for each in list_sessions(home=store, project="/work/proj")][-1:] == [uuid(1)]
    assert load_session(uuid(1)[:8], home=store).messages[0].content


def test_the_vault_counts_no_session_twice(store: Path) -> None:
    path = session(store, uuid(1))
    keep_all(store)
    append(path, logs.user("late", "One more"))
    found = only(read(store))
    assert found.files == (path,)
    assert found.copies == ()


def test_an_open_list_turns_to_what_is_kept_and_back(store: Path) -> None:
    path = session(store, uuid(1))
    data = path.read_bytes()
    keep(path)
    index = Index(store, cache=None)
    assert only(load(index)).flags == frozenset()
    path.unlink()
    kept = only(index.update([path]))
    assert kept.flags == KEPT
    kept.path.rename(path)
    assert only(index.update([path])).files == (path,)
    path.write_bytes(data)
    path.unlink()
    assert index.update([path]).sessions == ()
    index.close()


def test_a_project_folder_that_is_gone_keeps_its_project(store: Path) -> None:
    (store / "tmp").mkdir(parents=True)
    (store / "projects.json").write_text('{"projects": {"/work/proj": "proj"}}')
    path = session(store, uuid(1))
    keep_all(store)
    path.unlink()
    path.parent.rmdir()
    path.parent.parent.rmdir()
    (found,) = list_sessions(home=store, project="/work/proj")
    assert found.flags == KEPT


def test_what_goes_on_in_a_file_made_anew_does_not_hide_what_was_before(store: Path) -> None:
    """The CLI adds to a log by its name, so it begins a new one if that was removed meanwhile."""
    path = session(store, uuid(1))
    keep(path)
    path.unlink()
    logs.write(path, [logs.user("late", "One more" * 1000)])
    assert by_id(store)[uuid(1)].flags == KEPT


def test_a_file_that_was_emptied_in_its_place_is_listed_as_it_was(store: Path) -> None:
    from tests.sessions.stores import legacy

    path = legacy(store, uuid(1), [logs.user("u", "Hello"), logs.gemini("g", "Hi")], key="proj")
    keep(path)
    path.write_bytes(b"")
    assert by_id(store)[uuid(1)].messages == 2
    assert by_id(store)[uuid(1)].flags == KEPT


def test_a_new_name_of_a_file_is_no_reason_to_read_it_again(store: Path) -> None:
    """The system tells of it, and ten thousand files get one when the vault is switched on."""
    path = session(store, uuid(1), talk(uuid(1), "Where is it?"))
    index = Index(store, cache=None)
    load(index)
    keep_all(store)
    facts = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Where", b"There"))
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert only(index.update([path])).title == "Where is it?"
    index.close()
