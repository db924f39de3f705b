"""`gemtui sessions`: the stored sessions as a table or as JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path

from gemtui.commands.output import lines_to_stdout, note, to_stdout
from gemtui.commands.pick_session import index_of_user
from gemtui.files import is_folder
from gemtui.jsonout import encode, encode_array
from gemtui.paths import folder_here
from gemtui.sessions.scope import listed, read_store
from gemtui.sessions.snapshot import Snapshot
from gemtui.sessions.store import SessionKind
from gemtui.sessions.summary import Flag, Summary
from gemtui.text import Clean, cells, clean_line, ellipsis, relative

SHORT = 8
"""Characters of an id that are shown, more where they would not be enough to name it."""


def run(
    *, project: Path | None, everywhere: bool, hidden: bool, limit: int | None, as_json: bool
) -> int:
    """List the sessions of `project`; of the current folder's project, or all, without one.

    1 where `project` is not there and has no sessions.
    """
    with index_of_user() as index:
        home, snapshot = index.home, read_store(index, project=project)
    scope = None if everywhere else _scope(snapshot, project, hidden=hidden)
    sessions = list(islice(listed(snapshot, project=scope, hidden=hidden), limit))
    if as_json:
        head = b'{"version":1,"home":' + encode(str(home)) + b',"sessions":'
        to_stdout(encode_array((each.to_dict() for each in sessions), head=head, tail=b"}\n"))
    else:
        lines_to_stdout(_table(sessions, short_ids(snapshot.sessions), datetime.now(UTC)))
    if project is not None and not sessions and not is_folder(project):
        note(f"{project} is not there, and has no sessions: name a folder that has some")
        return 1
    if snapshot.unreadable:
        number = len(snapshot.unreadable)
        note(f"{number} of the store's files or folders can't be read: gemtui doctor names them")
    elif not sessions and not as_json:
        note(_why_none(home, snapshot, scope))
    return 0


def _scope(snapshot: Snapshot, project: Path | None, *, hidden: bool) -> Path | None:
    """Whose sessions to list: None = all, as where the current folder has none to show."""
    if project is not None:
        return project
    here = folder_here()
    return here if here and next(listed(snapshot, project=here, hidden=hidden), None) else None


def _why_none(home: Path, snapshot: Snapshot, scope: Path | None) -> str:
    if scope is not None and snapshot.sessions:
        return f"no sessions of {scope}: gemtui sessions --everywhere lists all projects"
    return f"no sessions in {home}: Gemini CLI keeps them there once you have used it"


def short_ids(sessions: Sequence[Summary]) -> dict[str, str]:
    """For each id the shortest prefix of eight or more characters that names it alone."""
    ids = sorted({each.id for each in sessions})
    lengths = dict.fromkeys(ids, SHORT)
    for one, other in pairwise(ids):
        same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
        needed = (len(one) if same is None else same) + 1
        lengths[one], lengths[other] = max(lengths[one], needed), max(lengths[other], needed)
    return {id: id[:length] for id, length in lengths.items()}


# --- the table -----------------------------------------------------------------------------------

_HEAD = ("ID", "AGE", "PROMPTS", "TOOLS", "FAILED", "TOKENS", "PROJECT", "TITLE")
_ID, _AGE, _PROMPTS, _TOOLS, _FAILED, _TOKENS, _PROJECT = range(7)
_NUMBERS = frozenset({_AGE, _PROMPTS, _TOOLS, _FAILED, _TOKENS})
_LEAVING = (_TOKENS, _FAILED, _TOOLS, _PROMPTS, _PROJECT)
"""The order in which columns make room for the title."""
_PROJECT_WIDTH, _NARROW_PROJECT = 24, 10
_TITLE_WIDTH = 35
_SPECIAL = Clean(" *")
"""In the place of marks for which there is no room."""
_GAP = "  "


def _table(sessions: Sequence[Summary], ids: dict[str, str], now: datetime) -> Iterator[Clean]:
    """A head and one line per session, as wide as the terminal, if there is one."""
    if not sessions:
        return
    rows = [_HEAD, *(_row(each, ids, now) for each in sessions)]
    cleaned = [[clean_line(cell) for cell in row] for row in rows]
    widths = dict(enumerate(max(map(cells, column)) for column in zip(*cleaned, strict=True)))
    del widths[len(_HEAD) - 1]
    room = None
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        widths = _fitting(widths, columns)
        room = max(0, columns - _taken(widths))
    for row, mark in zip(cleaned, [Clean(""), *map(_marks, sessions)], strict=True):
        front = (_padded(row[at], at, width) for at, width in widths.items())
        yield Clean(_GAP.join((*front, _titled(row[-1], mark, room))))


def _fitting(widths: dict[int, int], columns: int) -> dict[int, int]:
    """The columns, and how wide, that leave room for titles: some go, the project's shrinks."""
    least = min(widths[_PROJECT], _NARROW_PROJECT)
    title = _TITLE_WIDTH + cells(_SPECIAL)
    for count in range(len(_LEAVING) + 1):
        kept = {at: width for at, width in widths.items() if at not in _LEAVING[:count]}
        if _PROJECT in kept:
            spare = columns - _taken(kept | {_PROJECT: 0}) - title
            kept[_PROJECT] = max(least, min(widths[_PROJECT], spare))
        if columns - _taken(kept) >= title:
            break
    return kept


def _taken(widths: dict[int, int]) -> int:
    """Cells of a line before its title."""
    return sum(widths.values()) + len(_GAP) * len(widths)


def _titled(title: Clean, mark: Clean, room: int | None) -> str:
    """The title and what is special, which gives way where there is no room for both."""
    if room is None:
        return title + mark
    if mark and cells(mark) > max(room - _TITLE_WIDTH, room - cells(title)):
        mark = _SPECIAL
    return ellipsis(title, max(0, room - cells(mark))) + mark


def _padded(cell: Clean, column: int, width: int) -> str:
    cut = ellipsis(cell, width)
    blanks = " " * (width - cells(cut))
    return blanks + cut if column in _NUMBERS else cut + blanks


def _row(session: Summary, ids: dict[str, str], now: datetime) -> tuple[str, ...]:
    tokens = session.tokens.total
    return (
        ids.get(session.id, session.id),
        relative(session.when, now),
        str(session.prompts),
        str(session.tool_calls),
        str(session.failed_calls),
        "?" if tokens is None else str(tokens),
        ellipsis(clean_line(_project_name(session)), _PROJECT_WIDTH),
        session.title,
    )


def _project_name(session: Summary) -> str:
    if session.project is not None:
        return Path(session.project).name or session.project
    return session.project_key


def _marks(session: Summary) -> Clean:
    """What is special about it, as ` [live, torn]` behind the title."""
    kind = [] if session.kind is SessionKind.MAIN else [session.kind.value]
    words = kind + [flag.value.replace("_", " ") for flag in Flag if flag in session.flags]
    return Clean(f" [{', '.join(words)}]" if words else "")
