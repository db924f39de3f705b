"""`gemtui mark` and `gemtui marks`: edit and list the user's marks on sessions."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import click

from gemtui.commands.output import (
    fact_line,
    json_to_stdout,
    lines_to_stdout,
    note,
    to_file,
    to_stdout,
)
from gemtui.commands.session_choice import session_named, session_words
from gemtui.commands.shared_options import force_option, json_option, output_option, session_ids
from gemtui.errors import MarkError, SessionNotFound
from gemtui.jsonout import encode
from gemtui.marks import Mark, MarkEdit, Marks, exported, imported
from gemtui.paths import gemini_home
from gemtui.sessions.catalog.summary import Summary
from gemtui.text import clean, clean_line, counted


@click.command()
@click.argument("id", shell_complete=session_ids)
@click.option("--name", metavar="T", help="Set the session's title to T; '' removes the title.")
@click.option("--tag", "tags", metavar="T", multiple=True, help="Add the tag T; repeatable.")
@click.option("--untag", "untags", metavar="T", multiple=True, help="Remove the tag T; repeatable.")
@click.option(
    "--pin/--unpin", "pinned", default=None, help="Pin the session to the top of lists, or unpin."
)
@click.option("--note", metavar="T", help="Set the note T; '' removes it.")
@click.option(
    "--archive/--unarchive",
    "archived",
    default=None,
    help="Hide the session from lists, or show it again.",
)
@json_option
def mark(
    id: str,
    name: str | None,
    note: str | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    pinned: bool | None,
    archived: bool | None,
    as_json: bool,
) -> None:
    """Name, tag, pin, annotate, or archive a session.

    Without an option, print the session's marks. Marks are saved in gemtui's own folder; Gemini
    CLI's files don't change. ID accepts the same values as `gemtui show`.
    """
    marks = Marks()
    stored = _stored(id, marks)
    session = id if stored is None else stored.id
    edit = MarkEdit(name=name, note=note, add=tags, remove=untags, pinned=pinned, archived=archived)
    if edit != MarkEdit():
        marks.edit([session], edit)
        if not as_json:
            if stored is not None and not stored.id.startswith(id):
                _report_marked(stored)
            return
    edited = marks.get(session)
    if as_json:
        json_to_stdout({"mark": edited})
    else:
        lines_to_stdout(_lines(edited))


def _stored(id: str, marks: Marks) -> Summary | None:
    """Return the session that the user named; None if it is deleted, but still has marks.

    Such a session can be named only by its full id.
    """
    try:
        return session_named(id)
    except SessionNotFound:
        if marks.get(id).changed is None:
            raise
        return None


def _report_marked(session: Summary) -> None:
    """Say which session was marked, because the user named it by a word such as `latest`."""
    note(f"marked {session_words(session)}")


def _lines(mark: Mark) -> list[str]:
    if mark.empty:
        return ["no marks: to add some, see gemtui mark --help"]
    rows = (
        ("name", mark.name),
        ("tags", " ".join(mark.tags)),
        ("pinned", "yes" if mark.pinned else ""),
        ("archived", "yes" if mark.archived else ""),
    )
    lines = [fact_line(name, clean_line(text)) for name, text in rows if text]
    return [*lines, *clean(mark.note or "").splitlines()]


@click.group()
def marks() -> None:
    """Export and import the names, tags, notes, and pins of all sessions."""


@marks.command()
@output_option()
@force_option
def export(output: Path | None, force: bool) -> None:
    """Print the marks of all sessions as JSON."""
    pieces = [encode(exported(Marks().all())), b"\n"]
    if output is None:
        to_stdout(pieces)
    else:
        to_file(output, pieces, keep=[gemini_home()], force=force)


@marks.command("import")
@click.argument("file", type=click.File("rb"))
@json_option
def import_(file: IO[bytes], as_json: bool) -> None:
    """Add the marks from FILE (- for stdin), written by `gemtui marks export`.

    Nothing is overwritten: existing names and notes stay and are listed.
    """
    try:
        merged = Marks().merge(imported(file.read()))
    except MarkError as error:
        raise MarkError(f"{file.name}: {error}") from error
    if as_json:
        json_to_stdout({"changed": merged.changed, "kept": list(merged.kept)})
        return
    for session in merged.kept:
        note(
            f"{session} already has a different name or note here, which was kept: to change it, "
            "use gemtui mark"
        )
    note(f"imported marks for {counted(merged.changed, 'session')}")
