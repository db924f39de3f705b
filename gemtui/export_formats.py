"""Export a stored session in several formats, as a stream of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from gemtui.files import path_exists, resolved
from gemtui.jsonout import encode, encode_array
from gemtui.sessions.catalog.summary import Summary
from gemtui.sessions.read.conversation import dropped_of, records_of, transcript_of, unified_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.text import short_path
from gemtui.transcript.model import with_project

if TYPE_CHECKING:
    from gemtui.redact.redactor import Redactor


class Format(StrEnum):
    """The formats of `gemtui show` and of exports from the app."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    UNIFIED = "unified"
    REPLAY = "replay"


def pieces(
    log: SessionLog,
    summary: Summary,
    format: Format,
    *,
    dropped: bool = False,
    encoding: str = "utf-8",
    redactor: Redactor | None = None,
) -> Iterator[bytes]:
    """Yield an exported session in consecutive chunks of bytes.

    `log`: the session log, already read and still open. `dropped`: also include messages that are
    no longer part of the conversation; applies to text, Markdown and HTML. The JSON format always
    includes these messages, the unified format never does. `encoding`: the encoding of plain text,
    in which characters that can't be encoded become `?`; all other formats are UTF-8. `redactor`:
    replaces secrets, using `sessions.redacted.redact`; None keeps them.
    """
    if redactor is not None:
        from gemtui.sessions.catalog.redacted import redacted_summary

        summary = redacted_summary(summary, redactor)
    match format:
        case Format.TEXT | Format.MARKDOWN | Format.HTML | Format.REPLAY:
            target = encoding if format is Format.TEXT else "utf-8"
            for text in _texts(log, summary, format, dropped=dropped):
                yield text.encode(target, "replace")
        case Format.JSON:
            yield from _json(log, summary, redactor)
        case Format.UNIFIED:
            yield from encode_array((message.to_dict() for message in unified_of(log)), tail=b"\n")
        case _:
            assert_never(format)


def repository_note(path: Path) -> str:
    """Return a warning if a file that is about to be exported would be in a git repository."""
    for folder in resolved(path).parents:
        if path_exists(folder / ".git"):
            return f"{short_path(folder)} is a git repository: take care not to commit this."
    return ""


def _texts(log: SessionLog, summary: Summary, format: Format, *, dropped: bool) -> Iterator[str]:
    transcript = with_project(transcript_of(log, dropped=True), summary.project)
    return _writer(format)(transcript, summary, dropped=dropped)


def _writer(format: Format) -> Callable[..., Iterator[str]]:
    """Return the function that writes a transcript; no other format is loaded."""
    match format:
        case Format.MARKDOWN:
            from gemtui.transcript.export_markdown import to_markdown

            return to_markdown
        case Format.HTML:
            from gemtui.transcript.export_html import to_html

            return to_html
        case Format.REPLAY:
            from gemtui.transcript.export_replay import to_replay

            return to_replay
        case _:
            from gemtui.transcript.export_text import to_text

            return to_text


def _json(log: SessionLog, summary: Summary, redactor: Redactor | None) -> Iterator[bytes]:
    """Yield the JSON of `Session.to_dict` without building the whole value in memory."""
    from gemtui.api import DroppedRecord

    apply: Callable[[Any], Any] = _unchanged if redactor is None else redactor.apply
    head = b'{"version":1,"session":' + encode(apply(summary.to_dict())) + b',"messages":'
    yield from encode_array(records_of(log), head=head)
    dropped = (DroppedRecord(why=why, record=record).to_dict() for why, record in dropped_of(log))
    yield from encode_array(dropped, head=b',"dropped":')
    problems = (apply(problem.to_dict()) for problem in log.problems)
    yield from encode_array(problems, head=b',"problems":', tail=b"}\n")


def _unchanged(value: Any) -> Any:
    return value
