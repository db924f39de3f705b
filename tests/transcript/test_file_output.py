"""What a read of one file gave: its lines with their numbers, without the CLI's own words."""

from __future__ import annotations

from typing import Any

from gemtui.transcript.tool_output import FileLines, lines_read
from tests.rows import each_row, table

TABLES = table("transcript/file_output.json")

PART = """
IMPORTANT: The file content has been truncated.
Status: Showing lines 10-11 of 3001 total lines.
Action: To read more of the file, you can use the 'start_line' and 'end_line' parameters in a \
subsequent 'read_file' call. For example, to read the next section of the file, use start_line: 12.

--- FILE CONTENT (truncated) ---
def f(x):
    return x"""
SHOWN = "Read lines 10-11 of 3001 from a.py"


def test_the_words_before_a_part_of_a_file_are_none_of_its_lines() -> None:
    assert lines_read(PART, SHOWN, {}) == FileLines(10, "def f(x):\n    return x")


@each_row("shown", ["", "Read lines 1-8 of 8 from a.py"])
def test_a_file_that_begins_with_these_words_keeps_them(shown: str) -> None:
    assert lines_read(PART, shown, {}) is None


@each_row("args, first", TABLES["else_the_arguments_tell_where_it_begins"])
def test_else_the_arguments_tell_where_it_begins(args: dict[str, Any], first: int) -> None:
    assert lines_read("x", "", args) == FileLines(first, "x")


def test_a_remark_has_no_lines() -> None:
    assert lines_read("Binary content provided (1 item(s)).", "Read image file: a.png", {}) is None
