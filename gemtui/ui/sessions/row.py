"""Rendering of the session list's rows as one or two lines (pure functions).

If the list is a narrow pane, a row has two lines: title and age, then the facts. If the list is
wide enough, a row is a single line with columns, whose headings are above the list. What doesn't
fit is left out in a fixed order, but never the symbol, the title or a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from rich.style import Style
from textual.strip import Strip

from gemtui.agents import WORDS
from gemtui.calls.paths import recorded_path, separator
from gemtui.extension.live import AT_WORK, LiveState
from gemtui.sessions.catalog.columns import (
    COLUMNS,
    FAILURES,
    PROMPTS,
    TOOLS,
    Column,
    Sort,
    sorted_by,
)
from gemtui.sessions.catalog.entries import ListEntry, ListQuery, SessionRow
from gemtui.sessions.catalog.listing import DayHeading, Days, Heading, Row
from gemtui.sessions.catalog.summary import NO_TITLE, Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.text import ellipsis, relative
from gemtui.ui.draw.formats import short_count
from gemtui.ui.draw.lines import Line, Piece, Pieces, cut, flat, spread, strip_of, width_of
from gemtui.ui.draw.theme import BOLD, Look, Role
from gemtui.ui.sessions.live import STATE_WORDS, live_glyph

ONE_LINE_FROM = 64
"""Width in cells from which the list shows each session on one line, with columns."""
TOOLS_FROM, ALL_COLUMNS_FROM = 84, 110
LEAST_TITLE = 20
"""Width in cells of the title that a row's states leave free."""
MATCH_ROOM = 32
"""Maximum width in cells of a match shown in addition to the row's usual contents."""
IN_FLIGHT = "tool active"
_GAP = Piece("  ", Style())
_MARGIN = Piece(" ", Style())


class RowContext(Struct, frozen=True, kw_only=True):
    """Everything besides the row itself that affects how it is rendered.

    `query`: the search whose matches are highlighted. `projects`: whether to show the session's
    project, which is unnecessary under a project heading, or if all rows have the same project.
    `sort`: the property that the rows are sorted by, which every row shows. `days`: the names of
    days if the list has day headings, or None. `chosen`: whether the cursor is on the row.
    `selected`: whether the row is selected. `focused`: whether the list has the focus. `agents`:
    whether rows say which agent's the session is. `live`: what the session is doing, or None if
    unknown.
    """

    query: ListQuery
    projects: bool = True
    sort: Sort = Sort.UPDATED
    days: Days | None = None
    chosen: bool = False
    selected: bool = False
    focused: bool = False
    agents: bool = False
    live: LiveState | None = None


def row_heights(rows: Sequence[object], width: int) -> list[int]:
    """Return how many lines each row takes in a list that is `width` cells wide."""
    of_session = 1 if width >= ONE_LINE_FROM else 2
    return [of_session if isinstance(row, SessionRow) else 1 for row in rows]


def draw_row(row: Row, look: Look, around: RowContext, height: int) -> tuple[Strip, ...]:
    """Return a row's lines, each exactly `look.width` cells wide.

    `height`: 1, or 2 for a session. It isn't derived from the width, because the list may briefly
    have a different width from the one its rows were laid out for.
    """
    if isinstance(row, Heading):
        return (_heading(row, look, around),)
    if isinstance(row, DayHeading):
        return (_day(row, look),)
    if height == 1:
        return (_columns(row, look, around),)
    return _title_line(row, look, around), _facts_line(row, look, around)


# --- common parts ----------------------------------------------------------------------------


def _line(left: Pieces, right: Pieces, look: Look) -> Strip:
    """Return a line with parts at both ends; `left` is cut if there isn't enough room."""
    room = max(0, look.width - width_of(right) - 1)
    fitting = cut(left, look, room)
    strip = strip_of(Line(spread(fitting, (*right, _MARGIN), look.width, _MARGIN)), look.width)
    return strip.adjust_cell_length(look.width)


def _marked(text: str, style: Style, around: RowContext, look: Look) -> Pieces:
    """Return `text` with the search's matches highlighted."""
    pieces: list[Piece] = []
    at = 0
    for start, end in around.query.spans(text):
        pieces.append(Piece(text[at:start], style))
        pieces.append(Piece(text[start:end], style + look[Role.MATCH]))
        at = end
    return (*pieces, Piece(text[at:], style))


def _front(row: SessionRow, look: Look, around: RowContext, sign: Piece | None = None) -> Pieces:
    """Return the start of a row's line: cursor bar, symbol, and indent of a child row.

    `sign`: the symbol; None on a row's second line.
    """
    indent = "  " * (row.depth - 1) + f"{look.glyphs.bottom_left} " if row.depth else ""
    shown = Piece(indent if sign else " " * len(indent), look[Role.BORDER])
    return (_bar(look, around), sign or _MARGIN, _MARGIN, shown)


def _bar(look: Look, around: RowContext) -> Piece:
    role = Role.CURSOR if around.focused else Role.MUTED
    return Piece(look.glyphs.cursor, look[role]) if around.chosen else _MARGIN


def _sign(summary: Summary, look: Look, live: LiveState | None) -> Piece:
    glyphs, flags = look.glyphs, summary.flags
    if live in AT_WORK:
        return Piece(live_glyph(live, glyphs), look[STATE_WORDS[live][1]])
    if Flag.KEPT in flags:
        return Piece(glyphs.kept, look[Role.MODEL])
    if not flags.isdisjoint(_WARNED):
        return Piece(glyphs.warning, look[Role.WARNING])
    if summary.ended_badly:
        return Piece(glyphs.failed, look[Role.ERROR])
    if live in STATE_WORDS:
        return Piece(live_glyph(live, glyphs), look[STATE_WORDS[live][1]])
    if Flag.LIVE in flags and live is None:
        return Piece(glyphs.running, look[Role.SUCCESS])
    return Piece(" ", Style())


_WARNED = frozenset({Flag.FAILED_PROMPT, Flag.TORN, Flag.BURIED})


def _title(row: SessionRow, look: Look, around: RowContext) -> Pieces:
    style = look[Role.MUTED if row.entry.hidden else Role.TEXT]
    if around.selected:
        style = look[Role.ACCENT]
    title = _marked(row.entry.title, style + BOLD if around.chosen else style, around, look)
    selected = (Piece(f"{look.glyphs.selected} ", style),) if around.selected else ()
    pin = Piece(f"{look.glyphs.pinned} ", look[Role.ACCENT])
    letter = Piece(f"{WORDS[row.entry.summary.agent].letter} ", look[Role.MUTED])
    agent = (letter,) if around.agents else ()
    return (*agent, *selected, *((pin,) if row.entry.pinned else ()), *title)


def _age(row: SessionRow, look: Look, around: RowContext) -> str:
    """Return how long ago a session was used.

    If the list is sorted by start time, this is how long ago it was started.
    """
    summary = row.entry.summary
    when = summary.started if around.sort is Sort.STARTED else summary.when
    apart = row.depth or row.entry.pinned  # may not belong to the heading's day
    return "?" if when is None else _moment(when, look, None if apart else around.days)


def _moment(when: datetime, look: Look, days: Days | None) -> str:
    """Return an age or, under the heading of an earlier day, only the time of day."""
    if days is None or when.astimezone(days.tz).date() >= days.today:
        return relative(when, look.now)
    return f"{when.astimezone(days.tz):%H:%M}"


# --- two lines -------------------------------------------------------------------------------


def _title_line(row: SessionRow, look: Look, around: RowContext) -> Strip:
    front = _front(row, look, around, _sign(row.entry.summary, look, around.live))
    began = "began " if around.sort is Sort.STARTED else ""
    age = Piece(f"  {began}{_age(row, look, around):>3}", look[Role.MUTED])
    return _line((*front, *_title(row, look, around)), (age,), look)


class RowFact(Struct, frozen=True):
    """A fact on a row's second line.

    `rank`: if there is too little room, facts with the highest rank are left out first. Facts of
    rank 0 are always shown.
    """

    rank: int
    text: str
    style: Style


def _facts_line(row: SessionRow, look: Look, around: RowContext) -> Strip:
    front = _front(row, look, around)
    dot = Piece(f" {look.glyphs.dot} ", look[Role.MUTED])
    pieces: list[Piece] = []
    for fact in _that_fit(_facts(row.entry, look, around), look.width - width_of(front) - 1):
        pieces += [dot] if pieces else []
        pieces += _marked(fact.text, fact.style, around, look)
    return _line((*front, *pieces), (), look)


def _facts(entry: ListEntry, look: Look, around: RowContext) -> list[RowFact]:
    summary, muted, sort = entry.summary, look[Role.MUTED], around.sort
    projects = around.projects or sort is Sort.PROJECT
    facts = [
        *_states(entry, look, around),
        RowFact(0 if sort is Sort.PROJECT else 1, entry.project if projects else "", muted),
        *(RowFact(3 if at else 2, tag, muted) for at, tag in enumerate(entry.tags)),
        RowFact(5, _models(entry), muted),
    ]
    for column in COLUMNS:
        rank = 0 if column.sort is sort else column.rank
        facts.append(RowFact(rank, *_count(column, summary, look, around)))
    return [fact for fact in facts if fact.text]


def _that_fit(facts: list[RowFact], room: int) -> list[RowFact]:
    """Return the facts that fit, leaving out those with the highest rank first."""
    for rank in range(6, 0, -1):
        if _length(facts) > room:
            facts = [fact for fact in facts if fact.rank != rank]
    return facts


def _length(facts: Iterable[RowFact]) -> int:
    return sum(width_of([Piece(fact.text, fact.style)]) + 3 for fact in facts) - 3


def _states(entry: ListEntry, look: Look, around: RowContext) -> list[RowFact]:
    """Return words for a session's states.

    These are needed because no state is shown only by a symbol.
    """
    summary = entry.summary
    facts = []
    if (unseen := _unseen_match(entry, look, around.query)) is not None:
        facts.append(RowFact(0, unseen, look[Role.MUTED]))
    if entry.archived:
        facts.append(RowFact(0, "archived", look[Role.MODEL]))
    if summary.kind is not SessionKind.MAIN:
        facts.append(RowFact(0, summary.kind.value, look[Role.MODEL]))
    if told := STATE_WORDS.get(around.live) if around.live else None:
        facts.append(RowFact(0, told[0], look[told[1]]))
    for flag, role in _FLAG_ROLES.items():
        if around.live and flag is Flag.LIVE:
            continue
        if flag in summary.flags and not _goes_without_saying(flag, summary):
            facts.append(RowFact(0, flag.word, look[role]))
    if summary.waits and Flag.LIVE in summary.flags and not around.live:
        facts.append(RowFact(0, IN_FLIGHT, look[Role.SUCCESS]))
    return facts


def _goes_without_saying(flag: Flag, summary: Summary) -> bool:
    if flag is Flag.DUPLICATE:
        return Flag.GHOST in summary.flags
    return flag is Flag.EMPTY and summary.title == NO_TITLE


_FLAG_ROLES = {
    Flag.LIVE: Role.SUCCESS,
    Flag.KEPT: Role.MODEL,
    Flag.FAILED_PROMPT: Role.WARNING,
    Flag.NOT_RESUMABLE: Role.WARNING,
    Flag.TORN: Role.WARNING,
    Flag.BURIED: Role.WARNING,
    Flag.GHOST: Role.MODEL,
    Flag.EMPTY: Role.MODEL,
    Flag.DUPLICATE: Role.MODEL,
}


def _unseen_match(entry: ListEntry, look: Look, query: ListQuery) -> str | None:
    """Return text that matches the search, unless the row already shows a match.

    Returns None if the row shows a match, or if there is none.
    """
    shown = "\n".join((entry.title, entry.project, *entry.models, *entry.tags))
    if not query.wanted or query.spans(shown):
        return None
    for line in entry.unseen:
        if spans := query.spans(line):
            start = max(0, min(spans[0][0] - MATCH_ROOM // 4, len(line) - MATCH_ROOM))
            front = look.glyphs.ellipsis if start else ""
            return ellipsis(front + line[start:], MATCH_ROOM, mark=look.glyphs.ellipsis)
    return flat(f"id {entry.summary.id}") if query.spans(entry.summary.id) else None


def _models(entry: ListEntry) -> str:
    if len(entry.models) < 2:
        return "".join(entry.models)
    return f"{entry.models[-1]} +{len(entry.models) - 1}"


def _count(column: Column, summary: Summary, look: Look, around: RowContext) -> tuple[str, Style]:
    """Return a number with what it counts, such as "12 tools", and its style.

    The words are "" for an unknown number and mostly for zero, unless the rows are sorted by it.
    """
    role = Role.ERROR if column.failures and summary.ended_badly else Role.MUTED
    asked = column.sort is around.sort
    one, several = column.words
    number = column.known(summary)
    if number is None:
        sign = look.glyphs.ellipsis if column.pending and summary.partial else "?" if asked else ""
        return (f"{sign} {several}" if sign else ""), look[Role.MUTED]
    if not number:
        return (f"0 {several}" if asked or column.zero else ""), look[Role.MUTED]
    if not column.short:
        return f"{number:,} {one if number == 1 else several}", look[role]
    coarse = 9_950 <= number < 999_500
    return f"{f'{number / 1000:.0f}k' if coarse else short_count(number)} {several}", look[role]


# --- one line --------------------------------------------------------------------------------


def _columns(row: SessionRow, look: Look, around: RowContext) -> Strip:
    """Return a row as a single line: states after the title, columns on the right."""
    right = _right_columns(row, look, around)
    title = _title(row, look, around)
    front = _front(row, look, around, _sign(row.entry.summary, look, around.live))
    room = max(0, look.width - width_of((*front, *right)) - 1)
    states: Pieces = ()
    for fact in _states(row.entry, look, around):
        states += (_GAP, *_marked(fact.text, fact.style, around, look))
    states = cut(states, look, max(0, room - min(LEAST_TITLE, width_of(title))))
    title = cut(title, look, room - width_of(states))
    tags = _tags(row.entry, room - width_of((*title, *states)), look, around)
    return _line((*front, *title, *states, *tags), right, look)


def _tags(entry: ListEntry, room: int, look: Look, around: RowContext) -> Pieces:
    """Return as many tags as there is room for."""
    pieces: list[Piece] = []
    for tag in entry.tags:
        more = (_GAP, *_marked(tag, look[Role.MUTED], around, look))
        if width_of([*pieces, *more]) > room:
            break
        pieces += more
    return tuple(pieces)


def _right_columns(row: SessionRow, look: Look, around: RowContext) -> Pieces:
    entry = row.entry
    pieces: list[Piece] = []
    if _names_projects(around):
        pieces += _word(entry.project, _project_room(look), look, around)
    if look.width >= ALL_COLUMNS_FROM:
        pieces += _word(_models(entry), _MODEL_ROOM, look, around)
    for column in _columns_of(look.width, around.sort):
        text, style = _count(column, entry.summary, look, around)
        pieces.append(Piece(f"{text.partition(' ')[0]:>{_room_of(column)}}", style))
    age = f"{_age(row, look, around):>{_age_room(around)}}"
    return (*pieces, Piece(age, look[Role.MUTED]))


def draw_heads(look: Look, around: RowContext) -> Pieces:
    """Return the headings of the columns on the right of single-line rows.

    `around`: the context of any row.
    """
    heads = [f"  {'project':<{_project_room(look)}}"] if _names_projects(around) else []
    if look.width >= ALL_COLUMNS_FROM:
        heads.append(f"  {'model':<{_MODEL_ROOM}}")
    for column in _columns_of(look.width, around.sort):
        heads.append(f"{column.words[1]:>{_room_of(column)}}")
    heads.append(f"{'began' if around.sort is Sort.STARTED else 'used':>{_age_room(around)}} ")
    return (Piece("".join(heads), look[Role.MUTED]),)


_MODEL_ROOM = 14


def _names_projects(around: RowContext) -> bool:
    return around.projects or around.sort is Sort.PROJECT


def _project_room(look: Look) -> int:
    return 10 if look.width < 90 else 16


def _room_of(column: Column) -> int:
    return len(column.words[1]) + 2


def _age_room(around: RowContext) -> int:
    return 7 if around.days is None else 8


def _columns_of(width: int, sort: Sort) -> list[Column]:
    """Return the columns for which a list has room; always the one it is sorted by."""
    by = sorted_by(sort)
    columns: tuple[Column, ...] = (
        COLUMNS if width >= ALL_COLUMNS_FROM else (PROMPTS, TOOLS, FAILURES)
    )
    if by is not None and by not in columns:
        columns = (PROMPTS, by, FAILURES)
    if width < TOOLS_FROM:
        columns = (PROMPTS if by in (None, FAILURES) else by, FAILURES)
    return sorted(columns, key=lambda column: column.failures)


def _word(text: str, width: int, look: Look, around: RowContext) -> Pieces:
    marked = _marked(text, look[Role.MUTED], around, look)
    return (_GAP, *spread(cut(marked, look, width), (), width, _MARGIN))


# --- headings --------------------------------------------------------------------------------


def _heading(row: Heading, look: Look, around: RowContext) -> Strip:
    fold = look.glyphs.folded if row.folded else look.glyphs.unfolded
    number = Piece(f"{row.count:>3}", look[Role.MUTED])
    style = look[Role.HEADING]
    name = _end_of_path(row.name, look.width - width_of((_GAP, number)) - 4, style, look)
    front = (_bar(look, around), Piece(f"{fold} ", look[Role.MUTED]))
    return _line((*front, name), (_GAP, number), look)


def _day(row: DayHeading, look: Look) -> Strip:
    number = Piece(f"{row.count:>3,}", look[Role.MUTED])
    return _line((_MARGIN, _GAP, Piece(row.name, look[Role.HEADING])), (_GAP, number), look)


def _end_of_path(path: str, width: int, style: Style, look: Look) -> Piece:
    """Return a path; if it doesn't fit, folders are cut from its start."""
    slash = separator(recorded_path(path))
    piece, parts = Piece(path, style), path.split(slash)
    while width_of([piece]) > width and len(parts) > 1:
        parts = parts[1:]
        piece = Piece(slash.join((look.glyphs.ellipsis, *parts)), style)
    return piece
