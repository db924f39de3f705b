"""The rows of a review: files and hunks, and the lines of a diff."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from gemtui.checkpoints.review import ReviewedFile, ReviewHunk
from gemtui.runs.undo.review import changed_words, diff_lines, owner_words
from gemtui.text import Clean, clean_line, counted, visible
from gemtui.ui.draw.lines import Piece, Pieces, own, tabless, two_ended
from gemtui.ui.draw.theme import Look, Role

MOST_LINES = 2_000
"""The maximum number of lines of a hunk to show."""
_LETTERS = {"added": "A", "modified": "M", "deleted": "D"}
_DIGITS = 5
_LONGEST = 2_000
"""The maximum number of characters of a line to show."""


class ReviewRow(NamedTuple):
    """A row of the list of files and hunks; `hunk` is None in a file's own row."""

    file: ReviewedFile
    hunk: ReviewHunk | None

    @property
    def key(self) -> str:
        """The id of the row's file or hunk, by which the list identifies the row."""
        return self.file.id if self.hunk is None else self.hunk.id

    @property
    def hunks(self) -> Sequence[ReviewHunk]:
        """The hunks that the row stands for: one or, in a file's row, all of the file's."""
        return self.file.hunks if self.hunk is None else (self.hunk,)


class DiffRow(NamedTuple):
    """A row of a file's diff.

    `sign`: "@" for a hunk's header, "." for a note, and "+", "-" or " " for a line of the diff.
    `line`: the line's number in the current file or, for a removed line, in the old file; 0 for
    other rows.
    """

    file: ReviewedFile
    hunk: ReviewHunk
    sign: str
    line: int
    text: str


def list_rows(files: Sequence[ReviewedFile]) -> list[ReviewRow]:
    """Return the rows of the list: each file followed by its hunks."""
    return [ReviewRow(file, hunk) for file in files for hunk in (None, *file.hunks)]


def diff_rows(file: ReviewedFile) -> list[DiffRow]:
    """Return the rows of a file's diff; very long hunks are truncated."""
    return [row for hunk in file.hunks for row in _rows(file, hunk)]


def _rows(file: ReviewedFile, hunk: ReviewHunk) -> Iterator[DiffRow]:
    yield DiffRow(file, hunk, "@", 0, "")
    if hunk.about:
        yield DiffRow(file, hunk, ".", 0, hunk.about)
    if hunk.fixed:
        yield DiffRow(file, hunk, ".", 0, f"can't be reverted: {hunk.fixed}")
    now, before = hunk.now - len(hunk.above), hunk.before
    for at, (sign, line) in enumerate(diff_lines(hunk)):
        if at == MOST_LINES:
            rest = len(hunk.above) + len(hunk.removed) + len(hunk.added) + len(hunk.below) - at
            yield DiffRow(file, hunk, ".", 0, counted(rest, "more line"))
            return
        text = line.removesuffix(b"\n")[:_LONGEST].decode("utf-8", "replace")
        yield DiffRow(file, hunk, sign, before if sign == "-" else now, text)
        before, now = before + (sign == "-"), now + (sign != "-")


# --- rendering -----------------------------------------------------------------------------------


def draw_review_row(row: ReviewRow, look: Look, reverted: Collection[str], comments: int) -> Pieces:
    """Render a file with its status letter, or a hunk with its author.

    `reverted`: the ids of the hunks that are marked to be reverted. `comments`: how many comments
    the user has written in the file.
    """
    muted, marked = look[Role.MUTED], [each.id in reverted for each in row.hunks]
    right = [*_counts(row.hunks, look)]
    if comments:
        right.append(Piece(own(f"  {counted(comments, 'comment')}"), look[Role.ACCENT]))
    if any(marked):
        words = "revert" if all(marked) else f"revert {sum(marked)} of {len(marked)}"
        right.append(Piece(own(f"  {look.glyphs.warning} {words}"), look[Role.WARNING]))
    if row.hunk is None:
        letter, name = _LETTERS[row.file.change], clean_line(os.fsdecode(row.file.path))
        pieces = (Piece(own(f"{letter} "), muted), Piece(name, look[Role.TEXT]))
    else:
        line = own(f"  {row.hunk.now or row.hunk.before:>4} " if row.hunk.before else "       ")
        pieces = (Piece(line, muted), Piece(clean_line(owner_words(row.hunk.owner)), muted))
    return two_ended(pieces, tuple(right), look)


def _counts(hunks: Sequence[ReviewHunk], look: Look) -> Iterator[Piece]:
    added = sum(len(each.added) for each in hunks)
    removed = sum(len(each.removed) for each in hunks)
    if added:
        yield Piece(own(f"  {look.glyphs.added}{added}"), look[Role.ADDED])
    if removed:
        yield Piece(own(f" {look.glyphs.removed}{removed}"), look[Role.REMOVED])


def draw_diff_row(row: DiffRow, look: Look, reverted: Collection[str], comment: str) -> Pieces:
    """Render a row of a diff, with the line's number, its sign and its comment.

    `reverted`: the ids of the hunks that are marked to be reverted. `comment`: the user's comment
    on the line, or "".
    """
    muted = look[Role.MUTED]
    if row.sign == "@":
        owner = clean_line(owner_words(row.hunk.owner))
        pieces: Pieces = (Piece(Clean(f"@@ {owner}"), look[Role.HEADING]),)
        if words := changed_words(row.hunk):
            pieces += (Piece(clean_line(f"  {words}"), muted),)
        if row.hunk.id not in reverted:
            return pieces
        right = (Piece(own(f"  {look.glyphs.warning} revert"), look[Role.WARNING]),)
        return two_ended(pieces, right, look)
    if row.sign == ".":
        return (Piece(Clean(f"  {clean_line(row.text)}"), muted),)
    role = {"+": Role.ADDED, "-": Role.REMOVED}.get(row.sign, Role.TEXT)
    sign = {"+": look.glyphs.added, "-": look.glyphs.removed}.get(row.sign, " ")
    text = tabless(visible(row.text.replace("\n", " ")))
    pieces = (Piece(own(f"{row.line:>{_DIGITS}} "), muted), Piece(own(f"{sign} "), look[role]), Piece(text, look[role]))
    if comment:
        pieces += (Piece(own("  "), muted), Piece(clean_line(comment), look[Role.ACCENT]))
    return pieces
