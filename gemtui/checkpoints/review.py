"""Review what a session changed in its project's files, by hunk and author.

All states of a file, from before its first change until now, are combined in a weave
(`gemtui/checkpoints/weave.py`), so that each line that differs has an owner: either a tool call or
the user. Reverting a hunk removes that change from the current file and leaves everything else
alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from gemtui.checkpoints.merge import MOST_LINES
from gemtui.checkpoints.plan import Action, Step, states_equal, with_mode, without_collisions
from gemtui.checkpoints.store import (
    ABSENT,
    FILE,
    GONE,
    LINK,
    UNKNOWN,
    CheckpointStore,
    FileState,
    Keeper,
    Tree,
    WritingCall,
    digest_of,
    recorded_state,
)
from gemtui.checkpoints.undo import RecordedChange, made_by_user
from gemtui.checkpoints.weave import Weave, WovenLines
from gemtui.transcript.tools import ToolKind, kind_of

_MOST_BYTES = 2_000_000
"""The largest file, in bytes, that is compared line by line."""
_MOST_OF_ALL = 64_000_000
"""The most bytes of changed lines, summed over all files, to compare line by line.

Once they are reached, each remaining file is shown as a single hunk.
"""
_CONTEXT = 3
_ID = 10
"""The number of hexadecimal digits in the id of a file, hunk or call.

Each id starts with a letter for its type, such as `h` for a hunk.
"""


class OwnerKind(StrEnum):
    """The kinds of authors of a change.

    TOOL is a file tool, SHELL a shell command, PERSON the user. UNKNOWN is used if a run that is
    still working may have made the change.
    """

    TOOL = "tool"
    SHELL = "shell"
    PERSON = "person"
    UNKNOWN = "unknown"


class HunkOwner(NamedTuple):
    """The author of a change: a tool call or the user.

    * `id`: the same for all changes by one call, such as `c0123456789`; "" for the user.
    * `tool`: the tool's name. For the user, the gemtui action that made the change (undo, redo,
      review or worktree); None if the user edited the file.
    * `command`: the shell command, if the tool ran one.
    * `session`, `use`: the ids of the session and the tool call, as Gemini CLI names them; "" if
      there are none.
    """

    kind: OwnerKind
    id: str = ""
    tool: str | None = None
    command: str | None = None
    session: str = ""
    use: str = ""


PERSON = HunkOwner(OwnerKind.PERSON)
NOBODY_KNOWS = HunkOwner(OwnerKind.UNKNOWN)


class OwnedChange(NamedTuple):
    """A change to one file, with its author.

    `when`: seconds since 1970.
    """

    when: float
    before: FileState
    after: FileState
    owner: HunkOwner


class HunkPart(StrEnum):
    """The part of a file that a hunk changes: some lines, the mode, or the whole file."""

    LINES = "lines"
    MODE = "mode"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewHunk:
    """A change that can be kept or reverted.

    * `id`: stays the same while the file does not change.
    * `changed`: other owners whose lines this hunk replaced.
    * `before`, `now`: the number of the hunk's first line, counted from 1, in the file's initial
      state and in the current file.
    * `removed`, `added`: the lines that the hunk removed and added.
    * `above`, `below`: up to three unchanged lines of context.
    * `about`: a description of a change that doesn't affect lines.
    * `fixed`: why the change can't be reverted; "" if it can.
    """

    id: str
    part: HunkPart
    owner: HunkOwner
    changed: tuple[HunkOwner, ...] = ()
    before: int = 0
    now: int = 0
    removed: tuple[bytes, ...] = ()
    added: tuple[bytes, ...] = ()
    above: tuple[bytes, ...] = ()
    below: tuple[bytes, ...] = ()
    about: str = ""
    fixed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedFile:
    """A file with its hunks.

    `was`: the file's state before the session's first change. `now`: its current state.
    """

    id: str
    path: bytes
    was: FileState
    now: FileState
    hunks: tuple[ReviewHunk, ...]

    @property
    def change(self) -> str:
        """The type of change: `added`, `deleted` or `modified`."""
        if self.was.kind == ABSENT:
            return "added"
        return "deleted" if self.now.kind == ABSENT else "modified"


class Contents(Keeper, Protocol):
    """A place where contents can be stored and read by their digests."""

    def content(self, digest: str) -> bytes:
        """Return the contents with this digest. Raises KeyError."""
        ...


class PassingContents:
    """The contents in a store, plus temporary ones that only this object holds."""

    def __init__(self, store: Contents | None) -> None:
        self._store = store
        self._kept = dict[str, bytes]()

    def keep(self, data: bytes) -> str:
        """Keep contents in memory and return their digest."""
        digest = digest_of(data)
        self._kept[digest] = data
        return digest

    def content(self, digest: str) -> bytes:
        """Return the contents with this digest. Raises KeyError."""
        if digest in self._kept or self._store is None:
            return self._kept[digest]
        return self._store.content(digest)


# --- owners ---------------------------------------------------------------------------------------


def owned_changes(
    store: CheckpointStore | None,
    mine: Callable[[WritingCall], bool],
    recorded: Iterable[RecordedChange],
    contents: Contents,
) -> dict[bytes, list[OwnedChange]]:
    """Map each file to its changes by anyone, from the session's first one onwards.

    `mine`: returns whether a call belongs to the session under review. `recorded`: the session's
    changes that no checkpoint covers. `contents`: stores the contents of these changes.
    """
    owned: dict[bytes, list[OwnedChange]] = {}
    if store is not None:
        # load the changes before their calls, because calls may be added in the meantime
        stored = list(store.changes(by_calls=True))
        calls = store.calls()
        times = store.times()
        for id, change in stored:
            call = None if change.call is None else calls.get(change.call)
            if change.path not in owned and (call is None or not mine(call)):
                continue
            owner = PERSON if change.call is None else NOBODY_KNOWS
            if call is not None and made_by_user(call):
                owner = HunkOwner(OwnerKind.PERSON, tool=call.tool)
            elif call is not None:
                owner = _tool_owner(call.tool, call.use, call.command, call.session)
            owned_change = OwnedChange(times.get(id, 0.0), change.before, change.after, owner)
            owned.setdefault(change.path, []).append(owned_change)
    records = list(recorded)
    for path in {record.path for record in records} & owned.keys():
        owned[path] = [change for change in owned[path] if change.before != UNKNOWN]
    for record in records:
        before = recorded_state(contents, record.before)
        after = recorded_state(contents, record.after)
        changes = owned.setdefault(record.path, [])
        owner = _tool_owner(record.tool, record.use)
        changes.append(OwnedChange(record.when, before, after, owner))
        changes.sort(key=lambda change: change.when)
    return {path: changes for path, changes in owned.items() if changes}


def _tool_owner(tool: str, use: str, command: str | None = None, session: str = "") -> HunkOwner:
    kind = OwnerKind.SHELL if kind_of(tool) is ToolKind.SHELL else OwnerKind.TOOL
    return HunkOwner(kind, _id("c", use), tool, command, session, use)


def _id(letter: str, *about: object) -> str:
    data = "\0".join(map(repr, about)).encode("utf-8", "surrogatepass")
    return letter + hashlib.sha256(data).hexdigest()[:_ID]


# --- the hunks of a file --------------------------------------------------------------------------


class FileReview:
    """The differences between a file's initial state and its current one, by author.

    `changes`: the file's changes, oldest first. `now`: the file's current state. `late`: the author
    of changes that no checkpoint has recorded yet. `by_lines`: if False, the whole file is a single
    hunk.
    """

    def __init__(
        self,
        path: bytes,
        changes: Sequence[OwnedChange],
        now: FileState,
        contents: Contents,
        *,
        late: HunkOwner = PERSON,
        by_lines: bool = True,
    ) -> None:
        self.path, self.now, self.was = path, now, changes[0].before
        self._contents, self._by_lines = contents, by_lines
        self._versions = list(_versions(changes, now, late))
        self._pieces: dict[str, WovenLines[HunkOwner]] = {}
        self._weave = self._woven()

    def result(self) -> ReviewedFile | None:
        """Return the file with its hunks; None if the file is unchanged."""
        hunks = tuple(self._hunks())
        if not hunks:
            return None
        id = _id("f", self.path)
        return ReviewedFile(id=id, path=self.path, was=self.was, now=self.now, hunks=hunks)

    def _text(self, state: FileState) -> list[bytes] | None:
        """Return a state's lines; None if it is binary, too long or not stored."""
        if state.kind == ABSENT:
            return []
        if state.kind != FILE:
            return None
        try:
            data = self._contents.content(state.content)
        except KeyError:
            return None
        if b"\0" in data or len(data) > _MOST_BYTES or data.count(b"\n") > MOST_LINES:
            return None
        return git_lines(data)

    def _woven(self) -> Weave[HunkOwner] | None:
        """Return a weave, which combines all of the file's versions line by line.

        Returns None if lines can't be compared.
        """
        if not self._by_lines or (self.now.kind == ABSENT and self.was.kind != ABSENT):
            return None
        base, end = self._text(self.was), self._text(self.now)
        if base is None or end is None:
            return None
        weave = Weave[HunkOwner](base)
        for state, owner in self._versions:
            text = self._text(state)
            if text is not None:
                weave.add(owner, text, revives=_returns(owner))
        return weave

    def _hunks(self) -> Iterator[ReviewHunk]:
        if states_equal(self.was, self.now):
            return
        if self._weave is None:
            yield self._whole()
            return
        line_hunks = list(self._line_hunks(self._weave))
        yield from line_hunks
        modes = old, new = self.was.mode, self.now.mode
        if self.was.kind == self.now.kind and min(modes) >= 0 and old != new:
            owner = self._last(lambda before, after: before.mode != after.mode)
            id = _id("h", self.path, owner, HunkPart.MODE, modes)
            about = f"mode {old:03o} → {new:03o}"
            yield ReviewHunk(id=id, part=HunkPart.MODE, owner=owner, about=about)
        elif not line_hunks:
            yield self._whole()

    def _line_hunks(self, weave: Weave[HunkOwner]) -> Iterator[ReviewHunk]:
        lines = weave.now
        seen = dict[str, int]()
        for piece in weave.pieces():
            removed, added = weave.texts(piece.removed), weave.texts(piece.added)
            id = _id("h", self.path, piece.owner, piece.before, removed, added)
            seen[id] = seen.get(id, -1) + 1
            id = _id("h", id, seen[id]) if seen[id] else id
            self._pieces[id] = piece
            end = piece.now + len(added)
            yield ReviewHunk(
                id=id,
                part=HunkPart.LINES,
                owner=piece.owner,
                changed=tuple(sorted(piece.changed, key=lambda owner: (owner.kind, owner.id))),
                before=piece.before + 1,
                now=piece.now + 1,
                removed=tuple(removed),
                added=tuple(added),
                above=tuple(lines[max(0, piece.now - _CONTEXT) : piece.now]),
                below=tuple(lines[end : end + _CONTEXT]),
            )

    def _whole(self) -> ReviewHunk:
        owner = self._last(lambda old, new: not states_equal(old, new))
        removed = self._text(self.was) if self.now.kind == ABSENT else None
        fixed = ""
        if not self.was.kept:
            fixed = f"its earlier contents were not stored: {self.was.why}"
        elif self.was.kind != ABSENT:
            with suppress(KeyError):
                self._contents.content(self.was.content)
                removed = removed or []
            fixed = "" if removed is not None else "its earlier contents are no longer stored"
        return ReviewHunk(
            id=_id("h", self.path, owner, HunkPart.WHOLE, self.was, self.now),
            part=HunkPart.WHOLE,
            owner=owner,
            before=1,
            removed=tuple(removed or ()),
            about=f"{self._named(self.was)} → {self._named(self.now)}",
            fixed=fixed,
        )

    def _named(self, state: FileState) -> str:
        """Return a short description of a state, such as its size and part of its hash."""
        if state.kind == ABSENT:
            return "no file"
        if not state.kept:
            return f"a file whose contents were not stored ({state.why})"
        try:
            data = self._contents.content(state.content)
        except KeyError:
            return "a file whose contents are no longer stored"
        if state.kind == LINK:
            return f"a symbolic link to {os.fsdecode(data)}"
        what = "binary, " if b"\0" in data else ""
        return f"{what}{len(data):,} bytes, {hashlib.sha256(data).hexdigest()[:8]}"

    def _last(self, differs: Callable[[FileState, FileState], bool]) -> HunkOwner:
        """Return the owner of the last change that made a relevant difference.

        `differs`: returns whether two states differ in a relevant way. If an undo or redo restored
        a state, the owner is whoever first produced that state.
        """
        last_owner = self._versions[0][1] if self._versions else PERSON
        last = self.was
        first_owners = dict[FileState, HunkOwner]()
        for state, owner in self._versions:
            if _returns(owner):
                owner = first_owners.get(state, owner)
            first_owners[state] = owner
            if differs(last, state):
                last_owner = owner
            last = state
        return last_owner

    def without(self, ids: Collection[str], keeper: Keeper) -> FileState | None:
        """Return the file's current state with these hunks reverted.

        `ids`: ids of hunks; those of hunks in other files are ignored. `keeper`: stores the new
        contents. Returns None if the file has none of these hunks, or none that can be reverted.
        """
        hunks = list(self._hunks())
        parts = {hunk.id: hunk.part for hunk in hunks if hunk.id in ids and not hunk.fixed}
        if not parts:
            return None
        if HunkPart.WHOLE in parts.values():
            return self.was if self.was.mode >= 0 else with_mode(self.was, self.now)
        assert self._weave is not None
        pieces = [self._pieces[id] for id, part in parts.items() if part is HunkPart.LINES]
        data = self._weave.without(pieces)
        if self.was.kind == ABSENT and not data and len(parts) == len(hunks):
            return GONE
        mode = self.was.mode if HunkPart.MODE in parts.values() else self.now.mode
        return FileState(FILE, mode, keeper.keep(data))


def _returns(owner: HunkOwner) -> bool:
    """Return whether a change was made by an undo, redo, review or applied worktree.

    Such changes can bring back lines that belong to a different author.
    """
    return owner.kind is OwnerKind.PERSON and owner.tool is not None


def file_reviews(
    changes: Mapping[bytes, Sequence[OwnedChange]],
    now: Callable[[bytes, Contents], FileState],
    contents: Contents,
    *,
    late: HunkOwner = PERSON,
) -> Iterator[tuple[FileReview, ReviewedFile]]:
    """Yield the review of each file that differs from its initial state, by name.

    `changes`: each file's changes. `now`: given a file's name and where to store contents, stores
    the file's contents there and returns its current state. `contents`: passed to `now`. `late`: as
    in `FileReview`. Once the hunks of all files together exceed a size limit, each remaining file
    is a single hunk.
    """
    left = _MOST_OF_ALL
    for path, own_changes in sorted(changes.items()):
        passing = PassingContents(contents)
        state = now(path, passing)
        review = FileReview(path, own_changes, state, passing, late=late, by_lines=left > 0)
        file = review.result()
        if file is not None:
            left -= sum(len(line) for hunk in file.hunks for line in (*hunk.removed, *hunk.added))
            yield review, file


def git_lines(data: bytes) -> list[bytes]:
    """Split contents after line feeds only, as git does, keeping the line feeds."""
    *lines, rest = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def _versions(
    changes: Sequence[OwnedChange], now: FileState, late: HunkOwner
) -> Iterator[tuple[FileState, HunkOwner]]:
    """Yield each state of a file after the initial one with its owner, oldest first.

    A change may start from a state that no earlier recorded change produced; that state belongs to
    the user. `late`: the owner of the current state if no recorded change produced it.
    """
    last = changes[0].before
    for change in changes:
        if change.before != UNKNOWN and not states_equal(last, change.before):
            yield change.before, PERSON
        yield change.after, change.owner
        last = change.after
    if not states_equal(last, now):
        yield now, late


# --- reverting ------------------------------------------------------------------------------------


def chosen_hunks(files: Iterable[ReviewedFile], ids: Collection[str]) -> frozenset[str]:
    """Return the ids of the hunks that a selection contains.

    `ids`: the selected hunks, files or tool calls. A file or a call selects all of its hunks.
    """
    return frozenset(
        hunk.id
        for file in files
        for hunk in file.hunks
        if not {hunk.id, file.id, hunk.owner.id}.isdisjoint(ids)
    )


def dependent_hunks(
    files: Iterable[ReviewedFile], ids: Collection[str]
) -> Iterator[tuple[ReviewedFile, ReviewHunk]]:
    """Yield hunks that are kept although they may build on a reverted hunk.

    `ids`: the hunks, files or calls to revert. A hunk builds on an earlier one if it modified lines
    that the earlier one had introduced. A hunk records only the owners of the lines it modified,
    not the lines. Therefore it is yielded as soon as any hunk by one of these owners is reverted in
    the same file.
    """
    for file in files:
        chosen = chosen_hunks([file], ids)
        owners = {hunk.owner for hunk in file.hunks if hunk.id in chosen}
        for hunk in file.hunks:
            if hunk.id not in chosen and not owners.isdisjoint(hunk.changed):
                yield file, hunk


def revert_steps(
    changes: Mapping[bytes, Sequence[OwnedChange]],
    tree: Tree,
    store: CheckpointStore,
    ids: Collection[str],
) -> tuple[list[Step], list[ReviewedFile]]:
    """Return the steps that revert the selected hunks, and all files with their hunks.

    `ids`: the hunks, files or calls to revert. `tree`: the files' current states.
    """
    steps = list[Step]()
    files = list[ReviewedFile]()

    def now_of(path: bytes, _: Contents) -> FileState:
        return tree[path][0] if path in tree else GONE

    for review, file in file_reviews(changes, now_of, store):
        files.append(file)
        chosen = chosen_hunks([file], ids)
        if not chosen:
            continue
        fixed = next((hunk.fixed for hunk in file.hunks if hunk.id in chosen and hunk.fixed), "")
        result = None if fixed else review.without(chosen, store)
        action = Action.MERGE
        if result is None:
            action, result = Action.KEEP, file.now
        elif result == GONE:
            action = Action.REMOVE
        elif result == file.was:
            action = Action.RESTORE
        step = Step(
            path=file.path,
            action=action,
            why=fixed,
            target=file.was,
            left=file.now,
            now=file.now,
            result=result,
        )
        steps.append(step)
    return without_collisions(steps, tree), files


def missing(ids: Iterable[str], files: Iterable[ReviewedFile]) -> list[str]:
    """Return the ids that no hunk, file or call in the review has (any more)."""
    existing = set[str]()
    for file in files:
        existing.add(file.id)
        for hunk in file.hunks:
            existing |= {hunk.id, hunk.owner.id}
    return [id for id in ids if id not in existing]
