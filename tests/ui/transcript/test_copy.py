from __future__ import annotations

import pytest
from msgspec.structs import replace

from gemtui.transcript.model import (
    Block,
    DiffDisplay,
    Image,
    Notice,
    NoticeLevel,
    Text,
    TextDisplay,
    ToolStatus,
)
from gemtui.ui.transcript.block_keys import copies_of_block, copy_of_block, copy_of_message, file_of
from gemtui.ui.transcript.diff import first_line
from gemtui.ui.transcript.viewport import Viewport
from tests.rows import each_row
from tests.ui.talks import Talk, answer, look, thought, tool

HUNK = "@@ -10,3 +20,4 @@\n same\n-old\n+new\n+more\n"
DIFF = f"--- a\n+++ b\n{HUNK}"
CHANGE = DiffDisplay(diff=DIFF, path="/src/a.py", name="a.py")


def copies(text: str) -> list[tuple[str, str]]:
    page = Viewport()
    page.resize(look(), 50)
    page.show(Talk(answer("a", text)).now(), fresh=True)
    return list(copies_of_block(Text(text=text), page.sheet.drawn(0).fences))


def test_code_is_copied_alone() -> None:
    text = "Look:\n\n```python\ndef f():\n\treturn 1\n```\nDone."
    assert [(copy[0].rstrip("\n"), copy[1]) for copy in copies(text)] == [
        ("def f():\n\treturn 1", "python code, 2 lines")
    ]


def test_of_several_pieces_of_code_one_can_choose() -> None:
    text = "```sh\nls\n```\nor\n```\npwd\n```"
    assert [what for _, what in copies(text)] == ["sh code", "code", "text, 7 lines"]


@each_row(
    ("block", "text", "what"),
    [
        (Text(text="a\nb"), "a\nb", "text, 2 lines"),
        (thought("s", "d"), "s\nd", "thought, 2 lines"),
        (Notice(level=NoticeLevel.INFO, text="n"), "n", "notice"),
        (Image(mime_type="image/png", name="x.png"), "x.png", "file name"),
        (tool("t", "out\n"), "out\n", "output of run_shell_command"),
        (tool("t", "boom", failed=True), "boom", "output of run_shell_command"),
        (tool("t", ""), "run t", "call to run_shell_command"),
        (tool("\x1b]0 ; x\u200b", ""), "run ␛]0 ; x⟨U+200B⟩", "call to run_shell_command"),
        (tool("t", "\x1b[31mred\x1b[2J"), "red␛[2J", "output of run_shell_command"),
        (replace(tool("t", "ok"), display=CHANGE), HUNK, "diff of run_shell_command, 5 lines"),
    ],
)
def test_what_is_copied_of_a_block(block: Block, text: str, what: str) -> None:
    assert copy_of_block(block) == (text, what)


def test_a_message_is_all_of_its_blocks() -> None:
    message = answer("a", thought("s", "d"), "words\n", tool("t", "out"))
    assert copy_of_message(message) == ("s\nd\n\nwords\n\nrun t\nout", "message, 7 lines")


def test_the_clipboard_gets_no_escape_sequences() -> None:
    block = replace(tool("t", "a\x1b]52;c;eA==\x07b\x9b31mc"), name="x\x1b[31my")
    assert copy_of_block(block) == ("a␛]52;c;eA==␇bc", "output of x␛[31my")


def test_the_file_of_a_call_and_the_line_that_changed() -> None:
    assert file_of(replace(tool("t"), display=CHANGE)) == ("/src/a.py", 21)
    assert file_of(replace(tool("t"), args={"file_path": "b.py"})) == ("b.py", None)
    assert file_of(tool("t")) is None


@pytest.mark.parametrize(
    ("diff", "line"),
    [
        ("@@ -0,0 +1 @@\n+new\n", 1),
        ("@@ x @@\n+a\n", None),
        ("", None),
        ("@@ -1 +0,0 @@\n-a\n", 1),
        ("@@ -7 +7 @@\n a\x0cb\u2028c\n\\ No\n+e\n", 8),
    ],
)
def test_the_first_changed_line_of_a_diff(diff: str, line: int | None) -> None:
    assert first_line(diff) == line


def test_of_a_command_one_can_choose_the_output_or_the_command() -> None:
    call = replace(tool("t", "out\n"), display=TextDisplay(text="out\n"))
    offered = copies_of_block(call, ())
    assert offered == (("out\n", "output of run_shell_command"), ("run t", "command"))


def test_of_a_command_that_failed_the_command_comes_first() -> None:
    call = replace(tool("t", "out\n"), display=TextDisplay(text="out\n"), status=ToolStatus.ERROR)
    assert copies_of_block(call, ())[0] == ("run t", "command")
