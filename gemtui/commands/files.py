"""`gemtui files`: which sessions wrote which files, and all of it as a patch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any

import click

from gemtui.commands.output import lines_to_stdout, note, to_stdout
from gemtui.commands.pick_session import choose, index_of_user
from gemtui.commands.sessions import scope, short_ids
from gemtui.jsonout import encode_array
from gemtui.paths import current_folder
from gemtui.sessions.problem import Problem
from gemtui.sessions.projects import folder_names
from gemtui.sessions.scope import read_store, sessions_with_calls
from gemtui.sessions.snapshot import Snapshot
from gemtui.sessions.summary import Summary, iso
from gemtui.sessions.written_files import FilePatch, RecordedWrite, patch_of, recorded_writes
from gemtui.text import Clean, clean_line, counted, relative, short_path


def run(
    path: Path | None,
    *,
    project: Path | None,
    everywhere: bool,
    session: str | None,
    since: datetime | None,
    as_patch: bool,
    as_json: bool,
) -> int:
    """Print the files that sessions wrote; 1 where there are none.

    `path`: only this file, those below this folder, or those whose path ends so. Raises
    SessionNotFound, SessionAmbiguous, StoreUnreadable.
    """
    with index_of_user() as index:
        snapshot = read_store(index, project=project)
        one = None if session is None else choose(session, index, project=project)
    where = None if everywhere or one else scope(snapshot, project, hidden=False)
    sessions = sessions_with_calls(snapshot, session=one, project=where)
    files = _files(sessions, path, since, keep_changes=as_patch)
    if as_patch:
        return _print_patch(files, where or _folder_of(one))
    if as_json:
        head = b'{"version":1,"files":'
        to_stdout(encode_array(map(_json, files.values()), head=head, tail=b"}\n"))
    else:
        lines_to_stdout(_lines(files, snapshot))
    if not files:
        note("no session wrote such a file")
    return 0 if files else 1


def _files(
    sessions: Sequence[Summary], path: Path | None, since: datetime | None, *, keep_changes: bool
) -> dict[PurePath, list[RecordedWrite]]:
    """The writes of each file that was written at least once, the file written last first."""
    found: dict[PurePath, list[RecordedWrite]] = {}
    fits = _Fits(path)
    for each in recorded_writes(sessions, since=since):
        if isinstance(each, Problem):
            note(f"{each.path}: {each.what}")
        elif fits(each.path):
            found.setdefault(each.path, []).append(each if keep_changes else each.without_texts())
    for writes in found.values():
        writes.sort(key=lambda write: write.when)
    written = (writes for writes in found.values() if any(each.written for each in writes))
    latest = sorted(written, key=lambda writes: writes[-1].when, reverse=True)
    return {writes[0].path: writes for writes in latest}


class _Fits:
    """Whether a path is the one that a user names, below it, or ends with it."""

    def __init__(self, wanted: Path | None) -> None:
        self._places = [] if wanted is None else _names_of(wanted)
        self._ending = None if wanted is None or wanted.is_absolute() else wanted.parts

    def __call__(self, path: PurePath) -> bool:
        if not self._places:
            return True
        if any(path.is_relative_to(place) for place in self._places):
            return True
        return bool(self._ending) and path.parts[-len(self._ending or ()) :] == self._ending


def _names_of(wanted: Path) -> list[PurePath]:
    """The path as it is named, and with links followed."""
    absolute = Path(os.path.normpath(current_folder() / wanted))
    return [absolute, *map(Path, folder_names(absolute))]


def _folder_of(session: Summary | None) -> Path | None:
    return Path(session.project) if session is not None and session.project else None


# --- as lines, as JSON ---------------------------------------------------------------------------


def _lines(
    files: Mapping[PurePath, Sequence[RecordedWrite]], snapshot: Snapshot
) -> Iterator[Clean]:
    ids, now = short_ids(snapshot.sessions), datetime.now(UTC)
    for path, writes in files.items():
        yield short_path(Path(path))
        for write in reversed(writes):
            id = clean_line(ids.get(write.session, write.session))
            words = (relative(write.when, now), id, clean_line(write.tool), _outcome(write))
            yield Clean("  " + "  ".join(word for word in words if word))


def _outcome(write: RecordedWrite) -> str:
    if not write.written:
        return write.status.value
    change = write.change
    if change is None or change.added is None:
        return ""
    removed = "" if change.removed is None else f" -{change.removed}"
    return f"+{change.added}{removed}{' new' if change.is_new else ''}"


def _json(writes: Sequence[RecordedWrite]) -> dict[str, Any]:
    return {
        "path": str(writes[0].path),
        "project": writes[0].source.project,
        "writes": [_write_json(each) for each in writes],
    }


def _write_json(write: RecordedWrite) -> dict[str, Any]:
    return {
        "session": write.session,
        "subagent": write.source.id if write.source.id != write.session else None,
        "message": write.message,
        "call": write.call,
        "tool": write.tool,
        "timestamp": iso(write.time),
        "added": write.change.added if write.change else None,
        "removed": write.change.removed if write.change else None,
        "status": write.status.value,
    }


# --- as a patch ----------------------------------------------------------------------------------


def _print_patch(files: Mapping[PurePath, Sequence[RecordedWrite]], root: Path | None) -> int:
    """Print one patch for all files below `root`; on stderr what is not in it, and why."""
    if root is None:
        raise click.UsageError(
            "a patch is of one project: stand in its folder, or name it with --project"
        )
    printed, left = 0, 0
    for path, writes in sorted(files.items()):
        patch = _patch(path, writes, root)
        if patch.text:
            to_stdout([patch.text.encode("utf-8", "replace")])
            printed += 1
        if patch.unknown:
            left += 1
            note(f"not in the patch: {path}: {patch.unknown}")
        if patch.gaps:
            times = counted(patch.gaps, "time")
            note(f"{path} was changed {times} by something else in between: it is in the patch")
    if not printed:
        note("nothing to patch" if left else "no session wrote such a file")
    return 0 if printed else 1


def _patch(path: PurePath, writes: Sequence[RecordedWrite], root: Path) -> FilePatch:
    for folder in folder_names(root):
        if path.is_relative_to(folder):
            return patch_of(path, path.relative_to(folder).as_posix(), writes)
    return FilePatch(path=path, text="", unknown=f"it is not below {root}")
