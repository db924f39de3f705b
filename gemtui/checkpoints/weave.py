"""Attribute each line of a file to its author by combining all of its versions.

The combination is called a weave: a list of the lines of all versions, each with the owner who
added it and the owner who removed it, if any. Therefore any single change can be reverted,
regardless of the changes before and after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Generic, TypeVar

from gemtui.checkpoints.merge import MOST_CHANGED, line_hunks

OwnerT = TypeVar("OwnerT", bound=Hashable)


@dataclass(slots=True)
class _Line(Generic[OwnerT]):
    """A line that occurs in at least one version of the text.

    `born`: who wrote the line; None if the first version contains it. `died`: who removed it; None
    if the newest version contains it. `returned`: if the line was removed and came back, who had
    removed it.
    """

    text: bytes
    born: OwnerT | None = None
    died: OwnerT | None = None
    returned: OwnerT | None = None

    def without(self, owner: OwnerT, *, again: bool) -> _Line[OwnerT]:
        """Return the line, marked as removed by `owner` unless it is already removed.

        `again`: whether the removal belongs to an undo or redo. If so, and if a different owner had
        removed the line before it came back, the removal is attributed to that owner.
        """
        if self.died is not None:
            return self
        return replace(self, died=self.returned or owner if again else owner)

    def back(self) -> _Line[OwnerT]:
        """Return the line, no longer marked as removed."""
        return replace(self, died=None, returned=self.died)


@dataclass(frozen=True, slots=True, kw_only=True)
class WovenLines(Generic[OwnerT]):
    """Adjacent lines that one owner changed: a piece of the differences.

    * `group`: a number shared by all pieces that have no unchanged line between them.
    * `before`, `now`: how many lines precede the piece in the first and in the newest version.
    * `removed`, `added`: positions in the weave; `Weave.texts` returns the lines at these
      positions.
    """

    owner: OwnerT
    group: int
    before: int
    now: int
    removed: tuple[int, ...] = ()
    added: tuple[int, ...] = ()
    changed: frozenset[OwnerT] = field(default_factory=frozenset)
    """The other owners whose lines this piece removed."""


class Weave(Generic[OwnerT]):
    """All versions of a file's lines, combined line by line.

    Each version except the first has an owner, who made the change that led to it.
    """

    def __init__(self, base: Sequence[bytes]) -> None:
        self._lines = [_Line[OwnerT](text) for text in base]

    def add(self, owner: OwnerT, text: Sequence[bytes], *, revives: bool = False) -> None:
        """Add the next version of the text, produced by `owner`.

        A line of the first version that was removed and comes back counts as unchanged again.
        `revives`: whether the owner is an undo or redo, which restores lines. If so, lines that
        come back keep their author even if they are not in the first version.
        """
        alive = [at for at, line in enumerate(self._lines) if line.died is None]
        old = [self._lines[at].text for at in alive]
        for start, end, new in reversed(line_hunks(old, text)):
            first = alive[start - 1] + 1 if start else 0
            last = alive[end] if end < len(alive) else len(self._lines)
            index = alive[end - 1] + 1 if end > start else first
            part = self._lines[first:last]
            self._lines[first:last] = _changed(part, index - first, list(new), owner, revives)

    @property
    def now(self) -> list[bytes]:
        """The lines of the newest version."""
        return [line.text for line in self._lines if line.died is None]

    def texts(self, places: Iterable[int]) -> list[bytes]:
        """Return the lines at these positions in the weave."""
        return [self._lines[at].text for at in places]

    def without(self, pieces: Collection[WovenLines[OwnerT]]) -> bytes:
        """Return the newest version with these pieces reverted.

        Lines that the pieces added are removed, and lines they removed come back. Reverting all
        pieces yields the first version.
        """
        chosen = Counter(piece.group for piece in pieces)
        all_of = Counter(piece.group for piece in self.pieces())
        whole = {group for group, size in chosen.items() if all_of[group] == size}
        owners = {(piece.group, piece.owner) for piece in pieces}
        gone = {at for piece in pieces for at in piece.added}
        back = set[int]()
        for piece in pieces:
            for at in piece.removed:
                author = self._lines[at].born
                # a line whose author's change is reverted as well was never there
                if author is None or (
                    piece.group not in whole and (piece.group, author) not in owners
                ):
                    back.add(at)
        lines = list[bytes]()
        for at, line in enumerate(self._lines):
            if at in back or (line.died is None and at not in gone):
                if lines and not lines[-1].endswith(b"\n"):
                    lines[-1] += b"\n"
                lines.append(line.text)
        return b"".join(lines)

    def pieces(self) -> list[WovenLines[OwnerT]]:
        """Return how the newest version differs from the first, split by place and owner."""
        pieces = list[WovenLines[OwnerT]]()
        group = list[int]()
        number = before = now = group_before = group_now = 0
        for at, line in enumerate(self._lines):
            if line.born is not None or line.died is not None:
                group.append(at)
            else:
                pieces += self._pieces(group, number, group_before, group_now)
                number += 1
                group = []
            before += line.born is None
            now += line.died is None
            if not group:
                group_before, group_now = before, now
        return [*pieces, *self._pieces(group, number, group_before, group_now)]

    def _pieces(
        self, group: Sequence[int], number: int, before: int, now: int
    ) -> Iterator[WovenLines[OwnerT]]:
        """Yield the pieces of one group, which lies between two unchanged lines.

        `group`: positions in the weave. `number`: the group's number. `before`, `now`: how many
        lines precede the group in the first and in the newest version. Lines that one owner wrote
        and another removed are in neither version; they are included only if the group has several
        pieces, to show what each owner did.
        """
        runs = list[tuple[OwnerT, list[int]]]()
        for at in group:
            owner = self._owner(at)
            if runs and runs[-1][0] == owner:
                runs[-1][1].append(at)
            elif owner is not None:
                runs.append((owner, [at]))
        joined = list[tuple[OwnerT, list[int]]]()
        for owner, places in runs:
            net = [at for at in places if self._is_net(at)]
            is_only_removed = all(self._lines[at].died is not None for at in places)
            kept = net if is_only_removed or not net else places
            if kept and joined and joined[-1][0] == owner:
                joined[-1][1].extend(kept)
            elif kept:
                joined.append((owner, kept))
        for owner, places in joined:
            others = {self._lines[at].born for at in places if not self._is_net(at)}
            shown = places if len(joined) > 1 else [at for at in places if self._is_net(at)]
            piece = WovenLines(
                owner=owner,
                group=number,
                before=before,
                now=now,
                removed=tuple(at for at in shown if self._lines[at].died is not None),
                added=tuple(at for at in shown if self._lines[at].died is None),
                changed=frozenset(other for other in others if other is not None),
            )
            yield piece
            before += sum(self._lines[at].born is None for at in piece.removed)
            now += len(piece.added)

    def _owner(self, at: int) -> OwnerT | None:
        """Return who last changed a line; None if it was never changed.

        The result is also None if the line's author removed it again. `at`: the line's position in
        the weave.
        """
        line = self._lines[at]
        if line.died is None:
            return line.born
        return None if line.died == line.born else line.died

    def _is_net(self, at: int) -> bool:
        """Return whether a line is in the first or in the newest version, but not in both.

        `at`: the line's position in the weave.
        """
        line = self._lines[at]
        return (line.born is None) != (line.died is None)


def _changed(
    part: Sequence[_Line[OwnerT]], start: int, new: list[bytes], owner: OwnerT, revives: bool
) -> list[_Line[OwnerT]]:
    """Return part of a weave, updated for a version that has the lines `new` there.

    `part`: the lines so far, including those that were removed earlier. `start`: the index in
    `part` at which to insert new lines. `owner`, `revives`: as in `Weave.add`.
    """
    dead = [
        at
        for at, line in enumerate(part)
        if line.died is not None and (line.born is None or revives)
    ]
    matched = _matches([part[at].text for at in dead], new)
    back = {dead[one]: other for one, other in matched}
    result = list[_Line[OwnerT]]()
    inserted = 0

    def insert(until: int) -> None:
        """Add the new lines up to this one, except those that have been added."""
        nonlocal inserted
        result.extend(_Line(text, owner) for text in new[inserted:until])
        inserted = max(inserted, until)

    first = min(back, default=len(part))
    ends = [*sorted(back.values())[1:], len(new)]
    for at, line in enumerate(part):
        if at == min(start, first) and not inserted:
            insert(back[first] if back else len(new))
        if at in back:
            insert(back[at])
            result.append(line.back())
            inserted = back[at] + 1
            insert(ends.pop(0))
        else:
            result.append(line.without(owner, again=revives))
    insert(len(new))
    return result


def _matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Match equal lines of two lists; return (old index, new index) pairs, in order.

    Returns [] if the lists are too long to compare.
    """
    if list(old) == list(new):
        return [(at, at) for at in range(len(new))]
    if not old or not new or max(len(old), len(new)) > MOST_CHANGED:
        return []
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(one + at, other + at) for one, other, size in blocks for at in range(size)]
