"""Rendering for the worktrees screen: rows, changes and two-column comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len

from gemtui.runs.listing import Run
from gemtui.runs.worktrees import ComparedFile, WorktreeChange
from gemtui.text import Clean, clean_line, counted, relative
from gemtui.transcript.displays import content_diff
from gemtui.ui.draw.gutter_rows import note_line, styled
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, cut, fit_end, fit_start, flat, own, two_ended, width_of
from gemtui.ui.draw.theme import Glyphs, Look, Role
from gemtui.ui.run.list_dialog import run_sign
from gemtui.ui.transcript.diff import draw_diff
from gemtui.worktree_records import Worktree, made_at

SIDE_BY_SIDE = 60
"""Minimum width in cells for a comparison in two columns."""
_NARROW = 40
"""Width in cells below which a row shows only a worktree's name and its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorktreeRow:
    """A worktree with its newest run and its changes.

    `run`: None if no run in it is recorded. `changes`: None if they can't be determined; `why` is
    then the reason.
    """

    worktree: Worktree
    run: Run | None
    changes: tuple[WorktreeChange, ...] | None
    why: str = ""

    @property
    def running(self) -> bool:
        """Whether a run is working in the worktree."""
        return self.run is not None and self.run.alive

    @property
    def model(self) -> str:
        """The model chosen for the newest run, or "" if none was."""
        return (self.run.model or "") if self.run is not None else ""

    @property
    def variant(self) -> str:
        """The newest run's model and policies, which tell runs of the same prompt apart."""
        names = () if self.run is None else (path.stem for path in self.run.policies)
        return " ".join(filter(None, (self.model.removeprefix("gemini-"), *names)))

    @property
    def label(self) -> str:
        """The worktree's name, and its newest run's model and policies."""
        return ", ".join(filter(None, (self.worktree.name, self.variant)))

    @property
    def files(self) -> str:
        """The number of changed files, or a note that all changes have been applied."""
        if self.changes is None:
            return "?"
        if self.changes and all(each.is_applied for each in self.changes):
            return "applied"
        return counted(len(self.changes), "file")


def draw_worktree(row: WorktreeRow, look: Look, marked: str | None) -> Pieces:
    """Render a worktree's row.

    If there is little room, the model, policies and age are left out and the start of the name is
    cut off, because names of worktrees for the same prompt differ at the end. `marked`: the name of
    the worktree that is marked for comparison, or None.
    """
    glyph, role = run_sign(row.run, look) if row.run else (" ", Role.MUTED)
    chosen = f"{look.glyphs.selected} " if row.worktree.name == marked else ""
    front = (Piece(own(f"{glyph} "), look[role]), Piece(own(chosen), look[Role.ACCENT]))
    made, mark = made_at(row.worktree), own(look.glyphs.ellipsis)
    age = "?" if made is None else relative(made, look.now)
    words = f"  {row.files}" if look.width < _NARROW else f"  {row.files}  {age:>4}"
    right = (Piece(own(words), look[Role.MUTED]),)
    room = look.width - width_of(front) - width_of(right)
    name = fit_end(clean_line(row.worktree.name), max(0, room), mark)
    variant = fit_start(flat(row.variant), room - cell_len(name) - 2, mark)
    shown = own(f"  {variant}" if variant else "")
    left = (*front, Piece(name, look[Role.TEXT]), Piece(shown, look[Role.MODEL]))
    return two_ended(left, right, look)


def worktree_facts(row: WorktreeRow, glyphs: Glyphs) -> Clean:
    """Return the heading for a worktree: its branch, result, model and policies."""
    words = [row.worktree.branch, row.run.word if row.run else "", row.variant]
    return clean_line(f" {glyphs.dot} ".join(filter(None, words)))


def change_lines(row: WorktreeRow, look: Look) -> Sequence[Line]:
    """Return lines with the prompt of a worktree's run, and its changes by file."""
    head = (_words(row.worktree.prompt or "(no prompt)", look, Role.MUTED), BLANK)
    if row.changes is None:
        return (*head, note_line(row.why, look))
    if not row.changes:
        return (*head, note_line("No changes in this worktree.", look))
    return (*head, *(line for each in row.changes for line in (*_file(each, look), BLANK)))


def _words(words: str, look: Look, role: Role) -> Line:
    return Line(cut((Piece(clean_line(words), look[role]),), look))


def _file(change: WorktreeChange, look: Look) -> Iterator[Line]:
    added, removed = change.lines
    numbers = "" if added is None else f"  +{added} {look.glyphs.removed}{removed}"
    front, end = f"{change.change}  ", f"{numbers}{'  applied' if change.is_applied else ''}"
    name = _path(change.name, look.width - len(front) - len(end), look)
    yield Line(styled(own(f"{front}{name}{end}"), look[Role.HEADING]))
    yield from _diff(change, look)


def _path(name: str, room: int, look: Look) -> Clean:
    return fit_end(clean_line(name), room, own(look.glyphs.ellipsis))


def _diff(change: WorktreeChange, look: Look) -> Sequence[Line]:
    if change.why:
        return (note_line(change.why, look),)
    if change.old == change.new:
        modes = f"permissions {change.before.mode:o} to {change.after.mode:o}"
        return (note_line(modes, look),)
    is_new = change.old is None
    diff = content_diff(change.name, change.old or "", change.new or "", is_new=is_new)
    body = draw_diff(diff, look, folded=False)
    return body.lines or (note_line(body.note, look),)


# --- comparison --------------------------------------------------------------------------------


def compared_lines(files: Sequence[ComparedFile], left: str, right: str, look: Look) -> Sequence[Line]:
    """Return the lines that compare two worktrees' changes, file by file.

    There are two columns if there is room for them. `left`, `right`: the worktrees' headings.
    """
    if not files:
        return (note_line("No changes in either worktree.", look),)
    if look.width < SIDE_BY_SIDE:
        return tuple(_one_below_the_other(files, left, right, look))
    half = look.narrowed(look.width - (look.width - 3) // 2)
    return (
        *_columns([_words(left, half, Role.ACCENT)], [_words(right, half, Role.ACCENT)], half, look),
        *(line for each in files for line in _beside(each, half, look)),
    )


def _beside(file: ComparedFile, half: Look, look: Look) -> Iterator[Line]:
    yield BLANK
    if file.same and file.left is not None:
        yield _same(file.left, look)
        return
    yield from _columns(_side(file.left, half), _side(file.right, half), half, look)


def _same(change: WorktreeChange, look: Look) -> Line:
    words = "  identical in both"
    name = _path(change.name, look.width - len(words), look)
    return Line(styled(own(f"{name}{words}"), look[Role.MUTED]))


def _side(change: WorktreeChange | None, look: Look) -> Sequence[Line]:
    return (note_line("not changed", look),) if change is None else tuple(_file(change, look))


def _columns(left: Sequence[Line], right: Sequence[Line], half: Look, look: Look) -> Iterator[Line]:
    """Yield the lines of two columns side by side.

    `half`: the look of one column.
    """
    between = Piece(own(f" {look.glyphs.side} "), look[Role.BORDER])
    for one, other in zip_longest(left, right, fillvalue=BLANK):
        room = half.width - width_of(one.pieces)
        fill = Piece(own(" " * max(0, room)), one.ground or look[Role.TEXT])
        yield Line((*_grounded(one), fill, between, *_grounded(other)))


def _grounded(line: Line) -> Pieces:
    """Return a line's pieces, with the line's own background as part of each style.

    Otherwise the background of a `Line` would fill the full width and cover both columns.
    """
    ground = line.ground
    if ground is None:
        return line.pieces
    return tuple(Piece(each.text, ground + each.style) for each in line.pieces)


def _one_below_the_other(files: Sequence[ComparedFile], left: str, right: str, look: Look) -> Iterator[Line]:
    for file in files:
        if file.same and file.left is not None:
            yield _same(file.left, look)
        else:
            for name, change in ((left, file.left), (right, file.right)):
                yield _words(name, look, Role.ACCENT)
                yield from _side(change, look)
        yield BLANK
