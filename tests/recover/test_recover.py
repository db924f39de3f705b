"""Files rebuilt from history: what is told as known is right."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.recover.history import recover_file
from tests.deep import some_of
from tests.recover.histories import Record, asked, marked, ran, recovered, saw, wrote
from tests.sessions import logs
from tests.sessions.stores import marker, read, session, uuid

ABC = "a\nb\nc\n"
OLD = "--- a\tCurrent\n+++ a\tProposed\n"
MANY = "--- /elsewhere/b ---\n\nno\n\n--- {file} ---\n\na\nb\n\n\n--- End of content ---"

TABLE: dict[str, tuple[Callable[[str], Sequence[Record]], list[str]]] = {
    "a write": (lambda a: [wrote(a, None, ABC, 1)], ["a", "b", "c"]),
    "the newest of two": (lambda a: [wrote(a, None, ABC, 1), wrote(a, ABC, "x\n", 2)], ["x"]),
    "a cancelled edit shows what was there": (
        lambda a: [wrote(a, ABC, "x\n", 1, status="cancelled")],
        ["?a", "?b", "?c"],
    ),
    "a whole read": (lambda a: [saw(a, ABC, 1)], ["a", "b", "c"]),
    "a part with gaps before and behind": (
        lambda a: [saw(a, "a\nb\nc\nd\n", 1, 2, 3)],
        ["-", "b", "c", "-", "-"],
    ),
    "a part over an older whole": (
        lambda a: [wrote(a, None, ABC, 1), saw(a, "a\nB\nc\n", 2, 2, 2)],
        ["?a", "B", "?c"],
    ),
    "a part of a file that grew": (
        lambda a: [wrote(a, None, ABC, 1), saw(a, "0\na\nB\nc\n", 2, 3, 3)],
        ["?a", "?b", "B", "?c"],
    ),
    "a part of a file that shrank": (
        lambda a: [wrote(a, None, ABC, 1), saw(a, "a\nc\n", 2, 1, 1)],
        ["a", "?c"],
    ),
    "a diff alone on what is known": (
        lambda a: [wrote(a, None, ABC, 1), wrote(a, ABC, "a\nB\nc\n", 2, told=False)],
        ["a", "B", "c"],
    ),
    "a diff alone, far from other lines": (
        lambda a: [
            wrote(a, None, "1\n2\n3\n4\n5\n6\n7\n", 1),
            wrote(a, "1\n2\n3\n4\n5\n6\n7\n", "0\n2\n3\n4\n5\n6\n7\n", 2, told=False),
        ],
        ["0", "2", "3", "4", "?5", "?6", "?7"],
    ),
    "a diff alone of a new file": (lambda a: [wrote(a, None, ABC, 1, told=False)], ["a", "b", "c"]),
    "arguments alone": (
        lambda a: [
            asked("write_file", 1, {"file_path": a, "content": ABC}),
            asked("replace", 2, {"file_path": a, "old_string": "b", "new_string": "B"}),
        ],
        ["?a", "?B", "?c"],
    ),
    "a file printed as it is known": (
        lambda a: [wrote(a, None, "a\tb\nc\n", 1), ran(f"cat {a}", "a       b\nc", 2)],
        ["a\tb", "c"],
    ),
    "a file printed otherwise": (
        lambda a: [wrote(a, None, ABC, 1), ran("cat a", "a\nx", 2)],
        ["?a", "?x"],
    ),
    "a part printed": (
        lambda a: [wrote(a, None, ABC, 1), ran("sed -n 2,2p a", "x", 2)],
        ["?a", "?x", "?c"],
    ),
    "its head and its tail": (
        lambda a: [wrote(a, None, ABC, 1), ran("head -n 1 a", "x", 2), ran("tail -1 ./a", "z", 3)],
        ["?x", "?b", "?z"],
    ),
    "an old version": (lambda a: [ran("git show HEAD~1:a", "a", 1)], ["?a"]),
    "git's diff": (
        lambda a: [wrote(a, None, ABC, 1), ran("git diff -- a", "@@ -2 +2 @@\n-b\n+B", 2)],
        ["?a", "?B", "?c"],
    ),
    "what is no print of it": (
        lambda a: [
            wrote(a, None, ABC, 1),
            ran("cat a b", "x", 2),
            ran("cat a | tr a x", "x", 3),
            ran("cat a", "x", 4, status="error"),
            ran("cat other/a", "x", 5),
            asked("read_file", 6, {"file_path": a}, output="gone", status="error"),
        ],
        ["a", "b", "c"],
    ),
    "many files read": (
        lambda a: [asked("read_many_files", 1, {"include": ["*"]}, output=MANY.format(file=a))],
        ["?a", "?b"],
    ),
    "words of a hook behind a read": (
        lambda a: [
            asked("read_file", 1, {"file_path": a}, output="a\n\n<hook_context>x</hook_context>")
        ],
        ["?a", "?", "?<hook_context>x</hook_context>"],
    ),
    "context of the project behind a read": (
        lambda a: [
            asked(
                "read_file",
                1,
                {"file_path": a},
                output="a\n\n\n--- Newly Discovered Project Context ---\nx",
            )
        ],
        ["?a"],
    ),
    "a shortened line": (
        lambda a: [asked("read_file", 1, {"file_path": a}, output="a... [truncated]\nb")],
        ["?a... [truncated]", "?b"],
    ),
    "the words of an old version before a part": (
        lambda a: [
            asked(
                "read_file",
                1,
                {"absolute_path": a, "offset": 1, "limit": 1},
                output="[File content truncated: showing lines 2-2 of 3 total lines. Use…]\nb",
                resultDisplay="Read lines 2-2 of 3 from a",
            )
        ],
        ["-", "b", "-"],
    ),
}


@pytest.mark.parametrize(("records", "lines"), TABLE.values(), ids=TABLE)
def test_each_history_gives_its_lines(
    tmp_path: Path, records: Callable[[str], Sequence[Record]], lines: list[str]
) -> None:
    found = recovered(tmp_path, *records(str(tmp_path / "proj/a")))
    assert marked(found) == lines


@pytest.mark.parametrize("name", ["a", "./x/../a", "@a", "%61", "a\0"])
def test_a_file_is_found_by_every_spelling_that_the_cli_takes(tmp_path: Path, name: str) -> None:
    found = recovered(tmp_path, asked("read_file", 1, {"file_path": name}, output="x"))
    assert marked(found) == ["x"]


def test_a_file_with_a_percent_sign_in_its_name_is_not_the_decoded_one(tmp_path: Path) -> None:
    call = wrote(str(tmp_path / "proj/%61"), None, ABC, 1)
    call["toolCalls"][0]["args"]["file_path"] = "%2561"
    assert recovered(tmp_path, call).rebuilt is None


def test_calls_of_one_turn_that_may_have_ended_otherwise_are_guessed(tmp_path: Path) -> None:
    file = str(tmp_path / "proj/a")
    both = [wrote(file, None, "one\n", 1), wrote(file, None, "two\n", 1.2)]
    calls = [call for each in both for call in each["toolCalls"]]
    assert marked(recovered(tmp_path, logs.gemini("g", "", 1, toolCalls=calls))) == ["?two"]
    calls[1]["resultDisplay"]["originalContent"] = "one\n"
    assert marked(recovered(tmp_path, logs.gemini("g", "", 1, toolCalls=calls))) == ["two"]


def test_a_moment_in_the_past_and_the_state_before_the_first_change(tmp_path: Path) -> None:
    file = str(tmp_path / "proj/a")
    history = [wrote(file, "0\n", "1\n", 10), wrote(file, "1\n", "2\n", 20)]
    assert marked(recovered(tmp_path, *history, at=15)) == ["1"]
    before = recovered(tmp_path, *history, at=5)
    assert marked(before) == ["?0"]
    assert "before the next recorded change" in before.notes[0]


def test_line_ends_are_those_that_were_recorded(tmp_path: Path) -> None:
    file = str(tmp_path / "proj/a")
    history = [wrote(file, None, "a\r\nb\r\n", 1), saw(file, "a\r\nc\r\n", 2)]
    found = recovered(tmp_path, *history)
    assert found.rebuilt is not None
    assert found.rebuilt.text == "a\r\nc\r\n"


def test_a_session_of_a_project_that_was_moved_tells_guessed_lines(tmp_path: Path) -> None:
    home, old, new = tmp_path / "home", tmp_path / "old/proj", tmp_path / "new/proj"
    records = [wrote(str(old / "src/a"), None, "a\n", 1)]
    session(home, uuid(1), [logs.header(uuid(1)), logs.user("u", "Go", 0), *records])
    marker(home, "proj", str(old))
    new.mkdir(parents=True)
    found = recover_file(new / "src/a", read(home).sessions)
    assert marked(found) == ["?a"]
    assert recover_file(new / "a", read(home).sessions).rebuilt is None
    old.mkdir(parents=True)
    assert recover_file(new / "src/a", read(home).sessions).rebuilt is None


def test_copies_and_what_was_rewound_tell_of_the_file_once(tmp_path: Path) -> None:
    home, file = tmp_path / "home", str(tmp_path / "proj/a")
    history = [logs.user("u", "Go", 0), wrote(file, None, "1\n", 1, told=False)]
    history.append(wrote(file, "1\n", "1\n2\n", 2, told=False))
    head = logs.header(uuid(1))
    session(home, uuid(1), [head, *history, {"$rewindTo": "u"}])
    session(home, uuid(1), [head, *history], minute="2026-11-21T10-00")
    marker(home, "proj", str(tmp_path / "proj"))
    found = recover_file(Path(file), read(home).sessions)
    assert marked(found) == ["1", "2"]
    assert found.rebuilt is not None
    assert not found.rebuilt.notes


# --- any history ---------------------------------------------------------------------------------

_TEXT = st.lists(st.sampled_from(["a", "b", "", " x", "@@ -1 +1 @@", "-"]), max_size=9).map(
    "\n".join
)
_STEP = st.one_of(
    st.tuples(st.sampled_from(["write", "diff", "edit", "person", "cancel"]), _TEXT),
    st.tuples(st.sampled_from(["read", "cat", "lost"]), st.just("")),
    st.tuples(st.just("part"), st.tuples(st.integers(1, 6), st.integers(0, 5))),
)


@settings(max_examples=some_of(60), deadline=None)
@given(st.lists(_STEP, min_size=1, max_size=8))
def test_what_is_told_as_known_is_right(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    file, now, records = str(folder / "proj/a"), "start\n", []
    states: dict[float, str] = {}
    for at, (kind, value) in enumerate(steps, 1):
        before = now
        if kind in ("write", "diff", "edit", "person"):
            now = value
        states[at] = now
        match kind:
            case "write" | "diff":
                records.append(wrote(file, before, now, at, told=kind == "write"))
            case "edit":
                args = {"file_path": file, "old_string": before, "new_string": now}
                records.append(asked("replace", at, args))
            case "cancel":
                records.append(wrote(file, now, value, at, status="cancelled"))
            case "read":
                records.append(saw(file, now, at))
            case "cat":
                records.append(ran("cat a", now.rstrip(), at))
            case "part":
                first = min(value[0], len(now.split("\n")))
                records.append(saw(file, now, at, first, first + value[1]))
    found = recovered(folder, *records)
    shutil.rmtree(folder)
    if found.rebuilt is None:
        return
    second = (found.rebuilt.newest.time - logs.START).total_seconds()
    truth = states[int(second)].split("\n")
    for at, line in enumerate(found.rebuilt.lines):
        if line.known:
            assert truth[at] == line.text
