"""`gemtui push`: write all sessions to a folder as compressed JSON lines."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, progress
from gemtui.commands.session_choice import index_of_user
from gemtui.commands.shared_options import json_option, since_option
from gemtui.jsonout import iso
from gemtui.paths import typed_path
from gemtui.push.folder import open_push_folder
from gemtui.push.push import push_sessions, pushed_sessions
from gemtui.sessions.catalog.index import read_store
from gemtui.text import clean_line, counted


@click.command()
@click.argument("dir", type=click.Path(file_okay=False, path_type=Path))
@since_option("Include only sessions used since DATE, such as 2026-11-20 or 7d.")
@click.option(
    "--redact",
    is_flag=True,
    help=(
        "Replace keys, tokens, passwords, e-mail addresses and home folders with placeholders; "
        "don't write raw files."
    ),
)
@json_option
def push(dir: Path, since: datetime | None, redact: bool, as_json: bool) -> int:
    """Write all sessions to a folder, for programs that collect sessions from many machines.

    DIR receives compressed JSON lines, one file per project and day, and the session files, named
    by the SHA-256 hash of their contents. Only changes are written, and nothing is deleted. Copy or
    sync DIR to wherever you need it. Exit code 1 if a session could not be read.
    """
    path = typed_path(dir)
    with index_of_user() as index:
        held = open_push_folder(path, home=index.home, redact=redact, waiting=_say_waiting)
        with held as target:
            sessions = pushed_sessions(read_store(index).sessions, since)
            pushed = push_sessions(target, sessions, progress=progress("pushing", len(sessions)))
    for problem in pushed.problems:
        note(f"{problem.path}: {problem.what}")
    if as_json:
        report = {
            "folder": str(target.path),
            "redact": redact,
            "since": iso(since),
            **pushed.to_dict(),
            "problems": pushed.problems,
        }
        json_to_stdout(report)
    else:
        written = f"{counted(len(pushed.days), 'file')}, {counted(pushed.raw, 'raw file')}"
        changed = f"{pushed.changed:,} of {counted(pushed.sessions, 'session')} changed"
        lines_to_stdout(
            [clean_line(f"{changed}; {written} written to {target.path}")], links=[target.path]
        )
    return 1 if pushed.problems else 0


def _say_waiting() -> None:
    note("another push is writing to that folder; waiting for it to finish")
