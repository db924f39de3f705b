"""`gemtui sessions`: list the stored sessions as a table or as JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gemtui.agents import Agent
from gemtui.commands.output import (
    json_list_to_stdout,
    lines_to_stdout,
    note,
    read_cursor,
    terminal_width,
    write_cursor,
)
from gemtui.commands.session_choice import (
    index_of_user,
    marks_of_user,
    no_sessions_yet,
    project_in_use,
    short_ids,
)
from gemtui.commands.shared_options import (
    Count,
    Moment,
    cursor_option,
    dry_run_option,
    json_option,
    project_options,
    require_one,
    since_option,
    yes_option,
)
from gemtui.files import is_folder, resolved
from gemtui.jsonout import encode
from gemtui.marks import Mark
from gemtui.paths import checkpoints_dir
from gemtui.sessions.catalog.columns import COLUMNS
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.newest import NewestSessions, SessionLine, Unsure
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.sessions.catalog.summary import Flag, Summary, id_start, project_name, title_of
from gemtui.sessions.store.store import SessionKind
from gemtui.text import cells, clean_line, ellipsis, relative

if TYPE_CHECKING:
    from gemtui.checkpoints.undo import InterruptedUndo


@click.group(invoke_without_command=True)
@project_options()
@click.option(
    "--hidden",
    is_flag=True,
    help="Include archived and empty sessions, subagents, checkpoints, copies, and the empty files "
    "that resuming a session can leave behind.",
)
@click.option("--limit", metavar="N", type=Count(), help="Show only the newest N.")
@cursor_option
@since_option("Show only sessions used since DATE, such as 2026-11-20 or 7d.")
@click.option(
    "--until",
    metavar="DATE",
    type=Moment(end=True),
    help="Show only sessions last used on or before DATE.",
)
@click.option(
    "--files", is_flag=True, help="Include the names of the written files in the output of --json."
)
@click.option("--live", is_flag=True, help="Show only sessions that are open now, in any terminal.")
@json_option
@click.pass_context
def sessions(
    ctx: click.Context,
    project: Path | None,
    everywhere: bool,
    hidden: bool,
    limit: int | None,
    cursor: str | None,
    since: datetime | None,
    until: datetime | None,
    files: bool,
    live: bool,
    as_json: bool,
) -> int:
    """List the stored sessions, newest first.

    By default, the list contains the sessions of the current folder's project, or all sessions if
    it has none. Pass an ID to `gemtui show`. In a narrow terminal, some columns are left out, and
    labels such as [live] are shown as *; --json prints everything. Exit code 1 if DIR does not
    exist and has no sessions.

    With --live, list the sessions that are working, waiting for you, or idle, in all projects or in
    DIR. This requires gemtui's extension.
    """
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {ctx.invoked_subcommand: {"as_json": as_json}}
        return 0
    if live:
        require_one("--live", live, "--hidden", hidden)
        require_one("--live", live, "--limit", limit is not None)
        require_one("--live", live, "--cursor", cursor is not None)
        require_one("--live", live, "--since and --until", since or until)
        from gemtui.commands.live import list_live_sessions

        return list_live_sessions(project, as_json=as_json)
    position = None if cursor is None else _Place(*read_cursor(_CURSOR, cursor, int, str, int))
    marks = marks_of_user()
    if files and not as_json:
        raise click.UsageError(
            "--files needs --json: to list written files in lines, use gemtui files"
        )
    asked = _Asked(
        project, everywhere, hidden, since, until, limit, position, as_lines=as_json and not files
    )
    with index_of_user() as index:
        home = index.home
        try:
            answer = _from_newest(asked, index, marks)
        except Unsure:
            answer = _from_all(asked, index, marks)
    listed, interrupted = answer.sessions, _interrupted_undos(answer.where)
    if as_json:
        texts = [
            session.text
            if isinstance(session, SessionLine)
            else encode(session.to_dict(files=files))
            for session in listed
        ]
        marked = [marks[session.id].to_dict() for session in listed if session.id in marks]
        following = None if answer.last is None else write_cursor(_CURSOR, *answer.last)
        after = {"marks": marked, "next_cursor": following}
        batches = (texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH))
        joined = map(b",\n".join, batches)
        json_list_to_stdout("sessions", joined, before={"home": str(home)}, after=after)
    else:
        short = short_ids(answer.ids, [session.id for session in listed])
        summaries = [session for session in listed if isinstance(session, Summary)]
        lines_to_stdout(_table(summaries, marks, short, datetime.now(UTC)))
    for session in interrupted:
        note(session.advice)
    if project is not None and not listed and not is_folder(project):
        note(f"{project} does not exist and has no sessions: give a folder that has sessions")
        return 1
    if answer.unreadable:
        unreadable = f"{answer.unreadable} of the store's files or folders"
        note(f"{unreadable} can't be read: gemtui doctor lists them")
    elif not listed and not as_json:
        in_time = "no sessions in this period: give other dates"
        note(in_time if since or until else _why_none(home, answer))
    return 0


@sessions.command()
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@dry_run_option
@yes_option
@json_option
def move(old: Path, new: Path, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Give the sessions of a folder that was renamed to the folder that it is now.

    OLD is the path that the project had when the sessions were made, and NEW the one it has now.
    gemtui shows what it will change in Gemini CLI's folder, and asks; afterwards, Gemini CLI lists
    and resumes the sessions in NEW. This is refused while a session of the project is open, while
    OLD exists as another folder, and if NEW has sessions of its own. If it was interrupted, give
    the same command again. Without a terminal, --yes is required; otherwise the exit code is 2.
    """
    from gemtui.commands.moving import move_sessions

    return move_sessions(old, new, dry_run=dry_run, yes=yes, as_json=as_json)


def _interrupted_undos(project: Path | None) -> Sequence[InterruptedUndo]:
    """Return the interrupted undos in a project; None means all projects."""
    folder = checkpoints_dir()
    if not is_folder(folder):
        return ()
    from gemtui.checkpoints.undo import interrupted_undos

    return [
        change
        for change in interrupted_undos(folder)
        if project is None or change.project == resolved(project)
    ]


_CURSOR = "sessions"
_BATCH = 200
"""How many sessions are written at a time, as thousands of writes would take long."""


class _Place(NamedTuple):
    """A session's position in lists, which doesn't depend on other sessions.

    `when`: when the session was last used, in microseconds. `copy`: 0 for the session itself, 1 for
    the first of its duplicates, and so on.
    """

    when: int
    id: str
    copy: int


class _Asked(NamedTuple):
    """A choice of sessions to list; the fields not explained here are as in `sessions`.

    `after`: list only sessions after this position. `as_lines`: whether cached JSON
    (`SessionLine`) can be used instead of summaries.
    """

    project: Path | None
    everywhere: bool
    hidden: bool
    since: datetime | None
    until: datetime | None
    limit: int | None
    after: _Place | None
    as_lines: bool


class _Answer(NamedTuple):
    """The sessions to list.

    `last`: the position of the last of them if more sessions follow, otherwise None. `where`: the
    project they belong to; None means all. `ids`: at least the ids of all sessions that begin like
    theirs; () if they are printed whole. `unreadable`: how many files and folders could not be
    read.
    """

    sessions: list[Summary | SessionLine]
    last: _Place | None
    where: Path | None
    ids: Collection[str]
    unreadable: int


def _from_newest(asked: _Asked, index: Index, marks: Mapping[str, Mark]) -> _Answer:
    """Return the sessions to list, without reading the summaries of all sessions.

    Only cached JSON and the summaries of the newest sessions are read, which is fast. Raises
    StoreUnreadable, and Unsure if these don't suffice.
    """
    if asked.limit is None and not asked.as_lines:
        raise Unsure
    store = NewestSessions(index)
    where = project_in_use(
        partial(store.listed, hidden=asked.hidden), asked.project, everywhere=asked.everywhere
    )
    listed = store.lines if asked.limit is None else store.listed
    sessions, last = _chosen(asked, listed(project=where, hidden=asked.hidden), marks)
    if not sessions:
        raise Unsure
    ids = () if asked.as_lines else store.ids_like({id_start(session.id) for session in sessions})
    return _Answer(sessions, last, where, ids, store.unreadable)


def _from_all(asked: _Asked, index: Index, marks: Mapping[str, Mark]) -> _Answer:
    snapshot = read_store(index, project=asked.project)
    listed = partial(listed_sessions, snapshot, hidden=asked.hidden)
    where = project_in_use(listed, asked.project, everywhere=asked.everywhere)
    sessions, last = _chosen(asked, listed(project=where), marks)
    ids = {session.id for session in snapshot.sessions}
    return _Answer(sessions, last, where, ids, len(snapshot.unreadable))


def _chosen(
    asked: _Asked, sessions: Iterable[Summary | SessionLine], marks: Mapping[str, Mark]
) -> tuple[list[Summary | SessionLine], _Place | None]:
    """Return the sessions to list, and the position of the last one if others follow.

    The position is None if no others follow. `sessions`: all candidates, the newest first. Archived
    sessions are left out unless hidden ones are wanted.
    """
    archived = {id for id, mark in marks.items() if mark.archived and not asked.hidden}
    wanted = partial(_is_wanted, asked, archived)
    if asked.limit is None and asked.after is None:
        if not archived and asked.since is None and asked.until is None:
            return list(sessions), None
        return list(filter(wanted, sessions)), None
    following = (
        (session, position)
        for session, position in _placed(sessions)
        if wanted(session) and (asked.after is None or _follows(position, asked.after))
    )
    chosen = list(islice(following, None if asked.limit is None else asked.limit + 1))
    shown = chosen[: asked.limit]
    last = shown[-1][1] if len(chosen) > len(shown) else None
    return [session for session, _ in shown], last


def _placed(
    sessions: Iterable[Summary | SessionLine],
) -> Iterator[tuple[Summary | SessionLine, _Place]]:
    """Yield each session with its position.

    `sessions`: the newest first, each followed by its duplicates.
    """
    position = _Place(0, "", 0)
    for session in sessions:
        if (
            isinstance(session, Summary)
            and Flag.DUPLICATE in session.flags
            and session.id == position.id
        ):
            position = position._replace(copy=position.copy + 1)
        else:
            position = _Place(int(_seconds(session) * 1_000_000), session.id, 0)
        yield session, position


def _seconds(session: Summary | SessionLine) -> float:
    return session.when.timestamp() if isinstance(session, Summary) else session.when


def _is_wanted(asked: _Asked, archived: Set[str], session: Summary | SessionLine) -> bool:
    if session.id in archived:
        return False
    since, until = asked.since, asked.until
    if since is not None and _seconds(session) < since.timestamp():
        return False
    return until is None or _seconds(session) < until.timestamp()


def _follows(place: _Place, other: _Place) -> bool:
    """Return whether position `place` comes after `other` in lists.

    It does if its session was last used earlier, or is a later duplicate of the same session.
    """
    return (place.when, place.id, -place.copy) < (other.when, other.id, -other.copy)


def _why_none(home: Path, answer: _Answer) -> str:
    if answer.where is not None and answer.ids:
        return f"no sessions of {answer.where}: list all projects with gemtui sessions --everywhere"
    return no_sessions_yet(home)


# --- the table -----------------------------------------------------------------------------------

_HEAD = ("ID", "AGE", *(column.head for column in COLUMNS), "PROJECT", "TITLE")
_PROJECT = _HEAD.index("PROJECT")
_NUMBERS = range(1, _PROJECT)
_LEAVING = (*reversed(range(2, _PROJECT)), _PROJECT)
"""The order in which columns are left out if the terminal is narrow."""
_PROJECT_WIDTH, _NARROW_PROJECT = 24, 10
_TITLE_WIDTH = 35
_SPECIAL = " *"
"""Shown after a title instead of its labels if there is no room for them."""
_GAP = "  "


def _table(
    sessions: Sequence[Summary], marks: Mapping[str, Mark], ids: dict[str, str], now: datetime
) -> Iterator[str]:
    """Yield a header and one line per session, fitted to the terminal's width."""
    if not sessions:
        return
    both = [(session, marks.get(session.id) or Mark(session=session.id)) for session in sessions]
    rows = [_HEAD, *(_row(session, mark, ids, now) for session, mark in both)]
    cleaned = [[clean_line(cell) for cell in row] for row in rows]
    widths = dict(enumerate(max(map(cells, column)) for column in zip(*cleaned, strict=True)))
    del widths[len(_HEAD) - 1]
    room = None
    columns = terminal_width()
    if columns is not None:
        widths = _fitting(widths, columns)
        room = max(0, columns - _used_width(widths))
    specials = ["", *(_special(session, mark) for session, mark in both)]
    for row, special in zip(cleaned, specials, strict=True):
        front = (_padded(row[at], at, width) for at, width in widths.items())
        yield _GAP.join((*front, _titled(row[-1], special, room)))


def _fitting(widths: dict[int, int], columns: int) -> dict[int, int]:
    """Return the widths of the columns to show, so that there is room for titles.

    If necessary, the project column is narrowed, and other columns are left out. `widths`: the
    preferred widths, by column. `columns`: the terminal's width.
    """
    least = min(widths[_PROJECT], _NARROW_PROJECT)
    title = _TITLE_WIDTH + cells(_SPECIAL)
    for count in range(len(_LEAVING) + 1):
        kept = {at: width for at, width in widths.items() if at not in _LEAVING[:count]}
        if _PROJECT in kept:
            spare = columns - _used_width(kept | {_PROJECT: 0}) - title
            kept[_PROJECT] = max(least, min(widths[_PROJECT], spare))
        if columns - _used_width(kept) >= title:
            break
    return kept


def _used_width(widths: dict[int, int]) -> int:
    """Return the width, in cells, of the columns before the title, including gaps."""
    return sum(widths.values()) + len(_GAP) * len(widths)


def _titled(title: str, special: str, room: int | None) -> str:
    """Return a title with its labels, fitted to `room` cells.

    `room`: None means no limit. If there isn't enough room, ` *` replaces the labels, and the title
    is truncated.
    """
    if room is None:
        return title + special
    if special and cells(special) > max(room - _TITLE_WIDTH, room - cells(title)):
        special = _SPECIAL
    return ellipsis(title, max(0, room - cells(special))) + special


def _padded(cell: str, column: int, width: int) -> str:
    cut = ellipsis(cell, width)
    blanks = " " * (width - cells(cut))
    return blanks + cut if column in _NUMBERS else cut + blanks


def _row(session: Summary, mark: Mark, ids: dict[str, str], now: datetime) -> tuple[str, ...]:
    numbers = [column.known(session) for column in COLUMNS]
    return (
        ids.get(session.id, session.id),
        relative(session.when, now),
        *("?" if number is None else str(number) for number in numbers),
        ellipsis(clean_line(project_name(session.project, session.project_key)), _PROJECT_WIDTH),
        title_of(session, mark.name),
    )


def _special(session: Summary, mark: Mark) -> str:
    """Return a session's labels, such as ` [pinned, live, copy, #parser]`, or ""."""
    labels = [word for word in ("pinned", "archived") if getattr(mark, word)]
    labels += [] if session.agent is Agent.GEMINI else [session.agent.value]
    labels += [] if session.kind is SessionKind.MAIN else [session.kind.value]
    labels += [flag.word for flag in Flag if flag in session.flags]
    labels += [f"#{tag}" for tag in mark.tags]
    return f" [{', '.join(labels)}]" if labels else ""
