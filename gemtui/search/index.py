"""A store's search index on disk, with many readers and one writer at a time.

The index is kept in gemtui's cache folder, private to the user, and can be deleted at any time. Its
folder contains a list of files (`file_list.py`), a folder named in that list with the text index
(`text_index.py`), and the writer's lock. Documents are committed before the list, so the list never
names documents that are missing. Documents that the list doesn't name are never found.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from gemtui.errors import message_of
from gemtui.files import close_folder, locked, open_regular, write_whole
from gemtui.paths import make_own_folder
from gemtui.search.documents import FileDocuments
from gemtui.search.file_list import FileList, Indexed, IndexedFile, NoIndex, list_file
from gemtui.search.text_index import CHECKED, TextIndex, minor_version
from gemtui.sessions.store.store import ChatFile

_LOCK = "lock"
_BROKEN = "broken"
_HOME = "home"
"""The name of the file that holds the path of the store."""
_WORDS = f"words-{minor_version()}-"
"""Prefix of the name of a folder with a text index."""


# --- reading -------------------------------------------------------------------------------------


class ReadIndex:
    """A search index opened for searching.

    `rows`: the indexed files. `words`: a reader for their text index. Both are as of the last
    `refresh`. Creating an instance raises NoIndex if there is no usable index.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._list, self._text = _opened(folder)
        self._revision = -1
        self.rows: Mapping[str, IndexedFile] = {}
        self.refresh()

    def close(self) -> None:
        """Close the index's files."""
        self._list.close()

    def refresh(self) -> bool:
        """Load what has been indexed since the last call; return whether anything has.

        Raises NoIndex if the index has been replaced or is corrupt.
        """
        with _no_index_if_damaged():
            if not _is_there(self._folder, self._list):
                raise NoIndex("it has been replaced")
            if (revision := self._list.revision) == self._revision:
                return False
            while revision != self._revision:
                self._revision = revision
                self.rows = self._list.rows()
                self.words = self._text.reader()
                revision = self._list.revision
            return True


def report_damage(folder: Path) -> None:
    """Mark the index in a folder as corrupt, so that its writer rebuilds it."""
    with suppress(OSError):
        (folder / _BROKEN).touch(mode=0o600)


def _is_there(folder: Path, files: FileList) -> bool:
    """Return whether an open index is still the current one, and not corrupt."""
    return (folder / files.name).is_dir() and not (folder / _BROKEN).exists()


def _opened(folder: Path) -> tuple[FileList, TextIndex]:
    with _no_index_if_damaged():
        if (folder / _BROKEN).exists():
            raise NoIndex("it is corrupt")
        files = FileList(list_file(folder))
        try:
            if not files.name.startswith(_WORDS):
                raise NoIndex("it was created by another version of tantivy")
            return files, TextIndex(folder / files.name)
        except BaseException:
            files.close()
            raise


@contextmanager
def _no_index_if_damaged() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:
        raise NoIndex(f"it is corrupt ({message_of(error)})", damaged=True) from error


# --- writing -------------------------------------------------------------------------------------


@contextmanager
def only_writer(folder: Path) -> Iterator[bool]:
    """Hold an index's write lock in a `with` block.

    Yields True, or False if another program holds the lock. The operating system releases the lock
    when the program holding it ends, for whatever reason. Raises OSError.
    """
    make_own_folder(folder)
    for private in (folder.parent, folder):
        close_folder(private)
    for name in (_LOCK, _HOME, CHECKED):
        _remove_unless_file(folder / name)
    with locked(folder / _LOCK, wait=False) as mine:
        yield mine


def remove_gone(folder: Path, home: Path) -> None:
    """Delete the indexes of stores that no longer exist.

    `folder`: the folder of the current index; the other indexes are in folders beside it. `home`:
    the folder that contains the current index's store. It is recorded in `folder`, so that a later
    call can find out whether the store still exists. An index is not deleted while another program
    is writing to it. Raises OSError.
    """
    write_whole(folder / _HOME, [os.fsencode(home)])
    for other in folder.parent.iterdir():
        with suppress(OSError):
            with open_regular(other / _HOME) as stream:
                there = Path(os.fsdecode(stream.read())).exists()
            with only_writer(other) as mine:
                if mine and not there:
                    import shutil

                    shutil.rmtree(other)


class WriteIndex:
    """An index opened for updating, by the program that holds its lock.

    If the index is corrupt or has a different version, it is rebuilt, and `renewed` says why;
    otherwise `renewed` is None. Raises OSError if the index can't be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.renewed: str | None = None
        try:
            self._list, self._text = _opened(folder)
            numbers = self._settled()
        except NoIndex as error:
            if error.is_there:
                self.renewed = f"the search index was rebuilt: {error}"
            self._list, self._text = _recreated(folder)
            numbers = set()
        self.rows = self._list.rows()
        self._next = max(numbers, default=0) + 1
        self._taken: dict[ChatFile, Indexed] = {}

    def _settled(self) -> set[int]:
        """Delete documents left by an interrupted commit; return all numbers in use.

        A document number identifies a file, or a part of it, in the list of files.
        """
        with _no_index_if_damaged():
            listed = {number for row in self._list.rows().values() for number in row.numbers}
            there = set(self._text.reader().numbers())
            self._text.remove(there - listed)
            return there | listed | set(self._list.replaced())

    def close(self) -> None:
        """Close the index's files, discarding whatever hasn't been committed."""
        self._text.close()
        self._list.close()

    @property
    def is_there(self) -> bool:
        """Whether this is still the index in its folder, and not reported as corrupt."""
        return _is_there(self._folder, self._list)

    def stale(self, places: Iterable[ChatFile]) -> list[ChatFile]:
        """Return the files whose current version is not indexed."""
        return [place for place in places if not self._knows(place)]

    def _knows(self, place: ChatFile) -> bool:
        row = self.rows.get(place.name)
        return row is not None and row.stamp == place.stamp

    def add(self, place: ChatFile, contents: FileDocuments, *, keep: tuple[int, ...] = ()) -> int:
        """Add the documents of a file's current version; return their new number.

        `keep`: numbers under which other documents of this file have been added. All other
        documents of the file are replaced.
        """
        number = self._next
        self._next += 1
        self._text.add(number, contents.documents)
        self._taken[place] = Indexed((*keep, number), contents.session)
        return number

    def commit(self, gone: Iterable[str] = ()) -> None:
        """Commit all additions, and remove the files in `gone` from the index.

        `gone`: paths of files. Raises OSError if the index can't be written.
        """
        gone, removed = list(gone), self._list.replaced()
        if not (gone or removed or self._taken):
            return
        self._text.remove(removed)
        self._text.commit()
        before = {name: self.rows[name].numbers for name in gone}
        for place, file in self._taken.items():
            if (row := self.rows.get(place.name)) is not None:
                before[place.name] = tuple(set(row.numbers).difference(file.numbers))
        replaced = chain.from_iterable(before.values())
        self._list.change(self._taken, gone, replaced=replaced, removed=removed)
        self._taken = {}
        self.rows = self._list.rows()


def _remove_unless_file(entry: Path) -> None:
    """Remove what is at an index file's path if it is a folder, link, or device."""
    if os.path.lexists(entry) and (entry.is_symlink() or not entry.is_file()):
        _remove(entry)


def _remove(entry: Path) -> None:
    """Remove a file, link, or folder if it exists."""
    if entry.is_dir() and not entry.is_symlink():
        import shutil

        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def _recreated(folder: Path) -> tuple[FileList, TextIndex]:
    """Replace everything in the index's folder, except the lock, with an empty index.

    The list is removed first, because readers open nothing without a list.
    """
    _remove(list_file(folder))
    for entry in folder.iterdir():
        if entry.name != _LOCK:
            _remove(entry)
    name = f"{_WORDS}{os.urandom(4).hex()}"
    (folder / name).mkdir(mode=0o700)
    text = TextIndex(folder / name, new=True)
    return FileList.create(list_file(folder), name), text
