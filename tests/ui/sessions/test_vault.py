"""The vault by keys: switched on, followed, put back, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.kept.vault import is_on, keep_all, turn_on
from gemtui.paths import vault_dir
from gemtui.sessions.catalog.entries import SessionRow
from gemtui.sessions.catalog.summary import Flag
from gemtui.sessions.catalog.vault_files import COPIES, in_tree
from tests.sessions import logs
from tests.sessions.stores import append, hashed, marker, session, talk, uuid
from tests.ui.people import NARROW, Person, person

TITLE = "Where is it?"


@pytest.fixture
def chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of a store with two."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    home = tmp_path / ".gemini"
    session(home, uuid(2), talk(uuid(2), "Another one", seconds=1))
    return session(home, uuid(1), talk(uuid(1), TITLE))


@pytest.fixture
def gone(chat: Path) -> Path:
    """The same, when Gemini CLI has removed it and the vault has it."""
    turn_on()
    keep_all(chat.parents[3])
    chat.unlink()
    return chat


async def on_kept(me: Person) -> None:
    """The cursor on the session that only the vault has."""
    await me.sees(TITLE)
    while Flag.KEPT not in me.chosen.flags:
        await me.press("down")


def is_copied(path: Path) -> bool:
    """The vault's copy of a file is up to date."""
    copy = in_tree(vault_dir() / COPIES, path)
    return copy.exists() and copy.read_bytes() == path.read_bytes()


def nothing_kept(me: Person) -> bool:
    """The list has no session that only the vault has."""
    rows = (row for row in me.rows.rows.rows if isinstance(row, SessionRow))
    return not any(Flag.KEPT in row.entry.summary.flags for row in rows)


async def test_one_key_and_a_yes_keep_all_sessions_and_those_to_come(chat: Path) -> None:
    async with person(chat.parents[3], NARROW) as me:
        await me.does("i", "deletion", "by Gemini CLI after")
        await me.does("escape V", "Keep all sessions?", "30 days", "restores them")
        assert not vault_dir().exists()
        await me.press("n")
        assert not is_on()
        await me.does("V", "Keep all sessions?")
        await me.press("y")
        await me.until(lambda: is_copied(chat))
        append(chat, logs.user("late", "One more"))
        await me.until(lambda: is_copied(chat))
        data = chat.read_bytes()
        chat.unlink()
        chat.write_bytes(data)
        append(chat, logs.user("later", "And more"))
        await me.until(lambda: is_copied(chat))

        await me.does("d", "The vault keeps a copy", "marked kept")
        await me.press("n")
        late = session(chat.parents[3], uuid(3), talk(uuid(3), "A late one"))
        await me.until(lambda: is_copied(late))
        late.unlink()
        await me.sees("A late one", "kept")


async def test_a_kept_session_has_a_sign_is_read_and_is_put_back_by_a_key_and_a_yes(
    gone: Path,
) -> None:
    async with person(gone.parents[3], NARROW) as me:
        await me.sees("▣ Where is it?", "kept")
        await on_kept(me)
        await me.does("i", "deleted by Gemini CLI; only the vault has it")
        await me.does("escape enter", "Answer 0")
        await me.does("escape b", "Restore this session?", "No other conversation is")
        await me.press("n")
        assert not gone.exists()
        await me.does("b", "Restore this session?")
        await me.press("y")
        await me.is_told("Restored: 1 file")
        await me.until(lambda: nothing_kept(me))
        assert gone.exists()


async def test_what_can_not_be_put_back_is_said_and_what_is_there_offers_no_key(chat: Path) -> None:
    turn_on()
    empty = session(chat.parents[3], uuid(4), [logs.header(uuid(4)), logs.user("u", "/about")])
    keep_all(chat.parents[3])
    empty.unlink()
    async with person(chat.parents[3]) as me:
        await me.press("b")
        assert me.app.screen is me.home
        await me.sees("/about")
        while Flag.KEPT not in me.chosen.flags:
            await me.press("down")
        await me.press("b", "y")
        await me.is_told("contains nothing to resume")


async def test_a_kept_session_goes_on_once_it_is_put_back(gone: Path) -> None:
    project = str(Path.cwd())
    marker(gone.parents[3], gone.parents[1].name, project)
    for kept in vault_dir().rglob(gone.name):
        kept.write_bytes(kept.read_bytes().replace(b"0" * 64, hashed(project).encode()))
    async with person(gone.parents[3]) as me:
        await on_kept(me)
        await me.does("c", "Restore this session and continue?")
        await me.press("n")
        assert not gone.exists()
        await me.does("c", "Restore this session and continue?")
        await me.does("y", f"continues session {uuid(1)[:8]}")
        assert gone.exists()


async def test_a_kept_session_is_deleted_for_good_after_its_own_question(gone: Path) -> None:
    async with person(gone.parents[3]) as me:
        await on_kept(me)
        await me.does("d", "Delete this kept session permanently?")
        await me.press("y")
        await me.press("D")
        await me.is_told("from the vault")
        await me.until(lambda: nothing_kept(me))
        assert not list(vault_dir().rglob(gone.name))


async def test_the_vault_shows_what_it_has_and_what_goes_next_and_is_switched_off(
    gone: Path,
) -> None:
    session(gone.parents[3], uuid(5), [logs.header(uuid(5)), logs.user("u", "/about")])
    async with person(gone.parents[3], NARROW) as me:
        await me.does("V", "The vault", "on", "only here, in 1 file", "kept ", TITLE)
        await me.sees("contains nothing to resume", "sessionRetention.enabled = false")
        await me.does("tab enter", "Answer 0")
        await me.does("escape V", "turn it off")
        await me.press("o")
        await me.is_told("Kept sessions stay")
        assert not is_on()
        await me.does("V", "turn it on", "only here, in 1 file")


async def test_what_can_not_be_kept_is_said(chat: Path, other_file_system: Path) -> None:
    turn_on()
    large = [logs.header(uuid(7)), {"x": "x" * 800_000}, *talk(uuid(7))[1:]]
    session(chat.parents[3], uuid(7), large)
    async with person(chat.parents[3], (160, 36)) as me:
        await me.sees("the vault is incomplete: No space left on device")
