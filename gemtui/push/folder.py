"""The folder that `gemtui push` writes.

A push can safely be repeated or interrupted, and several machines can push to one folder. Each file
is written completely or not at all. Each day of a project has a data file and a record of the
sessions in it. The record is written after the data file; if a push is killed between the two, the
only cost is that this day's sessions are read again. Nothing is removed, and links are never
followed when writing.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from gemtui.errors import PushError
from gemtui.files import (
    files_below,
    is_unfinished_name,
    locked,
    make_folder,
    open_regular,
    read_small,
    remove_unfinished,
    resolved,
    write_whole,
)

SCHEMA = 1
"""The version of the columns of rows; increased when a column's meaning changes."""
FOLDER = 2
"""The version of a folder's files; files of version 1 were compressed with Zstandard."""
MANIFEST = "manifest.json"
DATA = "messages.ndjson.gz"
SOURCES = "_sources.json"
_LOCK = ".gemtui-push.lock"
_SESSION = re.compile(rb'\{"session":("(?:[^"\\]|\\.)*")')
_CHUNK = 1 << 20


class Manifest(Struct, frozen=True, kw_only=True):
    """The description of a push folder, stored in the folder.

    `schema`: the version of its files. `redact`: whether secrets are removed from rows; if so,
    there are no raw files.
    """

    made_by: str = "gemtui push"
    schema: int = FOLDER
    redact: bool = False


class PushedFile(Struct, frozen=True, kw_only=True):
    """The session file that one session's rows were made from.

    `size`, `modified`: its size in bytes and modification time in nanoseconds, which show whether
    it has changed since. `rows`: the number of rows. `raw`: the SHA-256 under which the file is
    stored; None if it isn't.
    """

    size: int
    modified: int
    rows: int
    raw: str | None = None


class Sources(Struct, frozen=True, kw_only=True):
    """The record of a day's data file.

    `bytes`: the data file's size; if it differs, the record is outdated. `sessions`: maps session
    ids to the session files that the rows were made from.
    """

    schema: int = SCHEMA
    bytes: int = 0
    sessions: Mapping[str, PushedFile] = {}


class PushFolder:
    """A folder to push to. Use `open_push_folder` to create one."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    # --- days --------------------------------------------------------------------------------

    def day(self, project: str, day: str) -> Path:
        """Return the folder for one day of a project.

        Each part of its path has the form `name=value`, so that query engines read project and day
        as columns.
        """
        return self.path / "sessions" / f"project_key={_safe(project)}" / f"day={_safe(day)}"

    def sources(self, day: Path) -> Sources:
        """Return the record of a day's data file, or an empty one if missing or outdated.

        `day`: the day's folder.
        """
        try:
            stored = msgspec.json.decode(read_small(day / SOURCES, 1 << 30), type=Sources)
            whole = (day / DATA).stat().st_size == stored.bytes and stored.schema == SCHEMA
        except (OSError, msgspec.DecodeError):
            return Sources()
        return stored if whole else Sources()

    def write_day(
        self,
        day: Path,
        changed: Mapping[str, Callable[[], Iterable[bytes]]],
        sources: Mapping[str, PushedFile],
        rows: Mapping[str, int],
    ) -> int:
        """Write changed sessions' rows to a day's data file; return the file's size.

        `changed`: maps the id of each session to write to a function that returns its rows. Other
        sessions' rows are kept. `sources`: the session files of all of the day's sessions. `rows`:
        the number of rows by session, which is filled in while the rows are being written. Raises
        OSError, PushError.
        """
        self._make(day)
        self._require_no_link(day / DATA)
        self._require_no_link(day / SOURCES)
        write_whole(day / DATA, compressed(self._merged(day / DATA, changed)), durable=True)
        size = (day / DATA).stat().st_size
        held = {
            id: msgspec.structs.replace(source, rows=rows.get(id, source.rows))
            for id, source in sorted(sources.items())
        }
        value = msgspec.to_builtins(Sources(bytes=size, sessions=held))
        write_whole(day / SOURCES, [msgspec.json.encode(value, order="sorted")], durable=True)
        return size

    def _merged(
        self, path: Path, changed: Mapping[str, Callable[[], Iterable[bytes]]]
    ) -> Iterator[bytes]:
        """Yield all rows of a day, sorted by session id.

        Rows come from `changed` or, for other sessions, from the existing data file at `path`.
        """
        waiting = sorted(changed)
        for id, lines in groupby(self._lines(path), key=_session_of):
            while waiting and waiting[0] < id:
                yield from changed[waiting.pop(0)]()
            if waiting and waiting[0] == id:
                yield from changed[waiting.pop(0)]()
            elif id not in changed:
                yield from lines
        for id in waiting:
            yield from changed[id]()

    def _lines(self, path: Path) -> Iterator[bytes]:
        if not path.exists():
            return
        try:
            yield from lines_in(path)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise PushError(f"{path} is corrupt ({error}): move it away and push again") from error

    # --- raw files ---------------------------------------------------------------------------

    def keep_raw(self, source: Path) -> tuple[str, bool]:
        """Store a session file under the SHA-256 of its contents.

        Returns the digest, and whether the file is new in the folder. Raises OSError, PushError.
        """
        with open_regular(source) as stream:
            size = os.fstat(stream.fileno()).st_size
        digest = sha256()
        for piece in _pieces(source, size):
            digest.update(piece)
        name = digest.hexdigest()
        target = self.path / "raw" / name[:2] / f"{name}{source.suffix}.gz"
        self._make(target.parent)
        self._require_no_link(target)
        if target.exists():
            return name, False
        write_whole(target, compressed(_checked(source, size, name)), durable=True)
        return name, True

    # --- folders -----------------------------------------------------------------------------

    def _make(self, folder: Path) -> None:
        """Create a subfolder without following links. Raises OSError, PushError."""
        path = self.path
        for part in folder.relative_to(self.path).parts:
            path /= part
            self._require_no_link(path)
            make_folder(path)

    def _require_no_link(self, path: Path) -> None:
        if path.is_symlink():
            raise PushError(f"{path} is a symbolic link, and gemtui does not write through links")


@contextmanager
def open_push_folder(
    path: Path, *, home: Path, redact: bool, waiting: Callable[[], None]
) -> Iterator[PushFolder]:
    """Open and lock a folder to push to, creating it if necessary.

    `home`: Gemini CLI's folder, which must not contain this folder. `waiting`: called if another
    push holds the lock. Raises OSError, and PushError for a folder with anything not written by a
    push.
    """
    if path.is_symlink():
        raise PushError(f"{path} is a symbolic link: name its target instead")
    target = resolved(path)
    if target.is_relative_to(resolved(home)):
        raise PushError(f"{path} belongs to Gemini CLI: name a folder somewhere else")
    if target.exists() and not (target / _LOCK).exists():
        _require_ours(target)
    make_folder(target)
    with _alone(target / _LOCK, waiting):
        _require_ours(target)
        _remove_unfinished(target)
        manifest = _manifest(target)
        if manifest is None:
            manifest = Manifest(redact=redact)
            write_whole(target / MANIFEST, [msgspec.json.encode(manifest)], durable=True)
        if manifest.schema > FOLDER:
            raise PushError(f"{path} was written by a newer gemtui: update gemtui")
        if manifest.schema < FOLDER:
            raise PushError(
                f"{path} was written by an older gemtui, which used Zstandard: name a new folder, "
                "or convert this one as the manual says"
            )
        if manifest.redact != redact:
            state = "with" if manifest.redact else "without"
            raise PushError(
                f"{path} contains sessions pushed {state} --redact: name another folder"
            )
        yield PushFolder(target, manifest)


@contextmanager
def _alone(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    with locked(path, wait=False) as mine:
        if mine:
            yield
            return
    waiting()
    with locked(path):
        yield


def _require_ours(place: Path) -> None:
    """Raise PushError for a folder whose contents were not written by a push."""
    names = {entry.name for entry in place.iterdir()}
    strange = (name for name in names if name != _LOCK and not name.startswith(f".{MANIFEST}."))
    if MANIFEST not in names and any(strange):
        raise PushError(
            f"{place} is not empty and was not written by gemtui push: name a new folder"
        )


def _remove_unfinished(place: Path) -> None:
    """Remove the temporary files of pushes that were killed."""
    for entry in files_below(str(place)):
        if is_unfinished_name(entry.name):
            remove_unfinished(Path(entry.path))


def _manifest(place: Path) -> Manifest | None:
    if (place / MANIFEST).is_symlink():
        raise PushError(
            f"{place / MANIFEST} is a symbolic link, and gemtui does not write through links"
        )
    try:
        return msgspec.json.decode(read_small(place / MANIFEST), type=Manifest)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise PushError(f"{place / MANIFEST} can't be read ({error}): name a new folder") from error


def _safe(name: str) -> str:
    """Turn a project's name or a day into a path component valid on all systems."""
    kept = re.sub(r"[^0-9A-Za-z._-]", "_", name)[:100].strip(".")
    if kept == name:
        return name
    return f"{kept}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _session_of(line: bytes) -> str:
    match = _SESSION.match(line)
    value: Any = msgspec.json.decode(match[1]) if match else ""
    return str(value)


def _pieces(source: Path, size: int) -> Iterator[bytes]:
    with open_regular(source) as stream:
        while size > 0 and (piece := stream.read(min(_CHUNK, size))):
            size -= len(piece)
            yield piece


def _checked(source: Path, size: int, name: str) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file, and check them against a SHA-256.

    `name`: the digest. Raises OSError if the bytes don't match it.
    """
    digest = sha256()
    for piece in _pieces(source, size):
        digest.update(piece)
        yield piece
    if digest.hexdigest() != name:
        raise OSError(errno.EAGAIN, "changed while gemtui was reading it: push again", str(source))


_LEVEL = 6
"""The level at which files are compressed: that of the program `gzip`."""


def compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Compress chunks to one gzip file, whose bytes don't depend on when it is written."""
    packed = BytesIO()
    with gzip.GzipFile("", "wb", _LEVEL, packed, mtime=0) as packer:
        for piece in pieces:
            packer.write(piece)
            yield packed.getvalue()
            packed.seek(0)
            packed.truncate()
    yield packed.getvalue()


def lines_in(path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed file, including line endings.

    Raises OSError, gzip.BadGzipFile, zlib.error, EOFError.
    """
    with gzip.open(path, "rb") as stream:
        yield from stream
