"""Names, tags, notes, pins and the archive, as a person sets and sees them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from textual.widgets import Input

from gemtui.marks import MarkEdit, Marks
from gemtui.paths import marks_file
from gemtui.sessions.catalog.entries import SessionRow
from gemtui.sessions.catalog.listing import DayHeading, Heading
from gemtui.ui.kit.text_area import TextArea
from gemtui.ui.sessions.marks_dialog import MarksScreen
from gemtui.ui.sessions.screen import SessionsScreen
from gemtui.ui.sessions.search_screen import SearchScreen
from tests.test_marks import newer
from tests.ui.people import BOTH, NARROW, WIDE, Person, keys, person
from tests.ui.sessions.test_deleting import confirmed, content


def titles(me: Person) -> list[str]:
    return [row.entry.title for row in me.rows.rows.rows if isinstance(row, SessionRow)]


async def open_dialog(me: Person) -> MarksScreen:
    await me.press("m")
    return await me.on(MarksScreen)


# --- the dialog --------------------------------------------------------------------------------


async def test_a_new_name_alone_is_told_as_a_new_name(store: Path) -> None:
    async with person(store, BOTH) as me:
        await open_dialog(me)
        await me.type("The tail")
        await me.press("ctrl+s")
        await me.is_told("Renamed: The tail, u to undo")


async def test_a_name_tags_and_a_note_are_kept_and_shown(store: Path) -> None:
    async with person(store, BOTH) as me:
        id = me.chosen.id
        await open_dialog(me)
        await me.sees("first question")
        await me.type("The tail")
        await me.press("tab")
        await me.type("bug #Parser")
        await me.press("tab")
        await me.type("look at line 3")
        await me.press("ctrl+s")
        await me.on(SessionsScreen)
        await me.sees("The tail")
        await me.is_told("Marked: The tail, u to undo")
        assert me.chosen.id == id
        mark = Marks().get(id)
        assert (mark.name, mark.tags, mark.note) == (
            "The tail",
            ("bug", "parser"),
            "look at line 3",
        )
        await me.does("i", "The tail", "title", "first question", "#bug #parser", "look at line 3")
        await me.press("escape", "enter")
        await me.until(lambda: me.view.has_focus)
        await me.sees("The tail")
        dialog = await open_dialog(me)
        assert dialog.query_one("#name", Input).value == "The tail"
        assert dialog.query_one("#tags", Input).value == "bug parser"
        assert dialog.query_one(TextArea).text == "look at line 3"
        await me.press("ctrl+u", "tab", "ctrl+u", "ctrl+s")
        await me.until(lambda: Marks().get(id).name is None)
        assert (Marks().get(id).tags, Marks().get(id).note) == ((), "look at line 3")


async def test_each_way_out_of_the_dialog_and_what_can_not_be_kept_is_said_in_it(
    store: Path,
) -> None:
    Marks().edit(["elsewhere"], MarkEdit(add=("parser", "work")))
    async with person(store, NARROW) as me:
        id = me.chosen.id
        await open_dialog(me)
        await me.type("No")
        await me.press("escape")
        await me.on(SessionsScreen)
        assert "u undo" not in me.text
        await open_dialog(me)  # what was typed is there again, and is discarded
        await me.pilot.click("#no")
        await me.on(SessionsScreen)
        await open_dialog(me)
        await me.does("'Tail", "in use: parser work")
        await me.pilot.click("#no")
        await me.on(SessionsScreen)
        assert Marks().get(id).name is None
        await open_dialog(me)
        await me.pilot.click("#yes")
        await me.on(SessionsScreen)
        await me.until(lambda: Marks().get(id).name == "Tail")

        await open_dialog(me)
        await me.does("tab 'bug space 'c'est ctrl+s", '"c\'est" is not a valid tag')
        await me.press("backspace", "backspace", "backspace", "backspace", "enter")
        await me.on(SessionsScreen)
        await me.until(lambda: Marks().get(id).tags == ("bug", "c"))

        dialog = await open_dialog(me)
        await me.press(*keys("tab ctrl+u 'new space 'pa"))
        await me.until(lambda: dialog.query_one("#tags", Input)._suggestion)
        await me.press("right", "enter")
        await me.until(lambda: Marks().get(id).tags == ("new", "parser"))


async def test_several_are_pinned_archived_and_tagged_at_once(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("space", "space", "p")
        ids = {session.id for session in me.rows.selected}
        await me.is_told("Pinned: 2 sessions")
        await me.until(lambda: {id for id, mark in Marks().all().items() if mark.pinned} == ids)
        await me.press("A")
        await me.is_told("Archived: 2 sessions")
        assert me.rows.selection.words == ""
        await me.press("u")
        await me.is_told("Undone: archived 2 sessions")
        await me.until(lambda: set(titles(me)[:2]) == {"first question", "Write a haiku file"})

        await me.press("home", "space", "space")
        one, two = me.rows.selected
        Marks().edit([one.id], MarkEdit(add=("common",), pinned=False))
        Marks().edit([two.id], MarkEdit(add=("common", "own"), name="Two", note="Read me"))
        await me.sees("Two")
        dialog = await open_dialog(me)
        await me.sees("2 sessions", "some have: own", "pinned (1 of 2 are)")
        assert not dialog.query("#name")
        await me.press(*keys("ctrl+u 'new ctrl+s"))
        await me.is_told("Marked: 2 sessions, u to undo")
        marks = Marks()
        assert (marks.get(one.id).tags, marks.get(two.id).tags) == (("new",), ("new", "own"))
        assert (marks.get(two.id).name, marks.get(two.id).pinned) == ("Two", True)


# --- pins and the archive ----------------------------------------------------------------------


async def test_pinned_sessions_come_first_also_above_the_projects(store: Path) -> None:
    async with person(store, BOTH) as me:
        await me.press("end", "p")
        last = me.chosen
        await me.sees("Pinned", f"★ {last.title}")
        await me.is_told(f"Pinned: {last.title}, u to undo")
        heading, first = me.rows.rows.rows[:2]
        assert isinstance(heading, DayHeading)
        assert isinstance(first, SessionRow)
        assert first.key == last.id == me.chosen.id
        await me.press("p")
        await me.is_told("Unpinned")
        assert "Pinned" not in me.text.splitlines()[3]
        await me.until(lambda: Marks().all() == {})

        await me.press("end", "p", "g", "home")
        [first, second, third, *_] = me.rows.rows.rows
        assert isinstance(first, Heading)
        assert isinstance(second, SessionRow)
        assert isinstance(third, Heading)
        await me.does("space", "1 selected")
        await me.press("escape", "home", "left")
        await me.until(lambda: isinstance(me.rows.rows.rows[1], Heading))


async def test_archived_sessions_are_hidden_until_they_are_asked_for(store: Path) -> None:
    async with person(store, NARROW) as me:
        gone, before = me.chosen, me.rows.rows.shown
        await me.press("A")
        await me.is_told(f"Archived: {gone.title}, u to undo")
        assert me.rows.rows.shown == before - 1
        assert me.chosen.id != gone.id
        await me.press("slash")
        await me.type("is:archived")
        await me.until(lambda: titles(me) == [gone.title])
        await me.sees("archived")
        await me.does("escape full_stop", "including hidden", "archived")
        assert me.rows.highlight(gone)
        await me.press("A")
        await me.is_told("Unarchived")
        await me.press("full_stop")
        await me.until(lambda: me.rows.rows.shown == before)


async def test_the_open_session_is_marked_and_keys_of_one_burst_all_act_though_the_app_ends(
    store: Path,
) -> None:
    async with person(store, NARROW) as me:
        id = me.chosen.id
        await me.press("enter")
        await me.until(lambda: me.view.has_focus)
        await me.does("p A", "★ pinned", "archived")
        await me.until(lambda: Marks().get(id).pinned and Marks().get(id).archived)
        await me.press("u", "u")
        await me.until(lambda: "archived" not in me.text and "★" not in me.text)
        await me.until(lambda: Marks().all() == {})
        await me.press("escape")

        await me.burst("ppp")
        await me.until(lambda: Marks().get(id).pinned)
        await me.burst("pu")
        await me.until(lambda: not me.home.marks._changing)
        assert Marks().get(id).pinned
        await me.burst("p\x11")
    assert not Marks().get(id).pinned


# --- finding -----------------------------------------------------------------------------------


async def test_the_filter_finds_names_tags_and_notes_and_completes_tags(store: Path) -> None:
    Marks().edit(["elsewhere"], MarkEdit(add=("work",)))
    async with person(store, NARROW) as me:
        note = "nothing here\n" + "so " * 30 + "an umbrella for rain" + " or" * 30
        mark = MarkEdit(name="The tail", add=("parser",), note=note, pinned=True)
        Marks().edit([me.chosen.id], mark)
        await me.sees("The tail")
        await me.press("slash")
        for typed, why in (
            ("tail", "The tail"),
            ("#pars", "#parser"),
            ("#Parser", "#parser"),
            ("first question", "first question"),
            ("umbrella", "an umbrella for"),
            ("is:pinned", "The tail"),
        ):
            await me.press("ctrl+u")
            await me.type(typed)
            await me.until(lambda: titles(me) == ["The tail"])
            await me.sees(why)

        await me.press(*keys("ctrl+u 'question space '#pa"))
        await me.until(lambda: me.home.query_one(Input)._suggestion)
        await me.press("right")
        assert me.rows.bar.text == "question #parser"
        await me.press(*keys("ctrl+u 'wor"))
        await me.until(lambda: me.rows.view.query == "wor")
        assert not me.home.query_one(Input)._suggestion


async def test_the_search_completes_tags_and_knows_what_was_marked_just_now(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.sees("first question")
        assert me.rows.highlight(
            next(
                row.entry.summary
                for row in me.rows.rows.rows
                if isinstance(row, SessionRow) and row.entry.title == "Write a haiku file"
            )
        )
        await me.burst("pF")
        await me.on(SearchScreen)
        await me.does("'is:pinned space 'leaps", "★ Write a haiku file", "in 1 session")
        Marks().edit([me.chosen.id], MarkEdit(add=("verse",), archived=True, name="Frogs"))
        await me.sees("★ Frogs", "archived")
        await me.does("ctrl+u 'leaps space 'tag:ve tab", "tag:verse", "in 1 session")


# --- undo --------------------------------------------------------------------------------------


async def test_marks_and_deletions_are_one_stack_that_leaves_what_others_have_marked(
    store: Path, trash: Path
) -> None:
    before = content(store)
    async with person(store, NARROW) as me:
        first = me.chosen
        await me.press("p")
        await me.is_told("Pinned")
        await confirmed(me)
        await me.is_told("u to undo")
        await me.until(lambda: me.chosen.id != first.id)
        second = me.chosen
        await me.press("A")
        await me.is_told("Archived")
        await me.press("u")
        await me.is_told(f"Undone: archived {second.title}")
        await me.until(lambda: me.chosen.id == second.id)
        assert not first.path.exists()
        assert Marks().get(first.id).pinned
        await me.press("u")
        await me.is_told(f"Restored: {first.title}")
        assert content(store) == before
        await me.sees(f"★ {first.title}")
        await me.press("u")
        await me.is_told(f"Undone: pinned {first.title}")
        await me.until(lambda: Marks().all() == {})

        await me.press("home", "p")
        await me.until(lambda: Marks().get(first.id).pinned)
        Marks().edit([first.id], MarkEdit(note="theirs"))
        await me.press("u")
        await me.until(lambda: not Marks().get(first.id).pinned)
        assert Marks().get(first.id).note == "theirs"

        Marks().edit([first.id], MarkEdit(name="The tail"))
        await me.sees("The tail")
        await confirmed(me)
        await me.until(lambda: me.chosen.id != first.id)
        assert Marks().get(first.id).note == "theirs"
        await me.press("u")
        await me.is_told("Restored: The tail")
        await me.until(lambda: me.chosen.id == first.id)
        await me.sees("The tail")


async def test_the_name_stands_where_other_panes_tell_of_the_session(
    store: Path, tmp_path: Path
) -> None:
    for marker in store.rglob(".project_root"):
        marker.write_text(str(tmp_path))
    async with person(store) as me:
        await me.sees("Write a haiku file")
        await me.press("down")
        assert me.chosen.title == "Write a haiku file"
        Marks().edit([me.chosen.id], MarkEdit(name="Frogs"))
        await me.sees("Frogs")
        await me.does("3 h", "calls in")
        await me.does("w", "Choose the calls")
        await me.does("end enter", "Choose a session", "Frogs")
        await me.does("/ 'frogs enter", 'session "Frogs"')
        await me.does("1 c", "enter continues session", "Frogs")
        assert "haiku" not in me.text.splitlines()[1]


# --- other programs, and what goes wrong --------------------------------------------------------


async def test_what_others_mark_appears_and_a_session_that_goes_keeps_its_marks(
    store: Path,
) -> None:
    async with person(store, NARROW) as me:
        session = me.chosen
        Marks().edit([session.id], MarkEdit(name="Theirs", pinned=True))
        await me.sees("★ Theirs")
        data = session.path.read_bytes()
        session.path.unlink()
        await me.lacks("Theirs")
        assert Marks().get(session.id).name == "Theirs"
        session.path.write_bytes(data)
        await me.sees("★ Theirs")
        marks_file().unlink()
        await me.sees(session.title)


def damaged(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"somebody's words, and no database " * 100)


def odd(path: Path) -> None:
    Marks(path).edit(["one"], MarkEdit(name="One"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("update mark set changed = 'soon'")
        database.commit()


@pytest.mark.parametrize("spoil", [damaged, odd])
async def test_a_damaged_file_is_set_aside_by_the_first_mark(
    store: Path, spoil: Callable[[Path], None]
) -> None:
    spoil(marks_file())
    before = marks_file().read_bytes()
    async with person(store, NARROW) as me:
        await me.sees("! marks can't be read", "first question")
        assert marks_file().read_bytes() == before
        await me.press("p")
        await me.is_told("it is now")
        await me.lacks("marks can't")
        await me.does("p", "★ first question")
    aside = marks_file().with_name("marks-damaged-1.sqlite3")
    assert aside.read_bytes() == before


async def test_a_file_of_a_newer_version_is_said_and_left_alone(store: Path) -> None:
    newer(marks_file())
    before = marks_file().read_bytes()
    async with person(store, NARROW) as me:
        await me.sees("! marks can't be read", "first question")
        for times, key in enumerate("pAm", start=1):
            await me.press(key)
            await me.hears("which has your names, tags and notes for sessions, can't", times)
        await me.does("exclamation_mark", "marks.sqlite3", "use a newer gemtui")
        await me.press("escape", "enter")
        await me.until(lambda: me.view.total)
        assert marks_file().read_bytes() == before
        marks_file().unlink()
        await me.lacks("marks can't")


async def test_what_can_not_be_written_is_shown_no_longer(store: Path) -> None:
    async with person(store, NARROW) as me:
        id = me.chosen.id
        Marks().edit([id], MarkEdit(note="mine"))
        await me.until(lambda: id in me.home.marks.marks)
        with closing(sqlite3.connect(marks_file(), isolation_level=None)) as other:
            other.execute("begin exclusive")
            await me.does("p", "★ first question")
            await me.press("down")
            assert me.chosen.id != id
            await me.is_told("can't be used: database is locked")
            await me.lacks("★")
            await me.press("u")
        await me.until(lambda: me.home.marks.problem is None)
        assert not Marks().get(id).pinned


# --- exporting ---------------------------------------------------------------------------------


async def test_an_export_has_the_name_and_its_json_what_is_stored(store: Path) -> None:
    async with person(store, NARROW) as me:
        Marks().edit([me.chosen.id], MarkEdit(name="The tail"))
        await me.sees("The tail")
        await me.does("e", "Export", "The-tail")
        await me.press("enter")
        await me.is_told("Exported to")
        await me.does("e", "HTML, one")
        await me.press("down", "down", "down", "enter")
        await me.until(lambda: list(Path().glob("The-tail-*.json")))
    [page] = Path().glob("The-tail-*.md")
    assert page.read_text().startswith("# The tail\n")
    [stored] = Path().glob("The-tail-*.json")
    assert json.loads(stored.read_bytes())["session"]["title"] == "first question"
