"""Which sessions wrote a file: from the store, kept, in any order, as one patch."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Self

import pytest

from gemtui.sessions.catalog import read_files
from gemtui.sessions.catalog.selection import sessions_with_calls
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store import readers
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import (
    ProjectPatch,
    RecordedWrite,
    WriteReason,
    normalized_path,
    reason_of,
    recorded_changes,
    recorded_writes,
    remarks,
    writes_by_file,
    wrote_first,
)
from tests.rows import table
from tests.sessions import logs
from tests.sessions.stores import append, marker, read, session, talk, uuid
from tests.sessions.writes import wrote
from tests.transcript.test_patch import apply

ROOT = Path("/home/ada/src/tide")


def stored(home: Path, number: int, *messages: dict[str, Any]) -> Path:
    marker(home, "proj", str(ROOT))
    return session(home, uuid(number), [*talk(uuid(number), f"Prompt {number}"), *messages])


def sessions(home: Path) -> tuple[Summary, ...]:
    return sessions_with_calls(read(home))


def writes(home: Path, **options: Any) -> list[RecordedWrite]:
    return list(only(recorded_writes(sessions(home), home=home, **{"cache": None} | options)))


def only(found: Iterator[RecordedWrite | Problem]) -> Iterator[RecordedWrite]:
    for each in found:
        assert isinstance(each, RecordedWrite)
        yield each


def test_each_file_has_its_writes_the_newest_file_first(tmp_path: Path) -> None:
    one, two = ROOT / "a.py", ROOT / "b.py"
    stored(tmp_path, 1, wrote(one, None, "a", seconds=20), wrote(two, None, "b", seconds=30))
    stored(tmp_path, 2, wrote(one, "a", "c", seconds=40), wrote(two, "b", "x", status="error"))
    stored(tmp_path, 3, wrote(ROOT / "never.py", None, "x", status="cancelled"))
    files = writes_by_file(writes(tmp_path))
    assert list(files) == [one, two]
    assert [(each.session, each.written) for each in files[one]] == [
        (uuid(1), True),
        (uuid(2), True),
    ]
    assert [each.written for each in files[two]] == [False, True]


def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    class Counted(SessionLog):
        @classmethod
        def read(cls, path: Path, **options: Any) -> Self:
            opened.append(path)
            return super().read(path, **options)

    stored(tmp_path, 1, wrote(ROOT / "a.py", None, "a"))
    path = stored(tmp_path, 2, wrote(ROOT / "b.py", None, "b"))
    monkeypatch.setattr(read_files, "SessionLog", Counted)
    cache = tmp_path / "cache"
    first = writes(tmp_path, cache=cache)
    assert len(opened) == len(first) == 2
    assert writes(tmp_path, cache=cache) == first
    assert len(opened) == 2
    append(path, wrote(ROOT / "c.py", None, "c", seconds=50))
    assert len(writes(tmp_path, cache=cache)) == 3
    assert opened[2:] == [path]


def test_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        stored(tmp_path, number, wrote(ROOT / f"{number}.py", None, "🌙 x\n"))
    here = writes(tmp_path)
    path = sessions(tmp_path)[0].path
    path.with_name("session-2026-11-20T23-04-broken00.jsonl").write_bytes(b"[]\n")
    monkeypatch.setattr(readers, "MUCH", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    cache = tmp_path / "cache"
    elsewhere = writes(tmp_path, cache=cache)
    assert sorted(each.name for each in elsewhere) == sorted(each.name for each in here)
    assert {each.name: each for each in elsewhere} == {each.name: each for each in here}
    monkeypatch.setattr(read_files, "SessionLog", None)
    assert len(writes(tmp_path, cache=cache)) == 5


def test_nothing_is_kept_of_a_session_that_is_gone(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = stored(tmp_path, 1, wrote(ROOT / "secret-plan.py", None, "a"))
    stored(tmp_path, 2, wrote(ROOT / "b.py", None, "b"))
    writes(tmp_path, cache=cache)
    path.unlink()
    assert len(writes(tmp_path, cache=cache)) == 1
    with closing(sqlite3.connect(cache / "writes.sqlite3")) as database:
        assert database.execute("select count(*) from summary").fetchone() == (1,)


@pytest.mark.parametrize("name", ["/a/b", "//a/b", "/a/./b", "/a//c/../b"])
def test_every_spelling_of_a_path_is_the_same_file(name: str) -> None:
    assert normalized_path(None, name) == normalized_path("/elsewhere", name) == PurePath("/a/b")
    assert normalized_path("/a", "./b") == PurePath("/a/b")
    assert normalized_path(None, "./b") == PurePath("b")


def test_a_file_has_one_name(tmp_path: Path) -> None:
    other = logs.call("c", 9, name="write_file", args={"file_path": "src/../a.py", "content": "x"})
    stored(
        tmp_path,
        1,
        wrote(ROOT / "src" / ".." / "a.py", None, "a", seconds=5),
        logs.gemini("g", "", 9, toolCalls=[other]),
    )
    assert [(path, len(each)) for path, each in writes_by_file(writes(tmp_path)).items()] == [
        (ROOT / "a.py", 2)
    ]


def test_the_change_and_the_prompt_of_a_write_are_read_when_they_are_wanted(tmp_path: Path) -> None:
    stored(tmp_path, 1, wrote(ROOT / "a", None, "1", seconds=5), wrote(ROOT / "a", "1", "2"))
    reasons = [reason_of(each) for each in writes(tmp_path)]
    assert [
        (each.prompt, each.change and each.change.new)
        for each in reasons
        if isinstance(each, WriteReason)
    ] == [("Prompt 1", "1"), ("Prompt 1", "2")]
    (first, _) = writes(tmp_path)
    first.source.path.unlink()
    assert isinstance(reason_of(first), Problem)


def test_sessions_that_wrote_a_file_are_read_first(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        stored(tmp_path, number, wrote(ROOT / f"{number}.py", None, "x", seconds=number))
    first, *rest = wrote_first(sessions(tmp_path), ROOT / "1.py")
    assert (first.id, len(rest)) == (uuid(1), 2)


def test_since_and_cancelled(tmp_path: Path) -> None:
    stored(tmp_path, 1, wrote(ROOT / "a", None, "1", seconds=5), wrote(ROOT / "a", "1", "2"))
    assert len(writes(tmp_path, since=logs.START + timedelta(seconds=4))) == 1
    assert writes(tmp_path, cancelled=lambda: True) == []


@pytest.mark.parametrize("order", [1, -1])
def test_a_patch_is_from_the_first_to_the_last_write_in_whatever_order(
    tmp_path: Path, order: int
) -> None:
    texts = ["1\n", "2\n", "3\n", "4\n"]
    for number, (before, after) in enumerate(pairwise(texts)):
        stored(tmp_path, number, wrote(ROOT / "a", before, after, seconds=10 * number))
    patch = ProjectPatch(ROOT)
    for each in list(only(recorded_changes(sessions(tmp_path))))[::order]:
        patch.add(each)
    (file,) = patch.files()
    assert (file.gaps, remarks([file])) == (0, [])
    assert file.text.splitlines()[-2:] == ["-1", "+4"]


def test_what_is_not_below_the_folder_is_left_out(tmp_path: Path) -> None:
    stored(tmp_path, 1, wrote(ROOT / "src" / ".." / ".." / "x", None, "x"))
    patch = ProjectPatch(ROOT)
    for each in only(recorded_changes(sessions(tmp_path))):
        patch.add(each)
    (file,) = patch.files()
    assert (file.path, file.text) == (PurePath("/home/ada/src/x"), "")
    assert file.unknown == f"not in {ROOT}"


def changed(path: PurePath, seconds: float, row: dict[str, Any]) -> dict[str, Any]:
    """The write of a table's row; of some, only the diff and the text before are stored."""
    message = wrote(
        path, "1\n" if "diff" in row else row.get("before"), row.get("after", ""), seconds=seconds
    )
    if "diff" in row:
        display = message["toolCalls"][0]["resultDisplay"]
        del display["newContent"]
        display["fileDiff"] = row["diff"]
    return message


def test_hostile_changes_are_left_out_and_the_rest_applies(tmp_path: Path) -> None:
    changes = table("session_files/changes.json")
    home, root, outside = tmp_path / ".gemini", tmp_path / "root", tmp_path / "outside"
    marker(home, "proj", str(root))
    rows = [*changes["hostile"], *changes["good"]]
    messages = [changed(root / path, seconds, row) for seconds, (path, row) in enumerate(rows, 5)]
    path = session(home, uuid(1), [*talk(uuid(1), "Prompt"), *messages])
    path.write_bytes(
        path.read_bytes().replace(b"LONE", rb"\ud83d").replace(b"+/outside", b"+" + bytes(outside))
    )
    patch = ProjectPatch(root)
    for change in only(recorded_changes(sessions(home))):
        patch.add(change)
    files = list(patch.files())
    assert sum(bool(file.unknown) for file in files) == len(changes["hostile"])
    for folder in (root, outside):
        folder.mkdir()
    (root / "old").write_text("1\n")
    apply(root, "".join(file.text for file in files))
    assert {file.name: file.read_text() for file in root.iterdir()} == changes["applied"]
    assert not any(file.is_symlink() or file.stat().st_mode & 0o111 for file in root.iterdir())
    assert list(outside.iterdir()) == []
