"""`gemtui files`: the files that sessions wrote, and their changes as a patch."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import click

from gemtui.calls.paths import is_windows, recorded_path, typed_place
from gemtui.commands.output import json_list_to_stdout, lines_to_stdout, note, to_stdout
from gemtui.commands.session_choice import choose, index_of_user, project_in_use, short_ids
from gemtui.commands.shared_options import (
    json_option,
    project_options,
    require_one,
    session_ids,
    since_option,
)
from gemtui.jsonout import fields
from gemtui.paths import cache_dir, current_folder
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import read_store
from gemtui.sessions.catalog.selection import listed_sessions, sessions_with_calls
from gemtui.sessions.store.projects import folder_names
from gemtui.sessions.store.store import Problem
from gemtui.sessions.written_files import (
    ProjectPatch,
    RecordedWrite,
    recorded_changes,
    recorded_writes,
    remarks,
    writes_by_file,
)
from gemtui.text import clean_line, relative, short_path


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@project_options()
@click.option(
    "--session",
    metavar="ID",
    shell_complete=session_ids,
    help="Use only this session, with its subagents.",
)
@since_option("Leave out writes before DATE, such as 2026-11-20 or 7d.")
@click.option(
    "--patch", "as_patch", is_flag=True, help="Print the changes as one patch for `git apply`."
)
@json_option
def files(
    path: Path | None,
    project: Path | None,
    everywhere: bool,
    session: str | None,
    since: datetime | None,
    as_patch: bool,
    as_json: bool,
) -> int:
    """List the files that sessions wrote, most recent first.

    PATH limits the list to a file, to the files in a folder, or to files whose path ends with PATH.
    Only writes by file tools are recorded, not those by shell commands. By default, the sessions of
    the current folder's project are used, or all sessions if it has none. --patch combines the
    changes from before the first write to after the last, and lists what it can't include. Exit
    code 1 if there are no files.
    """
    require_one(
        "--session", session is not None, "--project or --everywhere", project or everywhere
    )
    require_one("--patch", as_patch, "--json", as_json)
    with index_of_user() as index:
        snapshot = read_store(index, project=project)
        one = None if session is None else choose(session, index, project=project)
    listed = partial(listed_sessions, snapshot, hidden=False)
    where = None if one else project_in_use(listed, project, everywhere=everywhere)
    sessions = sessions_with_calls(snapshot, session=one, project=where)
    if as_patch:
        changes = recorded_changes(sessions, since=since)
        return _print_patch(
            matching_writes(changes, path),
            where or (None if one is None else one.folder),
            _nothing_written(since),
        )
    writes = recorded_writes(sessions, home=index.home, cache=cache_dir(), since=since)
    written = writes_by_file(matching_writes(writes, path))
    if as_json:
        json_list_to_stdout("files", map(file_entry, written.values()))
    else:
        lines_to_stdout(_lines(written, snapshot))
    if not written:
        note(_nothing_written(since))
    return 0 if written else 1


def _nothing_written(since: datetime | None) -> str:
    period = "" if since is None else " in this period: give other dates"
    return f"no session wrote a matching file{period}"


def matching_writes(
    writes: Iterator[RecordedWrite | Problem], path: Path | None
) -> Iterator[RecordedWrite]:
    """Yield the writes to files that match `path`; None means all files.

    `path`: as in `files`. Problems that occurred while sessions were read are reported on stderr.
    """
    fits = _Fits(path)
    for write in writes:
        if isinstance(write, Problem):
            note(f"{write.path}: {write.what}")
        elif fits(write.path):
            yield write


class _Fits:
    """Tests whether a path is, is under, or ends with the path that the user named."""

    def __init__(self, wanted: Path | None) -> None:
        self._places = [] if wanted is None else _names_of(wanted)
        self._ending = "" if wanted is None or wanted.is_absolute() else str(wanted)

    def __call__(self, path: PurePath) -> bool:
        if not self._places:
            return True
        if any(path.is_relative_to(folder) for folder in self._places):
            return True
        return self._ending not in ("", ".") and path.match(glob.escape(self._ending))


def _names_of(wanted: Path) -> list[PurePath]:
    """Return a path's absolute spellings: as given, and with links resolved."""
    if is_windows(str(wanted)):
        return [recorded_path(str(wanted))]
    absolute = typed_place(wanted, current_folder())
    return [absolute, *map(Path, folder_names(absolute))]


# --- lines and JSON ------------------------------------------------------------------------------


def _lines(files: Mapping[PurePath, Sequence[RecordedWrite]], snapshot: Snapshot) -> Iterator[str]:
    ids, now = short_ids(session.id for session in snapshot.sessions), datetime.now(UTC)
    for path, writes in files.items():
        yield short_path(path)
        for write in reversed(writes):
            id = clean_line(ids.get(write.session, write.session))
            cells = (relative(write.when, now), id, clean_line(write.tool), _outcome(write))
            yield "  " + "  ".join(word for word in cells if word)


def _outcome(write: RecordedWrite) -> str:
    if not write.written:
        return write.status.value
    if write.added is None:
        return ""
    removed = "" if write.removed is None else f" -{write.removed}"
    return f"+{write.added}{removed}{' new' if write.is_new else ''}"


def file_entry(writes: Sequence[RecordedWrite]) -> dict[str, Any]:
    """Return a file's JSON object in the output of `gemtui files --json`.

    `writes`: all writes to the file.
    """
    return {
        "path": str(writes[0].path),
        "project": writes[0].source.project,
        "writes": [
            {
                **fields(write, *_WRITE_FIELDS, timestamp="time"),
                "subagent": write.source.id if write.source.id != write.session else None,
            }
            for write in writes
        ],
    }


_WRITE_FIELDS = ("session", "message", "call", "tool", "added", "removed", "status")


# --- patch ---------------------------------------------------------------------------------------


def _print_patch(writes: Iterable[RecordedWrite], root: Path | None, nothing: str) -> int:
    """Print one patch for all files under the project's folder `root`.

    Changes that a patch can't contain are reported on stderr, with the reason. `nothing`: what to
    say if there are none. Returns 1 if the patch is empty.
    """
    if root is None:
        raise click.UsageError(
            "a patch covers a single project: change to its folder, or name it with --project"
        )
    patch = ProjectPatch(root)
    for write in writes:
        patch.add(write)
    files = list(patch.files())
    to_stdout(file.text.encode() for file in files if file.text)
    for what, about in remarks(files):
        note(what)
        for path in about:
            note(path)
    if any(file.text for file in files):
        return 0
    note("there are no changes to put in a patch" if files else nothing)
    return 1
