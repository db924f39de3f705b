"""`gemtui show`: print one session as text, Markdown, HTML or JSON."""

from __future__ import annotations

from pathlib import Path

from gemtui.commands.output import note, stdout_encoding, to_file, to_stdout
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.export_formats import Format, pieces
from gemtui.paths import gemini_home
from gemtui.redact.redactor import Redactor, replaced_words
from gemtui.sessions.catalog.redacted import redact
from gemtui.sessions.read.conversation import dropped_counts
from gemtui.sessions.read.session_log import SessionLog
from gemtui.text import counted
from gemtui.transcript.export_words import dropped_words


def run(
    wanted: str,
    *,
    format: Format,
    output: Path | None,
    project: Path | None = None,
    dropped: bool = False,
    redacted: bool = False,
    force: bool = False,
) -> None:
    """Print the session that `wanted` names, or write it to `output`.

    `project`: consider only this folder's sessions. `dropped`: include messages that are no longer
    part of the conversation. `redacted`: replace secrets. `force`: replace an existing file.
    """
    with index_of_user() as index:
        summary = choose(wanted, index, project=project)
    with SessionLog(summary.path) as log:
        log.refresh()
        redactor = redact(log, summary) if redacted else None
        if output is None:
            encoding = stdout_encoding()
            data = pieces(log, summary, format, dropped=dropped, encoding=encoding, redactor=redactor)
            to_stdout(data)
        else:
            data = pieces(log, summary, format, dropped=dropped, redactor=redactor)
            to_file(output, data, keep=(gemini_home(), *summary.files), force=force)
        if redactor is not None:
            _report_replaced(redactor)
        if format is not Format.JSON:
            _report_problems(log)
        if format is Format.UNIFIED:
            _report_dropped(log)


def _report_replaced(redactor: Redactor) -> None:
    """Report on stderr how many secrets of each kind were replaced."""
    words = replaced_words(redactor)
    note(f"replaced {words}; images and encoded text were not checked, so read the result before sharing it")


def _report_problems(log: SessionLog) -> None:
    """Report the first problem in a session's files, and how many others there are.

    JSON output lists all problems, so nothing is reported then.
    """
    if log.problems:
        first, *more = log.problems
        place = f"{first.path}, line {first.line}" if first.line else str(first.path)
        others = f" (and {len(more)} more)" if more else ""
        note(f"{place}: {first.what}{others}: to list what could not be read, use --format json")


def _report_dropped(log: SessionLog) -> None:
    """Report how many dropped messages the unified format had to leave out."""
    if lost := dropped_counts(log):
        messages = counted(lost.total(), "message")
        note(f"{messages} left out: {dropped_words(lost)}: use --format json to include them")
