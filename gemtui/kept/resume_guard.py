"""Protect a session's files while a run resumes it, and afterwards.

With `--resume`, the CLI first creates a new file under the session's id, and then continues in the
old file. Unless both were created in the same minute, the new file remains as a ghost: a second,
empty file with this id. The next start of the CLI in the same project would then delete every file
with that id (assets/gemini-cli.md#ghosts).

So gemtui removes the ghost as soon as it is complete. That is safe, because the CLI opens it by
name to write two records, within a millisecond, and never again. If one of the session's files
vanishes anyway, it is restored at once. The CLI opens a session's file by its name for each record
it writes, so it continues in the restored file.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

import orjson
from msgspec.structs import replace

from gemtui.agent import process_tree
from gemtui.agent.process_tree import owner_lives
from gemtui.agent.run_folder import Request, RunFolder
from gemtui.errors import reason_of
from gemtui.files import size_of, stat_if_possible
from gemtui.kept.files import append_rest, copy_file, replace_with_copy, replace_with_link
from gemtui.kept.run_copies import (
    Aftermath,
    KeptSession,
    aftermath_of,
    backup_of,
    contains_copy,
    copy_at_end,
    has_content,
    keep_before,
    newest_aftermath,
    put_file_back,
    session_files,
    unsettled,
    write_aftermath,
    write_newest,
)
from gemtui.paths import gemini_home
from gemtui.sessions.read.versions import begins_with
from gemtui.sessions.store.store import Store
from gemtui.transcript.parts import string

QUICK = 0.002
"""Seconds between two calls to `SessionKeeper.check` until the CLI's first output.

By then, the CLI has created the ghost (an empty second file for the resumed session), if any.
"""
GUARD_PAUSE = 0.02
_RECENT = 50_000_000
"""Nanoseconds during which a folder may change again without a new timestamp.

File systems update modification times in steps of some milliseconds.
"""
_HEAD = 64 * 1024
_RECORDS = 2
"""Number of lines in a complete ghost: its header, and the session context.

A ghost is an empty second file that the CLI creates for a resumed session.
"""

_COPY = "copy-"
"""Prefix of backups that are copies, because the store is on another file system."""

FileStamp = tuple[int, int, int]


class SessionKeeper:
    """Protects one session's files. Call `check` repeatedly, and `close` at the end."""

    def __init__(self, folder: RunFolder, kept: KeptSession) -> None:
        self._folder, self._kept = folder, kept
        self._newest = dict(kept.newest)
        self._done = newest_aftermath(folder)
        self._places = self._chats({*kept.seen, *kept.files})
        self._times: dict[Path, int] = {}
        self._unclear: dict[Path, FileStamp] = {}
        self._said = False

    def check(self) -> float:
        """Handle changes since the last call; return the seconds until the next call.

        Raises OSError.
        """
        for place in self._places:
            if self._may_have_changed(place):
                self._check_folder(place)
        self._bring_up_to_date()
        if not self._said and size_of(self._folder.stdout):
            self._said = True
            self._rescan()
        return GUARD_PAUSE if self._said else QUICK

    def close(self) -> Aftermath:
        """Handle the last changes, and record and return what happened to the session.

        Backups that are hard links are copied as well. Raises OSError if the result can't be
        recorded, but only after everything else has been done.
        """
        self._said = True
        self._rescan()
        for place in self._places:
            self._check_folder(place)
        self._bring_up_to_date()
        self._copy_links()
        before = self._kept.files
        found = replace(
            self._done,
            lost=tuple(path for path in self._expected() if not os.path.lexists(path)),
            changed=tuple(path for path, copy in before.items() if _was_rewritten(path, copy)),
        )
        write_aftermath(self._folder, found)
        return found

    # --- places --------------------------------------------------------------------------------

    def _chats(self, files: set[Path]) -> tuple[Path, ...]:
        """Return the folders where the CLI stores this session's files.

        `files`: files of the session, which show the projects' folders.
        """
        id = self._kept.session_id
        chats = {path.parent for path in files if path.parent.name == "chats"}
        return tuple(
            place
            for each in sorted(chats)
            for place in (each, each / id, each.parent / "tool-outputs" / f"session-{id}")
        )

    def _rescan(self) -> None:
        """Find new folders, and have all unclassified files checked again."""
        found = {
            place.path for place in session_files(Store(self._kept.home), self._kept.session_id)
        }
        self._places = self._chats({*found, *self._kept.seen, *self._kept.files})
        self._times.clear()
        self._unclear.clear()

    def _may_have_changed(self, place: Path) -> bool:
        """Return whether a folder must be checked again.

        That is so if the names of its files may have changed, or if a file in it has changed that
        could not be classified before.
        """
        facts = stat_if_possible(place, follow=True)
        changed = 0 if facts is None else facts.st_mtime_ns
        same = self._times.get(place) == changed
        self._times[place] = changed
        if not same or time.time_ns() - changed < _RECENT:
            return True
        mine = [path for path in self._unclear if path.parent == place]
        return any(_stamp(path) != self._unclear[path] for path in mine)

    def _files(self, place: Path) -> Iterator[Path]:
        """Yield this session's regular files in one of its folders."""
        mark = f"-{self._kept.session_id[:8]}." if place.name == "chats" else ""
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if mark in entry.name and stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    yield Path(entry.path)

    # --- scanning ------------------------------------------------------------------------------

    def _check_folder(self, place: Path) -> None:
        for path in self._expected():
            if path.parent == place and not os.path.lexists(path):
                self._put_back(path)
        for path in list(self._files(place)):
            self._check_file(path)

    def _expected(self) -> list[Path]:
        return [*{**self._kept.files, **self._newest}]

    def _check_file(self, path: Path) -> None:
        now = _stamp(path)
        if self._unclear.get(path) == now:
            return
        self._unclear.pop(path, None)
        newest = self._newest.get(path)
        if newest is None:
            self._handle_new(path, now)
        elif not _same_file(path, newest) and not self._handle_replaced(path, newest):
            self._unclear[path] = now

    def _handle_new(self, path: Path, now: FileStamp) -> None:
        """Handle a file without a backup.

        Back it up if it is the session's own, and remove it if it is a ghost (an empty second file
        that the CLI created). Any other file may be another session's; it is checked again when it
        changes.
        """
        if path in self._kept.files or path.parent.name != "chats" or self._has_content(path):
            self._hold(path)
        elif path in self._kept.seen or not self._is_ghost(path):
            self._unclear[path] = now
        else:
            self._remove(path)

    def _has_content(self, path: Path) -> bool:
        return path not in self._kept.seen and bool(has_content(path, self._kept.session_id))

    def _is_ghost(self, path: Path) -> bool:
        """Return whether a file that appeared during the run is a complete ghost.

        A ghost is a file without content that the CLI creates for a session that has another file
        with content. It is complete if it has two lines, if the CLI has already written output, or
        if a ghost at the same path has been removed before. In the last case, the file may lack a
        header, because the CLI wrote the header before the removal and only the rest afterwards.
        """
        again = path in self._done.ghosts
        empty = has_content(path, self._kept.session_id) is False or (
            again and has_content(path, None) is False
        )
        if not empty or not (self._said or again or _lines(path) >= _RECORDS):
            return False
        others = [each for each in self._expected() if each.parent.name == "chats"]
        return any(has_content(each, self._kept.session_id) for each in others)

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self._trouble(f"{path} could not be removed: {reason_of(error)}")
            return
        self._note(replace(self._done, ghosts=_with(self._done.ghosts, path)))

    def _put_back(self, path: Path) -> None:
        kept = dataclasses.replace(self._kept, newest=self._newest)
        try:
            if not put_file_back(kept, path):
                return
        except OSError as error:
            self._trouble(f"{path} could not be restored: {reason_of(error)}")
            return
        self._note(replace(self._done, restored=_with(self._done.restored, path)))

    def _trouble(self, words: str) -> None:
        if words not in self._done.problems:
            self._note(replace(self._done, problems=(*self._done.problems, words)))

    def _note(self, done: Aftermath) -> None:
        self._done = done
        self._write()

    def _write(self) -> None:
        """Record the progress in case gemtui is killed; ignore errors such as a full disk."""
        with suppress(OSError):
            write_newest(self._folder, self._newest, self._done)

    # --- newest states -------------------------------------------------------------------------

    def _hold(self, path: Path) -> None:
        """Back up a file as a hard link or, if that is impossible, as a copy."""
        taken = {each.stem.rpartition("-")[2] for each in self._newest.values()}
        number = next(number for number in count() if str(number) not in taken)
        newest = self._folder.path / f"now-{number}{path.suffix}"
        try:
            if not replace_with_link(path, newest):
                newest = newest.with_name(f"{_COPY}{number}{path.suffix}")
                copy_file(path, newest)
        except FileNotFoundError:
            return
        self._newest[path] = newest
        self._write()

    def _handle_replaced(self, path: Path, newest: Path) -> bool:
        """Handle a file that was replaced, so its backup `newest` links to the old file.

        Returns whether all of its contents are now backed up.
        """
        if path.suffix == ".jsonl" and not _has_header(path):
            _rejoin(path, newest)
        elif _is_copy(newest):
            pass
        elif contains_copy(path, newest):
            replace_with_link(path, newest)
        else:
            return False
        return True

    def _copy_links(self) -> None:
        """Copy backups that are hard links; skip those that can't be copied."""
        for newest in self._newest.values():
            if not _is_copy(newest):
                with suppress(OSError):
                    copy_at_end(newest)

    def _bring_up_to_date(self) -> None:
        """Update the backups that are copies.

        The copy of a log that no longer begins with the copied contents is left alone.
        """
        for path, copy in self._newest.items():
            if _is_copy(copy) and _stamp(path)[1:] != _stamp(copy)[1:]:
                with suppress(OSError):
                    _refresh(path, copy)


def _rejoin(path: Path, newest: Path) -> None:
    """Join a removed log with the records that the CLI wrote afterwards.

    The CLI wrote them to a new file, `path`, which the joined log replaces. `newest`: the backup of
    the removed log.
    """
    made = path.with_name(f".gemtui-{newest.name}")
    with path.open("rb") as later, newest.open("ab") as log:
        log.write(later.read())
        log.flush()
        if _is_copy(newest):
            copy_file(newest, made)
        else:
            os.link(newest, made)
        made.replace(path)
        if rest := later.read():
            with path.open("ab") as joined:
                joined.write(rest)


def _refresh(path: Path, copy: Path) -> None:
    if path.suffix != ".jsonl":
        replace_with_copy(path, copy)
    elif begins_with(path, copy, sampled=True):
        append_rest(path, copy)


def _was_rewritten(path: Path, copy: Path) -> bool:
    """Return whether a log no longer begins with the contents of its copy.

    False for files in the legacy format, which the CLI always rewrites.
    """
    try:
        return path.suffix == ".jsonl" and not begins_with(path, copy, sampled=True)
    except OSError:
        return False


def _has_header(path: Path) -> bool:
    """Return whether a log begins with a header; True if that can't be determined."""
    try:
        with path.open("rb") as file:
            first = file.read(_HEAD).partition(b"\n")[0]
        value = orjson.loads(first)
        return not isinstance(value, dict) or "sessionId" in value
    except (OSError, orjson.JSONDecodeError):
        return True


def _lines(path: Path) -> int:
    with suppress(OSError), path.open("rb") as file:
        return file.read(_HEAD).count(b"\n")
    return 0


def _stamp(path: Path) -> FileStamp:
    facts = stat_if_possible(path, follow=True)
    return (0, 0, 0) if facts is None else (facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _is_copy(newest: Path) -> bool:
    return newest.name.startswith(_COPY)


def _with(paths: tuple[Path, ...], path: Path) -> tuple[Path, ...]:
    return paths if path in paths else (*paths, path)


# --- before and after a run ---------------------------------------------------------------------


class ResumeGuard:
    """Protects the sessions that an adapter's runs resume.

    Use it as `GeminiAdapter(guard=ResumeGuard())`. A `SessionKeeper` in the run's supervisor does
    the work, so the protection lasts as long as the run, no matter which process follows the run.
    If the supervisor was killed, the next gemtui process does the final work
    (`SessionKeeper.close`).
    """

    supervisor = "gemtui.runs.supervisor"

    def before(self, folder: RunFolder, request: Request, environ: Mapping[str, str]) -> None:
        """Copy the session that the run will resume.

        The final work for earlier runs is done first, because the CLI's clean-up at the start might
        delete their sessions. Raises OSError, which keeps the run from starting.
        """
        settle_abandoned(folder.path.parent)
        resumed = string((request.about or {}).get("resume"))
        if resumed:
            keep_before(folder, gemini_home({**environ, **request.environ}), resumed)

    def after(self, folder: RunFolder) -> None:
        """Do the final work for the session a run resumed, unless that has been done.

        Does nothing if the run resumed none. If the disk is full, the result is not recorded.
        """
        kept = backup_of(folder)
        if kept is not None and aftermath_of(folder) is None:
            with suppress(OSError):
                SessionKeeper(folder, kept).close()


def settle_abandoned(runs: Path) -> tuple[RunFolder, ...]:
    """Do the final work for sessions of runs whose supervisors were killed.

    Returns these runs. This is quick if there is nothing to do.
    While processes of such a run remain, its session is only checked, and the final work is done
    later.
    """
    left = tuple(folder for folder in unsettled(runs) if _is_over(folder))
    for folder in left:
        if folder.exit() is None and process_tree.tagged(folder.id):
            _put_right_for_now(folder)
        else:
            ResumeGuard().after(folder)
    return left


def _put_right_for_now(folder: RunFolder) -> None:
    kept = backup_of(folder)
    if kept is not None:
        with suppress(OSError):
            SessionKeeper(folder, kept).check()


def _is_over(folder: RunFolder) -> bool:
    owner = folder.owner()
    return folder.exit() is not None or (owner is not None and not owner_lives(owner))
