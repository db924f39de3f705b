"""The screen with usage statistics: totals, tables with bars, hours of the week."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType

from gemtui.errors import ConfigError
from gemtui.sessions.catalog.counted import counted_sessions
from gemtui.sessions.catalog.summary import Summary
from gemtui.stats.kept import KeptStats
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import OWN_COUNT, Stats, Sums
from gemtui.text import cells, clean_line, counted, ellipsis, short_path
from gemtui.ui.draw.lines import BLANK, Line, Piece, Pieces, wrap
from gemtui.ui.draw.theme import Glyphs, Look, Role
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.kit.reading import Reading
from gemtui.ui.kit.screens import FullScreen
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.list import scope_label
from gemtui.ui.sessions.scoped_screen import SPANS, scope_parts, since

_STEP = 0.5
"""Seconds between two updates of the screen while sessions are being read.

If all sessions are in the cache, reading takes less than this, so nothing partial is shown.
"""

_ROWS = 10
"""Maximum number of rows in a table, except the table of days, which has `_DAYS`."""
_DAYS = 14
_NAME, _BAR = 32, 40
"""Maximum widths in cells of a name and of a bar."""
_WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_SHADES = " ░▒▓█"
_PLAIN_SHADES = " .:*#"


class StatsScreen(FullScreen[None]):
    """A screen with usage statistics, which shows partial results while reading.

    `home`: Gemini CLI's folder. `project`: the project that the statistics can be limited to, or
    None. `everywhere`: whether they begin with all projects.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.STATS)

    def __init__(
        self, sessions: Sequence[Summary], home: Path, project: Path | None, *, everywhere: bool
    ) -> None:
        super().__init__()
        self._sessions, self._home, self._project = sessions, home, project
        self._everywhere = everywhere or project is None
        self._span = 0

    def compose(self) -> ComposeResult:
        yield from self.framed(LineView(what="numbers"))

    def on_mount(self) -> None:
        self.query_one(LineView).focus()
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        reading = self.begin_reading(every=_STEP)
        self._update_header()
        self.query_one(LineView).show(lambda _look: ())
        prices, problem = None, ""
        try:
            prices = await asyncio.to_thread(load_prices)
        except ConfigError as error:
            problem = f"No costs are shown: {error}"
        await asyncio.to_thread(self._sum_up, prices, reading, problem)

    def _sum_up(self, prices: Prices | None, reading: Reading, problem: str) -> None:
        """Add up the sessions, showing partial results and finally the complete ones.

        `problem`: why there are no prices; "" if there are. Blocking: call this on a background
        thread.
        """
        project = None if self._everywhere else self._project
        sessions = counted_sessions(self._sessions, project)
        sums = KeptStats(
            self._home,
            self.gemtui.start.cache,
            sessions,
            prices,
            since=since(self._span, self.gemtui.clock()),
        )
        for number in sums.count(reading.is_stopped):
            if reading.is_due():
                words = f"{number:,} of {len(sessions):,} sessions read"
                reading.show(self._show, sums.stats(), words, False)
        unread = len(sums.problems)
        missing = f"{counted(unread, 'session')} can't be read" if unread else ""
        words = clean_line("; ".join(filter(None, (problem, missing))))
        reading.show(self._show, sums.stats(), words, True)

    def _show(self, stats: Stats, words: str, whole: bool) -> None:
        self.show_status(words)
        if stats.total.sessions:
            self.query_one(LineView).show(lambda look: draw_stats(stats, look))
        elif whole:
            scope = "" if self._everywhere else ", or a to show all projects"
            self.show_status(f"No activity in this period. Press w to change it{scope}.")

    def _update_header(self) -> None:
        project = None if self._everywhere else self._project
        self.header.show_parts(scope_parts("Stats", project, self.gemtui.glyphs, self._span))

    def can(self, action: str) -> bool:
        """Return False for "scope" if there is no project."""
        return action != "scope" or self._project is not None

    def key_label(self, action: str) -> str | None:
        """Return what the key for the scope does now, or None for any other action."""
        return scope_label(everywhere=self._everywhere) if action == "scope" else None

    def action_scope(self) -> None:
        self._everywhere = not self._everywhere
        self._read()

    def action_span(self) -> None:
        self._span = (self._span + 1) % len(SPANS)
        self._read()


class _Column(NamedTuple):
    head: str
    cell: Callable[[Sums], str]


def number(count: int | None) -> str:
    """Return a count in a short form such as 12.3k or 4.5M; "?" for None (unknown)."""
    if count is None:
        return "?"
    for unit, size, least in (("G", 1e9, 1e9), ("M", 1e6, 1e6), ("k", 1e3, 1e4)):
        if count >= least:
            return f"{count / size:,.1f}{unit}"
    return f"{count:,}"


_TOKENS = _Column("tokens", lambda sums: number(sums.usage.total if sums.answers else 0))
_CACHED = _Column("cached", lambda sums: number(sums.usage.cached if sums.answers else 0))
_COST = _Column("cost", lambda sums: sums.dollars)
_SESSIONS = _Column("sessions", lambda sums: f"{sums.sessions:,}")
_PROMPTS = _Column("prompts", lambda sums: f"{sums.prompts:,}")
_ANSWERS = _Column("answers", lambda sums: f"{sums.answers:,}")
_CALLS = _Column("calls", lambda sums: f"{sums.calls.total():,}")
_FAILED = _Column("failed", lambda sums: f"{sum(sums.failures.values()):,}")


def draw_stats(stats: Stats, look: Look) -> list[Line]:
    """Return the statistics as lines for a screen that is `look.width` cells wide."""
    return list(_lines(stats, look))


def _lines(stats: Stats, look: Look) -> Iterator[Line]:
    yield from _totals(stats, look)
    projects = {_project(key): each for key, each in stats.projects.items()}
    usual = (_TOKENS, _COST, _SESSIONS, _PROMPTS, _CALLS, _FAILED)
    yield from _table("Days", _days(stats), usual, look, _tokens, rows=_DAYS)
    months = {f"{day:%B %Y}": stats.months[day] for day in sorted(stats.months, reverse=True)}
    yield from _table("Months", months, usual, look, _tokens)
    yield from _hours(stats, look)
    yield from _table("Projects", _most(projects, _tokens), usual, look, _tokens)
    models = (_TOKENS, _CACHED, _COST, _ANSWERS, _SESSIONS)
    yield from _table("Models", _most(stats.models, _tokens), models, look, _tokens)
    tools = (_CALLS, _FAILED, _SESSIONS)
    yield from _table("Tools", _most(stats.tools, _calls), tools, look, _calls)
    if stats.total.priced and stats.prices is not None:
        yield BLANK
        words = (
            f"Costs are estimates based on list prices as of {stats.prices.date}. "
            "A + means that a part is unknown: a model has no price, or an answer no token count."
        )
        yield from wrap((Piece(words, look[Role.MUTED]),), look.width)


def _tokens(sums: Sums) -> int:
    return sums.usage.total or 0


def _calls(sums: Sums) -> int:
    return sums.calls.total()


def _most(groups: Mapping[str, Sums], of: Callable[[Sums], int]) -> dict[str, Sums]:
    return dict(sorted(groups.items(), key=lambda pair: -of(pair[1])))


def _project(key: str) -> str:
    return short_path(Path(key)) if Path(key).is_absolute() else key


def _days(stats: Stats) -> dict[str, Sums]:
    """Return the totals of the last days with activity, by the days' names."""
    return {_day(day): stats.days[day] for day in sorted(stats.days, reverse=True)}


def _day(day: date) -> str:
    return f"{_WEEK[day.weekday()]} {day}"


def _totals(stats: Stats, look: Look) -> Iterator[Line]:
    total, usage, muted = stats.total, stats.total.usage, look[Role.MUTED]
    facts = (
        (counted(total.sessions, "session"), counted(total.prompts, "prompt")),
        (
            f"{number(usage.total)} tokens",
            f"input {number(usage.input)} ({number(usage.cached)} of it cached), output"
            f" {number(usage.output)}, thoughts {number(usage.thoughts)}, tools"
            f" {number(usage.tool)}",
        ),
        (counted(total.calls.total(), "tool call"), _failures(total)),
        (counted(total.files, "file") + " written", ""),
        (f"about {total.dollars}" if total.priced else "", "an estimate"),
        (total.own_dollars, OWN_COUNT),
    )
    for first, rest in facts:
        if first:
            pieces = Piece(first, look[Role.HEADING]), Piece(f"  {rest}", muted)
            yield from wrap(pieces, look.width)
    if total.unknown:
        words = f"Token counts are unknown for {counted(total.unknown, 'answer')}."
        yield from wrap((Piece(words, muted),), look.width)
    if total.dropped.total:
        words = f"{number(total.dropped.total)} more tokens in rewound and failed messages."
        yield from wrap((Piece(words, muted),), look.width)


def _failures(total: Sums) -> str:
    failures = total.failures
    ended = (f"{count:,} {name.replace('_', ' ')}" for name, count in failures.items())
    return f"{sum(failures.values()):,} failed: {', '.join(ended)}" if failures else "none failed"


def _table(
    title: str,
    groups: Mapping[str, Sums],
    columns: tuple[_Column, ...],
    look: Look,
    of: Callable[[Sums], int],
    *,
    rows: int = _ROWS,
) -> Iterator[Line]:
    """Yield the lines of a table, with a bar in each row.

    `groups`: what to add to the table, by name; the first `rows` are shown. `of`: returns the
    number that a row's bar represents. If there is too little room for the names, columns are left
    out, starting with the last.
    """
    if not groups:
        return
    shown = [
        (ellipsis(clean_line(name), _NAME), sums) for name, sums in islice(groups.items(), rows)
    ]
    names = max(cells(title), *(cells(name) for name, _ in shown))
    texts = [[column.head, *(column.cell(sums) for _, sums in shown)] for column in columns]
    widths = [max(map(len, column)) for column in texts]
    while len(widths) > 1 and names + sum(widths) + 2 * len(widths) > look.width:
        del widths[-1], texts[-1]
    room = min(_BAR, look.width - names - sum(widths) - 2 * len(widths) - 2)
    most = max((of(sums) for _, sums in shown), default=0)
    yield BLANK
    yield _row(title, [column[0] for column in texts], names, widths, look[Role.HEADING], look)
    for place, (name, sums) in enumerate(shown, 1):
        numbers = [column[place] for column in texts]
        line = _row(name, numbers, names, widths, look[Role.TEXT], look)
        drawn = bar(of(sums), most, room, look.glyphs) if room >= 4 else ""
        yield Line((*line.pieces, Piece(f"  {drawn}", look[Role.MODEL])))
    if len(groups) > rows:
        yield Line((Piece(f"and {len(groups) - rows:,} more", look[Role.MUTED]),))


def _row(
    name: str, numbers: list[str], room: int, widths: list[int], style: object, look: Look
) -> Line:
    front = name + " " * (room - cells(name))
    rest = "".join(f"  {text:>{width}}" for text, width in zip(numbers, widths, strict=True))
    pieces: Pieces = (Piece(front, style), Piece(rest, look[Role.MUTED]))  # type: ignore[arg-type]
    return Line(pieces)


def _hours(stats: Stats, look: Look) -> Iterator[Line]:
    """Yield one line per weekday, with a cell for each hour and the total of answers.

    A cell is darker the more answers the model gave in that hour.
    """
    if not stats.week:
        return
    most, muted = max(stats.week.values()), look[Role.MUTED]
    wide = 2 if look.width >= 4 + 48 + 8 else 1
    yield BLANK
    heads = "".join(f"{hour:<{3 * wide}}" for hour in range(0, 24, 3))
    yield Line((Piece("Answers by hour of the week", look[Role.HEADING]),))
    yield Line((Piece(f"    {heads}", muted),))
    for day, name in enumerate(_WEEK):
        counts = [stats.week[day, hour] for hour in range(24)]
        shades = "".join(shade(count, most, look.glyphs) * wide for count in counts)
        yield Line(
            (
                Piece(f"{name} ", look[Role.TEXT]),
                Piece(shades, look[Role.MODEL]),
                Piece(f"  {sum(counts):,}" if any(counts) else "", muted),
            )
        )


def bar(value: float, most: float, width: int, glyphs: Glyphs) -> str:
    """Return a bar that is `width` cells long if `value` equals `most`, or shorter.

    Even a very small value above zero is visible.
    """
    if value <= 0 or most <= 0:
        return ""
    share = min(1.0, value / most) * width
    if glyphs.ascii:
        return "#" * max(1, round(share))
    whole, eighths = divmod(max(1, round(share * 8)), 8)
    return "█" * whole + _EIGHTHS[eighths].strip()


def shade(value: float, most: float, glyphs: Glyphs) -> str:
    """Return a cell that is darker the closer `value` is to `most`; a space for 0."""
    if value <= 0 or most <= 0:
        return " "
    shades = _PLAIN_SHADES if glyphs.ascii else _SHADES
    return shades[max(1, min(4, round(value / most * 4)))]
