"""`gemtui push`: write all sessions to a folder as compressed JSON lines."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gemtui.api import problem_dict
from gemtui.commands.output import json_to_stdout, lines_to_stdout, note, progress
from gemtui.commands.pick_session import index_of_user
from gemtui.paths import typed_path
from gemtui.push.folder import open_folder
from gemtui.push.push import push, pushed_sessions
from gemtui.sessions.catalog.index import read_store
from gemtui.sessions.catalog.summary import iso
from gemtui.text import clean_line, counted


def run(folder: Path, *, since: datetime | None, redact: bool, as_json: bool) -> int:
    """Write the sessions to `folder`, and report the result.

    Returns 1 if a session could not be read. `since`: only sessions used since this time. `redact`:
    replace secrets. Raises PushError, StoreUnreadable, OSError.
    """
    path = typed_path(folder)
    with index_of_user() as index:
        held = open_folder(path, home=index.home, redact=redact, waiting=_say_waiting)
        with held as target:
            sessions = pushed_sessions(read_store(index).sessions, since)
            done = push(target, sessions, progress=progress("pushing", len(sessions)))
    for problem in done.problems:
        note(f"{problem.path}: {problem.what}")
    if as_json:
        report = {
            "version": 1,
            "folder": str(target.path),
            "redact": redact,
            "since": iso(since),
            **done.to_dict(),
            "problems": [problem_dict(each) for each in done.problems],
        }
        json_to_stdout(report)
    else:
        written = f"{counted(len(done.days), 'file')}, {counted(done.raw, 'raw file')}"
        changed = f"{done.changed:,} of {counted(done.sessions, 'session')} changed"
        lines_to_stdout([clean_line(f"{changed}; {written} written to {target.path}")])
    return 1 if done.problems else 0


def _say_waiting() -> None:
    note("another push is writing to that folder; waiting for it to finish")
