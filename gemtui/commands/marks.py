"""`gemtui mark` and `gemtui marks`: what is the user's own about sessions."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from gemtui.commands.output import lines_to_stdout, note, to_file, to_stdout
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.errors import MarkError, SessionNotFound
from gemtui.jsonout import encode
from gemtui.marks import Mark, MarkEdit, Marks, exported, imported
from gemtui.paths import gemini_home
from gemtui.text import Clean, clean, clean_line, counted


def mark(
    id: str,
    *,
    name: str | None,
    note: str | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    pinned: bool | None,
    archived: bool | None,
    as_json: bool,
) -> None:
    """Change the mark of a session, or print it if nothing is to be changed.

    Raises SessionNotFound, SessionAmbiguous, MarkError, MarksUnreadable.
    """
    marks = Marks()
    session = _session(id, marks)
    edit = MarkEdit(name=name, note=note, add=tags, remove=untags, pinned=pinned, archived=archived)
    if edit != MarkEdit():
        marks.edit([session], edit)
        if not as_json:
            return
    found = marks.get(session)
    if as_json:
        to_stdout([encode({"version": 1, "mark": found.to_dict()}), b"\n"])
    else:
        lines_to_stdout(_lines(found))


def _session(id: str, marks: Marks) -> str:
    """The full id of the session meant; one that is gone is named by its full id."""
    try:
        with index_of_user() as index:
            return choose(id, index).id
    except SessionNotFound:
        if marks.get(id).changed is None:
            raise
        return id


def _lines(mark: Mark) -> list[Clean]:
    if mark.empty:
        return [Clean("nothing: gemtui mark --help says what there is")]
    rows = (
        ("name", mark.name),
        ("tags", " ".join(mark.tags)),
        ("pinned", "yes" if mark.pinned else ""),
        ("archived", "yes" if mark.archived else ""),
    )
    lines = [Clean(f"{name:<9} {clean_line(words)}") for name, words in rows if words]
    return [*lines, *map(Clean, clean(mark.note or "").splitlines())]


def export(output: Path | None, *, force: bool = False) -> None:
    """Print all marks as JSON, or write them to a file. Raises MarksUnreadable, OSError.

    `force`: replace the file if it exists.
    """
    pieces = [encode(exported(Marks().all())), b"\n"]
    if output is None:
        to_stdout(pieces)
    else:
        to_file(output, pieces, keep=[gemini_home()], force=force)


def import_(file: IO[bytes], *, as_json: bool) -> None:
    """Add exported marks to those that are there. Raises MarkError, MarksUnreadable."""
    try:
        merged = Marks().merge(imported(file.read()))
    except MarkError as error:
        raise MarkError(f"{file.name}: {error}") from error
    if as_json:
        answer = {"version": 1, "changed": merged.changed, "kept": list(merged.kept)}
        to_stdout([encode(answer), b"\n"])
        return
    for session in merged.kept:
        note(f"{session} has another name or note here, which stays: gemtui mark changes it")
    note(f"imported: new marks for {counted(merged.changed, 'session')}")
