"""Take a checkpoint: find what changed since the one before, and whose change it is.

A file is read again where its size, times or inode differ from the last time, as git does it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gemtui.checkpoints.project_files import InTheWay, ProjectFiles, facts_at
from gemtui.checkpoints.states import FILE, GONE, UNREADABLE, FileState, unkept
from gemtui.checkpoints.store import (
    UNTRUSTED,
    Call,
    Checkpoint,
    Facts,
    FileChange,
    Reason,
    Store,
    Tree,
    open_store,
)
from gemtui.checkpoints.tree import Listing, countable, list_files

Before = FileState | tuple[int, bytes]
"""What a file was: GONE, UNKNOWN, or its mode and content."""
_TICK = 0.02
"""Seconds by which times of files may lag behind the clock; what changed later is read again."""


class Taker:
    """Takes the checkpoints of one project, one after the other, while its lock is held.

    `without`: folders that never count, such as gemtui's own.
    """

    def __init__(self, root: Path, store: Store, without: tuple[Path, ...] = ()) -> None:
        self._root, self._store, self._without = root, store, without
        self._tree: Tree = {}
        self._version: object = None

    @property
    def tree(self) -> Tree:
        """The files as the last checkpoint found them."""
        return self._tree

    def take(
        self,
        reason: Reason,
        *,
        run: str = "",
        session: str = "",
        calls: Sequence[Call] = (),
        also: Mapping[bytes, Before] | None = None,
        owned: Mapping[bytes, int] | None = None,
        always: bool = True,
    ) -> Checkpoint | None:
        """Take a checkpoint and return it; None where nothing changed and not `always`.

        `calls`: those that may have changed files, which are stored. `also`: files that count
        although git ignores them, each with what it was before if it is new to checkpoints.
        `owned`: the ids of the calls that changed these files. Raises OSError,
        CheckpointsUnreadable.
        """
        began = time.time()
        if self._version != self._store.version() or self._version is None:
            self._tree = self._store.tree()
        with (
            ThreadPoolExecutor(1) as thread,
            self._store.transaction(),
            ProjectFiles(self._root) as files,
        ):
            asked = thread.submit(list_files, self._root, self._store.git, without=self._without)
            found = self._differing(files, self._tree, began)
            listing = asked.result()
            new = {*listing.names, *filter(countable, also or {})}.difference(self._tree)
            found |= self._differing(files, new, began)
            first = self._first(listing, also or {})
            known = [replace(each, id=self._store.save_call(each)) for each in calls]
            moved = self._moved(found)
            changes = [
                FileChange(path=path, before=before, after=state, call=call, sure=sure)
                for path, (state, _) in found.items()
                if (before := first.get(path) or self._tree.get(path, (GONE, None))[0]) != state
                for call, sure in [_owner(path, state, files, known, owned or {}, moved)]
            ]
            taken = None
            if always or changes:
                taken = self._store.add_checkpoint(
                    began, reason, run, session, listing.notes, changes
                )
            self._store.set_tree(found)
        for path, each in found.items():
            if each[0] == GONE:
                self._tree.pop(path, None)
            else:
                self._tree[path] = each
        self._version = self._store.version()
        return taken

    def _moved(self, found: Tree) -> frozenset[bytes]:
        """The new files that were others before: moving a folder changes no time of what is in it.

        Files that are new because git no longer ignores them were there before.
        """
        gone = {self._tree[path][1].inode for path, each in found.items() if each[0] == GONE}
        new = (path for path in found if path not in self._tree)
        return frozenset(path for path in new if found[path][1].inode in gone - {0})

    def _first(self, listing: Listing, also: Mapping[bytes, Before]) -> dict[bytes, FileState]:
        """What files were that count from now on."""
        new = {name: before for name, before in also.items() if name not in self._tree}
        if new:
            new = {name: new[name] for name in new.keys() - set(listing.names)}
        return {
            name: before
            if isinstance(before, FileState)
            else FileState(FILE, before[0], self._store.keep(before[1]))
            for name, before in new.items()
        }

    def _differing(
        self, files: ProjectFiles, names: Iterable[bytes], began: float
    ) -> dict[bytes, tuple[FileState, Facts]]:
        """Those that are not as the tree has them, or whose facts are not."""
        late = int((began - _TICK) * 1e9)
        found: dict[bytes, tuple[FileState, Facts]] = {}
        for folder, inside in _by_folder(names).items():
            try:
                with files.opened(folder) as place:
                    for name, last in inside:
                        old = self._tree.get(name)
                        seen = facts_at(place, last)
                        if old is not None and old[1] == seen:
                            continue
                        state, facts = self._read(files, place, last) if seen else (GONE, None)
                        trusted = facts is not None and facts.ctime < late
                        if state != GONE or old is not None:
                            found[name] = state, facts if facts and trusted else _untrusted(facts)
            except (FileNotFoundError, InTheWay):
                gone = (name for name, _ in inside if name in self._tree)
                found.update((name, (GONE, UNTRUSTED)) for name in gone)
            except PermissionError:  # what is in it is as it was, as far as anybody knows
                continue
        return found

    def _read(self, files: ProjectFiles, place: int, last: bytes) -> tuple[FileState, Facts | None]:
        try:
            return files.read(place, last, self._store)
        except FileNotFoundError:  # since a moment
            return GONE, None
        except OSError as error:
            return unkept(UNREADABLE, error.errno or 0), None


def _untrusted(facts: Facts | None) -> Facts:
    """Facts that no file has, so that it is read again; its inode tells where it went."""
    return UNTRUSTED if facts is None else UNTRUSTED._replace(inode=facts.inode)


def _by_folder(names: Iterable[bytes]) -> dict[bytes, list[tuple[bytes, bytes]]]:
    """Names and last parts of names, by the folder that they are in."""
    found: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for name in names:
        folder, _, last = name.rpartition(b"/")
        found.setdefault(folder, []).append((name, last))
    return found


def _owner(
    path: bytes,
    state: FileState,
    files: ProjectFiles,
    calls: Sequence[Call],
    owned: Mapping[bytes, int],
    moved: Set[bytes],
) -> tuple[int | None, bool]:
    """The call that changed a file, by the time of the change, and whether that is sure."""
    if path in owned:
        return owned[path], True
    if not calls:
        return None, True
    when = files.moved_at(path) if path in moved else files.changed_at(path)
    vague = state == GONE or path in moved
    able = [
        each
        for each in calls
        if each.path in (None, path)
        and when >= each.began - _TICK
        and (each.ended is None or vague or when <= each.ended + _TICK)
    ]
    if not able:
        return None, True
    named = [each for each in able if each.path is not None]
    return (named or able)[-1].id, len(able) == 1 and not (vague and len(calls) > 1)


@contextmanager
def taker_of(folder: Path, root: Path, without: tuple[Path, ...]) -> Iterator[tuple[Store, Taker]]:
    """Open the checkpoints of a project, which are begun if there are none, to take more."""
    with open_store(folder, root) as store:
        yield store, Taker(root, store, without)
