"""Take a checkpoint: find the changes since the previous one, and who made them.

As in git, a file is read again only if its size, times or inode differ from the previous
checkpoint. Git lists the files that may have changed with the help of a private index, so a
checkpoint takes about as long as `git status`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gemtui.checkpoints.project_files import (
    InTheWay,
    ProjectFiles,
    folder_modes,
    folder_state,
    folders_above,
)
from gemtui.checkpoints.store import (
    ABSENT,
    FILE,
    FOLDER,
    GONE,
    UNREADABLE,
    UNTRUSTED,
    Checkpoint,
    CheckpointStore,
    Facts,
    FileChange,
    FileState,
    Reason,
    Tree,
    WritingCall,
    folders_of,
    open_store,
    unkept,
)
from gemtui.checkpoints.tree import (
    TOO_MANY,
    TreeListing,
    encode_index,
    folders_inside,
    index_file,
    is_tracked_name,
    list_files,
)
from gemtui.checkpoints.uncovered import Uncovered, encode_uncovered, find_uncovered
from gemtui.files import write_whole

Before = FileState | tuple[int, bytes]
"""A file's former state.

This is GONE, UNKNOWN, or a tuple of the file's mode and contents.
"""
_TICK = 0.02
"""Seconds by which file times may lag behind the clock.

Files that changed less than this before a checkpoint are read again for the next one.
"""


@dataclass(slots=True)
class Progress:
    """The progress of a checkpoint: the files that it has checked so far, and those to check.

    Another thread may read these numbers at any time.
    """

    done: int = 0
    files: int = 0


class Taker:
    """Takes a project's checkpoints; the caller holds the project's lock.

    `without`: folders that are never included, such as gemtui's own.
    """

    def __init__(self, root: Path, store: CheckpointStore, without: tuple[Path, ...] = ()) -> None:
        self._root, self._store, self._without = root, store, without
        self.progress = Progress()
        self.foreseen = set[bytes]()
        """Files whose recorded states are those that a preview has foreseen; `take` keeps them."""

    def take(
        self,
        reason: Reason,
        *,
        run: str = "",
        session: str = "",
        calls: Callable[[], Sequence[WritingCall]] = tuple,
        also: Mapping[bytes, Before] | None = None,
        owned: Mapping[bytes, int] | None = None,
        notes: Sequence[str] = (),
        always: bool = True,
        renews_index: bool = True,
    ) -> Checkpoint | None:
        """Take a checkpoint and return it.

        * `calls`: returns the calls that may have changed files, to be stored. It is called when
          all files have been read, because a call that began meanwhile may have changed some.
        * `also`: maps files to include, even if git ignores them, to their former states, which are
          used if no earlier checkpoint contains the file.
        * `owned`: maps files to the ids of the calls that are known to have changed them.
        * `notes`: what else the user should know about the checkpoint.
        * `always`: if False and nothing has changed, take no checkpoint and return None.
        * `renews_index`: whether git's index may be rewritten. It must not be inside a transaction,
          which may still be rolled back.

        Raises OSError, CheckpointsUnreadable.
        """
        began = time.time()
        with self._store.transaction(), ProjectFiles(self._root) as files:
            listing = list_files(
                self._root, self._store.git, self._store.index.current(), without=self._without
            )
            listed = {*listing.names, *listing.ignored, *self._store.index.unindexed()}
            names = {*listed, *map(files.spelled, listed)}
            names.update(filter(is_tracked_name, also or {}))
            tree = self._store.tree() if listing.whole else self._store.states(names)
            names.update(tree)
            names -= self.foreseen
            self.progress = Progress(files=len(names))
            unread = list[bytes]()
            changed = _differing(files, tree, names, began, self._store, self.progress, unread)
            hidden = self._hidden(changed, tree)
            changed |= _differing(files, hidden, hidden, began, self._store, self.progress, unread)
            tree |= hidden
            first = self._first(listing, also or {}, tree)
            folders = self._folders_changed(changed)
            stored = [replace(call, id=self._store.save_call(call)) for call in calls()]
            moved = _moved(changed, tree)
            changes = list[FileChange]()
            for path, (state, _) in changed.items():
                before = first.get(path) or tree.get(path, (GONE, None))[0]
                if before != state:
                    id, sure = _owner(path, state, files, stored, owned or {}, moved)
                    changes.append(
                        FileChange(path=path, before=before, after=state, call=id, sure=sure)
                    )
            changes += _folder_changes(folders, files, stored, owned or {})
            checkpoint = None
            if always or changes:
                notes = (*notes, *listing.notes, *_unread_notes(unread))
                checkpoint = self._store.add_checkpoint(began, reason, run, session, notes, changes)
            if listing.whole or listing.index != self._store.index.current():
                self._store.index.set_current(listing.index)
            self._store.set_tree(changed, listing.names)
            if checkpoint and reason is Reason.PROMPT and TOO_MANY not in listing.notes:
                self._store.set_uncovered(checkpoint.id, encode_uncovered(self._uncovered()))
            spare = self._index_again(began) if renews_index else []
        for old_index in spare:
            old_index.unlink(missing_ok=True)
        return checkpoint

    def uncovered(self) -> Uncovered | None:
        """Return what the project contains that no checkpoint covers, nor would the next one.

        Returns None if there are too many files to list them.
        """
        index = self._store.index.current()
        listing = list_files(self._root, self._store.git, index, without=self._without)
        if TOO_MANY in listing.notes:
            return None
        return self._uncovered(listing.names | listing.ignored)

    def _uncovered(self, listed: Collection[bytes] = ()) -> Uncovered:
        covered = self._store.known_paths().union(listed)
        return find_uncovered(self._root, covered, folders_inside(self._root, self._without))

    def _folders_changed(self, changed_files: Tree) -> dict[bytes, tuple[FileState, FileState]]:
        """Record the current modes of all folders; return those changed, before and after.

        Returns none if no checkpoint contains folders yet, because their former modes are unknown.
        """
        former = self._store.folders()
        files_now = {name for name, (state, _) in changed_files.items() if state != GONE}
        if not former:
            files_now |= self._store.tree().keys()
        names = former.keys() | folders_above(files_now)
        now = folder_modes(self._root, names - self.foreseen)
        changed = {name: mode for name, mode in now.items() if mode != former.get(name)}
        self._store.set_folders(changed)
        if not former:
            return {}
        return {
            name: (folder_state(former.get(name)), folder_state(mode))
            for name, mode in changed.items()
        }

    def _hidden(self, changed: Tree, tree: Tree) -> Tree:
        """Return the files that were in folders which are no longer folders.

        If a file or link has replaced a folder, git wrongly lists the files that were in the folder
        as unchanged. `changed`: the changed files. `tree`: the former states that have already been
        loaded.
        """
        below: Tree = {}
        if self._store.index.current():
            for name, (state, _) in changed.items():
                if state != GONE and name not in tree:
                    below |= self._store.files_under(name)
        return {name: below[name] for name in below.keys() - tree.keys() - self.foreseen}

    def _index_again(self, began: float) -> list[Path]:
        """Rewrite git's index if many files are missing from it.

        Returns the paths of old index files, which can now be deleted. `began`: when the checkpoint
        was started, in seconds since 1970. The new index contains only files that last changed at
        least a second before that, so that git never has to compare fractions of seconds.
        """
        index = self._store.index.current()
        before = int(began - _TICK) * 1_000_000_000 - 1
        if index is None or not self._store.index.is_poor(before):
            return []
        prefix = os.fsencode(os.path.relpath(self._root, os.fsdecode(index.top)))
        prefix = b"" if prefix == b"." else prefix + b"/"
        chosen = self._store.index.choose_before(before)
        data = encode_index((prefix + name, state, facts) for name, state, facts in chosen)
        new = index._replace(number=index.number + 1, size=len(data))
        self._store.index.set_current(new)
        path = index_file(self._store.git, new.number)
        write_whole(path, [data], durable=True)
        return [old for old in path.parent.glob("index-*") if old != path]

    def _first(
        self, listing: TreeListing, also: Mapping[bytes, Before], tree: Tree
    ) -> dict[bytes, FileState]:
        """Return the former states of git-ignored files that no earlier checkpoint contains.

        `listing`: the files that git lists. `also`: additional files, with their former states.
        `tree`: the files that earlier checkpoints contain.
        """
        first: dict[bytes, FileState] = {}
        for name in also.keys() - tree.keys() - listing.names - listing.ignored:
            before = also[name]
            if not isinstance(before, FileState):
                mode, data = before
                before = FileState(FILE, mode, self._store.keep(data))
            first[name] = before
        return first


def _folder_changes(
    folders: Mapping[bytes, tuple[FileState, FileState]],
    files: ProjectFiles,
    calls: Sequence[WritingCall],
    owned: Mapping[bytes, int],
) -> list[FileChange]:
    """Return the changes of folders with the calls that made them.

    `folders`: their states before and after. `owned`: as in `Taker.take`.
    """
    above = {folder + b"/": call for name, call in owned.items() for folder in folders_of(name)}
    changes = []
    for name, (before, after) in folders.items():
        if not owned:
            call, sure = _owner(name[:-1], after, files, calls, {}, frozenset())
        else:
            made_or_removed = GONE in (before, after)
            call = owned.get(name, above.get(name) if made_or_removed else None)
            sure = True
        changes.append(FileChange(path=name, before=before, after=after, call=call, sure=sure))
    return changes


def _moved(changed: Tree, tree: Tree) -> frozenset[bytes]:
    """Return those changed files that were moved or renamed, not created.

    Such a file has the inode of a deleted file. Its times don't reveal the move if a folder above
    it was renamed. `changed`: the changed files. `tree`: their former states. A file that is not in
    `tree` has not necessarily been moved: git may have ignored it before.
    """
    gone = {tree[path][1].inode for path, (state, _) in changed.items() if state == GONE} - {0}
    return frozenset(
        path for path, (_, facts) in changed.items() if path not in tree and facts.inode in gone
    )


def _differing(
    files: ProjectFiles,
    tree: Tree,
    names: Iterable[bytes],
    began: float,
    store: CheckpointStore,
    progress: Progress,
    unread: list[bytes],
) -> Tree:
    """Return the files whose state or facts differ from those in `tree`.

    `names`: the files to check. `began`: when the checkpoint was started, in seconds since 1970.
    `store`: stores the contents of changed files. `progress`: updated for each folder. `unread`: a
    list to which folders are added that can't be read.
    """
    late = int((began - _TICK) * 1e9)
    changed: Tree = {}
    for folder, inside in _by_folder(names).items():
        try:
            progress.done += len(inside)
            with files.opened(folder) as handle:
                for name, last in inside:
                    old = tree.get(name)
                    seen = files.facts_in(handle, last)
                    if old is not None and old[1] == seen:
                        continue
                    state, facts = _read(files, handle, last, store) if seen else (GONE, None)
                    if facts is None:
                        facts = UNTRUSTED
                    elif facts.ctime >= late:
                        # Read it again next time; the inode shows whether it has been moved.
                        facts = UNTRUSTED._replace(inode=facts.inode)
                    if state != GONE or old is not None:
                        changed[name] = state, facts
        except (FileNotFoundError, InTheWay):
            changed.update((name, (GONE, UNTRUSTED)) for name, _ in inside if name in tree)
        except PermissionError:  # its files count as unchanged
            unread.append(folder)
    return changed


def _unread_notes(folders: Iterable[bytes]) -> Iterator[str]:
    for folder in sorted(set(folders)):
        yield f"{os.fsdecode(folder)}/ can't be read, so changes in it are not covered"


def _read(
    files: ProjectFiles, parent: int, last: bytes, store: CheckpointStore
) -> tuple[FileState, Facts | None]:
    try:
        return files.read(parent, last, store)
    except FileNotFoundError:  # deleted since it was listed
        return GONE, None
    except OSError as error:
        return unkept(UNREADABLE, error.errno or 0), None


def _by_folder(names: Iterable[bytes]) -> dict[bytes, list[tuple[bytes, bytes]]]:
    """Map each folder to its files in `names`, as pairs of full name and base name."""
    by_folder: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for name in names:
        folder, _, last = name.rpartition(b"/")
        by_folder.setdefault(folder, []).append((name, last))
    return by_folder


def _owner(
    path: bytes,
    state: FileState,
    files: ProjectFiles,
    calls: Sequence[WritingCall],
    owned: Mapping[bytes, int],
    moved: Set[bytes],
) -> tuple[int | None, bool]:
    """Return the id of the call that changed a file, and whether that is certain.

    Unless `owned` names the call, it is found by the time of the change. The id is None if no call
    can have changed the file. `state`: the file's new state. `moved`: files that only have a new
    name.
    """
    if path in owned:
        return owned[path], True
    if not calls:
        return None, True
    when = files.moved_at(path) if path in moved else files.changed_at(path)
    vague = state.kind in (ABSENT, FOLDER) or path in moved
    able = [
        call
        for call in calls
        if call.path in (None, path)
        and when >= call.began - _TICK
        and (call.ended is None or vague or when <= call.ended + _TICK)
    ]
    if not able:
        return None, True
    named = [call for call in able if call.path is not None]
    owner = sorted(named or able, key=lambda call: call.began)[-1]  # prefer a subagent's call
    sure = owner.sure and len(able) == 1 and not (vague and len(calls) > 1)
    return owner.id, sure


@contextmanager
def open_taker(
    folder: Path, root: Path, without: tuple[Path, ...]
) -> Iterator[tuple[CheckpointStore, Taker]]:
    """Open a project's checkpoints, creating them if necessary.

    Yields the store and a Taker. `folder`: the folder of the checkpoints. `root`: the project's
    folder. `without`: folders that are never included.
    """
    with open_store(folder, root) as store:
        yield store, Taker(root, store, without)
