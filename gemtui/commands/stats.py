"""`gemtui stats`: print usage by project, model, month, day and tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path

import click

from gemtui.calls.paths import recorded_path
from gemtui.commands.output import columns, json_to_stdout, lines_to_stdout, note, progress
from gemtui.commands.session_choice import index_of_user, no_sessions_yet, project_in_use
from gemtui.commands.shared_options import json_option, project_options, since_option, until_option
from gemtui.errors import ConfigError
from gemtui.paths import cache_dir
from gemtui.sessions.catalog.counted import Counted, counted_sessions
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.newest import NewestSessions, Unsure
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.stats.kept import KeptStats
from gemtui.stats.prices import Prices, load_prices
from gemtui.stats.report import OWN_COUNT, Stats, Sums
from gemtui.text import clean_line, counted, ellipsis, short_path

_ROWS = 12
"""The maximum number of rows in each table; --json lists all."""
_NAME = 36
"""The maximum width of a name, in cells."""


@click.command()
@project_options("Use only the sessions of this folder and its git worktrees.")
@since_option("Leave out everything before DATE, such as 2026-11-20 or 7d.")
@until_option("Leave out everything after DATE; a day, month, or year is included.")
@json_option
def stats(
    project: Path | None,
    everywhere: bool,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> int:
    """Show tokens, prompts, tool calls, and files by project, model, month, day, and tool.

    By default, the sessions of the current folder's project are counted, or all sessions if it has
    none. Costs are estimated from list prices, which a file prices.toml next to the settings file
    can override. Exit code 1 if no session matches.
    """
    prices = _prices()
    with index_of_user() as index:
        where, sessions = _counted(index, project, everywhere=everywhere)
        home, places = index.home, {file.name: file for file in index.files()}
    sums = KeptStats(home, cache_dir(), sessions, prices, since=since, until=until, places=places)
    report = progress("reading", len(sessions), so_far=lambda: f", {sums.tokens:,} tokens")
    for number in sums.count():
        report(number)
    for problem in sums.problems:
        note(f"{problem.path}: {problem.what}")
    usage = sums.stats()
    if as_json:
        json_to_stdout({"project": where, "since": since, "until": until, **usage.to_dict()})
    else:
        lines_to_stdout(_lines(usage))
    if not usage.total.sessions:
        note(_why_nothing(home, where, in_period=bool(sessions) and bool(since or until)))
    return 0 if usage.total.sessions else 1


def _why_nothing(home: Path, where: Path | None, *, in_period: bool) -> str:
    if in_period:
        return "no sessions in this period: give other dates"
    if where is None:
        return no_sessions_yet(home)
    return "no sessions to count: use gemtui stats --everywhere for all projects"


def _counted(
    index: Index, project: Path | None, *, everywhere: bool
) -> tuple[Path | None, list[Counted]]:
    """Return the project whose sessions to count (None means all), and these sessions."""
    try:
        store = NewestSessions(index)
        where = project_in_use(partial(store.listed, hidden=False), project, everywhere=everywhere)
        return where, store.counted(where)
    except Unsure:
        snapshot = read_store(index, project=project)
        listed = partial(listed_sessions, snapshot, hidden=False)
        where = project_in_use(listed, project, everywhere=everywhere)
        return where, counted_sessions(snapshot.sessions, where)


def _prices() -> Prices | None:
    """Return the prices; None, after a note, if they can't be read."""
    try:
        return load_prices()
    except ConfigError as error:
        note(f"no costs are shown: {error}")
        return None


# --- tables --------------------------------------------------------------------------------------


def _lines(stats: Stats) -> Iterator[str]:
    total = stats.total
    if not total.sessions:
        return
    yield from _totals(total)
    projects = {_project_words(key): sums for key, sums in stats.projects.items()}
    days = {str(day): stats.days[day] for day in sorted(stats.days, reverse=True)}
    yield from _table("PROJECT", _by_tokens(projects), _COLUMNS)
    yield from _table("MODEL", _by_tokens(stats.models), _MODEL_COLUMNS)
    months = {f"{day:%Y-%m}": stats.months[day] for day in sorted(stats.months, reverse=True)}
    yield from _table("MONTH", months, _COLUMNS)
    yield from _table("DAY", days, _COLUMNS)
    calls = sorted(stats.tools.items(), key=lambda pair: -pair[1].calls.total())
    yield from _table("TOOL", dict(calls), _TOOL_COLUMNS)
    if total.priced and stats.prices is not None:
        without = ", ".join(sorted(total.unpriced))
        yield ""
        yield clean_line(
            f"Costs are estimated at list prices as of {stats.prices.date}"
            + (f"; without a price: {without}" if without else "")
        )


def _totals(total: Sums) -> Iterator[str]:
    usage, failures = total.usage, total.failures
    yield f"{counted(total.sessions, 'session')}, {counted(total.prompts, 'prompt')}"
    unknown = f"; unknown for {counted(total.unknown, 'answer')}" if total.unknown else ""
    yield (
        f"{_number(usage.total)} tokens: input {_number(usage.input)}, including "
        f"{_number(usage.cached)} cached; output {_number(usage.output)}, thoughts "
        f"{_number(usage.thoughts)}, tools {_number(usage.tool)}{unknown}"
    )
    if total.dropped.total:
        yield f"{_number(total.dropped.total)} more in rewound, replaced or failed messages"
    ended = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in failures.items())
    failed = f", {counted(sum(failures.values()), 'failure')} ({ended})" if ended else ""
    yield f"{counted(total.calls.total(), 'tool call')}{failed}"
    yield f"{counted(total.files, 'file')} written"
    if total.priced:
        yield f"about {total.dollars}"
    if total.own_cost is not None:
        yield f"{total.own_dollars} {OWN_COUNT}"


def _by_tokens(groups: Mapping[str, Sums]) -> dict[str, Sums]:
    return dict(sorted(groups.items(), key=lambda pair: -(pair[1].usage.total or 0)))


def _project_words(project: str) -> str:
    return short_path(recorded_path(project))


_COLUMNS: dict[str, Callable[[Sums], str]] = {
    "SESSIONS": lambda sums: str(sums.sessions),
    "PROMPTS": lambda sums: str(sums.prompts),
    "CALLS": lambda sums: str(sums.calls.total()),
    "FAILED": lambda sums: str(sum(sums.failures.values())),
    "TOKENS": lambda sums: _number(sums.usage.total),
    "CACHED": lambda sums: _number(sums.usage.cached),
    "COST": lambda sums: sums.dollars or "?",
}
_MODEL_COLUMNS = {
    "SESSIONS": _COLUMNS["SESSIONS"],
    "ANSWERS": lambda sums: str(sums.answers),
    **{name: _COLUMNS[name] for name in ("TOKENS", "CACHED", "COST")},
}
_TOOL_COLUMNS = {name: _COLUMNS[name] for name in ("SESSIONS", "CALLS", "FAILED")}


def _number(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _table(
    head: str, groups: Mapping[str, Sums], cells: Mapping[str, Callable[[Sums], str]]
) -> Iterator[str]:
    """Yield the lines of one table, which begins with an empty line.

    `head`: the header of the column with the groups' names. `cells`: by header, a function that
    returns the cell for a group. Only the first rows are shown.
    """
    shown = [(ellipsis(clean_line(name), _NAME), groups[name]) for name in islice(groups, _ROWS)]
    rows = [(head, *cells)]
    rows += [(name, *(cell(sums) for cell in cells.values())) for name, sums in shown]
    yield ""
    yield from columns(rows, numbers=frozenset(range(1, len(rows[0]))))
    if len(groups) > _ROWS:
        yield f"and {len(groups) - _ROWS} more: use --json to list all"
