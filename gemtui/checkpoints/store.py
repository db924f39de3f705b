"""A project's checkpoints in a SQLite file: states of files, contents, changes and calls.

A checkpoint contains the changes since the project's previous checkpoint, even if another run took
that one. Contents are stored once, by digest, and don't depend on the project's own git repository.
Each checkpoint is written in a transaction, so it is stored completely or not at all, even if the
process is killed.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from gemtui.errors import CheckpointsUnreadable
from gemtui.files import locked, make_folder, size_of, stat_if_possible
from gemtui.paths import make_own_file, make_own_folder
from gemtui.sqlite_file import DAMAGE, Damaged, Newer, application_and_version, connect, why

FILE, LINK, FOLDER, ABSENT, UNKEPT = "file", "link", "folder", "absent", "unkept"
TOO_LARGE, UNREADABLE, SPECIAL = "too large", "unreadable", "neither a file nor a link"


class FileState(NamedTuple):
    """The kind, mode and contents of a file or folder.

    `kind`: FILE, LINK, FOLDER, ABSENT, or UNKEPT for a file whose contents no checkpoint contains.
    `mode`: the permission bits of a FILE or FOLDER; negative if unknown. `content`: the digest of a
    file's bytes or of a link's target; for UNKEPT, the reason, followed by numbers that identify
    this version.
    """

    kind: str
    mode: int = 0
    content: str = ""

    def encode(self) -> str:
        """Serialise the state to one line of text, which `decode` parses."""
        return f"{self.kind} {self.mode:o} {self.content}"

    @property
    def kept(self) -> bool:
        """Whether the state can be restored."""
        return self.kind != UNKEPT

    @property
    def why(self) -> str:
        """The reason why an UNKEPT file is not stored, such as "too large"."""
        return self.content.partition(":")[0]


GONE = FileState(ABSENT)
UNKNOWN = FileState(UNKEPT, 0, "not checked before it was written")


def decode(text: str) -> FileState:
    """Parse the state that `FileState.encode` serialised. Raises ValueError."""
    kind, mode, content = text.split(" ", 2)
    return FileState(kind, int(mode, 8), content)


def unkept(why: str, *version: int) -> FileState:
    """Return the state of a file whose contents are not stored.

    `why`: the reason. `version`: numbers that identify this version of the file, such as its size
    and times.
    """
    return FileState(UNKEPT, 0, ":".join((why, *map(str, version))))


VERSION = 1
APPLICATION = 0x67656D02
_FILE, _LOCK, _GIT = "checkpoints.sqlite3", "lock", "git"
_MANY, _POOR = 5_000, 256
"""Limits above which a bulk operation is used because it is faster.

`_MANY`: to look up more names than this, the states of all files are loaded at once. `_POOR`: if
more files than this (plus a sixteenth of all) are missing from git's index, the index is rewritten.
"""
_WAIT = 60.0
"""Seconds to wait for another gemtui process that is writing to the store.

Writing a large project's first checkpoint takes long.
"""
_TABLES = """
    create table project (root blob not null);
    create table content (digest text primary key, data blob not null) without rowid;
    create table tree (
        path blob primary key, state text not null, size integer not null, mtime integer not null,
        ctime integer not null, inode integer not null, user integer not null,
        gid integer not null, indexed integer not null
    ) without rowid;
    create index unindexed on tree (path) where indexed < 1;
    create table git_index (
        number integer not null, top blob not null, tracked text not null, size integer not null
    );
    create table checkpoint (
        id integer primary key autoincrement, time real not null, reason text not null,
        run text not null, session text not null, notes text not null
    );
    create table call (
        id integer primary key autoincrement, run text not null, session text not null,
        use text not null, tool text not null, command text, path blob, began real not null,
        ended real, sure integer not null, unique (run, use)
    );
    create table change (
        checkpoint integer not null, path blob not null, before text not null, after text not null,
        call integer, sure integer not null, primary key (checkpoint, path)
    ) without rowid;
    create table undo (
        id integer primary key autoincrement, time real not null, session text not null,
        prompt integer not null, checkpoint integer not null, call integer not null,
        fork text, plan text, undone integer not null default 0, redoes integer
    );
    create table fork (child text primary key, parent text not null) without rowid;
"""
_LATER_TABLES = """
    create table if not exists folder (path blob primary key, mode integer not null) without rowid;
    create table if not exists folder_change (
        checkpoint integer not null, path blob not null, before text not null, after text not null,
        call integer, sure integer not null, primary key (checkpoint, path)
    ) without rowid;
    create table if not exists uncovered (checkpoint integer primary key, entries text not null);
"""
"""Tables that are missing from stores created by early versions of gemtui."""


class Reason(StrEnum):
    """The reasons for taking a checkpoint."""

    PROMPT = "prompt"
    CALL = "call"
    UNDO = "undo"
    MANUAL = "manual"


class Facts(NamedTuple):
    """The result of `lstat` for a file, which reveals whether it may have changed.

    Times are in nanoseconds; 0 means that the contents must be read again.
    """

    size: int
    mtime: int
    ctime: int
    inode: int
    user: int
    group: int


UNTRUSTED = Facts(0, 0, 0, 0, 0, 0)


class GitIndex(NamedTuple):
    """The index file that gemtui makes git use to find changed files.

    * `number`: identifies the file; 0 if it has not been written yet.
    * `top`: the folder to which the names in the index are relative.
    * `tracked`: the version of the project's own index that was last searched for files that are
      tracked although git ignores them; "" if none was.
    * `size`: the file's size in bytes.
    """

    number: int
    top: bytes
    tracked: str
    size: int = 0


Tree = dict[bytes, tuple[FileState, Facts]]
"""Maps each file's name, as bytes relative to the root, to its state and facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingCall:
    """A tool call that may change files.

    * `id`: the store's own id; 0 if the call is not stored yet.
    * `use`: the id that Gemini CLI gave the call, or one made by gemtui if a hook reported it.
    * `path`: the only file the call writes, relative to the root; None if it may write any file.
    * `began`, `ended`: seconds since the epoch; `ended` is None while the call is running.
    * `sure`: whether the checkpoint before the call was complete when the call began.
    """

    id: int = 0
    run: str
    session: str
    use: str
    tool: str
    command: str | None = None
    path: bytes | None = None
    began: float
    ended: float | None = None
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A change to one file, or to a folder's mode, between two checkpoints.

    * `path`: relative to the root; a folder's ends with a slash.
    * `call`: the id of the call that changed the file; None if the user or another program did.
    * `sure`: whether, judging by the times, no other call can have made the change.
    """

    path: bytes
    before: FileState
    after: FileState
    call: int | None = None
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A stored checkpoint, without its changes.

    `time`: seconds since the epoch. `notes`: what the checkpoint doesn't cover, and which
    interrupted undo was completed before it.
    """

    id: int
    time: float
    reason: Reason
    run: str
    session: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """An undo or another change made by gemtui, either complete or interrupted.

    * `prompt`: the number of the prompt before which the files were restored; 0 if there is none.
    * `checkpoint`: the id of the checkpoint taken beforehand.
    * `call`: the id of the call under which the undo's changes are recorded.
    * `fork`: the session forked after this undo, if any.
    * `plan`: the encoded tasks of an interrupted undo; None if the undo is complete.
    * `undone`: whether redos have reversed all of this undo.
    * `redoes`: for a redo, the id of the undo it reverses.
    """

    id: int
    time: float
    session: str
    prompt: int
    checkpoint: int
    call: int
    fork: str | None
    plan: str | None
    undone: bool
    redoes: int | None


class Keeper(Protocol):
    """An object that stores file contents, such as a CheckpointStore."""

    def keep(self, data: bytes) -> str:
        """Store contents and return their digest."""
        ...


class IndexedFiles:
    """The files of the newest checkpoint that are in the private repository's git index.

    As long as a file has not changed since it was indexed, git need not read it to list it.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def current(self) -> GitIndex | None:
        """Return the git index that is in use; None if there is none."""
        row = self._database.execute("select number, top, tracked, size from git_index").fetchone()
        return None if row is None else GitIndex(row[0], bytes(row[1]), *row[2:])

    def unindexed(self) -> list[bytes]:
        """Return the files whose newest states are not in git's index."""
        rows = self._database.execute("select path from tree where indexed < 1")
        return [row[0] for row in rows]

    def is_poor(self, before: int) -> bool:
        """Return whether git's index lacks so many files that it should be rewritten.

        `before`: a time in nanoseconds. Only files that last changed before it are counted, because
        a new index could not include more recent ones.
        """
        able, every = self._database.execute(
            "select (select count(*) from tree where indexed = 0 and (state = ?2 or"
            " ctime between 1 and ?1 and mtime between 1 and ?1)), (select count(*) from tree)",
            (before, GONE.encode()),
        ).fetchone()
        return bool(able > _POOR + every // 16)

    def choose_before(self, before: int) -> Iterator[tuple[bytes, FileState, Facts]]:
        """Choose the files for a new git index; yield them sorted by name.

        The chosen files are recorded as being in the index, and all other files as not being in it.
        `before`: a time in nanoseconds; files that changed later are left out.
        """
        self._database.execute("delete from tree where state = ?", (GONE.encode(),))
        self._database.execute(
            "update tree set indexed = (ctime between 1 and ?1 and mtime between 1 and ?1"
            " and (state like 'file %' or state like 'link %')) where indexed >= 0",
            (before,),
        )
        rows = self._database.execute(
            "select path, state, size, mtime, ctime, inode, user, gid from tree where indexed = 1 "
            "order by path"
        )
        for row in rows:
            yield row[0], decode(row[1]), Facts(*row[2:])

    def set_current(self, index: GitIndex | None) -> None:
        """Record which git index is in use.

        None means that there is no index, so all files are marked as not indexed.
        """
        self._database.execute("delete from git_index")
        if index is None:
            self._database.execute("update tree set indexed = 0 where indexed = 1")
            self.forget_gone()
        else:
            self._database.execute("insert into git_index values (?,?,?,?)", index)

    def forget_gone(self) -> None:
        """Forget deleted files that git's index does not contain."""
        self._database.execute("delete from tree where state = ? and indexed < 1", (GONE.encode(),))


class CheckpointStore:
    """One project's checkpoints, stored in `folder`."""

    def __init__(self, folder: Path, database: sqlite3.Connection) -> None:
        self.folder = folder
        self.index = IndexedFiles(database)
        self._database = database
        self._added = set[str]()

    @property
    def git(self) -> Path:
        """The private repository's folder, which git uses to list the project's files."""
        return self.folder / _GIT

    def root(self) -> bytes:
        """Return the project's folder, as it was named when the store was created."""
        row = self._database.execute("select root from project").fetchone()
        return b"" if row is None else bytes(row[0])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the body in a transaction: either all its writes are stored, or none."""
        with self.attempt() as keep:
            yield
            keep()

    @contextmanager
    def attempt(self) -> Iterator[Callable[[], None]]:
        """Run the body in a transaction whose writes are stored only if the body asks for that.

        Yields a function by which the body asks. Transactions can be nested.
        """
        nested = self._database.in_transaction
        self._database.execute("savepoint attempt" if nested else "begin immediate")
        is_kept = False

        def keep() -> None:
            nonlocal is_kept
            is_kept = True

        try:
            yield keep
        except BaseException:
            is_kept = False
            raise
        finally:
            if self._database.in_transaction:  # SQLite itself may have rolled back
                if nested and not is_kept:
                    self._database.execute("rollback to attempt")
                if nested:
                    self._database.execute("release attempt")
                else:
                    self._database.execute("commit" if is_kept else "rollback")

    # --- contents ------------------------------------------------------------------------------

    def keep(self, data: bytes) -> str:
        """Store contents and return their digest."""
        digest = digest_of(data)
        if not self.has_contents(digest):
            self._database.execute(
                "insert into content values (?, ?)", (digest, zlib.compress(data, 1))
            )
            self._added.add(digest)
        return digest

    def added_contents(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return those of the contents that this object has stored, by digest."""
        return {digest: self.content(digest) for digest in self._added.intersection(digests)}

    def content(self, digest: str) -> bytes:
        """Return the contents with this digest.

        Raises KeyError if the contents are not stored, no longer stored, or corrupt.
        """
        row = self._database.execute(
            "select data from content where digest = ?", (digest,)
        ).fetchone()
        try:
            data = zlib.decompress(row[0])
        except (TypeError, zlib.error):
            raise KeyError(digest) from None
        if digest_of(data) != digest:
            raise KeyError(digest)
        return data

    def has_contents(self, digest: str) -> bool:
        """Return whether the contents with this digest are stored."""
        row = self._database.execute("select 1 from content where digest = ?", (digest,)).fetchone()
        return row is not None

    # --- the newest tree -----------------------------------------------------------------------

    def tree(self) -> Tree:
        """Return all files that existed at the newest checkpoint, with their states."""
        return self._rows("state != ?", (GONE.encode(),))

    def states(self, names: Iterable[bytes]) -> Tree:
        """Return the states of these files at the newest checkpoint; omit missing ones."""
        wanted = list(names)
        if len(wanted) > _MANY:
            chosen = set(wanted)
            return {name: state for name, state in self.tree().items() if name in chosen}
        states: Tree = {}
        for name in wanted:
            states |= self._rows("path = ? and state != ?", (name, GONE.encode()))
        return states

    def files_under(self, name: bytes) -> Tree:
        """Return the files that a folder contained at the newest checkpoint, at any depth."""
        return self._rows(
            "path > ? and path < ? and state != ?", (name + b"/", name + b"0", GONE.encode())
        )

    def states_around(self, names: Iterable[bytes]) -> Tree:
        """Return the states of paths, and of anything in their way.

        The states are those at the newest checkpoint. `names`: files and folders. For each file,
        the result also includes its parent folders and, in case a folder has the file's name, the
        files in that folder. So it shows whether each file can be created without replacing
        anything.
        """
        wanted = set(names)
        states: Tree = {}
        for name, mode in self.folders().items():
            if name in wanted:
                states[name] = FileState(FOLDER, mode), UNTRUSTED
        files = {name for name in wanted if not is_folder_name(name)}
        if len(files) > _MANY:
            return self.tree() | states
        states |= self.states(files.union(*map(folders_of, files)))
        for name in files:
            states |= self.files_under(name)
        return states

    def _rows(self, condition: str, values: tuple[object, ...]) -> Tree:
        rows = self._database.execute(
            f"select path, state, size, mtime, ctime, inode, user, gid from tree where {condition}",
            values,
        )
        return {row[0]: (decode(row[1]), Facts(*row[2:])) for row in rows}

    def set_tree(
        self, changed: Mapping[bytes, tuple[FileState, Facts]], listed: Container[bytes]
    ) -> None:
        """Record the new states of changed files.

        `listed`: the files that git lists; only these may be added to git's index. A deleted file
        stays recorded as deleted while git's index may contain it.
        """
        self._database.executemany(
            "insert or replace into tree values (?,?,?,?,?,?,?,?,?)",
            (
                (path, state.encode(), *facts, 0 if path in listed else -1)
                for path, (state, facts) in changed.items()
            ),
        )
        if self.index.current() is None:
            self.index.forget_gone()

    def folders(self) -> dict[bytes, int]:
        """Return the modes of the folders at the newest checkpoint, by name.

        Returns an empty dictionary if no checkpoint contains folders yet.
        """
        return dict(self._database.execute("select path, mode from folder"))

    def set_folders(self, changed: Mapping[bytes, int | None]) -> None:
        """Record the new modes of folders; None removes a folder that is missing."""
        self._database.executemany("delete from folder where path = ?", [(p,) for p in changed])
        self._database.executemany(
            "insert into folder values (?,?)",
            [(path, mode) for path, mode in changed.items() if mode is not None],
        )

    # --- checkpoints ---------------------------------------------------------------------------

    def add_checkpoint(
        self,
        time: float,
        reason: Reason,
        run: str,
        session: str,
        notes: Iterable[str],
        changes: Iterable[FileChange],
    ) -> Checkpoint:
        """Store a checkpoint with the changes since the previous one, and return it.

        `changes`: the changes of files and of folders. `time`: seconds since the epoch.
        """
        notes = tuple(notes)
        cursor = self._database.execute(
            "insert into checkpoint (time, reason, run, session, notes) values (?,?,?,?,?)",
            (time, reason.value, run, session, orjson.dumps(notes).decode()),
        )
        id = cursor.lastrowid or 0
        for change in changes:
            table = "folder_change" if is_folder_name(change.path) else "change"
            before, after = change.before.encode(), change.after.encode()
            self._database.execute(
                f"insert into {table} values (?,?,?,?,?,?)",
                (id, change.path, before, after, change.call, change.sure),
            )
        return Checkpoint(id=id, time=time, reason=reason, run=run, session=session, notes=notes)

    def checkpoints(self) -> list[Checkpoint]:
        """Return all checkpoints, oldest first."""
        checkpoints = []
        for row in self._records("checkpoint", Checkpoint):
            reason = Reason(row["reason"])
            notes = tuple(orjson.loads(row["notes"]))
            checkpoints.append(Checkpoint(**row | {"reason": reason, "notes": notes}))
        return checkpoints

    def times(self) -> dict[int, float]:
        """Return the time of each checkpoint, by id, in seconds since the epoch."""
        return dict(self._database.execute("select id, time from checkpoint").fetchall())

    def _records(self, table: str, form: type) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table, by id, as the values of a record's fields."""
        names = [field.name for field in fields(form)]
        for row in self._database.execute(f"select {','.join(names)} from {table} order by id"):
            yield dict(zip(names, row, strict=True))

    def first_of(self, run: str) -> int | None:
        """Return the id of a run's first checkpoint; None if there is none."""
        row = self._database.execute("select min(id) from checkpoint where run = ?", (run,))
        first: int | None = row.fetchone()[0]
        return first

    def changes(
        self, *, after: int = 0, by_calls: bool = False
    ) -> Iterator[tuple[int, FileChange]]:
        """Yield (checkpoint id, change) for each file changed after a checkpoint.

        Changes are sorted by checkpoint, then by path. `after`: the checkpoint's id; 0 means all.
        `by_calls`: only yield changes of files that at least one call has changed. This skips most
        of a large project's first checkpoint.
        """
        return self._changes("change", after, by_calls=by_calls)

    def folder_changes(self) -> Iterator[tuple[int, FileChange]]:
        """Yield (checkpoint id, change) for each folder that some call has changed."""
        return self._changes("folder_change", 0, by_calls=True)

    def _changes(
        self, table: str, after: int, *, by_calls: bool
    ) -> Iterator[tuple[int, FileChange]]:
        only = f"and path in (select path from {table} where call is not null)" if by_calls else ""
        rows = self._database.execute(
            f"select checkpoint, path, before, after, call, sure from {table} where checkpoint > ?"
            f" {only} order by checkpoint, path",
            (after,),
        )
        for id, path, old, new, call, sure in rows:
            states = {"before": decode(old), "after": decode(new)}
            yield id, FileChange(path=path, call=call, sure=bool(sure), **states)

    def save_call(self, call: WritingCall) -> int:
        """Store a call, or record the end of a stored one; return the call's id."""
        self._database.execute(
            "insert into call (run, session, use, tool, command, path, began, ended, sure)"
            " values (?,?,?,?,?,?,?,?,?) on conflict (run, use) do update set"
            " session = excluded.session, ended = excluded.ended",
            astuple(call)[1:],
        )
        row = self._database.execute(
            "select id from call where run = ? and use = ?", (call.run, call.use)
        ).fetchone()
        return int(row[0])

    def calls(self) -> dict[int, WritingCall]:
        """Return all calls, by id."""
        rows = self._records("call", WritingCall)
        return {row["id"]: WritingCall(**row | {"sure": bool(row["sure"])}) for row in rows}

    # --- undos ---------------------------------------------------------------------------------

    def begin_undo(
        self,
        time: float,
        session: str,
        prompt: int,
        checkpoint: int,
        call: int,
        plan: str,
        redoes: int | None = None,
    ) -> int:
        """Record an undo's tasks before it starts; return the undo's id.

        `plan`: the encoded tasks. The other arguments become the fields of an `Undo`, which
        describes them.
        """
        cursor = self._database.execute(
            "insert into undo (time, session, prompt, checkpoint, call, plan, redoes)"
            " values (?,?,?,?,?,?,?)",
            (time, session, prompt, checkpoint, call, plan, redoes),
        )
        return cursor.lastrowid or 0

    def end_undo(self, undo: Undo, *, redone: bool) -> None:
        """Record that an undo is complete.

        `redone`: whether it is a redo that has left nothing of the undo that it reverses.
        """
        self._database.execute("update undo set plan = null where id = ?", (undo.id,))
        if redone:
            self._database.execute("update undo set undone = 1 where id = ?", (undo.redoes,))

    def add_fork(self, child: str, parent: str, undo: int | None = None) -> None:
        """Record that `child` was forked from `parent`.

        `undo`: the id of the undo after which the session was forked, if any.
        """
        self._database.execute("insert or replace into fork values (?, ?)", (child, parent))
        self._database.execute("update undo set fork = ? where id = ?", (child, undo))

    def undos(self) -> list[Undo]:
        """Return all undos and redos, oldest first."""
        rows = self._records("undo", Undo)
        return [Undo(**row | {"undone": bool(row["undone"])}) for row in rows]

    def lineage(self, session: str) -> frozenset[str]:
        """Return the ids of a session and of all sessions it was forked from."""
        parents = dict(self._database.execute("select child, parent from fork"))
        lineage = {session}
        while (session := parents.get(session, "")) and session not in lineage:
            lineage.add(session)
        return frozenset(lineage)

    def sessions(self) -> frozenset[str]:
        """Return the ids of the sessions that have checkpoints, and of all their forks."""
        rows = self._database.execute("select distinct session from checkpoint where session != ''")
        sessions = {row[0] for row in rows}
        forks = self._database.execute("select child, parent from fork").fetchall()
        while more := {child for child, parent in forks if parent in sessions} - sessions:
            sessions |= more
        return frozenset(sessions)

    # --- what checkpoints don't cover ----------------------------------------------------------

    def known_paths(self) -> set[bytes]:
        """Return the names of all files that any checkpoint contains."""
        rows = self._database.execute("select path from tree union select path from change")
        return {row[0] for row in rows}

    def set_uncovered(self, checkpoint: int, entries: str) -> None:
        """Record, as text, what a checkpoint does not cover."""
        self._database.execute(
            "insert or replace into uncovered values (?,?)", (checkpoint, entries)
        )

    def uncovered_before(self, time: float) -> str | None:
        """Return the newest record of what checkpoints don't cover that was made before a time.

        None if there is no such record. `time`: seconds since the epoch.
        """
        row = self._database.execute(
            "select entries from uncovered join checkpoint on checkpoint = id where time <= ?"
            " order by id desc limit 1",
            (time,),
        ).fetchone()
        return None if row is None else str(row[0])

    # --- removing ------------------------------------------------------------------------------

    def drop_before(self, checkpoint: int) -> None:
        """Remove all checkpoints with smaller ids, and the data that only they needed."""
        for table, column in (
            ("change", "checkpoint"),
            ("folder_change", "checkpoint"),
            ("uncovered", "checkpoint"),
            ("checkpoint", "id"),
            ("undo", "checkpoint"),
        ):
            self._database.execute(f"delete from {table} where {column} < ?", (checkpoint,))
        self._database.execute(
            "delete from call where id not in (select call from change where call is not null)"
            " and id not in (select call from folder_change where call is not null)"
            " and id not in (select call from undo) and ended is not null and ended <"
            " coalesce((select min(time) from checkpoint), 0)"
        )
        used = {state.content for state, _ in self.tree().values()}
        for _, change in self.changes():
            used |= {change.before.content, change.after.content}
        held = [row[0] for row in self._database.execute("select digest from content")]
        unused = [(digest,) for digest in held if digest not in used]
        self._database.executemany("delete from content where digest = ?", unused)

    def release_space(self) -> None:
        """Return the database's unused space to the file system."""
        self._database.executescript("pragma incremental_vacuum")  # `execute` would free 1 page
        self._database.execute("pragma wal_checkpoint(truncate)").fetchall()

    def used(self) -> int:
        """Return the size of the stored data in bytes, without unused space in the file."""
        pages, free, size = (
            self._database.execute(f"pragma {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


def digest_of(data: bytes) -> str:
    """Return the digest that identifies contents."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def recorded_state(keeper: Keeper, content: bytes | None) -> FileState:
    """Return the state of a file with these contents, which are stored, and an unknown mode.

    `content`: None if the file is missing.
    """
    return GONE if content is None else FileState(FILE, -1, keeper.keep(content))


def is_folder_name(path: bytes) -> bool:
    """Return whether a stored name is a folder's, which ends with a slash."""
    return path.endswith(b"/")


def folders_of(path: bytes) -> list[bytes]:
    """Return the folders above a file in a project, topmost first."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts))]


def folder_of(checkpoints: Path, root: Path) -> Path:
    """Return the folder for a project's checkpoints; it may not exist yet.

    `checkpoints`: the folder that contains the checkpoints of all projects. `root`: the project's
    folder.
    """
    return checkpoints / hashlib.sha256(bytes(root)).hexdigest()[:24]


def has_checkpoints(folder: Path) -> bool:
    """Return whether a folder contains checkpoints."""
    return (folder / _FILE).is_file()


def stamp_of(folder: Path) -> object:
    """Return a value that changes whenever something is written to the checkpoints in a folder."""
    files = [stat_if_possible(folder / name) for name in (_FILE, f"{_FILE}-wal")]
    return [facts and (facts.st_ino, facts.st_size, facts.st_mtime_ns) for facts in files]


def is_unfinished(folder: Path) -> bool:
    """Return whether opening and closing the checkpoints in a folder would change their file.

    This is so after a process that used them was killed, and while another one is using them.
    """
    return size_of(folder / f"{_FILE}-wal") > 0


def copy_store(folder: Path, target: Path) -> None:
    """Copy the checkpoints in a folder, if there are any, to another folder. Raises OSError.

    The caller holds the lock.
    """
    for name in (_FILE, f"{_FILE}-wal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(folder / name, target / name)


@contextmanager
def open_store(folder: Path, root: Path | None = None) -> Iterator[CheckpointStore]:
    """Open the checkpoints in a folder, creating them if `root` is given.

    `root`: the project's folder. Raises CheckpointsUnreadable if the checkpoints can't be read, or
    if there are none and `root` is None.
    """
    path = folder / _FILE
    try:
        if root is not None:
            make_own_folder(folder)
            make_own_file(path)
        elif not has_checkpoints(folder):
            raise CheckpointsUnreadable(path, "there are no checkpoints")
        with closing(connect(path, wait=_WAIT)) as database:
            _make_ready(database, root)
            yield CheckpointStore(folder, database)
    except Newer as error:
        raise CheckpointsUnreadable(path, str(error)) from error
    except DAMAGE as error:
        if not isinstance(error, sqlite3.Error | Damaged):
            raise
        raise CheckpointsUnreadable(path, why(error)) from error
    except OSError as error:
        if not str(error.filename).startswith(str(folder)):  # the project's or caller's own
            raise
        raise CheckpointsUnreadable(path, why(error)) from error


def _make_ready(database: sqlite3.Connection, root: Path | None) -> None:
    if application_and_version(database) == (0, 0) and root is not None:
        database.execute("pragma auto_vacuum = incremental")
        database.execute("pragma journal_mode = wal").fetchall()
        database.execute("begin immediate")
        try:
            if application_and_version(database) == (0, 0):
                for command in filter(str.strip, _TABLES.split(";")):
                    database.execute(command)
                database.execute("insert into project values (?)", (bytes(root),))
                database.execute(f"pragma application_id = {APPLICATION}")
                database.execute(f"pragma user_version = {VERSION}")
        except BaseException:
            database.execute("rollback")
            raise
        database.execute("commit")
    if application_and_version(database) != (APPLICATION, VERSION):
        raise Newer
    for command in filter(str.strip, _LATER_TABLES.split(";")):
        database.execute(command)
    database.execute("pragma synchronous = full")
    database.execute("pragma secure_delete = off").fetchall()


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the lock of a project's checkpoints; wait if another process holds it.

    While it is held, no other gemtui process can take a checkpoint, undo or redo in this project.
    """
    make_folder(folder)
    with locked(folder / _LOCK):
        yield


def is_in_use(folder: Path) -> bool:
    """Return whether any process holds the lock that `only_one` acquires."""
    with locked(folder / _LOCK, wait=False) as free:
        return not free
