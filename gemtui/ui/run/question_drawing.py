"""Rendering of a tool call that awaits the user's answer, without hiding anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gemtui.runs.gate.proposal import Caution, Form, Proposal
from gemtui.text import Clean, counted, visible, visible_line
from gemtui.ui.draw.bounds import LINES, bounded_excerpt, line_count
from gemtui.ui.draw.code import language_of
from gemtui.ui.draw.gutter_rows import GutterRow, note_line, text_rows, wrapped_rows
from gemtui.ui.draw.lines import Line, Piece, Pieces, flat, own, wrap
from gemtui.ui.draw.theme import BOLD, UNDERLINE, Look, Role
from gemtui.ui.transcript.diff import change_counts, draw_changes, read_diff

LONGEST = 20_000
"""How many characters of a command or its arguments to show; enter shows the rest."""
_LONGEST_OTHER = 1000
"""How many characters to show of arguments other than the command or change."""
_FEW = 3
"""Up to this number, warnings are shown without a line that counts them."""
_MOST_CAUTIONS = 100
"""Maximum number of warnings; the command itself also marks its dangerous parts."""


class Drawing(NamedTuple):
    """A rendered call.

    `left_out`: words that say what isn't shown, or "" if everything is.
    """

    lines: Sequence[Line]
    left_out: str = ""


def draw_proposal(proposal: Proposal, cautions: Sequence[Caution], project: Path, look: Look) -> Drawing:
    """Render the warnings about a call, followed by everything the call would do.

    `project`: the absolute path of the run's folder, used to recognize paths and commands outside
    it.
    """
    lines = list(_cautions(cautions, look))
    if proposal.form is Form.COMMAND:
        drawing = _command(proposal, project, look)
    elif proposal.diff is not None:
        drawing = _file(proposal, project, look)
    else:
        drawing = _arguments(proposal, look)
    missing = [drawing.left_out] if drawing.left_out else []
    lines += drawing.lines
    for name, value in proposal.others():
        words = visible(value[:_LONGEST_OTHER]).replace("\n", look.glyphs.line_end)
        lines += wrap((Piece(visible(f"{name}: {words}"), look[Role.MUTED]),), look.width)
        if len(value) > _LONGEST_OTHER:
            more = counted(len(value) - _LONGEST_OTHER, "more character")
            missing.append(visible_line(f"{more} of {name}"[:200]))
    left_out = ", ".join(missing)
    if left_out:
        lines.append(note_line(f"not shown: {left_out}; press enter to see everything", look))
    return Drawing(lines, left_out)


def _cautions(cautions: Sequence[Caution], look: Look) -> Iterator[Line]:
    mark = look.glyphs.warning
    if len(cautions) > _FEW:
        words = Piece(own(f"{mark} {counted(len(cautions), 'warning')}:"), look[Role.ERROR] + BOLD)
        yield from wrap((words,), look.width)
    for each in cautions[:_MOST_CAUTIONS]:
        why = look[Role.TEXT] if each.piece else look[Role.ERROR if each.danger else Role.WARNING]
        sign = look[Role.ERROR] + BOLD if each.danger else look[Role.WARNING]
        pieces = [Piece(own(f"{mark} "), sign)]
        if each.piece:
            pieces.append(Piece(visible_line(each.piece), look[Role.ERROR]))
        pieces.append(Piece(visible_line(f": {each.why}" if each.piece else each.why), why))
        yield from wrap(tuple(pieces), look.width)
    if len(cautions) > _MOST_CAUTIONS:
        more = counted(len(cautions) - _MOST_CAUTIONS, "more warning")
        yield note_line(f"{more}, marked in the command", look)


# --- files ---------------------------------------------------------------------------------------


def _file(proposal: Proposal, project: Path, look: Look) -> Drawing:
    assert proposal.diff is not None
    path = Piece(visible_line(proposal.place(project)), look[Role.TEXT] + BOLD)
    counts = change_counts(proposal.diff.added, proposal.diff.removed, look)
    lines = wrap((path, Piece(own("  "), look[Role.TEXT]), *counts), look.width)
    shown = bounded_excerpt(proposal.diff.diff, head=LINES, tail=0, cleaned=visible)
    changes = read_diff(shown.head)
    language = language_of(flat((proposal.diff.name or proposal.diff.path)[-200:]))
    lines += draw_changes(changes, look, language=language)
    for words in proposal.line_ends:
        lines += wrap((Piece(own(f"  {words}"), look[Role.WARNING]),), look.width)
    missing = [counted(shown.left_out, "more line")] if shown.left_out else []
    if shown.cut:
        missing.append("the ends of very long lines")
    return Drawing(lines, ", ".join(missing))


# --- commands and arguments ----------------------------------------------------------------------


def _command(proposal: Proposal, project: Path, look: Look) -> Drawing:
    """Render a command with its dangerous parts marked.

    If the command would run outside the project's folder, the folder where it would run is shown
    above it.
    """
    lines: list[Line] = []
    if folder := proposal.folder(project):
        lines += wrap((Piece(visible_line(f"in {folder}"), look[Role.WARNING]),), look.width)
    for index, pieces in enumerate(_lines(_marked(proposal, look))):
        gutter = (Piece(own("  " if index else "$ "), look[Role.MUTED]),)
        lines += wrapped_rows([GutterRow(gutter, pieces)], look)
    return Drawing(lines, _rest(proposal.text))


def _marked(proposal: Proposal, look: Look) -> Iterator[Piece]:
    text, at = proposal.text[:LONGEST], 0
    strong = look[Role.ERROR] + BOLD + UNDERLINE
    for danger in proposal.dangers:
        start, end = max(at, danger.start), min(danger.end, LONGEST)
        if start < end:
            yield Piece(visible(text[at:start]), look[Role.TEXT])
            yield Piece(visible(text[start:end]), strong)
            at = end
    yield Piece(visible(text[at:]), look[Role.TEXT])


def _lines(pieces: Iterator[Piece]) -> Iterator[Pieces]:
    line: list[Piece] = []
    for text, style in pieces:
        first, *more = text.expandtabs(4).split("\n")
        line.append(Piece(Clean(first), style))
        for each in more:
            yield tuple(line)
            line = [Piece(Clean(each), style)]
    yield tuple(line)


def _arguments(proposal: Proposal, look: Look) -> Drawing:
    text = proposal.text[:LONGEST]
    lines = text_rows(text, look, folded=False, language=own("json")).lines
    left_out = _rest(proposal.text)
    if not left_out and (more := line_count(text) - LINES) > 0:
        left_out = counted(more, "line")
    return Drawing(lines, left_out)


def _rest(text: str) -> str:
    return counted(len(text) - LONGEST, "more character") if len(text) > LONGEST else ""


def whole_text(proposal: Proposal, cautions: Sequence[Caution]) -> str:
    """Return everything a call would do as one string, preceded by its warnings."""
    lines: list[str] = [visible_line(each.text) for each in cautions]
    if proposal.diff is not None:
        lines += [visible_line(proposal.diff.path), "", proposal.diff.diff.rstrip("\n")]
        lines += proposal.line_ends
    else:
        lines += ["", proposal.text] if lines else [proposal.text]
    others = [f"{name}: {value}" for name, value in proposal.others()]
    return "\n".join((*lines, *([""] if others else []), *others))
