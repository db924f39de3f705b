from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.transcript.call_text import display_text
from gemtui.transcript.displays import display_of
from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    AnsiSpan,
    DiffDisplay,
    Display,
    FilesDisplay,
    JsonDisplay,
    Match,
    MatchesDisplay,
    ScreenDisplay,
    TableDisplay,
    TextDisplay,
    Todo,
    TodosDisplay,
)
from tests.rows import each_row
from tests.transcript.raw_calls import json_values

FILE_DIFF = (
    "Index: a.py\n=====\n--- a.py\tCurrent\n+++ a.py\tProposed\n"
    "@@ -1,3 +1,3 @@\n one\n--- minus minus\n+++ plus plus\n+more\n"
)
SHAPE_KEYS = ["fileDiff", "matches", "files", "isSubagentProgress", "todos", "recentActivity"]
SHAPE_KEYS += ["skipped", "text", "summary", "filePath", "result", "lineNumber"]


@given(json_values | st.dictionaries(st.sampled_from(SHAPE_KEYS), json_values | st.just(True)))
def test_no_value_makes_it_raise_and_all_can_be_said_in_text(value: Any) -> None:
    display = display_of(value)
    if display is not None:
        assert isinstance(display_text(display), str)


@given(st.lists(st.lists(st.dictionaries(st.sampled_from(["text", "fg", "bold"]), json_values))))
def test_screens_of_any_shape(value: Any) -> None:
    display = display_of(value)
    if isinstance(display, ScreenDisplay) and display.lines:
        assert display.lines[-1]
        assert not any(line[-1].text.endswith(" ") for line in display.lines if line)


@pytest.mark.parametrize("value", [None, "", [], {}])
def test_nothing_to_show(value: Any) -> None:
    assert display_of(value) is None


@each_row(
    ("value", "display"),
    [
        ("hello", TextDisplay(text="hello")),
        (
            {
                "fileDiff": FILE_DIFF,
                "fileName": "a.py",
                "filePath": "/p/a.py",
                "originalContent": None,
                "newContent": "n",
                "isNewFile": True,
                "diffStat": {"model_added_lines": 9, "user_removed_lines": 4},
            },
            DiffDisplay(diff=FILE_DIFF, path="/p/a.py", name="a.py", added=2, removed=1, is_new=True, new="n"),
        ),
        (
            {"fileDiff": "", "filePath": "C:\\x\\a.py"},
            DiffDisplay(diff="", path="C:\\x\\a.py", name="a.py", added=0, removed=0),
        ),
        (
            {
                "summary": "Found 2",
                "matches": [
                    {"filePath": "a", "absolutePath": "/a", "lineNumber": 6, "line": " x"},
                    {"absolutePath": "/b", "lineNumber": "7", "line": None},
                ],
            },
            MatchesDisplay(
                summary="Found 2", matches=(Match(path="a", line=6, text=" x"), Match(path="/b", line=None, text=""))
            ),
        ),
        (
            {
                "summary": "Found 3",
                "files": ["[DIR] a", "b", {"name": "c"}],
                "skipped": [{"path": "d", "reason": "ignored"}, "e"],
            },
            FilesDisplay(
                summary="Found 3", files=("[DIR] a", "b", '{\n  "name": "c"\n}'), skipped=(("d", "ignored"), ("e", ""))
            ),
        ),
        (
            {
                "isSubagentProgress": True,
                "agentName": "helper",
                "state": "completed",
                "terminateReason": "GOAL",
                "result": {"found": 1},
                "recentActivity": [
                    {"type": "thought", "content": "Look", "status": "running"},
                    {"type": "tool_call", "content": "read_file", "description": "a.py", "status": "completed"},
                    "nonsense",
                ],
            },
            AgentDisplay(
                agent="helper",
                state="completed",
                activities=(
                    Activity(kind="thought", text="Look", status="running"),
                    Activity(kind="tool_call", text="read_file a.py", status="completed"),
                ),
                result='{\n  "found": 1\n}',
                reason="GOAL",
            ),
        ),
        (
            {"todos": [{"description": "one", "status": "completed"}, {"content": "two"}]},
            TodosDisplay(items=(Todo(text="one", status="completed"), Todo(text="two", status=""))),
        ),
        ({"todos": ["x"]}, JsonDisplay(value={"todos": ["x"]})),
        ({"matches": [1]}, JsonDisplay(value={"matches": [1]})),
        ({"unknown": 1}, JsonDisplay(value={"unknown": 1})),
        (7, JsonDisplay(value=7)),
        ([1, 2], JsonDisplay(value=[1, 2])),
    ],
)
def test_each_shape(value: Any, display: Display) -> None:
    assert display_of(value) == display


def test_text_keeps_how_it_is_meant() -> None:
    assert display_of("*x*", markdown=True) == TextDisplay(text="*x*", markdown=True)


def test_screens_lose_their_padding() -> None:
    plain = {"bold": False, "inverse": False, "fg": "", "bg": ""}
    value = [
        [{"text": "green", "fg": "#008000", "bold": True}, {**plain, "text": " plain    "}],
        [{**plain, "text": "       "}, {**plain, "text": "  "}],
        [{**plain, "text": "end "}],
        [{**plain, "text": " ", "inverse": True}, {**plain, "text": "      "}],
        [],
    ]
    assert display_of(value) == ScreenDisplay(
        lines=((AnsiSpan(text="green", fg="#008000", bold=True), AnsiSpan(text=" plain")), (), (AnsiSpan(text="end"),))
    )


@pytest.mark.parametrize(
    ("text", "columns", "rows"),
    [
        ('[{"a": 1, "b": "x"}, {"b": null, "c": true}]', ("a", "b", "c"),
         (("1", "x", ""), ("", "", "true"))),
        (' [{"a": 1.5}] \n', ("a",), (("1.5",),)),
    ],
)  # fmt: skip
def test_lists_of_flat_objects_are_tables(
    text: str, columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]
) -> None:
    assert display_of(text) == TableDisplay(columns=columns, rows=rows)


@each_row("text", ["[]", "[1]", '[{"a": [1]}]', '[{"a": 1}, 2]', "[{}]", '[{"a": 1}', '{"a": 1}', "[not json]"])
def test_other_json_stays_text(text: str) -> None:
    assert display_of(text) == TextDisplay(text=text)
