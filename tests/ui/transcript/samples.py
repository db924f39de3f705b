"""Messages for the renderer's tests: one of each kind, and looks that don't depend on a clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    AnsiSpan,
    Attachment,
    Author,
    Block,
    DiffDisplay,
    Display,
    Dropped,
    FilesDisplay,
    Image,
    JsonDisplay,
    Match,
    MatchesDisplay,
    Message,
    Notice,
    NoticeLevel,
    ScreenDisplay,
    TableDisplay,
    Text,
    TextDisplay,
    Thought,
    Todo,
    TodosDisplay,
    ToolCall,
    ToolStatus,
    Usage,
)
from gemtui.ui.draw.theme import UNICODE, Glyphs, Look, plain_look
from gemtui.ui.transcript.message import Drawn, draw_message

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
AT = datetime(2026, 11, 21, 12, 4, tzinfo=UTC)


def look(width: int, glyphs: Glyphs = UNICODE) -> Look:
    """Our dark theme at a fixed time."""
    return plain_look(width, now=NOW, glyphs=glyphs, tz=UTC)


def drawn(
    *blocks: Block, width: int = 74, author: Author = Author.MODEL, folded: bool | None = None
) -> Drawn:
    """A message of these blocks; `folded` holds for all of them."""
    return draw_message(said(*blocks, author=author), look(width), folded=lambda _: folded)


def lines(drawing: Drawn) -> list[str]:
    """What one sees of a drawing."""
    return [strip.text for strip in drawing.strips]


def body(drawing: Drawn) -> list[str]:
    """The lines between the head line and the empty one."""
    return lines(drawing)[1:-1]


def said(*blocks: Block, author: Author = Author.MODEL, **more: Any) -> Message:
    """A message of these blocks."""
    return Message(id="m", author=author, blocks=blocks, **more)


def called(
    name: str = "read_file",
    display: Display | None = None,
    status: ToolStatus = ToolStatus.SUCCESS,
    **more: Any,
) -> ToolCall:
    """A tool call; arguments come as `args`."""
    return ToolCall(
        id="t", name=name, args=more.pop("args", {}), status=status, display=display, **more
    )


DIFF = """Index: format.py
===================================================================
--- format.py\tCurrent
+++ format.py\tProposed
@@ -39,5 +39,7 @@
     \"\"\"Lines of a session file.\"\"\"

-    *lines, _tail = data.split(b"\\n")
+    *lines, tail = data.split(b"\\n")
+    if tail and is_complete(tail):
+        lines.append(tail)
     return lines

@@ -90,4 +92,3 @@
 def other():
-    unused = 1
     return 2
\\ No newline at end of file
"""

MARKDOWN = """The reader splits on `\\n`. **Two** cases, *really* two:

1. the file is still being written: the tail is incomplete and one waits for the rest
2. the writer adds no newline
   - a nested point
   - [x] done
   - [ ] open

# Plan
### Detail

> A quote that is long enough to wrap in a narrow pane.
> > nested

```python
def parse(data: bytes) -> list[Record]:
\t*lines, tail = data.split(b"\\n")  # the tail may be a record, too
```

| Case | Tail |
|---|---|
| being written | incomplete, wait for the rest of it |
| no newline | `{"id": 1}` |

See [the contract](https://example.com/a) and <https://example.com>, not ~~that~~.
![a picture](dot.png)

---
<b>raw</b>
"""

_AGENT = AgentDisplay(
    agent="codebase_investigator",
    state="completed",
    activities=(
        Activity(kind="thought", text="Look around", status="completed"),
        Activity(kind="tool_call", text="read_file hello.py", status="error"),
        Activity(kind="tool_call", text="grep_search bye", status="running"),
    ),
    result="The greeting is in **hello.py**:\n\n- in `greet`\n- called by `main`",
    reason="GOAL",
)
_TODOS = TodosDisplay(
    items=(
        Todo(text="Read the code", status="completed"),
        Todo(text="Change the reader", status="in_progress"),
        Todo(text="Run the tests", status="pending"),
        Todo(text="Ship it", status="cancelled"),
        Todo(text="Dream", status="blocked"),
    )
)
_MATCHES = MatchesDisplay(
    summary="Found 3 matches",
    matches=(
        Match(path="tests/test_hello.py", line=6, text="    assert out == 'bye x'"),
        Match(path="tests/test_hello.py", line=16, text="\tassert out == 'bye y'"),
        Match(path="hello.py", line=None, text="print('bye ' + name)"),
    ),
)
_FILES = FilesDisplay(
    summary="Found 3 item(s).", files=("[DIR] src", "README.md"), skipped=(("a.bin", "binary"),)
)
_SCREEN = ScreenDisplay(
    lines=(
        (AnsiSpan(text="green", fg="#008000"), AnsiSpan(text=" plain")),
        (AnsiSpan(text="bold", bold=True), AnsiSpan(text=" inverse", inverse=True)),
    )
)
_TABLE = TableDisplay(
    columns=("id", "name", "note"),
    rows=(
        ("1", "Ada", "wrote the first program, for a machine that was never built"),
        ("2", "漢字テスト", "wide"),
        ("3", "Grace", ""),
        ("4", "Edsger", "short"),
    ),
)
_EDIT = DiffDisplay(diff=DIFF, path="/x/format.py", name="format.py", added=3, removed=2)
_NEW = DiffDisplay(
    diff="@@ -0,0 +1,1 @@\n+n\n",
    path="never.txt",
    name="never.txt",
    added=1,
    removed=0,
    is_new=True,
)
_OUTPUT = "\n".join(f"tests/test_{number}.py ....." for number in range(40))
_LONG_COMMAND = "cd /tmp &&\nls -la | grep foo && echo 'many words in one long command line' > out"

CARDS: tuple[ToolCall, ...] = (
    called(
        args={"file_path": "gemtui/sessions/format.py", "start_line": 1, "end_line": 120},
        display=TextDisplay(text=""),
        output="import os\n\n\ndef f() -> int:\n    return 1\n",
        duration=timedelta(milliseconds=12),
        time=AT,
    ),
    called("replace", _EDIT, args={"file_path": "format.py", "instruction": "keep the tail"}),
    called("write_file", _NEW, ToolStatus.CANCELLED, args={"file_path": "never.txt"}),
    called(
        "run_shell_command",
        TextDisplay(text=f"{_OUTPUT}\nFAILED tests/test_format.py::test_tail - AssertionError\n"),
        args={"command": "pytest -q", "description": "Run the tests"},
        exit_code=1,
        duration=timedelta(seconds=2.1),
    ),
    called("run_shell_command", _SCREEN, args={"command": _LONG_COMMAND}),
    called(
        "run_shell_command",
        status=ToolStatus.DENIED,
        args={"command": "git push"},
        error="Tool execution denied by policy.",
    ),
    called(
        "run_shell_command",
        status=ToolStatus.RUNNING,
        args={"command": "pytest"},
        duration=timedelta(seconds=4.2),
    ),
    called("grep_search", _MATCHES, args={"pattern": "bye", "dir_path": "."}),
    called("list_directory", _FILES, args={"dir_path": "."}),
    called(
        "glob",
        TextDisplay(text="Found 2 matching file(s)"),
        args={"pattern": "*.py"},
        output="Found 2 file(s)\n/x/a.py\n/x/b.py",
    ),
    called("write_todos", _TODOS, args={"todos": [1]}),
    called("invoke_agent", _AGENT, args={"agent_name": "codebase_investigator"}, agent_id="e2"),
    called(
        "replace",
        status=ToolStatus.ERROR,
        args={"file_path": "hello.py", "old_string": "NOT\nTHERE", "new_string": "x"},
        error="Could not find an exact match for 'old_string' in 'hello.py'.",
    ),
    called("mcp_db_query", _TABLE, args={"sql": "select * from people", "limit": 3}),
    called("mcp_weather", JsonDisplay(value={"city": "Oslo", "t": [1, 2]}), args={"city": "Oslo"}),
    called(
        "google_web_search",
        TextDisplay(text='Search results for "textual" returned.', markdown=True),
        args={"query": "textual"},
        output="The **Line API** draws lines.",
    ),
    called(status=ToolStatus.INTERRUPTED, args={"file_path": "dot.png"}),
    called(status=ToolStatus.UNCONFIRMED, args={"file_path": "dot.png"}),
    called(args={"file_path": "dot.png"}, images=(Image(mime_type="image/png", size=2100),)),
)


def messages() -> Sequence[Message]:
    """A conversation with everything in it."""
    return (
        said(
            Text(text="The parser drops the last line.\nKeep __init__:\n```py\nx = 1\n```\nThanks"),
            Attachment(name="gemtui/loader.py", text="a\nb\n"),
            Image(mime_type="image/png", size=2100, name="dot.png"),
            author=Author.USER,
            time=AT,
        ),
        said(
            Thought(subject="Reading the code", description="How are lines split?\nLook there."),
            Thought(subject="", description="No subject here"),
            Text(text=MARKDOWN),
            time=AT,
            model="gemini-2.5-pro",
            usage=Usage(input=1700, output=120, cached=900, thoughts=80, tool=0, total=1900),
        ),
        said(
            *CARDS,
            Text(text="One test still fails."),
            time=AT - timedelta(days=1),
            usage=Usage(input=10, output=5, cached=0, thoughts=0, tool=0, total=99),
        ),
        said(Notice(level=NoticeLevel.INFO, text="Request cancelled."), author=Author.SYSTEM),
        said(Notice(level=NoticeLevel.WARNING, text="Loop detected"), author=Author.SYSTEM),
        said(Notice(level=NoticeLevel.ERROR, text="[API Error: 403]\nNo."), author=Author.SYSTEM),
        said(Text(text="first try"), author=Author.USER, time=AT, dropped=Dropped.REWOUND),
        said(Text(text="x"), author=Author.USER, time=AT, dropped=Dropped.FAILED_PROMPT),
        said(Text(text="y"), dropped=Dropped.BURIED, usage=Usage(output=7)),
    )
