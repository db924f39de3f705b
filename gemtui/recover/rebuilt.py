"""Rebuild one file's contents from what tool calls recorded at several times.

A line is *known* if the newest record shows it in its place. Lines that only older records show may
have changed since, so they are *guessed*. Lines that no record shows are gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from gemtui.calls.edits import edited
from gemtui.transcript.diffs import Hunk, NoPatch, apply_diff, hunks_of_diff


class RecordedSource(Struct, frozen=True, kw_only=True):
    """The source of recovered lines: one of a session's tool calls.

    `time`: when the call's result was recorded.
    """

    session: str
    time: datetime
    call: str
    tool: str


class Whole(Struct, frozen=True, kw_only=True):
    """The file's whole contents.

    `before`: the contents before a write; None if unknown.
    """

    text: str
    before: str | None = None


class RecordedLines(Struct, frozen=True, kw_only=True):
    """Some consecutive lines of the file.

    `first`: the 1-based number of the first of these lines; 0 if they are the last lines of the
    file. `total`: how many lines the file has, counting an empty last line after a final line feed;
    None if unknown.
    """

    first: int
    lines: tuple[str, ...]
    total: int | None = None


class Diff(Struct, frozen=True, kw_only=True):
    """A unified diff, whose hunks have line numbers."""

    text: str


class RecordedEdit(Struct, frozen=True, kw_only=True):
    """The replacement of one string by another.

    `several`: whether all occurrences were replaced.
    """

    old: str
    new: str
    several: bool


Shown = Whole | RecordedLines | Diff | RecordedEdit


class CallEvidence(Struct, frozen=True, kw_only=True):
    """The contents of the file that one tool call reveals.

    `begun`: the earliest time at which the call may have started. `writes`: whether the call
    changed the file. `certain`: whether the record shows the file exactly, except for line endings.
    """

    source: RecordedSource
    begun: datetime
    shown: Shown
    writes: bool = False
    certain: bool = True


class RebuiltLine(Struct, frozen=True):
    """A line without its line feed.

    `known`: whether the newest record shows it. `text` and `source` are None in a gap.
    """

    text: str | None = None
    known: bool = False
    source: RecordedSource | None = None


GAP = RebuiltLine()
_LONGEST = 20_000
"""The most lines to compare, because longer comparisons quickly become slow."""


class LineRange(Struct, frozen=True, kw_only=True):
    """Consecutive lines with the same source.

    `first`, `last`: 1-based and inclusive. `known`: as in `RebuiltLine`. `source`: None if the
    lines are a gap.
    """

    first: int
    last: int
    known: bool
    source: RecordedSource | None


class Rebuilt(Struct, frozen=True, kw_only=True):
    """A file at some moment, rebuilt from records.

    `lines`: if the file ends with a line feed, the last item is an empty line. `crlf`: whether
    lines end with CRLF. `newest`: the source of the latest information. `notes`: notes for the
    user, each a clause.
    """

    lines: tuple[RebuiltLine, ...]
    newest: RecordedSource
    crlf: bool = False
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole contents, with empty lines for gaps."""
        end = "\r\n" if self.crlf else "\n"
        return end.join((line.text or "").removesuffix("\r") for line in self.lines)

    @property
    def listed(self) -> tuple[RebuiltLine, ...]:
        """The lines of the file, without the empty line after a final newline."""
        last = self.lines[-1] if self.lines else GAP
        return self.lines[:-1] if last.text == "" else self.lines

    @property
    def known(self) -> int:
        """The number of lines that the newest record shows in their places."""
        return sum(line.known for line in self.listed)

    @property
    def gaps(self) -> int:
        """The number of lines that no record shows."""
        return sum(line.text is None for line in self.listed)

    @property
    def guessed(self) -> int:
        """The number of lines known only from older records, which may be out of date."""
        return len(self.listed) - self.known - self.gaps

    @property
    def spans(self) -> tuple[LineRange, ...]:
        """The lines, grouped into ranges with the same source."""
        spans = []
        at = 1
        for (is_known, source), lines in groupby(
            self.listed, lambda line: (line.known, line.source)
        ):
            last = at + len(list(lines)) - 1
            spans.append(LineRange(first=at, last=last, known=is_known, source=source))
            at = last + 1
        return tuple(spans)


def rebuild(records: Iterable[CallEvidence]) -> Rebuilt | None:
    """Rebuild a file's newest contents from what calls recorded about it.

    Returns None if the records show nothing.
    """
    state = _FileState()
    for record in sorted(records, key=lambda record: record.source.time):
        state.add(record)
    if not state.lines or state.newest is None:
        return None
    return Rebuilt(
        lines=tuple(state.lines), newest=state.newest, crlf=state.crlf, notes=tuple(state.notes)
    )


class _FileState(Struct):
    """The file's state after the records added so far, which must be in order of time."""

    lines: list[RebuiltLine] = field(default_factory=list)
    newest: RecordedSource | None = None
    crlf: bool = False
    notes: list[str] = field(default_factory=list)
    _last: CallEvidence | None = None

    def add(self, record: CallEvidence) -> None:
        """Update the state with what a record shows."""
        if self._last is not None and self._is_contested(record, self._last):
            if not record.writes and self._last.writes:
                return
            record = replace(record, certain=False)
        match record.shown:
            case Whole() as shown:
                self._whole(shown, record)
            case RecordedLines() as shown:
                self._part(shown, record)
            case Diff() as shown:
                self._diff(shown, record)
            case RecordedEdit() as shown:
                self._edit(shown, record)
        self._last = record

    def _is_contested(self, record: CallEvidence, last: CallEvidence) -> bool:
        """Return whether two calls overlapped and may have ended in the opposite order.

        The order is certain if `record` shows exactly the contents that the call `last` left
        behind.
        """
        if record.begun > last.source.time or not (record.writes or last.writes):
            return False
        now = record.shown
        if not isinstance(now, Whole):
            return True
        seen = now.before if record.writes else now.text
        return seen is None or not last.certain or _lines(seen) != self._texts()

    def _texts(self) -> list[str | None]:
        return [None if line.text is None else line.text.removesuffix("\r") for line in self.lines]

    def _whole(self, shown: Whole, record: CallEvidence) -> None:
        lines = _lines(shown.text)
        if not record.certain and _alike(self._texts(), lines):
            return
        if record.certain and (record.writes or "\r\n" in shown.text):
            self.crlf = "\r\n" in (shown.text + (shown.before or ""))
        self._set(self._shown(lines, self.lines, record), record)

    def _shown(
        self, texts: Sequence[str], old: Sequence[RebuiltLine], record: CallEvidence
    ) -> list[RebuiltLine]:
        """Return the lines that a record shows, with their source.

        `texts`: the text of each line. `old`: the lines they replace. If the record is not certain,
        lines that differ from the old ones only in whitespace keep the old text and source.
        """
        new = [RebuiltLine(text, record.certain, record.source) for text in texts]
        if record.certain or max(len(new), len(old)) > _LONGEST:
            return new
        were = _bare([line.text for line in old])
        for at, there, many in SequenceMatcher(None, were, _bare(texts)).get_matching_blocks():
            kept = [replace(line, known=False) for line in old[at : at + many]]
            new[there : there + many] = kept
        return new

    def _part(self, shown: RecordedLines, record: CallEvidence) -> None:
        texts = [line.removesuffix("\r") for line in shown.lines]
        many = len(texts)
        total = shown.total
        first = shown.first or max(1, len(self.lines) - many + 1)
        there = self._texts()
        if not record.certain and _alike(there[first - 1 : first - 1 + many], texts):
            return
        new = self._shown(texts, self.lines[first - 1 : first - 1 + many], record)
        old = [replace(line, known=False) for line in self.lines]
        head = [*old[: first - 1], *[GAP] * (first - 1 - len(old))]
        rest = old[first - 1 + many :]
        if total is not None and len(old) != total:
            after = max(0, total - (first - 1 + many))
            kept = old[max(0, len(old) - after) :] if after else []
            rest = [*[GAP] * (after - len(kept)), *kept]
        self._set([*head, *new, *rest], record)

    def _diff(self, shown: Diff, record: CallEvidence) -> None:
        try:
            hunks = hunks_of_diff(shown.text)
        except NoPatch:
            self.notes.append(_unplaced(record))
            return
        if len(hunks) == 1 and not (hunks[0].old_first or hunks[0].removed):
            self._whole(Whole(text="".join(hunks[0].added)), record)
            return
        if self._fits(shown.text):
            self._apply(hunks, record)
            return
        for hunk in hunks:
            lines = tuple(line.removesuffix("\n") for line in hunk.added)
            if lines:
                part = RecordedLines(first=max(1, hunk.new_first), lines=lines)
                certain = [line.known for line in self.lines]
                self._part(part, record)
                self._know_again(certain, record)

    def _know_again(self, known: Sequence[bool], record: CallEvidence) -> None:
        """Mark lines from earlier hunks of the same diff as known again.

        Adding one hunk's lines marked all other lines as guessed, including those that the diff's
        earlier hunks show. `known`: which lines were known before the hunk was added.
        """
        for at, was in enumerate(known[: len(self.lines)]):
            if was and self.lines[at].source == record.source:
                self.lines[at] = replace(self.lines[at], known=True)

    def _fits(self, diff: str) -> bool:
        texts = self._texts()
        if not texts or None in texts:
            return False
        try:
            apply_diff("\n".join(text or "" for text in texts), diff)
        except NoPatch:
            return False
        return True

    def _apply(self, hunks: Sequence[Hunk], record: CallEvidence) -> None:
        old = [replace(line, known=False) for line in self.lines]
        new = list[RebuiltLine]()
        at = 0
        for hunk in hunks:
            first = hunk.old_first - (len(hunk.removed) > 0)
            new += old[at:first]
            texts = [line.removesuffix("\n").removesuffix("\r") for line in hunk.added]
            new += [RebuiltLine(text, record.certain, record.source) for text in texts]
            at = first + len(hunk.removed)
        self._set([*new, *old[at:]], record)

    def _edit(self, shown: RecordedEdit, record: CallEvidence) -> None:
        texts = self._texts()
        position = None
        if texts and None not in texts:
            whole = "\n".join(text or "" for text in texts)
            position = edited(whole, shown.old, shown.new, several=shown.several)
        if position is None or not position.exact or (position.count > 1 and not shown.several):
            self.notes.append(_unplaced(record))
            return
        lines = _lines(position.after)
        same = _same_ends(texts, lines)
        old = [replace(line, known=False) for line in self.lines]
        middle = lines[same[0] : len(lines) - same[1]]
        new = [RebuiltLine(text, False, record.source) for text in middle]
        self._set([*old[: same[0]], *new, *old[len(old) - same[1] :]], record)

    def _set(self, lines: list[RebuiltLine], record: CallEvidence) -> None:
        self.lines, self.newest = lines, record.source


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


def _alike(one: Sequence[str | None], other: Sequence[str]) -> bool:
    """Return whether two lists of lines are equal except for whitespace.

    Whitespace is ignored because terminals change it.
    """
    return _bare(one) == _bare(other)


def _bare(lines: Sequence[str | None]) -> list[str | None]:
    bare = [None if line is None else " ".join(line.split()) for line in lines]
    while bare and bare[-1] == "":
        bare.pop()
    return bare


def _same_ends(one: Sequence[object], other: Sequence[object]) -> tuple[int, int]:
    """Return how many lines are equal at the start, and how many at the end."""
    most = min(len(one), len(other))
    start = next((at for at in range(most) if one[at] != other[at]), most)
    left = most - start
    end = next((at for at in range(left) if one[-1 - at] != other[-1 - at]), left)
    return start, end


def _unplaced(record: CallEvidence) -> str:
    return f"a change by {record.source.tool} was left out, because its position is unknown"
