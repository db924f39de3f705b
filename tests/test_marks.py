"""Names, tags, notes and pins: kept, merged, undone, and never lost."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui import sqlite_file
from gemtui.errors import MarkError, MarksUnreadable
from gemtui.marks import LONGEST_NAME, Mark, MarkEdit, Marks, exported, imported, tag_of
from tests.patience import PATIENCE


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "data" / "marks.sqlite3")


def test_what_is_said_is_kept(marks: Marks) -> None:
    assert marks.all() == {}
    assert not marks.path.exists()
    edit = MarkEdit(name=" The  parser ", add=("#Bug", "work"), pinned=True, note="a\nb\n")
    marks.edit(["one", "two"], edit)
    one = Marks(marks.path).get("one")
    assert (one.name, one.tags, one.note, one.pinned) == ("The parser", ("bug", "work"), "a\nb", 1)
    marks.edit(["one"], MarkEdit(name="", remove=("bug",), archived=True))
    one = marks.get("one")
    assert (one.name, one.tags, one.archived, one.pinned) == (None, ("work",), True, True)
    assert marks.get("two").name == "The parser"
    assert marks.path.stat().st_mode & 0o777 == 0o600
    assert marks.path.parent.stat().st_mode & 0o777 == 0o700


def test_an_edit_is_undone(marks: Marks) -> None:
    marks.edit(["one"], MarkEdit(name="First", add=("a",)))
    [first] = marks.all().values()
    edit = MarkEdit(name="Second", pinned=True, add=("b",), remove=("a",))
    before = marks.edit(["one", "two"], edit)
    marks.undo(edit, before)
    assert marks.all() == {"one": first}


def test_undo_leaves_what_was_changed_since(marks: Marks) -> None:
    edit = MarkEdit(name="Mine", pinned=True, add=("a", "b"))
    before = marks.edit(["one"], edit)
    marks.edit(["one"], MarkEdit(name="Theirs", note="Read me", add=("c",), remove=("b",)))
    marks.undo(edit, before)
    one = marks.get("one")
    assert (one.name, one.note, one.tags, one.pinned) == ("Theirs", "Read me", ("c",), False)


@pytest.mark.parametrize(
    "edit",
    [
        MarkEdit(add=("two words",)),
        MarkEdit(add=("",)),
        MarkEdit(add=("x" * 51,)),
        MarkEdit(name="x" * (LONGEST_NAME + 1)),
        MarkEdit(note="half \ud83d"),
    ],
)
def test_what_cannot_be_kept_changes_nothing(marks: Marks, edit: MarkEdit) -> None:
    marks.edit(["one"], MarkEdit(name="First"))
    with pytest.raises(MarkError):
        marks.edit(["one", "two"], edit)
    assert [(each.session, each.name) for each in marks.all().values()] == [("one", "First")]


TAGS = st.from_regex(r"[a-z][a-z0-9./-]{0,10}", fullmatch=True)
MARKS = st.builds(
    Mark,
    session=st.sampled_from(["one", "two", "three"]),
    name=st.none() | st.text(st.characters(codec="utf-8"), max_size=20),
    tags=st.lists(TAGS, max_size=3).map(tuple),
    note=st.none() | st.text(st.characters(codec="utf-8"), max_size=30),
    pinned=st.booleans(),
    archived=st.booleans(),
)


@given(st.lists(MARKS, max_size=6))
def test_an_export_holds_all_and_importing_it_again_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, given: list[Mark]
) -> None:
    one = Marks(tmp_path_factory.mktemp("marks") / "one.sqlite3")
    one.merge(given)
    data = orjson.dumps(exported(one.all()))
    other = Marks(one.path.with_name("other.sqlite3"))
    assert other.merge(imported(data)).changed == len(one.all())
    again = other.merge(imported(data))
    assert (again.changed, again.kept) == (0, ())
    assert exported(other.all()) == exported(one.all())


def test_an_import_replaces_nothing(marks: Marks) -> None:
    marks.edit(["one"], MarkEdit(name="Mine", add=("a",)))
    theirs = Mark(session="one", name="Theirs", note="Read me", tags=("b",), pinned=True)
    merged = marks.merge([theirs, Mark(session="two", name="Two")])
    assert (merged.changed, merged.kept) == (2, ("one",))
    one = marks.get("one")
    assert (one.name, one.note, one.tags, one.pinned) == ("Mine", "Read me", ("a", "b"), True)
    assert marks.get("two").name == "Two"


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"version":2,"marks":[]}', b'{"marks":1}'])
def test_what_is_no_export_is_refused(data: bytes) -> None:
    with pytest.raises(MarkError):
        imported(data)


def test_a_tag_that_an_import_brings_is_checked(marks: Marks) -> None:
    with pytest.raises(MarkError):
        marks.merge([Mark(session="one", tags=("two words",))])
    assert marks.all() == {}


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("create table other (a)")
    database.close()


def newer(path: Path) -> None:
    Marks(path).edit(["one"], MarkEdit(name="One"))
    with sqlite3.connect(path) as database:
        database.execute("pragma user_version = 99")
    database.close()


@pytest.mark.parametrize(
    "column", ["tags = 'no json'", "tags = '[1]'", "tags = 7", "changed = 'soon'", "name = x'ff'"]
)
def test_a_mark_that_was_changed_by_others_is_named_with_the_file(
    marks: Marks, column: str
) -> None:
    marks.edit(["one", "two"], MarkEdit(pinned=True))
    with sqlite3.connect(marks.path) as database:
        database.execute(f"update mark set {column} where session = 'two'")
    database.close()
    with pytest.raises(MarksUnreadable, match="has changed since it was saved"):
        marks.all()
    starts_over(marks)


def starts_over(marks: Marks) -> None:
    """An edit says where the file is now, and the next one begins a new file."""
    before = marks.path.read_bytes()
    with pytest.raises(MarksUnreadable, match=r"it is now .*damaged-.*repeat the change") as said:
        marks.edit(["one"], MarkEdit(pinned=True))
    assert said.value.path.read_bytes() == before
    assert marks.all() == {}
    marks.edit(["one"], MarkEdit(pinned=True))
    assert list(marks.all()) == ["one"]
    assert marks.path.stat().st_mode & 0o777 == 0o600
    assert said.value.path.read_bytes() == before


def damaged(path: Path) -> None:
    path.write_bytes(b"no database, but somebody's words " * 100)


def emptied(path: Path) -> None:
    Marks(path).edit(["one"], MarkEdit(name="One"))
    path.write_bytes(b"")


def one_byte(path: Path) -> None:
    path.write_bytes(b"\n")


def made_of_zeros(path: Path) -> None:
    Marks(path).edit(["one"], MarkEdit(name="One"))
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("make", [foreign, damaged, emptied, one_byte, made_of_zeros])
def test_a_damaged_file_is_set_aside_so_that_marking_works_again(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    marks = Marks(tmp_path / "marks.sqlite3")
    make(marks.path)
    before = marks.path.read_bytes()
    with pytest.raises(MarksUnreadable, match=str(marks.path)):
        marks.all()
    assert marks.path.read_bytes() == before
    starts_over(marks)
    damaged(marks.path)
    starts_over(marks)
    assert len([*tmp_path.glob("marks-damaged-*")]) == 2


def test_two_who_find_a_file_damaged_at_once_set_it_aside_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = Marks(tmp_path / "marks.sqlite3")
    damaged(marks.path)
    others = [Marks(marks.path)]

    def overtaken(path: Path, **options: Any) -> sqlite3.Connection:
        if path == marks.path and others:
            with pytest.raises(MarksUnreadable, match="it is now"):
                others.pop().edit(["two"], MarkEdit(pinned=True))
        return sqlite_file.connect(path, **options)

    monkeypatch.setattr("gemtui.marks.connect", overtaken)
    assert marks.all() == {}
    assert not marks.path.exists()
    damaged(marks.path)
    others.append(Marks(marks.path))
    marks.edit(["one"], MarkEdit(pinned=True))
    assert list(marks.all()) == ["one"]
    assert len([*tmp_path.glob("marks-damaged-*")]) == 2


def test_a_file_of_a_newer_version_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "marks.sqlite3"
    newer(path)
    before = path.read_bytes()
    for act in (Marks(path).all, lambda: Marks(path).edit(["one"], MarkEdit(pinned=True))):
        with pytest.raises(MarksUnreadable, match=str(path)):
            act()
    assert path.read_bytes() == before


def test_many_at_once_lose_nothing(marks: Marks) -> None:
    def tag(number: int) -> None:
        marks.edit(["one"], MarkEdit(add=(f"t{number}",)))

    threads = [threading.Thread(target=tag, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(marks.get("one").tags) == 12


KILLED = """
import os, signal, sys
from pathlib import Path
from gemtui.marks import MarkEdit, Marks
marks = Marks(Path(sys.argv[1]))
with marks._change() as (_, database):
    database.execute("delete from mark")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_who_is_killed_in_the_midst_of_a_change_loses_nothing(marks: Marks) -> None:
    marks.edit([f"s{number}" for number in range(500)], MarkEdit(name="Kept"))
    command = [sys.executable, "-c", KILLED, str(marks.path)]
    killed = subprocess.run(command, timeout=PATIENCE, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(marks.all()) == 500


@pytest.mark.parametrize(("text", "tag"), [("#Bug", "bug"), (" a/b ", "a/b"), ("É", "é")])
def test_tags_are_kept_in_one_form(text: str, tag: str) -> None:
    assert tag_of(text) == tag
