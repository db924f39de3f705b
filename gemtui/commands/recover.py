"""`gemtui recover`: rebuild a file from the writes, edits and reads in sessions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gemtui.calls.paths import typed_place
from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, to_file
from gemtui.commands.session_choice import index_of_user, short_ids
from gemtui.commands.shared_options import (
    Moment,
    force_option,
    json_option,
    output_option,
    require_one,
)
from gemtui.jsonout import iso
from gemtui.paths import current_folder, gemini_home, typed_path
from gemtui.recover.history import Recovered, recover_file
from gemtui.recover.rebuilt import LineRange, Rebuilt
from gemtui.sessions.catalog.index import read_store
from gemtui.text import clean, counted, relative, short_path

_TOLD = 20
"""The maximum number of line ranges whose sources are listed; --json lists all."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--at",
    metavar="TIME",
    type=Moment(),
    help="Rebuild the file as of TIME, such as 2026-11-20T12:00 or 7d.",
)
@output_option()
@force_option
@json_option
def recover(
    path: Path, at: datetime | None, output: Path | None, force: bool, as_json: bool
) -> int:
    """Rebuild a lost file from everything that sessions wrote, edited, read, or printed of it.

    For each line, stderr says whether it is known or guessed, and which call it comes from. A known
    line is one that the newest record shows at this position; a guessed line comes from an older
    record, or from terminal output that may have changed it. On stdout, control characters are made
    visible; in FILE they are unchanged. Exit code 1 if no session contains any text of the file.
    """
    require_one("--output", output is not None, "--json", as_json)
    if force and output is None:
        raise click.UsageError("--force works only with --output")
    wanted = typed_place(typed_path(path), current_folder())
    with index_of_user() as index:
        sessions = read_store(index).sessions
    recovered = recover_file(wanted, sessions, at=at)
    for problem in recovered.problems:
        note(f"{problem.path}: {problem.what}")
    rebuilt = recovered.rebuilt
    if as_json:
        json_to_stdout(_report(recovered))
    if rebuilt is None:
        note(f"no session contains text of {short_path(wanted)}")
        return 1
    if output is not None:
        _write(output, rebuilt.text.encode(errors="replace"), force=force)
    elif not as_json:
        lines_to_stdout(clean(line.text or "") for line in rebuilt.listed)
    if not as_json:
        _report_sources(recovered, rebuilt, {session.id for session in sessions})
    return 0


def _write(path: Path, data: bytes, *, force: bool) -> None:
    target = typed_path(path)
    if target.is_symlink():
        raise click.UsageError(f"{path} is a symbolic link: name its target instead")
    to_file(path, [data], keep=[gemini_home()], force=force)


# --- text ----------------------------------------------------------------------------------------


def _report_sources(found: Recovered, rebuilt: Rebuilt, ids: set[str]) -> None:
    """Report on stderr how certain the recovered lines are, and their sources.

    `ids`: the ids of all sessions, from which unique prefixes are derived.
    """
    now, short = datetime.now(UTC), short_ids(ids)
    counts = f"{counted(rebuilt.known, 'line')} known, {rebuilt.guessed:,} guessed"
    gaps = f", {rebuilt.gaps:,} missing" if rebuilt.gaps else ""
    note(f"{short_path(found.path)}, {relative(rebuilt.newest.time, now)}: {counts}{gaps}")
    for span in rebuilt.spans[:_TOLD]:
        note("  " + _about(span, short, now))
    if len(rebuilt.spans) > _TOLD:
        note(f"  and {len(rebuilt.spans) - _TOLD:,} more (--json has all)")
    for remark in _notes(found):
        note(remark)


def _about(span: LineRange, short: dict[str, str], now: datetime) -> str:
    where = f"line {span.first}" if span.first == span.last else f"lines {span.first}-{span.last}"
    if span.source is None:
        return f"{where}: missing, replaced by empty lines"
    source = span.source
    session = short.get(source.session, source.session)
    state = "known" if span.known else "guessed"
    return f"{where}: {state}, {source.tool} in {session}, {relative(source.time, now)}"


def _notes(found: Recovered) -> Iterator[str]:
    yield from found.notes
    yield from dict.fromkeys(() if found.rebuilt is None else found.rebuilt.notes)


# --- JSON ----------------------------------------------------------------------------------------


def _report(found: Recovered) -> dict[str, Any]:
    rebuilt = found.rebuilt
    return {
        "path": str(found.path),
        "time": None if rebuilt is None else iso(rebuilt.newest.time),
        "session": None if rebuilt is None else rebuilt.newest.session,
        "known": 0 if rebuilt is None else rebuilt.known,
        "guessed": 0 if rebuilt is None else rebuilt.guessed,
        "missing": 0 if rebuilt is None else rebuilt.gaps,
        "text": None if rebuilt is None else rebuilt.text,
        "lines": [] if rebuilt is None else [_span(span) for span in rebuilt.spans],
        "notes": list(_notes(found)),
    }


def _span(span: LineRange) -> dict[str, Any]:
    source = span.source
    return {
        "first": span.first,
        "last": span.last,
        "known": span.known,
        "session": None if source is None else source.session,
        "time": None if source is None else iso(source.time),
        "call": None if source is None else source.call,
        "tool": None if source is None else source.tool,
    }
