"""Stores that are missing, empty, closed or damaged, and sessions that can't be shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gemtui.sessions.catalog.cache import FILE
from gemtui.sessions.catalog.index import Index
from gemtui.ui.kit.keys import acting
from tests.conftest import nobody
from tests.sessions import logs
from tests.sessions.stores import session, uuid
from tests.ui.people import BOTH, NARROW, WIDE, Person, copy_store, person


async def test_no_store_says_where_we_looked_and_another_folder_is_taken(tmp_path: Path) -> None:
    store = copy_store(tmp_path)
    async with person(tmp_path / ".gemini", BOTH) as me:
        await me.sees("No sessions here yet.", ".gemini/tmp", "gemtui --demo")
        await me.sees("Check the same folder again", "Choose another folder")
        await me.until(lambda: "r try again" in me.text.splitlines()[-1])
        ids = {key.id for key, _ in acting(me.home)}
        assert {"empty.again", "sessions.new_run", "sessions.refresh", "app.quit"} <= ids
        assert not {"sessions.zoom", "sessions.info", "sessions.export", "sessions.go_on"} & ids
        assert not {"sessions.other_pane", "sessions.delete"} & ids

        await me.does("o ctrl+u '/nowhere enter", "Folder not found.")
        await me.press("ctrl+u", *str(store.parent), "enter")
        await me.sees("Write a haiku file")
    async with person(tmp_path / "later", NARROW) as me:
        await me.sees("No sessions here yet.")
        store.rename(tmp_path / "later")
        await me.does("r", "Write a haiku file")


async def test_nothing_is_shown_beside_an_empty_list_or_a_search_that_finds_nothing(
    tmp_path: Path,
) -> None:
    async with person(copy_store(tmp_path), WIDE, project=tmp_path) as me:
        await me.sees("Answer one.")
        await me.does("a", "No sessions in this project.", "No session to show.")
        assert "Answer one." not in me.text
        assert "message 1" not in me.text
        await me.does("a", "Answer one.")

        await me.does("slash 'haiku", "frog leaps in")
        await me.does("'zzz", "No session title matches", "No session to show.")
        assert "frog leaps in" not in me.text
        await me.does("ctrl+u 'in:prompt space 'haiku", "Inside sessions", "Write a haiku file")
        await me.does("space 'projct:x", "projct: is not a field")


async def test_stores_without_sessions_say_why(tmp_path: Path) -> None:
    empty, closed, odd = tmp_path / "empty", tmp_path / "closed", tmp_path / "odd"
    for name in ("a", "b"):
        (empty / "tmp" / name / "chats").mkdir(parents=True)
    for folder in (closed, odd):
        folder.mkdir()
    (closed / "tmp").symlink_to("tmp")
    (odd / "tmp").write_text("")
    async with person(empty, NARROW) as me:
        await me.sees("No sessions yet.", "There are no session files in 2 projects")
    async with person(odd, NARROW) as me:
        await me.sees("Gemini CLI can't store sessions here.", "/tmp  is not a folder")
    async with person(closed, NARROW) as me:
        await me.sees("The sessions can't be read.", "Too many levels of symbolic links")
        await me.press("y")
        assert "Too many levels of symbolic links" in me.app.clipboard


async def test_the_first_session_replaces_the_empty_screen(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".gemini"
    home.mkdir(parents=True)
    async with person(home, NARROW) as me:
        await me.sees("No sessions here yet.")
        copy_store(tmp_path / "other").rename(home / "other")
        (home / "other" / "tmp").rename(home / "tmp")
        await me.sees("Write a haiku file")
        assert me.rows.has_focus


async def test_a_session_that_is_cut_or_none_any_more_says_why_and_is_shown_once_it_is_whole(
    tmp_path: Path,
) -> None:
    async with person(copy_store(tmp_path), NARROW) as me:
        path = me.chosen.path
        kept = path.read_bytes()
        path.write_bytes(kept[:20])
        await me.does("enter", "This session can't be shown.")
        path.write_bytes(kept)
        await me.sees("Answer one.")
        path.write_bytes(kept[:20])
        await me.sees("This session can't be shown.", "ends before its first message")
        path.write_bytes(kept)
        await me.sees("Answer one.")
        assert me.view.has_focus
        path.unlink()
        path.mkdir()
        await me.sees("This session can't be shown.", "is not a regular")
        await me.press("y")
        assert "is not a regular file" in me.app.clipboard
        path.rmdir()
        path.write_bytes(kept)
        await me.does("r", "Answer one.")
        assert me.view.has_focus


UNREAD = re.compile(r"! \d files? can't be read")
"""Says so of sessions; of other users' marks it is said as well."""


async def test_folders_and_files_that_become_unreadable_are_named_and_come_back(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(open_folder / "data"))
    home = open_folder / ".gemini"
    with nobody():
        paths = [session(home, uuid(number), key=f"p{number}") for number in (1, 2, 3)]
    junk = logs.write(paths[0].with_name("session-junk.jsonl"), ["no session"])
    async with person(home, WIDE) as me:
        await me.sees("! 1 file can't be read")
        await me.does("exclamation_mark", "session-junk.jsonl")
        await me.press("escape")
        junk.unlink()
        await me.until(lambda: not UNREAD.search(me.text))
        with nobody():
            project, chats, file = paths[0].parent.parent, paths[1].parent, paths[2]
            project.chmod(0)
            await me.until(lambda: listed(me) == {uuid(2), uuid(3)})
            await me.sees("! 1 file can't be read")
            file.chmod(0)
            await me.sees("! 2 files can't be read")
            chats.chmod(0)
            await me.until(lambda: listed(me) == {uuid(3)})
            await me.does(
                "exclamation_mark", *map(str, (project, chats, file)), "Permission denied"
            )
            await me.press("escape")
            for place in (project, chats, file):
                place.chmod(0o700)
            await me.until(lambda: listed(me) == {uuid(1), uuid(2), uuid(3)})
            await me.until(lambda: not UNREAD.search(me.text))


def listed(me: Person) -> set[str]:
    snapshot = me.home.store.snapshot
    return set() if snapshot is None else {each.id for each in snapshot.sessions}


async def test_a_damaged_cache_is_told(tmp_path: Path) -> None:
    store, cache = copy_store(tmp_path), tmp_path / "cache"
    async with person(store, WIDE, cache=cache):
        pass
    (cache / FILE).write_bytes(b"no database")
    async with person(store, WIDE, cache=cache) as me:
        await me.until(lambda: any("corrupt" in said and "rebuilt" in said for said in me.said))


async def test_files_that_are_no_sessions_and_damaged_lines_are_counted_and_named(
    tmp_path: Path,
) -> None:
    store = copy_store(tmp_path)
    junk = store / "tmp" / "greeter" / "chats" / "session-2026-11-20T23-00-deadbeef.jsonl"
    junk.write_text("not valid JSON\n")
    async with person(store, NARROW) as me:
        await me.sees("! 1 file can't be read")
        await me.does("exclamation_mark", "Unreadable files", "deadbeef.jsonl")
        await me.press("escape")

        with me.chosen.path.open("ab") as file:
            file.write(b"{broken}\n")
        await me.does("enter", "! 1 line can't be read")
        await me.does(
            "exclamation_mark", "Unreadable files", f"{me.chosen.path.name}, line", "not valid JSON"
        )


async def test_a_file_removed_while_it_is_read_stays_on_the_screen(tmp_path: Path) -> None:
    async with person(copy_store(tmp_path), WIDE) as me:
        await me.does("enter", "Answer one.")
        me.chosen.path.unlink()
        await me.sees(
            "This session's file was deleted; showing what was read before.", "Answer one."
        )
        await me.does("end home", "Answer one.")
        assert "live" not in me.text.splitlines()[1]


async def test_a_tight_terminal_says_so_and_works(tmp_path: Path) -> None:
    async with person(copy_store(tmp_path), (50, 12)) as me:
        await me.sees("small window: needs 60 x 15", "first question")
        await me.does("enter", "Answer one.")


async def test_a_file_can_be_read_without_any_store(tmp_path: Path) -> None:
    store = copy_store(tmp_path)
    session = Index(store, cache=None).find("9babadd1")
    async with person(tmp_path / "nothing", NARROW, session=session) as me:
        await me.sees("Add a docstring to Stock", "run_shell_command")


async def test_a_store_that_is_looked_at_now_and_then_is_not_said_to_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.sessions.store.watch.network_file_system", lambda path: "nfs4")
    async with person(copy_store(tmp_path), (200, 36)) as me:
        await me.until(lambda: me.home.pane.polling)
        await me.press("down", "enter", "end")
        await me.until(lambda: me.view.following)
        newer = me.app.glyphs.newer
        await me.until(lambda: f"{newer} checking for changes every" in me.text)
        assert "following" not in me.text
