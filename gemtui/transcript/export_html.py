"""Export transcripts as self-contained HTML pages without scripts.

All untrusted text is escaped. In Markdown, raw HTML is shown as text, and images become links. The
content security policy only allows the page's own style sheet, by its hash, and embedded pictures:
those of the session whose bytes identify them as PNG, JPEG, GIF, or WebP.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from typing import Any, assert_never

from gemtui.text import Clean, clean, clean_line, visible, visible_line
from gemtui.transcript.call_text import call_rows
from gemtui.transcript.displays import hunks
from gemtui.transcript.export_words import (
    ExportHeading,
    arguments,
    author_name,
    call_words,
    caution,
    dropped_note,
    ended_badly,
    heading_facts,
    passages,
    subject,
    usage_words,
    when,
)
from gemtui.transcript.media import MediaDamaged, image_bytes, image_words, media_type
from gemtui.transcript.model import (
    AnsiSpan,
    Attachment,
    Block,
    Image,
    Message,
    Notice,
    Text,
    Thought,
    ToolCall,
    Transcript,
)
from gemtui.transcript.result_rows import Row, RowRole, plain_text
from gemtui.transcript.tool_output import BASIC
from gemtui.transcript.untrusted_markdown import highlighted, rendered


def to_html(
    transcript: Transcript, summary: ExportHeading, *, dropped: bool = False
) -> Iterator[str]:
    """Yield a transcript as an HTML page, one message at a time.

    `summary`: the facts for the heading. `dropped`: include the messages that are no longer part of
    the conversation.
    """
    yield from page_head(summary, STYLE)
    for passage in passages(transcript, dropped=dropped):
        yield note_html(passage) if isinstance(passage, str) else "".join(_message(passage))
    yield "</main>\n</body>\n</html>\n"


def page_head(summary: ExportHeading, style: str, *, script: str = "") -> Iterator[str]:
    """Yield the beginning of a page: its `<head>`, its heading, and the `<main>` tag.

    The content security policy only permits this style sheet and script, by their hashes.
    """
    title = escape(clean_line(summary.title))
    sources = f"style-src '{_hash(style)}'; img-src data:"
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"{scripts}{sources}; base-uri 'none'; form-action 'none'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )
    yield f'<header>\n<h1 dir="auto">{title}</h1>\n<dl>\n'
    times = {when(time): time for time in (summary.started, summary.updated) if time is not None}
    for label, text in heading_facts(summary):
        value = time_element(times[text]) if text in times else escape(text)
        yield f"<dt>{label}</dt><dd>{value}</dd>\n"
    yield "</dl>\n</header>\n<main>\n"


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def time_element(time: datetime) -> str:
    """Return an element showing a time in the local time zone, with UTC as tooltip."""
    utc = when(time, UTC)
    return f'<time datetime="{time.isoformat()}" title="{utc} (UTC)">{when(time)}</time>'


def _message(message: Message) -> Iterator[str]:
    yield message_head(message)
    for block in message.blocks:
        yield from block_elements(block)
    yield message_end(message)


def message_head(message: Message) -> str:
    """Return the start of a message's `<article>`, with its author and time.

    If the message was dropped from the conversation, it also says why.
    """
    dropped = " dropped" if message.dropped else ""
    head = " ".join(_head(message))
    return f'<article class="{message.author.value}{dropped}">\n<h2>{head}</h2>\n'


def message_end(message: Message) -> str:
    """Return the end of a message's `<article>`, including its token counts."""
    used = (
        "" if message.usage is None else note_html(Clean(f"Tokens: {usage_words(message.usage)}"))
    )
    return f"{used}</article>\n"


def _head(message: Message) -> Iterator[str]:
    yield escape(author_name(message))
    if message.time is not None:
        yield time_element(message.time)
    if message.dropped:
        yield f"({dropped_note(message.dropped)})"


def block_elements(block: Block) -> Iterator[str]:
    """Yield the HTML elements of one block of a message."""
    match block:
        case Text():
            yield _markdown(block.text)
        case Notice():
            yield f'<p dir="auto">{escape(clean(block.text))}</p>\n'
        case Thought():
            yield f"<details><summary>{escape(clean_line(block.heading))}</summary>\n"
            yield f"{_markdown(block.description)}</details>\n"
        case Image():
            yield _image(block, "Binary content")
        case Attachment():
            yield f"<details><summary>Attached: {escape(clean_line(block.name))}</summary>\n"
            yield f"{_pre(block.text)}</details>\n"
        case ToolCall():
            yield from _call(block)
        case _:
            assert_never(block)


def _call(call: ToolCall) -> Iterator[str]:
    """Yield a tool call as a `<details>` element, which is open if the call failed."""
    subject_line = subject(call)
    warning = caution(call)
    about = f" <code>{escape(subject_line)}</code>" if subject_line else ""
    open = " open" if call.failed else ""
    state = "error" if ended_badly(call) else call.status.value
    held = f' <span class="error">{escape(warning)}</span>' if warning else ""
    name = f"<b>{escape(visible_line(call.name))}</b>"
    yield f"<details{open}><summary>Tool call {name}{held}{about}: "
    yield f'<span class="{state}">{call_words(call)}</span></summary>\n'
    for name, value in arguments(call):
        yield _argument(name, value)
    if call.error:
        yield f'<p class="note">Error:</p>\n{_pre(call.error)}'
    rows = call_rows(call)
    if rows:
        yield _result(rows)
    for image in call.images:
        yield _image(image, "Binary result")
    yield "</details>\n"


_SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LARGEST = 20_000_000
"""Maximum size in bytes of a picture embedded in the page."""


def _image(image: Image, label: str) -> str:
    description = image_words(image)
    about = note_html(Clean(f"{label}: {description}"))
    if not image.data or (image.size or 0) > _LARGEST:
        return about
    try:
        content = image_bytes(image)
    except MediaDamaged:
        return about
    kind = media_type(content)
    if kind is None or kind.mime not in _SHOWN:
        return about
    source = f"data:{kind.mime};base64,{b64encode(content).decode()}"
    return f'{about}<p><img src="{source}" alt="{escape(description)}"></p>\n'


def _argument(name: Clean, value: Clean) -> str:
    label = f'<p class="note">{escape(name)}:'
    if "\n" in value or len(value) > 200:
        return f"{label}</p>\n{_pre(value)}"
    return f"{label} <code>{escape(value)}</code></p>\n"


def _result(rows: Sequence[Row]) -> str:
    first = rows[0]
    match first.role:
        case RowRole.PROSE:
            return _markdown(first.text)
        case RowRole.DIFF:
            return _diff(visible(first.source.diff))
        case RowRole.COLUMNS:
            cells = (_table_row(row.source, "td") for row in rows if row.role is RowRole.CELLS)
            return f"<table>{_table_row(first.source, 'th')}{''.join(cells)}</table>\n"
        case RowRole.TODO:
            items = (escape(clean_line(row.plain or "")) for row in rows if row.plain)
            return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>\n"
        case RowRole.SCREEN:
            lines = ("".join(map(_span, line)) for line in first.source)
            return f"<pre>{chr(10).join(lines)}</pre>\n"
        case _:
            return _pre(plain_text(rows))


def _diff(diff: Clean) -> str:
    """Return the hunks of a diff as HTML, with added and removed lines marked."""
    lines = hunks(diff).rstrip("\n").split("\n")
    return f'<pre class="diff">{"".join(map(_diff_line, lines))}</pre>\n'


def _diff_line(line: str) -> str:
    tag = {"+": "ins", "-": "del"}.get(line[:1])
    return f"<{tag}>{escape(line)}</{tag}>" if tag else f"{escape(line)}\n"


def _table_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(clean(cell))}</{tag}>' for cell in cells)}</tr>"


def _span(span: AnsiSpan) -> str:
    text = escape(clean_line(span.text) if "\n" in span.text else clean(span.text))
    tags = [tag for tag in ("b", "i", "u") if getattr(span, _STYLES[tag])]
    if span.fg in BASIC and not span.bg:
        text = f'<span class="c{BASIC.index(span.fg)}">{text}</span>'
    return "".join(f"<{t}>" for t in tags) + text + "".join(f"</{t}>" for t in reversed(tags))


_STYLES: dict[str, Any] = {"b": "bold", "i": "italic", "u": "underline"}


def _markdown(text: str) -> str:
    return f'<div dir="auto">{rendered(clean(text))}</div>\n'


def _pre(text: str) -> str:
    return f"<pre>{highlighted(clean(text).strip(chr(10)), '')}</pre>\n"


def note_html(note: Clean) -> str:
    """Return a note by the export itself (not from the session) as an HTML paragraph."""
    return f'<p class="note">{escape(note)}</p>\n'


STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1f2328; --muted: #59636e; --line: #d1d9e0; --code: #f4f6f8;
  --you: #0b57d0; --model: #6f42c1; --good: #1a7f37; --bad: #b3261e; --warn: #8a5a00;
  --keyword: #a12a2a; --string: #0a5c2b; --comment: #59636e; --name: #6639ba; --number: #0550ae;
  --added: #dff5e3; --removed: #fde7e5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --text: #e4e7eb; --muted: #9da7b3; --line: #3a424c; --code: #1d2229;
    --you: #8ab4f8; --model: #c9a7ff; --good: #6fdd8b; --bad: #ff9a91; --warn: #e8b65a;
    --keyword: #ff9a91; --string: #8ee6a5; --comment: #9da7b3; --name: #d2b3ff; --number: #8ac2ff;
    --added: #16331f; --removed: #43201e;
  }
}
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 56rem; background: var(--page);
  color: var(--text); font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; margin: 0 0 .75rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt, .note, time { color: var(--muted); }
dd { margin: 0; }
article { border-top: 1px solid var(--line); margin-top: 1.5rem; padding-top: .75rem; }
article.dropped { border-left: 3px solid var(--warn); padding-left: .75rem; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
.user h2 { color: var(--you); } .model h2 { color: var(--model); }
h2 time { font-weight: normal; font-size: .875rem; }
.note { font-size: .875rem; }
.user p { white-space: pre-line; }
pre, code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .875em; }
pre, table { background: var(--code); border-radius: 4px; }
pre { padding: .6rem .75rem; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9em; }
th, td { border: 1px solid var(--line); padding: .2rem .5rem; text-align: left; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); }
blockquote { margin-left: 0; padding-left: .75rem; border-left: 3px solid var(--line); }
details { border: 1px solid var(--line); border-radius: 4px; margin: .5rem 0; padding: 0 .75rem; }
summary { cursor: pointer; padding: .3rem 0; }
.success { color: var(--good); }
.error, .cancelled, .denied, .refused { color: var(--bad); }
.interrupted, .unconfirmed, .dropped h2 { color: var(--warn); }
.diff ins, .diff del { text-decoration: none; display: block; }
.diff ins { background: var(--added); } .diff del { background: var(--removed); }
.k { color: var(--keyword); } .s { color: var(--string); } .n { color: var(--name); }
.c { color: var(--comment); font-style: italic; } .m { color: var(--number); }
.c1, .c9 { color: var(--bad); } .c2, .c10 { color: var(--good); } .c3, .c11 { color: var(--warn); }
.c4, .c12 { color: var(--you); } .c5, .c13 { color: var(--model); }
.c6, .c14 { color: var(--number); } .c8 { color: var(--muted); }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  details::details-content { content-visibility: visible; height: auto; }
  article, pre { break-inside: auto; } h2, summary { break-after: avoid; }
}
"""
