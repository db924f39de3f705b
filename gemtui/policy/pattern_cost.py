"""How long a backtracking engine may search with a pattern, judged by the pattern alone.

The pattern becomes an automaton with one state a character of it (Glushkov's). Where one text can
take two ways through it, an engine that backtracks tries them all: two ways round one loop double
with every character, a loop that can hand over to a later one at any place multiplies by the
length. Ways are counted, never missed; the count may be too high.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gemtui.policy.pattern_tree import (
    ANY,
    Back,
    Chars,
    Choice,
    Look,
    Node,
    Ranges,
    Repeat,
    Row,
)

_MOST_COPIES: Final = 200
_MOST_STATES: Final = 2200
_MOST_WORK: Final = 200_000
_MOST_EDGES: Final = 4_000
_MOST_LOOPS: Final = 40
_NEAR: Final = 2
_MANY: Final = 1e30


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a search may take.

    `ways`: through what is not repeated. `power`: of the text's length, from one place on; 0 = no
    repetition. `endless`: it doubles with every character. `search_power`: of the length, for a
    search at all places, when loops that are far apart are left out, since a text has to be made
    for it.
    """

    ways: float
    power: int
    endless: bool
    search_power: int

    def steps(self, places: int, length: int) -> float:
        """At most so many for a text of this length, where a match may start at `places`."""
        doubled = 2.0 ** min(length, 90) if self.endless else 1.0
        return places * self.ways * float(length) ** self.power * doubled


ENDLESS: Final = Cost(ways=_MANY, power=1, endless=True, search_power=9)


class _TooBig(Exception):
    """The automaton has too many states to judge."""


@dataclass(slots=True)
class _Piece:
    """A part of the automaton: ways through it without a character, and its ends."""

    empty: float = 1.0
    first: dict[int, float] = field(default_factory=dict)
    last: dict[int, float] = field(default_factory=dict)


class _Automaton:
    """States of one character each; `after[state]` gives the ways to each next one.

    Where a match can no longer fail nothing follows: no other way is tried then.
    """

    def __init__(self, tree: Node) -> None:
        self._conditions = False
        self.chars: list[Ranges] = [()]
        self.after: list[dict[int, float]] = [defaultdict(float)]
        whole = self._piece(tree)
        self.after[0].update(whole.first)
        if not self._conditions:
            for end in self._ends({*whole.last, *([0] if whole.empty else [])}):
                self.after[end].clear()

    def _ends(self, ends: set[int]) -> set[int]:
        """Of the states with which a match may end, those that only such ones follow."""
        while left := {end for end in ends if not ends.issuperset(self.after[end])}:
            ends -= left
        return ends

    def _state(self, ranges: Ranges) -> int:
        if len(self.chars) >= _MOST_STATES:
            raise _TooBig
        self.chars.append(ranges)
        self.after.append(defaultdict(float))
        return len(self.chars) - 1

    def _join(self, left: _Piece, right: _Piece) -> None:
        for a, ways in left.last.items():
            for b, more in right.first.items():
                self.after[a][b] += min(ways * more, _MANY)

    def _piece(self, node: Node) -> _Piece:
        if isinstance(node, Chars):
            state = self._state(node.ranges)
            return _Piece(0.0, {state: 1.0}, {state: 1.0})
        if isinstance(node, Row):
            piece = _Piece()
            for item in node.items:
                piece = self._row(piece, self._piece(item))
            return piece
        if isinstance(node, Choice):
            return self._choice([self._piece(option) for option in node.options])
        if isinstance(node, Repeat):
            return self._repeat(node)
        self._conditions = True
        if isinstance(node, Back):
            return self._loop(self._piece(Chars(ANY)))
        if isinstance(node, Look):
            inner = Repeat(Chars(ANY), 0, None) if node.behind else node.body
            return _Piece(1.0, self._piece(inner).first, {})
        return _Piece()

    def _row(self, left: _Piece, right: _Piece) -> _Piece:
        self._join(left, right)
        return _Piece(
            min(left.empty * right.empty, _MANY),
            _sum(left.first, right.first, left.empty),
            _sum(right.last, left.last, right.empty),
        )

    def _choice(self, options: list[_Piece]) -> _Piece:
        whole = _Piece(0.0)
        for option in options:
            whole.empty += option.empty
            whole.first.update(option.first)
            whole.last.update(option.last)
        return whole

    def _loop(self, body: _Piece) -> _Piece:
        self._join(body, body)
        return _Piece(1.0 + body.empty, body.first, body.last)

    def _repeat(self, node: Repeat) -> _Piece:
        start = len(self.chars)
        once = self._piece(node.body)
        copies = max(node.least, 1) if node.most is None else node.most
        if copies * (len(self.chars) - start) > _MOST_COPIES:
            return self._loop(once)
        if node.most == 0:
            return _Piece()
        if node.most is None:
            piece = self._loop(once)
            piece.empty -= 1 if node.least else 0
        else:
            piece = once if node.least == node.most else _optional(once)
        for copy in range(copies - 1, 0, -1):
            before = self._piece(node.body)
            piece = self._row(before, piece)
            if copy > node.least:
                piece = _optional(piece)
        return piece


def _optional(piece: _Piece) -> _Piece:
    return _Piece(1.0 + piece.empty, piece.first, piece.last)


def _sum(one: dict[int, float], other: dict[int, float], times: float) -> dict[int, float]:
    if not times:
        return one
    return {**one, **{state: min(ways * times, _MANY) for state, ways in other.items()}}


def cost(tree: Node, *, anchored: bool) -> Cost:
    """What searches with a pattern may take; `anchored`: it can only match at a text's start."""
    try:
        return _Judge(_Automaton(tree), anchored=anchored).cost()
    except _TooBig:
        return ENDLESS


class _Judge:
    """Counts the ways through an automaton; a last state, without `anchored`, is the search's."""

    def __init__(self, automaton: _Automaton, *, anchored: bool) -> None:
        self._after = [dict(after) for after in automaton.after]
        chars = list(automaton.chars)
        self._search = 0 if anchored else len(chars)
        if self._search:
            chars.append(ANY)
            self._after.append({**self._after[0], self._search: 1.0})
        if sum(map(len, self._after)) > _MOST_EDGES:
            raise _TooBig
        self._work = 0
        self._masks = _masks(chars)
        self._reach = _reach(self._after)
        self._loops = self._components()
        self._loop_of = {state: loop for loop in self._loops for state in loop}
        if len(self._loops) > _MOST_LOOPS:
            raise _TooBig

    def cost(self) -> Cost:
        """All that is to say."""
        own = [loop for loop in self._loops if loop != (self._search,)]
        steps = {(a, b): self._handed(a, b) for a in self._loops for b in self._loops if a != b}
        searched = self._longest(self._loops, steps, most=_NEAR)
        return Cost(
            ways=self._ways(),
            power=1 + self._longest(own, steps, most=_MOST_WORK) if own else 0,
            endless=any(self._doubles(loop) for loop in own),
            search_power=1 + searched if self._loops else 0,
        )

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _MOST_WORK:
            raise _TooBig

    def _components(self) -> list[tuple[int, ...]]:
        """The loops: states that lead to each other, those that come first in a text first."""
        states = [s for s in range(len(self._after)) if self._reach[s] >> s & 1]
        found: dict[int, list[int]] = defaultdict(list)
        for state in states:
            found[self._reach[state]].append(state)
        return [tuple(found[reach]) for reach in sorted(found, key=int.bit_count, reverse=True)]

    def _ways(self) -> float:
        """The most ways that one text can take from the start, those within loops left out."""
        ways: dict[int, float] = {}
        for state in sorted(range(len(self._after)), key=self._depth):
            if state in ways or state == self._search != 0:
                continue
            loop = self._loop_of.get(state, (state,))
            total = min(1.0 + sum(self._leaving(s, loop, ways) for s in loop), _MANY)
            ways.update(dict.fromkeys(loop, total))
        return ways[0]

    def _depth(self, state: int) -> tuple[int, bool]:
        """By this, what a state leads to comes before it."""
        return self._reach[state].bit_count(), state not in self._loop_of

    def _leaving(self, state: int, loop: tuple[int, ...], ways: dict[int, float]) -> float:
        by_class: dict[int, float] = defaultdict(float)
        for after, many in self._after[state].items():
            if after not in loop:
                for bit in _bits(self._masks[after]):
                    by_class[bit] += many * ways[after]
        return max(by_class.values(), default=0.0)

    def _within(self, state: int, loop: tuple[int, ...]) -> list[int]:
        return [after for after in self._after[state] if after in loop]

    def _doubles(self, loop: tuple[int, ...]) -> bool:
        """Whether a text can take two ways round a loop."""
        nexts = {state: self._within(state, loop) for state in loop}
        if any(self._after[state][after] > 1 for state in loop for after in nexts[state]):
            return True
        back: dict[int, list[int]] = {state: [] for state in loop}
        for state, afters in nexts.items():
            for after in afters:
                back[after].append(state)
        apart = self._pairs(nexts, ends=True)
        return not apart.isdisjoint(self._pairs(back, ends=False))

    def _pairs(self, nexts: dict[int, list[int]], *, ends: bool) -> set[tuple[int, int]]:
        """Pairs of different states that the same text leads to from one, or from which to one."""
        masks, found = self._masks, set[tuple[int, int]]()
        left = [(state, state) for state in nexts]
        while left:
            a, b = left.pop()
            if not ends and not masks[a] & masks[b]:
                continue
            self._spend(len(nexts[a]) * len(nexts[b]))
            for x in nexts[a]:
                for y in nexts[b]:
                    if x != y and (x, y) not in found and masks[x] & masks[y]:
                        found.add((x, y))
                        left.append((x, y))
        return found

    def _handed(self, one: tuple[int, ...], other: tuple[int, ...]) -> int:
        """The length of a text that stays in one loop, leads to the other and stays in that.

        0 = there is none. Longer ones may be needed where a loop has several states.
        """
        if not self._reach[one[0]] >> other[0] & 1:
            return 0
        goal = sum(1 << state for state in other)
        level = {(p, p, q) for p in one for q in other}
        seen = set(level)
        length = 0
        while level:
            length += 1
            level = {t for triple in level for t in self._moved(triple, one, other, goal)} - seen
            if any(middle == last for _, middle, last in level):
                return length
            seen |= level
        return 0

    def _moved(
        self, triple: tuple[int, int, int], one: tuple[int, ...], other: tuple[int, ...], goal: int
    ) -> Iterator[tuple[int, int, int]]:
        first, middle, last = triple
        masks = self._masks
        ahead = self._within(first, one), self._within(last, other)
        self._spend(len(ahead[0]) * len(ahead[1]) * len(self._after[middle]))
        for p in ahead[0]:
            for q in ahead[1]:
                both = masks[p] & masks[q]
                if both:
                    for m in self._after[middle]:
                        if masks[m] & both and (goal >> m & 1 or self._reach[m] & goal):
                            yield p, m, q

    def _longest(
        self,
        loops: list[tuple[int, ...]],
        steps: dict[tuple[tuple[int, ...], tuple[int, ...]], int],
        *,
        most: int,
    ) -> int:
        """The longest chain of loops of which each hands over to the next by at most `most`."""
        best: dict[tuple[int, ...], int] = {}
        for at, loop in enumerate(loops):
            best[loop] = max(
                (
                    best[before] + (0 < steps[before, loop] <= most)
                    for before in loops[:at]
                    if self._reach[before[0]] >> loop[0] & 1
                ),
                default=0,
            )
        return max(best.values(), default=0)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _masks(chars: list[Ranges]) -> list[int]:
    """Each set of characters as bits, one for each part into which all the sets cut them."""
    cuts = sorted({cut for ranges in chars for low, high in ranges for cut in (low, high + 1)})
    place = {cut: at for at, cut in enumerate(cuts)}
    masks = []
    for ranges in chars:
        mask = 0
        for low, high in ranges:
            mask |= (1 << place[high + 1]) - (1 << place[low])
        masks.append(mask)
    return masks


def _reach(after: list[dict[int, float]]) -> list[int]:
    """For each state, the states to which some text leads, as bits."""
    reach = [0] * len(after)
    changed = True
    while changed:
        changed = False
        for state in reversed(range(len(after))):
            known = reach[state]
            for to in after[state]:
                known |= 1 << to | reach[to]
            changed = changed or known != reach[state]
            reach[state] = known
    return reach
