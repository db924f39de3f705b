"""`gemtui show`: one session as text, Markdown, HTML or JSON."""

from __future__ import annotations

from pathlib import Path

from gemtui.commands.output import note, stdout_encoding, to_file, to_stdout
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.export_formats import Format, pieces
from gemtui.paths import gemini_home
from gemtui.sessions.load import dropped_counts
from gemtui.sessions.records import SessionLog
from gemtui.text import counted
from gemtui.transcript.export_words import dropped_words


def run(
    wanted: str,
    *,
    format: Format,
    output: Path | None,
    project: Path | None = None,
    dropped: bool = False,
) -> None:
    """Print the session that `wanted` names, of `project` if given, or write it to `output`.

    `dropped`: with the messages that are no longer part of the conversation.
    """
    with index_of_user() as index:
        summary = choose(wanted, index, project=project)
    with SessionLog(summary.path) as log:
        log.refresh()
        if output is None:
            encoding = stdout_encoding()
            to_stdout(pieces(log, summary, format, dropped=dropped, encoding=encoding))
        else:
            data = pieces(log, summary, format, dropped=dropped)
            to_file(output, data, keep=(gemini_home(), *summary.files))
        if format is not Format.JSON:
            _say_problems(log)
        if format is Format.UNIFIED:
            _say_dropped(log)


def _say_problems(log: SessionLog) -> None:
    """What JSON lists under `problems`: a line that could not be read, and how many more."""
    if log.problems:
        first, *more = log.problems
        place = f"{first.path}, line {first.line}" if first.line else str(first.path)
        others = f" (and {len(more)} more)" if more else ""
        note(f"{place}: {first.what}{others}: --format json lists what could not be read")


def _say_dropped(log: SessionLog) -> None:
    """What unified messages have no form for."""
    if lost := dropped_counts(log):
        messages = counted(lost.total(), "message")
        note(f"{messages} left out: {dropped_words(lost)}: --format json has them")
