"""Sessions that were damaged in their place while the vault had them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from gemtui.errors import RestoreFailed
from gemtui.kept.cleanup import Retention, Why, next_deletions
from gemtui.kept.contents import contents, forget_kept, vault_status
from gemtui.kept.restoring import Restored, restore_from_vault
from gemtui.kept.vault import keep_all, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.selection import with_id_prefix
from gemtui.sessions.catalog.summary import Summary
from tests.sessions import logs
from tests.sessions.stores import (
    LONG_AGO,
    append,
    legacy,
    marker,
    read,
    session,
    set_time,
    talk,
    uuid,
)

SOON = logs.START + timedelta(days=1)
Damage = Callable[[bytes], bytes]
DAMAGE: dict[str, Damage] = {
    "emptied": lambda _: b"",
    "one byte": lambda _: b"\n",
    "same length": lambda data: b"x" * len(data),
    "shorter": lambda data: b"x" * (len(data) // 2),
    "longer": lambda data: b"x\n" * len(data),
    "zeros": lambda data: bytes(len(data)),
    "no first line": lambda data: data.partition(b"\n")[2],
    "a bad first line": lambda data: b"#" * 40 + data[40:],
    "cut off": lambda data: data[: len(data) // 2],
    "a bad line": lambda data: data.replace(b'{"id":"g0"', b'##id":"g0"'),
    "a few bytes": lambda data: data.replace(b"Hello", b"Hullo"),
    "an earlier date": lambda data: data.replace(b"23:04:05", b"23:04:03"),
}


def overwrite(path: Path, data: bytes) -> None:
    """Change a file in its place, as a program does that truncates it."""
    with path.open("r+b") as file:
        file.truncate()
        file.write(data)


def kept_ids(home: Path) -> list[str]:
    """The sessions that `gemtui vault status` says are kept."""
    status = vault_status(read(home), {}, SOON, hook=False)
    return [each.id for each in status.kept]


def named(home: Path, id: str) -> Summary:
    (found,) = with_id_prefix(read(home).sessions, id)
    return found


def restored(home: Path, id: str) -> Restored:
    return restore_from_vault(named(home, id), home, Retention(), SOON)


def held() -> list[bytes]:
    """The contents of all session files in the vault, replaced versions included."""
    return [path.read_bytes() for path in vault_dir().rglob("*.jsonl")]


def keep_quiet(home: Path, path: Path) -> None:
    """Keep a file that has not changed for a minute, so that the vault copies it."""
    set_time(path, LONG_AGO + zlib.crc32(path.read_bytes()) % 1000)
    keep_all(home)


def created_anew(home: Path) -> Path:
    """A log that was kept, and that the CLI has created again with other messages."""
    path = session(home, uuid(1), talk(uuid(1), turns=3))
    keep_quiet(home, path)
    path.unlink()
    other = [logs.user("u8", "New", 20), logs.gemini("g8", "Newer", 21)]
    return session(home, uuid(1), [logs.header(uuid(1), lastUpdated=logs.at(21)), *other])


def rewound(home: Path) -> Path:
    """A legacy file that was kept, and that the CLI has written again after a rewind."""
    asked = [logs.user("u0", "Hello"), logs.gemini("g0", "Answer")]
    path = legacy(home, uuid(1), [*asked, logs.user("u1", "More", 3)], key="proj")
    keep_quiet(home, path)
    return legacy(home, uuid(1), asked, key="proj", seconds=30)


@pytest.mark.parametrize("anew", [created_anew, rewound])
def test_what_gemini_cli_has_written_anew_is_listed_and_not_replaced(
    store: Path, anew: Callable[[Path], Path]
) -> None:
    path = anew(store)
    for _ in range(2):
        (found,) = read(store).sessions
        assert found.path == path
        before = path.read_bytes()
        with pytest.raises(RestoreFailed, match="already in its place"):
            restored(store, uuid(1))
        assert path.read_bytes() == before
        keep_quiet(store, path)


def test_a_legacy_file_without_an_id_is_not_repaired(store: Path) -> None:
    path = legacy(store, uuid(1), [logs.user("u0", "Hello"), logs.gemini("g0", "Hi")], key="proj")
    overwrite(path, bad := path.read_bytes().replace(b'"sessionId"', b'"sessionid"'))
    (found,) = read(store).sessions
    (next_one,) = next_deletions([found], lambda _: Retention(), SOON)
    assert next_one.words() == "it has no session id"
    with pytest.raises(RestoreFailed, match="only files in today's format"):
        restore_from_vault(found, store, Retention(), SOON)
    assert path.read_bytes() == bad


@pytest.mark.parametrize("later", ["at once", "linked", "copied"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_one_restore_puts_a_damaged_session_back_and_keeps_what_was_there(
    store: Path, damage: str, later: str
) -> None:
    path = session(store, uuid(1))
    keep_quiet(store, path)
    before = path.read_bytes()
    overwrite(path, bad := DAMAGE[damage](before))
    assert bad != before
    if later == "linked":
        keep_all(store)
    elif later == "copied":
        keep_quiet(store, path)
    assert kept_ids(store) == [uuid(1)]
    assert contents().only_here >= len(before)
    assert restored(store, uuid(1)[:8]).paths == (path,)
    assert path.read_bytes() == before
    assert bad in held()
    assert next_deletions(read(store).sessions, lambda _: Retention(), SOON) == ()
    for _ in range(2):
        assert kept_ids(store) == []
        (found,) = read(store).sessions
        assert found.files == (path,)
        keep_quiet(store, path)
    forget_kept(found)
    assert bad not in held()


def test_a_damaged_session_that_was_continued_is_not_replaced(store: Path) -> None:
    path = session(store, uuid(1))
    keep_quiet(store, path)
    overwrite(path, path.read_bytes().replace(b"Hello", b"Hullo"))
    append(path, logs.user("late", "One more", 60), logs.gemini("later", "Yes", 61))
    before, asked = path.read_bytes(), named(store, uuid(1))
    with pytest.raises(RestoreFailed, match="nothing to restore"):
        restore_from_vault(asked, store, Retention(), SOON)
    (copy,) = asked.copies
    with pytest.raises(RestoreFailed, match="move it away"):
        restore_from_vault(copy, store, Retention(), SOON)
    assert path.read_bytes() == before


def test_what_was_added_without_a_first_line_stays_in_the_lists(store: Path) -> None:
    path = session(store, uuid(1))
    keep_quiet(store, path)
    data = path.read_bytes()
    overwrite(path, b"")
    append(path, logs.user("late", "One more", 60), logs.gemini("later", "Yes", 61))
    set_time(path, LONG_AGO)
    assert restored(store, uuid(1)).replaced is not None
    assert path.read_bytes() == data
    assert {each.title for each in read(store).sessions} == {"Hello", "One more"}


def test_a_damaged_subagent_is_restored(store: Path) -> None:
    path = session(store, uuid(1))
    agent = logs.write(path.parent / uuid(1) / "helper.jsonl", talk("helper"))
    keep_quiet(store, agent)
    before = agent.read_bytes()
    overwrite(agent, b"x" * 2000)
    (found,) = (each for each in read(store).sessions if each.parent)
    assert restore_from_vault(found, store, Retention(), SOON).paths == (agent,)
    assert agent.read_bytes() == before


@pytest.mark.parametrize("on", [True, False])
def test_a_first_line_is_repaired_in_its_place_even_without_the_vault(
    tmp_path: Path, on: bool
) -> None:
    home = tmp_path / ".gemini"
    marker(home, "proj", "/work/proj")
    path = session(home, uuid(1))
    data = path.read_bytes().partition(b"\n")[2]
    path.write_bytes(data)
    set_time(path, LONG_AGO)
    if on:
        turn_on()
        keep_all(home)
    other = session(home, uuid(2))
    (hit,) = next_deletions(read(home).sessions, lambda _: Retention(), SOON)
    assert hit.why is Why.NO_HEADER
    done = restored(home, hit.session.id)
    assert done.replaced is not None
    assert done.replaced.read_bytes() == data
    assert path.read_bytes().partition(b"\n")[2] == data
    assert sorted(path.parent.iterdir()) == [path, other]
    assert next_deletions(read(home).sessions, lambda _: Retention(), SOON) == ()
    assert kept_ids(home) == []


def test_the_kept_version_is_used_for_the_id_without_a_first_line(store: Path) -> None:
    path = session(store, uuid(1))
    keep_quiet(store, path)
    data = path.read_bytes()
    overwrite(path, data.partition(b"\n")[2])
    restored(store, path.stem)
    assert path.read_bytes() == data


def test_a_link_in_the_place_of_a_session_is_left_alone(store: Path, tmp_path: Path) -> None:
    path = session(store, uuid(1))
    keep_quiet(store, path)
    path.unlink()
    asked = named(store, uuid(1))
    path.symlink_to(mine := tmp_path / "mine")
    mine.write_text("mine")
    with pytest.raises(RestoreFailed, match="move it away"):
        restore_from_vault(asked, store, Retention(), SOON)
    assert (path.is_symlink(), mine.read_text()) == (True, "mine")
