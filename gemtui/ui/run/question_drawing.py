"""A call that waits for a person, drawn: all of it, and nothing that can hide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemtui.runs.proposal import Form, Proposal
from gemtui.text import HOLDS_CONTROLS, Clean, clean_line, counted, visible, visible_line
from gemtui.transcript.tools import args_hold_controls, asked_path
from gemtui.ui.draw.gutter_rows import Row, remark, text_rows, whole
from gemtui.ui.draw.lines import Line, Piece, Pieces, own, wrap
from gemtui.ui.draw.theme import BOLD, UNDERLINE, Look, Role
from gemtui.ui.transcript.card_body import draw_diff

LONGEST = 20_000
"""Characters of a command or of arguments that are drawn here; `enter` shows all."""
_LONGEST_OTHER = 1000
"""Characters of an argument that stands beside the command or the change."""


def draw_proposal(proposal: Proposal, look: Look) -> Sequence[Line]:
    """What the call would do, then what there is to say of it."""
    return list(_drawn(proposal, look))


def _drawn(proposal: Proposal, look: Look) -> Iterator[Line]:
    glyphs, warning = look.glyphs, look[Role.WARNING]
    if args_hold_controls(proposal.arguments):
        yield from wrap((Piece(own(f"{glyphs.warning} {HOLDS_CONTROLS}"), warning),), look.width)
    if proposal.form is Form.COMMAND:
        yield from _command(proposal, look)
    elif proposal.diff is not None:
        yield from _file(proposal, look)
    else:
        yield from text_rows(
            proposal.text[:LONGEST], look, folded=False, language=own("json")
        ).lines
        yield from _rest(proposal.text, look)
    for name, value in proposal.others():
        words = visible(value[:_LONGEST_OTHER]).replace("\n", look.glyphs.line_end)
        yield from wrap((Piece(visible(f"{name}: {words}"), look[Role.MUTED]),), look.width)


def _file(proposal: Proposal, look: Look) -> Iterator[Line]:
    assert proposal.diff is not None
    path = Piece(visible(asked_path(proposal.arguments)), look[Role.TEXT] + BOLD)
    counts = [
        Piece(own(f"  {sign}{count}"), look[role])
        for sign, count, role in (
            (look.glyphs.added, proposal.diff.added, Role.ADDED),
            (look.glyphs.removed, proposal.diff.removed, Role.REMOVED),
        )
        if count
    ]
    yield from wrap((path, *counts), look.width)
    for words in proposal.remarks:
        pieces = Piece(visible_line(f"{look.glyphs.warning} {words}"), look[Role.WARNING])
        yield from wrap((pieces,), look.width)
    yield from draw_diff(proposal.diff, look, folded=False).lines


def _command(proposal: Proposal, look: Look) -> Iterator[Line]:
    """The command with what is dangerous in it marked, and why below."""
    for index, pieces in enumerate(_lines(_marked(proposal, look))):
        gutter = (Piece(own("  " if index else "$ "), look[Role.MUTED]),)
        yield from whole([Row(gutter, pieces)], look)
    yield from _rest(proposal.text, look)
    for danger in proposal.dangers[:10]:
        what = visible_line(proposal.text[danger.start : danger.end][:60])
        pieces = (
            Piece(own(f"{look.glyphs.warning} "), look[Role.ERROR] + BOLD),
            Piece(what, look[Role.ERROR]),
            Piece(clean_line(f": {danger.why}"), look[Role.TEXT]),
        )
        yield from wrap(pieces, look.width)


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


def _rest(text: str, look: Look) -> Iterator[Line]:
    if len(text) > LONGEST:
        left = counted(len(text) - LONGEST, "more character")
        yield remark(f"{left}: enter shows all of it", look)


def whole_text(proposal: Proposal) -> str:
    """Return all of a call as text: the change, the command, or the arguments."""
    if proposal.diff is None:
        return proposal.text
    return "\n".join((proposal.diff.path, *proposal.remarks, "", proposal.diff.diff))
