"""`gemtui search`: full-text search in all sessions."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec import ValidationError, convert

from gemtui.commands.cursor import not_a_cursor, read_cursor, write_cursor
from gemtui.commands.output import lines_to_stdout, note, terminal_width, to_stdout
from gemtui.commands.pick_session import index_of_user
from gemtui.commands.sessions import marks_of_user, scope, short_ids
from gemtui.jsonout import encode, encode_array
from gemtui.marks import Marks
from gemtui.paths import cache_dir, folder_here, gemini_home
from gemtui.search.file_list import index_folder
from gemtui.search.results import Hit, Page, Results, SessionHits, Snippet
from gemtui.search.search import Search
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.newest import Unsure
from gemtui.sessions.catalog.query import Field, Query, is_of_sessions, parse_query
from gemtui.sessions.catalog.selection import listed_sessions, newest_files_first
from gemtui.sessions.catalog.summary import iso
from gemtui.text import Clean, clean_line, counted, ellipsis, relative

_WHO = 10
"""The width of the column with the author of a hit, in characters."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def run(
    text: str,
    *,
    project: Path | None,
    everywhere: bool,
    dropped: bool,
    limit: int,
    cursor: str | None,
    update_index: bool,
    as_json: bool,
) -> int:
    """Print the hits of a query; return 1 if there are none.

    `text`: the query. `project`: search this folder's sessions; None means the current folder's, or
    all if it has none. `everywhere`: search all sessions. `dropped`: search rewound, replaced and
    failed messages instead of current ones. `limit`: the maximum number of hits. `cursor`: the
    previous page's `next_cursor`. `update_index`: update the index first. Raises StoreUnreadable,
    MarksUnreadable, click.UsageError.
    """
    page = _page(cursor, text)
    query = parse_query(text, now=datetime.fromtimestamp(page.now).astimezone())
    folder = index_folder(cache_dir(), gemini_home())
    if update_index:
        _update(folder)
    with index_of_user() as index, closing(Search(folder)) as search:
        asked = SearchOptions(query, project, everywhere, dropped, limit, page)
        answer = find_results(asked, index, search)
        results = answer.results
        if as_json:
            _print_json(search, results, _cursor(results.next, text))
        else:
            lines_to_stdout(_lines(search, results, answer.ids))
        if search.damage is not None:
            note(f"the search index was not used: {search.damage}")
    if results.note is not None:
        note(results.note)
    if not results.complete:
        so_far = "results are incomplete" if results.groups else "no matches so far"
        note(f"{so_far}: the search index is still being built, so try again later")
    if not update_index and (results.unindexed or search.damage is not None):
        from gemtui.search.indexer import begin_index

        begin_index(gemini_home(), folder)
    if results.complete and not results.groups:
        note(_why_nothing(query, answer.where, dropped=dropped))
    return 0 if results.groups else 1


def _update(folder: Path) -> None:
    """Update the search index, unless another gemtui process is doing so.

    `folder`: the index's folder.
    """
    from gemtui.search.index import WriteIndex, only_writer, remove_gone
    from gemtui.search.indexer import update

    try:
        with only_writer(folder) as mine:
            if mine:
                with closing(WriteIndex(folder)) as index:
                    update(index, gemini_home())
                    remove_gone(folder, gemini_home())
    except (OSError, ValueError, sqlite3.Error) as error:
        note(f"the search index can't be written: {error}")


class SearchOptions(NamedTuple):
    """What to search for, and where; the fields are the arguments of `run`, parsed."""

    query: Query
    project: Path | None
    everywhere: bool
    dropped: bool
    limit: int
    page: Page | None = None


class SearchAnswer(NamedTuple):
    """The results of a search.

    `where`: the project that was searched; None means all. `ids`: the ids of all sessions, from
    which unique prefixes are derived.
    """

    results: Results
    where: Path | None
    ids: Collection[str]


def find_results(asked: SearchOptions, index: Index, search: Search) -> SearchAnswer:
    """Search, and return the results.

    `asked`: what to search for, and where. For speed, only the summaries of the sessions with hits
    are loaded if possible, otherwise all summaries. Raises StoreUnreadable, MarksUnreadable.
    """
    try:
        return _from_index(asked, index, search)
    except Unsure:
        return _from_all(asked, index, search)


def _from_index(asked: SearchOptions, index: Index, search: Search) -> SearchAnswer:
    """Search, loading only the summaries of the sessions with hits.

    Raises Unsure if that does not suffice for this query.
    """
    if any(map(is_of_sessions, asked.query.fields)):
        raise Unsure
    where = None if asked.everywhere else asked.project or _project_here(index)
    scope = search.scope(index, where)
    found = search.find_in(asked.query, scope, limit=asked.limit, dropped=asked.dropped, page=asked.page)
    *_, results = found
    return SearchAnswer(results, where, scope.ids)


def _project_here(index: Index) -> Path | None:
    """Return the current folder if it has sessions to show, otherwise None."""
    here = folder_here()
    files = () if here is None else newest_files_first(index.files(here))
    shown = (not each.hidden for file in files for each in index.sessions_in([file]))
    return here if any(shown) else None


def _from_all(asked: SearchOptions, index: Index, search: Search) -> SearchAnswer:
    """Search, loading the summaries of all sessions."""
    snapshot = read_store(index, project=asked.project)
    where = None if asked.everywhere else scope(snapshot, asked.project, hidden=False)
    asks_for_marks = any(each.field in (Field.TAG, Field.IS) for each in asked.query.fields)
    *_, results = search.find(
        asked.query,
        tuple(listed_sessions(snapshot, project=where, hidden=True)),
        limit=asked.limit,
        dropped=asked.dropped,
        page=asked.page,
        marks=Marks().all() if asks_for_marks else {},
    )
    return SearchAnswer(results, where, {each.id for each in snapshot.sessions})


def _why_nothing(query: Query, where: Path | None, *, dropped: bool) -> str:
    if not query:
        return "nothing to search for: give words, or fields such as tool:shell"
    if where is not None:
        return f"no matches in the sessions of {where}: search all projects with --everywhere"
    return "nothing found" if dropped else "no matches: to search dropped messages, add --dropped"


# --- JSON ----------------------------------------------------------------------------------------


_CURSOR = "hits"


def _cursor(page: Page | None, text: str) -> str | None:
    if page is None:
        return None
    after = None if page.after is None else list(page.after)
    return write_cursor(_CURSOR, text, page.now, page.before, page.since, after)


def _page(cursor: str | None, text: str) -> Page:
    """Return the page of hits that a cursor marks; None marks the first one.

    `text`: the query; a cursor is valid only for the query for which it was written. Raises
    click.UsageError.
    """
    if cursor is None:
        return Page(now=time.time())
    maybe = int | None
    query, *values = read_cursor(_CURSOR, cursor, str, float, maybe, int, list | None)
    if query != text:
        raise click.UsageError(f"--cursor: this cursor belongs to another query: {clean_line(query)}")
    try:
        return convert(dict(zip(Page.__struct_fields__, values, strict=True)), Page)
    except ValidationError:
        raise not_a_cursor() from None


def _print_json(search: Search, results: Results, cursor: str | None) -> None:
    total = str(results.total_sessions).encode()
    query = encode(results.query.text)
    complete = encode(results.complete)
    head = b'{"version":1,"query":%b,"complete":%b,"total_sessions":%b,"hits":' % (query, complete, total)
    hits = (hit_entry(each, search.snippet(each, results.query)) for each in results.hits)
    to_stdout(encode_array(hits, head=head, tail=b',"next_cursor":' + encode(cursor) + b"}\n"))


def hit_entry(hit: Hit, line: Snippet) -> dict[str, Any]:
    """Return a hit's JSON object in the output of `gemtui search --json`."""
    return {
        "session": hit.session.id,
        "subagent": None if hit.file is hit.session else hit.file.id,
        "project": hit.session.project,
        "message": hit.message,
        "kind": hit.kind.word,
        **({"tool": hit.tool} if hit.tool else {}),
        "timestamp": iso(hit.time),
        "snippet": line.text,
        "spans": [list(span) for span in line.spans],
        "score": round(hit.score, 4),
    }


# --- lines ---------------------------------------------------------------------------------------


def _lines(search: Search, results: Results, ids: Collection[str]) -> Iterator[Clean]:
    """Yield a line for each session, followed by its hits, fitted to the terminal."""
    width, now = terminal_width(), datetime.now(UTC)
    marks = marks_of_user()
    short = short_ids(ids, [group.session.id for group in results.groups])
    for group in results.groups:
        mark = marks.get(group.session.id)
        head = _head(group, None if mark is None else mark.name, short, now)
        yield head if width is None else ellipsis(head, width)
        for hit in group.hits:
            room = {} if width is None else {"width": max(20, width - _WHO - 4)}
            line = search.snippet(hit, results.query, **room)
            who = ellipsis(clean_line(hit.tool or hit.kind.word), _WHO)
            yield Clean(f"  {who:<{_WHO}}  {line.text if width is None else _marked(line)}")


def _head(group: SessionHits, name: str | None, ids: dict[str, str], now: datetime) -> Clean:
    session = group.session
    project = Path(session.project).name if session.project else session.project_key
    title = name or session.title
    words = (ids.get(session.id, session.id), relative(session.when, now), project, title)
    left_out = group.count - len(group.hits)
    more = f"  (+{counted(left_out, 'hit')})" if left_out else ""
    return Clean("  ".join(map(clean_line, words)) + more)


def _marked(line: Snippet) -> str:
    """Return a snippet with terminal codes that print the matches in bold."""
    pieces, at = [], 0
    for start, end in line.spans:
        pieces += [line.text[at:start], _BOLD, line.text[start:end], _PLAIN]
        at = end
    return "".join([*pieces, line.text[at:]])
