"""`gemtui show`: print one session as text, Markdown, HTML or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemtui.commands.output import lines_to_stdout, note, stdout_encoding, to_file, to_stdout
from gemtui.commands.session_choice import session_named
from gemtui.commands.shared_options import force_option, output_option, project_option, session_ids
from gemtui.errors import SessionNotFound
from gemtui.export_formats import Format, pieces, repository_note
from gemtui.paths import gemini_home
from gemtui.sessions.read.conversation import dropped_counts
from gemtui.sessions.read.session_log import SessionLog
from gemtui.sessions.store.typed_prompts import typed_prompts
from gemtui.text import clean, clean_line, counted
from gemtui.transcript.export_words import dropped_words

if TYPE_CHECKING:
    from gemtui.redact.redactor import Redactor
    from gemtui.sessions.catalog.summary import Summary

_ENDINGS = {
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".json": Format.JSON,
}
"""The formats that the name of a file tells."""


@click.command()
@click.argument("id", shell_complete=session_ids)
@click.option(
    "--format",
    type=click.Choice([each.value for each in Format]),
    help="By default, as FILE ends (.html, .md, .json), or else text. json: the stored records; "
    "unified: messages in a Claude-compatible format; replay: a web page that plays back the "
    "session.",
)
@output_option()
@force_option
@click.option(
    "--redact",
    is_flag=True,
    help="Replace keys, tokens, passwords, e-mail addresses and home folders with placeholders.",
)
@click.option(
    "--dropped",
    is_flag=True,
    help="Include rewound, replaced, and failed messages; json always includes them.",
)
@project_option("Choose only among the sessions of this folder.")
def show(
    id: str,
    format: str | None,
    output: Path | None,
    project: Path | None,
    dropped: bool,
    redact: bool,
    force: bool,
) -> None:
    """Print one session.

    ID is a session's id, a unique prefix of it, `latest` (the newest session of the current
    folder's project, or of all if it has none), or the file of a session, subagent, or checkpoint.
    `claude:ID` and `qwen:latest` are those of this agent. Of a session whose file is gone, the
    prompts that Gemini CLI has kept are printed.
    """
    chosen = _format_of(output) if format is None else Format(format)
    if dropped and chosen is Format.UNIFIED:
        raise click.UsageError(
            "--dropped: the unified format can't represent dropped messages: use --format json"
        )
    try:
        summary = session_named(id, project=project)
    except SessionNotFound:
        if (
            project is None
            and chosen is Format.TEXT
            and output is None
            and not redact
            and _show_typed(id.strip())
        ):
            return
        raise
    with SessionLog.read(summary.path) as log:
        redactor = _redactor(log, summary) if redact else None
        if output is None:
            encoding = stdout_encoding()
            data = pieces(
                log, summary, chosen, dropped=dropped, encoding=encoding, redactor=redactor
            )
            to_stdout(data)
        else:
            data = pieces(log, summary, chosen, dropped=dropped, redactor=redactor)
            to_file(output, data, keep=(gemini_home(), *summary.files), force=force)
            if words := repository_note(output):
                note(clean_line(words))
        if redactor is not None:
            _report_replaced(redactor)
        if chosen is not Format.JSON:
            _report_problems(log)
        if chosen is Format.UNIFIED:
            _report_dropped(log)


def _format_of(output: Path | None) -> Format:
    """Return the format to write to a file with this name; plain text for an unknown ending."""
    ending = "" if output is None else output.suffix.lower()
    return _ENDINGS.get(ending, Format.TEXT)


def _redactor(log: SessionLog, summary: Summary) -> Redactor:
    """Make a log return its records without secrets; return the redactor."""
    from gemtui.sessions.catalog.redacted import redact

    return redact(log, summary)


def _show_typed(id: str) -> bool:
    """Print the prompts of a session whose file is gone; return False if there are none.

    Nothing is printed if `id` is the beginning of several sessions' ids.
    """
    prompts = typed_prompts(gemini_home(), id) if id else []
    if len({prompt.session for prompt in prompts}) != 1:
        return False
    from gemtui.search.lost import prompts_text

    lines_to_stdout([clean(prompts_text(prompts))])
    note(
        f"the file of session {clean_line(prompts[0].session)} is gone; these are the prompts "
        "that Gemini CLI has kept "
        "in logs.json, without answers"
    )
    return True


def _report_replaced(redactor: Redactor) -> None:
    """Report on stderr how many secrets of each kind were replaced."""
    from gemtui.redact.redactor import replaced_words

    replaced = replaced_words(redactor)
    note(
        f"replaced {replaced}; images and encoded text were not checked, so read the result before "
        "sharing it"
    )


def _report_problems(log: SessionLog) -> None:
    """Report the first problem in a session's files, and how many others there are.

    JSON output lists all problems, so nothing is reported then.
    """
    if log.problems:
        first, *more = log.problems
        position = f"{first.path}, line {first.line}" if first.line else str(first.path)
        others = f" (and {len(more)} more)" if more else ""
        note(f"{position}: {first.what}{others}: to list what could not be read, use --format json")


def _report_dropped(log: SessionLog) -> None:
    """Report how many dropped messages the unified format had to leave out."""
    lost = dropped_counts(log)
    if lost:
        messages = counted(lost.total(), "message")
        note(f"{messages} left out: {dropped_words(lost)}: use --format json to include them")
