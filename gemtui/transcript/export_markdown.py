"""Export transcripts as Markdown whose structure can't be broken by the content.

Prompts and answers are Markdown themselves and stay that way, but without raw HTML, images, links
that run code, unclosed fences, and headings that could be mistaken for the export's own. All other
untrusted text is put in code blocks or code spans, or is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from gemtui.text import Clean, clean, clean_line, visible, visible_line
from gemtui.transcript.call_text import call_rows
from gemtui.transcript.export_words import (
    ExportHeading,
    arguments,
    call_words,
    caution,
    head,
    heading_facts,
    passages,
    subject,
    usage_words,
)
from gemtui.transcript.media import image_words
from gemtui.transcript.model import (
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
from gemtui.transcript.untrusted_markdown import defused, fenced, longest_run


def to_markdown(
    transcript: Transcript, summary: ExportHeading, *, dropped: bool = False
) -> Iterator[str]:
    """Yield a transcript as Markdown, one message at a time.

    The session has a heading of level 1, and each message a heading of level 2. `summary`: the
    facts for the session's heading. `dropped`: include the messages that are no longer part of the
    conversation.
    """
    yield f"# {escaped(clean_line(summary.title))}\n\n"
    for label, text in heading_facts(summary):
        yield f"- {label}: {escaped(text)}\n"
    for passage in passages(transcript, dropped=dropped):
        pieces = (f"*{escaped(passage)}*",) if isinstance(passage, str) else _message(passage)
        yield "".join(f"\n{piece}\n" for piece in pieces)


def _message(message: Message) -> Iterator[str]:
    yield f"## {escaped(head(message))}"
    for block in message.blocks:
        yield from _block(block)
    if message.usage is not None:
        yield f"*Tokens: {escaped(usage_words(message.usage))}*"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text():
            yield defused(clean(block.text))
        case Notice():
            yield _quoted(paragraph(clean(block.text)))
        case Thought():
            subject_line = f"**{escaped(clean_line(block.heading))}**"
            yield _quoted(f"{subject_line}\n\n{defused(clean(block.description))}")
        case Image():
            yield f"*Binary content: {escaped(image_words(block))}*"
        case Attachment():
            yield f"*Attached: {escaped(clean_line(block.name))}*"
            yield fenced(clean(block.text), _language(block.name))
        case ToolCall():
            yield from _call(block)
        case _:
            assert_never(block)


def _call(call: ToolCall) -> Iterator[str]:
    subject_line = subject(call)
    warning = caution(call)
    about = f" {code(subject_line)}" if subject_line else ""
    held = f" ({escaped(warning)})" if warning else ""
    name = code(visible_line(call.name))
    yield f"**Tool call {name}**{held}{about}: {escaped(call_words(call))}"
    for name, value in arguments(call):
        if "\n" not in value and len(value) <= 200:
            yield f"- {escaped(name)}: {code(value)}"
        else:
            yield f"- {escaped(name)}:\n\n{fenced(value)}"
    if call.error:
        yield "Error:"
        yield fenced(clean(call.error))
    rows = call_rows(call)
    if rows:
        yield _result(rows)
    for image in call.images:
        yield f"*Binary result: {escaped(image_words(image))}*"


def _result(rows: Sequence[Row]) -> str:
    first = rows[0]
    match first.role:
        case RowRole.PROSE:
            return _quoted(defused(clean(first.text)))
        case RowRole.DIFF:
            return fenced(visible(first.source.diff), "diff")
        case RowRole.COLUMNS:
            rule = " | ".join("---" for _ in first.source)
            names, *cells = [_cells(row.source) for row in rows if row.source]
            return "\n".join(f"| {line} |" for line in (names, rule, *cells))
        case _:
            language = "json" if first.role is RowRole.JSON else ""
            return fenced(clean(plain_text(rows)), language)


def _cells(texts: Iterable[str]) -> str:
    return " | ".join(escaped(clean_line(text)) for text in texts)


# --- foreign text in Markdown ----------------------------------------------------------------

_SIGNS = re.compile(r"([\\`*_\[\]<>#!|~&$])")
_AT_LINE_START = re.compile(r"^[ \t]*(\d*)([-+=.)])|^[ \t]+", re.MULTILINE)


def escaped(text: Clean) -> str:
    """Escape text for use within a line, so that Markdown shows it literally."""
    return _SIGNS.sub(r"\\\1", text)


def paragraph(text: Clean) -> str:
    """Escape lines so that Markdown shows them literally.

    Leading spaces are removed, because they could begin a code block.
    """
    return _AT_LINE_START.sub(_as_sign, escaped(text))


def _as_sign(match: re.Match[str]) -> str:
    return f"{match[1]}\\{match[2]}" if match[2] else ""


def code(text: Clean) -> str:
    """Return one line of text as a code span."""
    if not text.strip():
        return escaped(text)
    ticks = "`" * (longest_run(text) + 1)
    blank = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{ticks}{blank}{text}{blank}{ticks}"


def _language(name: str) -> str:
    """Return the suffix of a file name, for use as a code block's language.

    Returns "" if the suffix is not suitable.
    """
    suffix = name.rsplit(".", 1)[-1]
    return suffix if suffix.isascii() and suffix.isalnum() and len(suffix) <= 10 else ""


def _quoted(markdown: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in markdown.split("\n"))
