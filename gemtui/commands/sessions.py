"""`gemtui sessions`: list the stored sessions as a table or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from gemtui.commands.cursor import read_cursor, write_cursor
from gemtui.commands.output import lines_to_stdout, note, to_stdout
from gemtui.commands.pick_session import index_of_user
from gemtui.errors import MarksUnreadable
from gemtui.files import is_folder
from gemtui.jsonout import encode, encode_array
from gemtui.marks import Mark, Marks
from gemtui.paths import folder_here
from gemtui.sessions.catalog.cache import SessionLine
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.newest import NewestSessions, Unsure
from gemtui.sessions.catalog.selection import listed_sessions
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.text import Clean, cells, clean_line, ellipsis, relative

SHORT = 8
"""How many characters of an id to show; more if they would not be unique."""


def run(
    *,
    project: Path | None,
    everywhere: bool,
    hidden: bool,
    limit: int | None,
    cursor: str | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> int:
    """List the sessions of `project`, or else of the current folder, or else all.

    `everywhere`: list all sessions. `hidden`: include sessions that are otherwise hidden, such as
    archived ones. `limit`: the maximum number. `cursor`: the previous page's `next_cursor`.
    `since`, `until`: list only sessions last used from `since` on and before `until`. Returns 1 if
    `project` does not exist and has no sessions. Raises click.UsageError.
    """
    after = None if cursor is None else _Place(*read_cursor(_CURSOR, cursor, int, str, int))
    marks = marks_of_user()
    asked = _Asked(project, everywhere, hidden, since, until, limit, after, as_json)
    with index_of_user() as index:
        home = index.home
        try:
            answer = _from_newest(asked, index, marks)
        except Unsure:
            answer = _from_all(asked, index, marks)
    sessions = answer.sessions
    if as_json:
        head = b'{"version":1,"home":' + encode(str(home)) + b',"sessions":'
        marked = [marks[each.id].to_dict() for each in sessions if each.id in marks]
        following = None if answer.last is None else write_cursor(_CURSOR, *answer.last)
        tail = b',"marks":%b,"next_cursor":%b}\n' % (encode(marked), encode(following))
        values = (each.to_dict() if isinstance(each, Summary) else each.text for each in sessions)
        to_stdout(encode_array(values, head=head, tail=tail))
    else:
        short = short_ids(answer.ids, [each.id for each in sessions])
        summaries = [each for each in sessions if isinstance(each, Summary)]
        lines_to_stdout(_table(summaries, marks, short, datetime.now(UTC)))
    if project is not None and not sessions and not is_folder(project):
        note(f"{project} does not exist and has no sessions: give a folder that has sessions")
        return 1
    if answer.unreadable:
        files = f"{answer.unreadable} of the store's files or folders"
        note(f"{files} can't be read: gemtui doctor lists them")
    elif not sessions and not as_json:
        in_time = "no sessions in this period: give other dates"
        note(in_time if since or until else _why_none(home, answer))
    return 0


_CURSOR = "sessions"


class _Place(NamedTuple):
    """A session's position in lists, which doesn't depend on other sessions.

    `when`: when the session was last used, in microseconds. `copy`: 0 for the session itself, 1 for
    the first of its duplicates, and so on.
    """

    when: int
    id: str
    copy: int


class _Asked(NamedTuple):
    """Which sessions to list; the fields not explained here are as in `run`.

    `after`: list only sessions after this position. `as_json`: whether the output is JSON, for
    which cached JSON (`SessionLine`) can be used instead of summaries.
    """

    project: Path | None
    everywhere: bool
    hidden: bool
    since: datetime | None
    until: datetime | None
    limit: int | None
    after: _Place | None
    as_json: bool


class _Answer(NamedTuple):
    """The sessions to list.

    `last`: the position of the last of them if more sessions follow, otherwise None. `where`: the
    project they belong to; None means all. `ids`: the ids of all sessions. `unreadable`: how many
    files and folders could not be read.
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
    if asked.limit is None and not asked.as_json:
        raise Unsure
    store = NewestSessions(index)
    where = _where(asked, store.listed)
    listed = store.lines if asked.limit is None else store.listed
    sessions, last = _chosen(asked, listed(project=where, hidden=asked.hidden), marks)
    if not sessions:
        raise Unsure
    return _Answer(sessions, last, where, store.ids, store.unreadable)


def _from_all(asked: _Asked, index: Index, marks: Mapping[str, Mark]) -> _Answer:
    snapshot = read_store(index, project=asked.project)
    where = _where(asked, partial(listed_sessions, snapshot))
    sessions, last = _chosen(asked, listed_sessions(snapshot, project=where, hidden=asked.hidden), marks)
    ids = {each.id for each in snapshot.sessions}
    return _Answer(sessions, last, where, ids, len(snapshot.unreadable))


def _where(asked: _Asked, listed: Callable[..., Iterator[Summary]]) -> Path | None:
    """Return the folder of the project whose sessions to list; None means all.

    `listed`: returns the listed sessions of a project.
    """
    if asked.everywhere:
        return None
    return asked.project or _here(partial(listed, hidden=asked.hidden))


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
        return list(filter(wanted, sessions)), None
    following = (
        (each, place)
        for each, place in _placed(sessions)
        if wanted(each) and (asked.after is None or _follows(place, asked.after))
    )
    found = list(islice(following, None if asked.limit is None else asked.limit + 1))
    shown = found[: asked.limit]
    last = shown[-1][1] if len(found) > len(shown) else None
    return [session for session, _ in shown], last


def _placed(sessions: Iterable[Summary | SessionLine]) -> Iterator[tuple[Summary | SessionLine, _Place]]:
    """Yield each session with its position.

    `sessions`: the newest first, each followed by its duplicates.
    """
    place = _Place(0, "", 0)
    for each in sessions:
        if isinstance(each, Summary) and Flag.DUPLICATE in each.flags and each.id == place.id:
            place = place._replace(copy=place.copy + 1)
        else:
            place = _Place(int(_seconds(each) * 1_000_000), each.id, 0)
        yield each, place


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


def marks_of_user() -> Mapping[str, Mark]:
    """Return the user's marks, by session id.

    If they can't be read, this is reported on stderr, and {} is returned.
    """
    try:
        return Marks().all()
    except MarksUnreadable as error:
        note(str(error))
        return {}


def scope(snapshot: Snapshot, project: Path | None, *, hidden: bool) -> Path | None:
    """Return the folder of the project whose sessions to use; None means all.

    `project`: the folder that the user named. If it is None, the current folder is used if it has
    sessions to show, and otherwise all folders. `hidden`: whether hidden sessions count.
    """
    return project or _here(partial(listed_sessions, snapshot, hidden=hidden))


def _here(listed: Callable[..., Iterator[Summary]]) -> Path | None:
    """Return the current folder if it has sessions to show, otherwise None."""
    here = folder_here()
    return here if here and next(listed(project=here), None) else None


def _why_none(home: Path, answer: _Answer) -> str:
    if answer.where is not None and answer.ids:
        return f"no sessions of {answer.where}: list all projects with gemtui sessions --everywhere"
    return f"no sessions in {home} yet: Gemini CLI stores them there once you use it"


def short_ids(ids: Iterable[str], shown: Iterable[str] | None = None) -> dict[str, str]:
    """Map each id to its shortest unique prefix of at least eight characters.

    `shown`: the ids that the result must contain; None means all. Naming only a few saves time with
    thousands of sessions.
    """
    if shown is not None:
        starts = {id[:SHORT] for id in shown}
        ids = [id for id in ids if id[:SHORT] in starts]
    ordered = sorted(set(ids))
    lengths = dict.fromkeys(ordered, SHORT)
    for one, other in pairwise(ordered):
        if one[:SHORT] != other[:SHORT]:
            continue
        same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        needed = (len(one) if same is None else same) + 1
        lengths[one], lengths[other] = max(lengths[one], needed), max(lengths[other], needed)
    return {id: id[:length] for id, length in lengths.items()}


# --- the table -----------------------------------------------------------------------------------

_HEAD = ("ID", "AGE", "PROMPTS", "TOOLS", "FAILED", "TOKENS", "PROJECT", "TITLE")
_ID, _AGE, _PROMPTS, _TOOLS, _FAILED, _TOKENS, _PROJECT = range(7)
_NUMBERS = frozenset({_AGE, _PROMPTS, _TOOLS, _FAILED, _TOKENS})
_LEAVING = (_TOKENS, _FAILED, _TOOLS, _PROMPTS, _PROJECT)
"""The order in which columns are left out if the terminal is narrow."""
_PROJECT_WIDTH, _NARROW_PROJECT = 24, 10
_TITLE_WIDTH = 35
_SPECIAL = Clean(" *")
"""Shown after a title instead of its labels if there is no room for them."""
_GAP = "  "


def _table(
    sessions: Sequence[Summary], marks: Mapping[str, Mark], ids: dict[str, str], now: datetime
) -> Iterator[Clean]:
    """Yield a header and one line per session, fitted to the terminal's width."""
    if not sessions:
        return
    both = [(each, marks.get(each.id) or Mark(session=each.id)) for each in sessions]
    rows = [_HEAD, *(_row(each, mark, ids, now) for each, mark in both)]
    cleaned = [[clean_line(cell) for cell in row] for row in rows]
    widths = dict(enumerate(max(map(cells, column)) for column in zip(*cleaned, strict=True)))
    del widths[len(_HEAD) - 1]
    room = None
    if sys.stdout.isatty():
        from shutil import get_terminal_size

        columns = get_terminal_size().columns
        widths = _fitting(widths, columns)
        room = max(0, columns - _used_width(widths))
    specials = [Clean(""), *(_special(each, mark) for each, mark in both)]
    for row, special in zip(cleaned, specials, strict=True):
        front = (_padded(row[at], at, width) for at, width in widths.items())
        yield Clean(_GAP.join((*front, _titled(row[-1], special, room))))


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


def _titled(title: Clean, special: Clean, room: int | None) -> str:
    """Return a title with its labels, fitted to `room` cells.

    `room`: None means no limit. If there isn't enough room, ` *` replaces the labels, and the title
    is truncated.
    """
    if room is None:
        return title + special
    if special and cells(special) > max(room - _TITLE_WIDTH, room - cells(title)):
        special = _SPECIAL
    return ellipsis(title, max(0, room - cells(special))) + special


def _padded(cell: Clean, column: int, width: int) -> str:
    cut = ellipsis(cell, width)
    blanks = " " * (width - cells(cut))
    return blanks + cut if column in _NUMBERS else cut + blanks


def _row(session: Summary, mark: Mark, ids: dict[str, str], now: datetime) -> tuple[str, ...]:
    tokens = session.tokens.total
    return (
        ids.get(session.id, session.id),
        relative(session.when, now),
        str(session.prompts),
        str(session.tool_calls),
        str(session.failed_calls),
        "?" if tokens is None else str(tokens),
        ellipsis(clean_line(_project_name(session)), _PROJECT_WIDTH),
        mark.name or session.title,
    )


def _project_name(session: Summary) -> str:
    if session.project is not None:
        return Path(session.project).name or session.project
    return session.project_key


def _special(session: Summary, mark: Mark) -> Clean:
    """Return a session's labels, such as ` [pinned, live, copy, #parser]`, or ""."""
    words = [word for word in ("pinned", "archived") if getattr(mark, word)]
    words += [] if session.kind is SessionKind.MAIN else [session.kind.value]
    words += [flag.word for flag in Flag if flag in session.flags]
    words += [f"#{tag}" for tag in mark.tags]
    return Clean(f" [{', '.join(words)}]" if words else "")
