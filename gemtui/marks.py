"""The user's marks on sessions: names, tags, notes, pins and the archived flag.

Marks are stored by session id in one SQLite file in gemtui's data folder, which only the user can
read. Nothing is written to Gemini CLI's files. Because marks can't be recreated, this module never
replaces or clears the file: if the file is unreadable, MarksUnreadable is raised. The first edit
renames a corrupt file, so that the next edit can create a new one. Several processes may use the
file at once.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gemtui.errors import MarkError, MarksUnreadable
from gemtui.files import locked, make_private, move_without_replacing, stat_if_present, sync_folder
from gemtui.jsonout import fields, iso
from gemtui.paths import make_own_file, make_own_folder, marks_file
from gemtui.sqlite_file import (
    DAMAGE,
    JOURNALS,
    Damaged,
    Newer,
    application_and_version,
    checksum,
    code_of,
    connect,
    is_damage,
    why,
)

VERSION = 2
"""The version of the file format; newer files are left alone."""
APPLICATION = 0x67656D01
LONGEST_NAME = 200
LONGEST_TAG = 50
LONGEST_NOTE = 10_000
"""The longest note, in characters."""

_WAIT = 5.0
"""Seconds to wait for another gemtui process to unlock the file.

Each process locks it only for milliseconds.
"""
_TAG = re.compile(r"\w[\w./+-]*")
_TABLE = """
    create table mark (
        session text primary key, name text, note text, tags text not null,
        pinned integer not null, archived integer not null, changed text not null,
        checksum integer not null
    ) without rowid
"""
_INSERT = "insert or replace into mark values (?,?,?,?,?,?,?,?)"
_SELECT = "select session, name, note, tags, pinned, archived, changed, checksum from mark"


class Mark(Struct, frozen=True, kw_only=True):
    """A user's marks on one session.

    `session`: its id. `tags`: in alphabetical order. `changed`: the time of the last change; None
    if the session has never been marked, in which case all other fields are empty.
    """

    session: str
    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str | None = None
    pinned: bool = False
    archived: bool = False
    changed: datetime | None = None

    @property
    def empty(self) -> bool:
        """Whether no name, tag, note, pin or archived flag is set."""
        return not (self.name or self.tags or self.note or self.pinned or self.archived)

    def to_dict(self) -> dict[str, Any]:
        """Return the marks as JSON values.

        Times are in ISO 8601 UTC, and null means not set.
        """
        return fields(self, *self.__struct_fields__)


class MarkEdit(Struct, frozen=True, kw_only=True):
    """A change to the marks on sessions.

    A field that is None stays unchanged; "" clears the name or note. `add`, `remove`: tags to add
    and remove; a tag in both is removed.
    """

    name: str | None = None
    note: str | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    pinned: bool | None = None
    archived: bool | None = None

    def apply(self, mark: Mark, now: datetime) -> Mark:
        """Return the mark with this change applied. Raises MarkError for invalid values."""
        tags = {tag_of(tag) for tag in self.add} | set(mark.tags)
        return Mark(
            session=mark.session,
            name=mark.name if self.name is None else _name(self.name),
            note=mark.note if self.note is None else _note(self.note),
            tags=tuple(sorted(tags - {tag_of(tag) for tag in self.remove})),
            pinned=mark.pinned if self.pinned is None else self.pinned,
            archived=mark.archived if self.archived is None else self.archived,
            changed=now,
        )

    def undo(self, mark: Mark, before: Mark, now: datetime) -> Mark:
        """Return `mark` with this change reverted.

        `before`: the mark before this change. Changes made since then remain.
        """
        after = self.apply(before, now)
        fields = {
            name: getattr(before if getattr(mark, name) == getattr(after, name) else mark, name)
            for name in ("name", "note", "pinned", "archived")
        }
        tags = set(mark.tags) - (set(after.tags) - set(before.tags))
        tags |= set(before.tags) - set(after.tags)
        undone = replace(mark, **fields, tags=tuple(sorted(tags)), changed=before.changed)
        return undone if undone == before else replace(undone, changed=now)


class Merged(Struct, frozen=True, kw_only=True):
    """The result of importing marks.

    `changed`: how many sessions gained marks. `kept`: the ids of sessions that kept a name or note
    that differs from the imported one.
    """

    changed: int
    kept: tuple[str, ...]


def tag_of(text: str) -> str:
    """Normalise a tag to its stored form: lower case, without a leading `#`.

    Raises MarkError if the tag is invalid.
    """
    tag = unicodedata.normalize("NFC", text.strip().removeprefix("#")).lower()
    if not _TAG.fullmatch(tag) or len(tag) > LONGEST_TAG:
        raise MarkError(
            f"{text!r} is not a valid tag: use letters, digits and . / + - without spaces, at "
            f"most {LONGEST_TAG} characters"
        )
    return tag


def _name(text: str) -> str | None:
    name = " ".join(_text(text, "name", LONGEST_NAME).split())
    return name or None


def _note(text: str) -> str | None:
    return _text(text, "note", LONGEST_NOTE).strip() or None


def _text(text: str, what: str, most: int) -> str:
    if len(text) > most:
        raise MarkError(
            f"the {what} has {len(text):,} characters, but at most {most:,} are allowed"
        )
    if not _is_text(text):
        raise MarkError(
            f"the {what} can't be saved: it contains an incomplete character (a lone surrogate)"
        )
    return text


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Marks:
    """Reads and edits the marks in one file; the first edit creates the file.

    `path`: the file; None means the user's own. Every method raises MarksUnreadable if the file
    isn't gemtui's, is corrupt, or can't be opened. If an edit finds the file corrupt, it renames
    the file, so that the next edit can create a new one.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or marks_file()

    def all(self) -> dict[str, Mark]:
        """Return the mark of every session that has one, by session id."""
        with self._named_in_errors():
            if not self.path.exists():
                return {}
        try:
            with self._open() as database:
                return {row[0]: _mark(row) for row in database.execute(_SELECT)}
        except MarksUnreadable:
            if os.path.lexists(self.path):
                raise
            return {}  # another gemtui has just renamed the corrupt file

    def get(self, session: str) -> Mark:
        """Return a session's mark, or an empty mark if the session has none."""
        return self.all().get(session) or Mark(session=session)

    def edit(self, sessions: Iterable[str], edit: MarkEdit) -> tuple[Mark, ...]:
        """Edit the marks of these sessions; if the edit is invalid for one, change none.

        Returns the previous marks, for `undo`. Raises MarkError.
        """
        now = datetime.now(UTC)
        with self._change() as (marks, database):
            before = tuple(marks.get(session) or Mark(session=session) for session in sessions)
            _write(database, (edit.apply(mark, now) for mark in before))
        return before

    def undo(self, edit: MarkEdit, before: Iterable[Mark]) -> None:
        """Revert an edit; changes to the same marks made since then remain.

        `before`: what `Marks.edit` returned for the edit.
        """
        now = datetime.now(UTC)
        with self._change() as (marks, database):
            present = (
                (marks.get(mark.session) or Mark(session=mark.session), mark) for mark in before
            )
            _write(database, (edit.undo(mark, undone, now) for mark, undone in present))

    def merge(self, imported: Iterable[Mark]) -> Merged:
        """Import marks. Existing names and notes are kept; everything else is added.

        Either all marks are imported, or none if one of them is invalid. Raises MarkError.
        """
        changed, kept = 0, list[str]()
        with self._change() as (marks, database):
            for mark in imported:
                mine = marks.get(mark.session) or Mark(session=mark.session)
                merged = _merged(mine, mark)
                if replace(merged, changed=None) != replace(mine, changed=None):
                    changed += 1
                    marks[mark.session] = merged
                    _write(database, [merged])
                if _differs(mark.name, merged.name) or _differs(mark.note, merged.note):
                    kept.append(mark.session)
        return Merged(changed=changed, kept=tuple(kept))

    @contextmanager
    def _change(self) -> Iterator[tuple[dict[str, Mark], sqlite3.Connection]]:
        """Yield all marks and the database in a transaction, committed at the end."""
        with self._named_in_errors():
            make_own_folder(self.path.parent)
            if os.path.lexists(self.path):
                self._set_aside_if_corrupt()
            if not os.path.lexists(self.path):  # or another gemtui has just renamed it
                _create(self.path)
            make_own_file(self.path)
        with self._open() as database:
            database.execute("begin immediate")
            yield {row[0]: _mark(row) for row in database.execute(_SELECT)}, database
            database.execute("commit")

    def _set_aside_if_corrupt(self) -> None:
        """Rename the file if its contents are corrupt; MarksUnreadable then names the new path."""
        if self._corruption() is None:
            return
        with locked(self.path.with_name(".marks-lock")):
            corruption = self._corruption()
            if corruption is not None:  # nobody else has renamed it meanwhile
                aside = _renamed(self.path)
                raise MarksUnreadable(
                    f"{self.path}, which has your names, tags and notes for sessions, can't be "
                    f"used: {why(corruption)}: it is now {aside}; repeat the change to start over "
                    "without marks, or restore a backup",
                    path=aside,
                ) from corruption

    def _corruption(self) -> BaseException | None:
        """Return what is wrong with the file's contents, or None.

        Raises MarksUnreadable for other problems, such as a lock or a newer version.
        """
        try:
            self.all()
        except MarksUnreadable as error:
            cause = error.__cause__
            if not _is_corrupt(cause) or not self._has_files_only():
                raise
            return cause
        return None

    def _has_files_only(self) -> bool:
        """Return whether the file and its journals are regular files, where they exist."""
        paths = (self.path, *(Path(f"{self.path}{journal}") for journal in JOURNALS))
        present = (stat_if_present(path) for path in paths)
        return all(stat.S_ISREG(facts.st_mode) for facts in present if facts is not None)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield the database; closing it rolls back uncommitted changes."""
        with (
            self._named_in_errors(),
            closing(connect(self.path, wait=_WAIT, create=False)) as database,
        ):
            _check(database)
            yield database

    @contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        try:
            yield
        except (MarkError, MarksUnreadable):
            raise
        except (OSError, Newer, *DAMAGE) as error:
            way_out = "check that you have permission to read and write it, or restore a backup"
            if isinstance(error, Newer):
                way_out = "use a newer gemtui, or move the file away to start over"
            raise MarksUnreadable(
                f"{self.path}, which has your names, tags and notes for sessions, can't be used: "
                f"{why(error)}: nothing was changed; {way_out}",
                path=self.path,
            ) from error


def _create(path: Path) -> None:
    """Create a file without marks, complete from the start, unless there is a file.

    So a file that is empty is a damaged one. Raises OSError.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix=".marks-", dir=path.parent) as folder:
        make_private(new := Path(folder) / path.name)
        with closing(connect(new, wait=_WAIT)) as database:
            database.execute("begin immediate")
            database.execute(_TABLE)
            database.execute(f"pragma user_version = {VERSION}")
            database.execute(f"pragma application_id = {APPLICATION}")
            database.execute("commit")
        with suppress(FileExistsError):
            move_without_replacing(new, path)
    sync_folder(path.parent)


def _check(database: sqlite3.Connection) -> None:
    """Raise Damaged or Newer for a file that is corrupt or not in this version's format."""
    application, version = application_and_version(database)
    if application == APPLICATION and version > VERSION:
        raise Newer
    if (application, version) == (0, 0) and not _has_tables(database):
        raise Damaged("it is empty")
    if (application, version) != (APPLICATION, VERSION):
        raise Damaged("gemtui did not create this file")
    if database.execute("pragma integrity_check(1)").fetchone() != ("ok",):
        raise Damaged("its contents are corrupt")


def _has_tables(database: sqlite3.Connection) -> bool:
    return database.execute("select 1 from sqlite_master limit 1").fetchone() is not None


def _is_corrupt(error: BaseException | None) -> bool:
    """Return whether an error is about a file's contents, and not the disk, a lock or a version."""
    return error is not None and is_damage(error) and code_of(error) != sqlite3.SQLITE_IOERR


def _renamed(path: Path) -> Path:
    """Rename a corrupt file and its journals to unused names; return the file's new path.

    Raises OSError.
    """
    for number in count(1):
        new = path.with_name(f"{path.stem}-damaged-{number}{path.suffix}")
        if any(os.path.lexists(f"{new}{ending}") for ending in ("", *JOURNALS)):
            continue
        for journal in JOURNALS:  # first, so that no new file gets an old journal
            with suppress(FileNotFoundError):
                Path(f"{path}{journal}").replace(f"{new}{journal}")
        move_without_replacing(path, new)
        sync_folder(path.parent)
        return new
    raise AssertionError


def _write(database: sqlite3.Connection, marks: Iterable[Mark]) -> None:
    for mark in marks:
        if not _is_text(mark.session):
            raise MarkError("sessions whose id is not a string can't have marks")
        if mark.empty:
            database.execute("delete from mark where session = ?", [mark.session])
            continue
        tags = msgspec.json.encode(mark.tags).decode()
        row = mark.session, mark.name, mark.note, tags, int(mark.pinned), int(mark.archived)
        values = (*row, iso(mark.changed or datetime.now(UTC)))
        database.execute(_INSERT, (*values, checksum(values)))


def _mark(row: tuple[Any, ...]) -> Mark:
    """Convert a row to a mark. Raises Damaged for values that gemtui never writes."""
    session, name, note, tags, pinned, archived, changed, kept = row
    if kept != checksum(row[:-1]):
        raise Damaged("a record has changed since it was saved")
    values = {
        "session": session,
        "name": name,
        "note": note,
        "pinned": bool(pinned),
        "archived": bool(archived),
        "changed": changed,
    }
    try:
        return msgspec.convert(values | {"tags": msgspec.json.decode(tags)}, Mark)
    except (msgspec.DecodeError, *DAMAGE):
        raise Damaged("one of its marks is not valid") from None


def _merged(mine: Mark, other: Mark) -> Mark:
    checked = MarkEdit(
        name=mine.name or other.name or "",
        note=mine.note or other.note or "",
        add=other.tags,
        pinned=mine.pinned or other.pinned,
        archived=mine.archived or other.archived,
    )
    return checked.apply(mine, other.changed or datetime.now(UTC))


def _differs(imported: str | None, kept: str | None) -> bool:
    return bool(imported) and imported != kept


# --- marks as JSON -------------------------------------------------------------------------------


class _Exported(Struct):
    """The contents of a file of exported marks."""

    version: int
    marks: tuple[Mark, ...]


def exported(marks: Mapping[str, Mark]) -> dict[str, Any]:
    """Return marks as JSON values, in the format that `imported` reads."""
    return {"version": 1, "marks": [marks[session].to_dict() for session in sorted(marks)]}


def imported(data: bytes) -> tuple[Mark, ...]:
    """Parse the marks of an export. Raises MarkError if `data` is not an export."""
    try:
        file = msgspec.json.decode(data, type=_Exported)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MarkError(f"not a file of marks exported by gemtui: {error}") from None
    if file.version != 1:
        raise MarkError(
            f"the marks have version {file.version}, but this gemtui reads only version 1"
        )
    return file.marks
