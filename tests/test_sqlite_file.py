"""Small SQLite files of ours, damaged in every way: said in a line, and never believed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gemtui.errors import MarksUnreadable
from gemtui.marks import MarkEdit, Marks
from gemtui.search.file_list import FileList, Indexed, NoIndex
from gemtui.sessions.store.store import Store
from gemtui.sqlite_file import DAMAGE
from tests.sessions.stores import session, uuid


def harmed(data: bytes) -> Iterator[bytes]:
    """The same with one byte flipped, at places all over it, or cut off."""
    told = [at for at, byte in enumerate(data) if byte]
    for at in (*range(120), *told[::29]):
        for flip in (0x01, 0x80):
            yield data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
    yield from (data[:at] for at in range(100, len(data), 1500))


def test_marks_with_any_byte_flipped_are_said_and_stay_as_they_are(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks.sqlite3")
    edit = MarkEdit(name="Näme", note="note\n" * 20, add=("a", "b"), pinned=True)
    marks.edit([f"session-{number}" for number in range(20)], edit)
    whole, data = marks.all(), marks.path.read_bytes()
    for number, damage in enumerate(harmed(data)):
        path = tmp_path / str(number)
        path.write_bytes(damage)
        try:
            assert Marks(path).all() == whole
        except MarksUnreadable:
            with pytest.raises(MarksUnreadable, match=r"\A[^\n]+\Z") as said:
                Marks(path).edit(["session-1"], MarkEdit(pinned=False))
            assert said.value.path.read_bytes() == damage
            path = said.value.path
        path.unlink()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_said_and_left_alone(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "marks.sqlite3")
    marks = Marks(tmp_path / "marks.sqlite3")
    for act in (marks.all, lambda: marks.edit(["one"], MarkEdit(pinned=True))):
        with pytest.raises(MarksUnreadable):
            act()
    assert marks.path.is_dir() or marks.path.is_fifo()


def test_a_list_of_indexed_files_with_any_byte_flipped_is_right_or_refused(tmp_path: Path) -> None:
    for number in range(20):
        session(tmp_path / "home", uuid(number))
    places = Store(tmp_path / "home").files()
    path = tmp_path / "files.sqlite3"
    with closing(FileList.create(path, "words")) as files:
        new = {place: Indexed((at, at + 100), "s") for at, place in enumerate(places)}
        files.change(new, [], replaced=[], removed=[])
        rows = files.rows()
    for number, damage in enumerate(harmed(path.read_bytes())):
        other = tmp_path / str(number)
        other.write_bytes(damage)
        try:
            with closing(FileList(other)) as files:
                found = files.rows()
            assert all(rows[name] == row for name, row in found.items())
        except (NoIndex, *DAMAGE):
            pass
        other.unlink()
