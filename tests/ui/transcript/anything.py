"""Strategies: messages with arbitrary content, hostile and wide text preferred."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from gemtui.transcript.model import (
    Activity,
    AgentDisplay,
    AnsiSpan,
    Attachment,
    Author,
    DiffDisplay,
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
)
from gemtui.transcript.usage import Usage
from tests.hostile import ESCAPES, HTML, MARKUP, ODD, ORDER

_PIECES = (
    *ESCAPES,
    *HTML,
    *MARKUP,
    *ODD,
    *ORDER,
    "漢字かな",
    "👩‍👩‍👧‍👦",
    "✈\ufe0f",
    "e\u0301",
    "\u200b\u200d",
    "한국어",
    "\tx\t",
    "\r\n",
    "word ",
    "x" * 300,
    "漢" * 150,
    " " * 90,
    "\n\n",
    "# h\n",
    "- [x] a\n  - b\n",
    "1. a\n",
    "> q\n",
    "```python\ndef f(): 'x'\n",
    "|a|b|\n|-|-|\n|c|d|\n",
    "**b** *e* `c` ~~s~~",
    '[t](http://u.v "w")',
    "![i](data:x)",
    "&#x202e;&#27;&nbsp;",
    "<b>h</b>\n",
    "@@ -1,2 +3,4 @@ x\n-a\n+b\n c\n",
    "---\n",
    "    indented\n",
)

text = st.lists(st.sampled_from(_PIECES) | st.text(max_size=12), max_size=8).map("".join)
words = st.text(max_size=20) | text
when = st.none() | st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
counts = st.none() | st.integers(0, 10**12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)

_spans = st.builds(
    AnsiSpan,
    text=text,
    bold=st.booleans(),
    inverse=st.booleans(),
    fg=st.sampled_from(("", "#008000", "#12ab9f", "red", "#zzzzzz")),
    bg=st.sampled_from(("", "#000080", "\x1b[0m")),
)
_steps = st.builds(Activity, kind=words, text=text, status=st.sampled_from(("completed", "?")))
_table = st.integers(1, 12).flatmap(
    lambda size: st.builds(
        TableDisplay,
        columns=st.tuples(*[words] * size),
        rows=st.lists(st.tuples(*[words] * size), max_size=3).map(tuple),
    )
)
displays = (
    st.builds(TextDisplay, text=text, markdown=st.booleans())
    | st.builds(DiffDisplay, diff=text, path=words, name=words, added=counts, removed=counts)
    | st.builds(
        MatchesDisplay,
        summary=words,
        matches=st.lists(
            st.builds(Match, path=words, line=st.none() | st.integers(), text=text), max_size=3
        ).map(tuple),
    )
    | st.builds(
        FilesDisplay,
        summary=words,
        files=st.lists(words, max_size=3).map(tuple),
        skipped=st.lists(st.tuples(words, words), max_size=2).map(tuple),
    )
    | st.builds(
        AgentDisplay,
        agent=words,
        state=words,
        activities=st.lists(_steps, max_size=3).map(tuple),
        result=st.none() | text,
        reason=st.none() | words,
    )
    | st.builds(
        TodosDisplay,
        items=st.lists(st.builds(Todo, text=text, status=words), max_size=3).map(tuple),
    )
    | st.builds(
        ScreenDisplay,
        lines=st.lists(st.lists(_spans, max_size=3).map(tuple), max_size=3).map(tuple),
    )
    | _table
    | st.builds(JsonDisplay, value=values)
)
images = st.builds(Image, mime_type=words, size=counts, name=st.none() | words)
_TOOLS = """read_file write_file replace run_shell_command grep_search glob list_directory
    google_web_search invoke_agent write_todos update_topic exit_plan_mode ask_user mcp_x_y"""
_names = st.sampled_from(tuple(re.findall(r"\w+", _TOOLS)))
calls = st.builds(
    ToolCall,
    id=words,
    name=_names | words,
    args=st.dictionaries(
        words | st.sampled_from(("file_path", "command", "pattern", "start_line", "limit")),
        values,
        max_size=4,
    ),
    status=st.sampled_from(ToolStatus),
    output=st.none() | text,
    error=st.none() | text,
    display=st.none() | displays,
    time=when,
    duration=st.none() | st.timedeltas(timedelta(), timedelta(days=900)),
    agent_id=st.none() | words,
    images=st.lists(images, max_size=2).map(tuple),
    exit_code=st.none() | st.integers(-5, 300),
)
blocks = (
    st.builds(Text, text=text)
    | st.builds(Thought, subject=words, description=text)
    | st.builds(Notice, level=st.sampled_from(NoticeLevel), text=text)
    | st.builds(Attachment, name=words, text=text)
    | images
    | calls
)
messages = st.builds(
    Message,
    id=words,
    author=st.sampled_from(Author),
    blocks=st.lists(blocks, max_size=4).map(tuple),
    time=when,
    model=st.none() | words,
    usage=st.none()
    | st.builds(Usage, input=counts, output=counts, thoughts=counts, tool=counts, total=counts),
    dropped=st.none() | st.sampled_from(Dropped),
)
