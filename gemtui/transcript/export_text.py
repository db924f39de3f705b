"""Export transcripts as plain text, making untrusted text harmless.

The text form is linear and uses no line drawing, so that it suits screen readers and pipes. A
message's author and time start at the beginning of a line, and all content is indented, so nothing
in the content can be mistaken for the start of another message.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    DiffDisplay,
    Image,
    Message,
    Notice,
    Text,
    Thought,
    ToolCall,
    ToolStatus,
    Transcript,
)
from gemtui.transcript.result_rows import RowRole, plain_text

INDENT = "  "


def to_text(
    transcript: Transcript, summary: ExportHeading, *, dropped: bool = False
) -> Iterator[str]:
    """Yield a transcript as plain text, one message at a time.

    `summary`: the facts for the heading. `dropped`: include the messages that are no longer part of
    the conversation.
    """
    yield f"{clean_line(summary.title)}\n\n"
    for label, text in heading_facts(summary):
        yield f"{label}: {text}\n"
    for passage in passages(transcript, dropped=dropped):
        lines = ("", f"[{passage}]") if isinstance(passage, str) else message_lines(passage)
        yield "".join(f"{line}\n" for line in lines)


def message_lines(message: Message) -> Iterator[str]:
    """Yield the lines of one message as plain text; the first line is empty."""
    yield ""
    yield head(message)
    for block in message.blocks:
        yield ""
        yield from (f"{INDENT}{line}".rstrip() for line in _block(block))
    if message.usage is not None:
        yield ""
        yield f"{INDENT}Tokens: {usage_words(message.usage)}"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text() | Notice():
            yield from _lines(block.text)
        case Thought():
            yield clean_line(block.heading)
            yield from _indented(block.description)
        case Image():
            yield f"Binary content: {image_words(block)}"
        case Attachment():
            yield f"Attached: {clean_line(block.name)}"
            yield from _indented(block.text)
        case ToolCall():
            yield from _call(block)
        case _:
            assert_never(block)


def _call(call: ToolCall) -> Iterator[str]:
    about = "".join(f", {note}" for note in (caution(call), subject(call)) if note)
    yield f"Tool call: {visible_line(call.name)}{about}"
    yield f"Status: {call_words(call)}"
    for name, value in arguments(call):
        yield from _labelled(f"Argument {name}", value)
    if call.error:
        yield from _labelled("Error", call.error)
    rows = call_rows(call)
    if rows:
        cleaned = visible if rows[0].role is RowRole.DIFF else clean
        yield from _labelled(_label(call), cleaned(plain_text(rows)))
    for image in call.images:
        yield f"Binary result: {image_words(image)}"


def _label(call: ToolCall) -> str:
    if not isinstance(call.display, DiffDisplay):
        return "Result"
    return "Change" if call.status is ToolStatus.SUCCESS else "Proposed change"


def _labelled(label: str, text: str) -> Iterator[str]:
    """Yield a single line after its label, or several lines indented under the label."""
    lines = list(_lines(text))
    if len(lines) == 1:
        yield f"{label}: {lines[0]}"
    else:
        yield f"{label}:"
        yield from (INDENT + line for line in lines)


def _indented(text: str) -> Iterator[str]:
    return (INDENT + line for line in _lines(text))


def _lines(text: str) -> Iterator[Clean]:
    return (Clean(line) for line in clean(text).strip("\n").split("\n"))
