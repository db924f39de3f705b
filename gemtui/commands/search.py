"""`gemtui search`: full-text search in all sessions."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from msgspec import ValidationError, convert

from gemtui.commands.output import (
    json_list_to_stdout,
    lines_to_stdout,
    not_a_cursor,
    note,
    read_cursor,
    terminal_width,
    write_cursor,
)
from gemtui.commands.session_choice import (
    index_of_user,
    marks_of_user,
    project_in_use,
    short_ids,
    unknown_project,
)
from gemtui.commands.shared_options import Count, cursor_option, json_option, project_options
from gemtui.errors import message_of
from gemtui.jsonout import fields, iso
from gemtui.marks import Marks
from gemtui.paths import cache_dir, gemini_home
from gemtui.search.file_list import index_folder
from gemtui.search.lost import LostSessions
from gemtui.search.results import Hit, Page, Results, SessionHits, Snippet
from gemtui.search.search import Search
from gemtui.sessions.catalog.index import Index, read_store
from gemtui.sessions.catalog.newest import Unsure
from gemtui.sessions.catalog.query import (
    Field,
    Query,
    fields_of_sessions,
    fits_all,
    parse_query,
)
from gemtui.sessions.catalog.selection import listed_sessions, newest_files_first
from gemtui.sessions.catalog.summary import Flag, Summary, named, project_name
from gemtui.text import clean_line, counted, ellipsis, relative

_WHO = 10
"""The width of the column with the author of a hit, in characters."""
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def _field_instead(_ctx: click.Context, option: click.Parameter, given: str | None) -> None:
    """Refuse an option that other commands have, and name the field of the query."""
    if given is not None:
        field = _PERIOD[option.opts[0]]
        raise click.UsageError(f"{option.opts[0]}: give the period in QUERY, such as {field}")


_PERIOD = {"--since": "after:7d", "--until": "before:2026-11-20"}


@click.command()
@click.argument("query", nargs=-1, required=True)
@project_options()
@click.option(
    "--dropped",
    is_flag=True,
    help="Search rewound, replaced, and failed messages instead of the current ones.",
)
@click.option(
    "--limit",
    metavar="N",
    type=Count(),
    default=50,
    show_default=True,
    help="Show only the best N matches.",
)
@cursor_option
@click.option("--since", hidden=True, expose_value=False, callback=_field_instead)
@click.option("--until", hidden=True, expose_value=False, callback=_field_instead)
@click.option(
    "--index", is_flag=True, help="Update the index first; useful if you never open the app."
)
@json_option
def search(
    query: tuple[str, ...],
    project: Path | None,
    everywhere: bool,
    dropped: bool,
    limit: int,
    cursor: str | None,
    index: bool,
    as_json: bool,
) -> int:
    """Search prompts, answers, thoughts, and tool calls.

    QUERY is best given in single quotes. It can contain words that must all occur in one message or
    tool call, "phrases", -excluded words, and fields: project: tool: file: model: tag: before:
    after: is:failed is:thought is:pinned is:archived in:prompt. tool: is a tool's name or kind,
    such as shell, and file: a file that a call reads or writes. The last word may be incomplete.
    Names in code match as a whole and by their parts. If there are few matches, similar words
    match, too. By default, the sessions of the current folder's project are searched, or all
    sessions if it has none, including their subagents. Exit code 1 if nothing is found.
    """
    text = " ".join(query)
    page = _page(cursor, text)
    parsed = parse_query(text, now=datetime.fromtimestamp(page.now).astimezone())
    folder = index_folder(cache_dir(), gemini_home())
    if index:
        _update(folder)
    with index_of_user() as store, closing(Search(folder)) as engine:
        asked = SearchOptions(parsed, project, everywhere, dropped, limit, page)
        answer = find_results(asked, store, engine)
        results = answer.results
        nothing = ""
        if results.complete and not results.groups:
            nothing = _why_nothing(parsed, answer.where, store, dropped=dropped)
        if as_json:
            _print_json(engine, results, _cursor(results.next, text))
        else:
            lines_to_stdout(_lines(engine, results, answer.ids))
        if engine.damage is not None:
            note(f"the search index was not used: {engine.damage}")
    if results.note is not None:
        note(results.note)
    if not results.complete:
        so_far = "results are incomplete" if results.groups else "no matches so far"
        left = f" ({counted(results.unindexed, 'file')} to go)" if results.unindexed else ""
        note(
            f"{so_far}: the search index is being built{left}: try again in a minute, or add "
            "--index to wait"
        )
    if not index and (results.unindexed or engine.damage is not None):
        from gemtui.search.indexer import begin_index

        begin_index(gemini_home(), folder)
    if nothing:
        note(nothing)
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
        note(f"the search index can't be written: {message_of(error)}")


class SearchOptions(NamedTuple):
    """A query and the sessions to search; the fields are the arguments of `search`, parsed."""

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
    if fields_of_sessions(asked.query):
        raise Unsure
    where = project_in_use(partial(_listed, index), asked.project, everywhere=asked.everywhere)
    scope = search.scope(index, where)
    ids = scope.ids
    lost = LostSessions(gemini_home(), ids, where)
    page = search.find_in(
        asked.query, scope, limit=asked.limit, dropped=asked.dropped, page=asked.page, lost=lost
    )
    *_, results = page
    return SearchAnswer(results, where, ids)


def _listed(index: Index, project: Path | None) -> Iterator[Summary]:
    """Yield the sessions of a folder that lists show, like `listed_sessions`, as they are read."""
    for file in newest_files_first(index.files(project)):
        yield from (session for session in index.sessions_in([file]) if not session.hidden)


def _from_all(asked: SearchOptions, index: Index, search: Search) -> SearchAnswer:
    """Search, loading the summaries of all sessions."""
    snapshot = read_store(index, project=asked.project)
    listed = partial(listed_sessions, snapshot, hidden=False)
    where = project_in_use(listed, asked.project, everywhere=asked.everywhere)
    ids = {session.id for session in snapshot.sessions}
    asks_for_marks = any(field.field in (Field.TAG, Field.IS) for field in asked.query.fields)
    *_, results = search.find(
        asked.query,
        tuple(listed_sessions(snapshot, project=where, hidden=True)),
        limit=asked.limit,
        dropped=asked.dropped,
        page=asked.page,
        marks=Marks().all() if asks_for_marks else {},
        lost=LostSessions(gemini_home(), ids, where),
    )
    return SearchAnswer(results, where, ids)


def _why_nothing(query: Query, where: Path | None, index: Index, *, dropped: bool) -> str:
    if not query:
        return "nothing to search for: give words, or fields such as tool:shell"
    for field in query.fields:
        if field.field is Field.PROJECT and not field.excluded:
            sessions = index.load().sessions
            if not any(fits_all([field], session, None) for session in sessions):
                return unknown_project(field.value, sessions)
    period = " in this period" if query.before or query.after else ""
    if where is not None:
        dates = "give other dates, or " if period else ""
        return (
            f"no matches{period} in the sessions of {where}: {dates}search all projects with "
            "--everywhere"
        )
    if period:
        return "no matches in this period: give other dates"
    if dropped:
        return "nothing found"
    return "no matches: to search rewound or replaced messages, add --dropped"


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
        raise click.UsageError(
            f"--cursor: this cursor belongs to another query: {clean_line(query)}"
        )
    try:
        return convert(dict(zip(Page.__struct_fields__, values, strict=True)), Page)
    except ValidationError:
        raise not_a_cursor() from None


def _print_json(search: Search, results: Results, cursor: str | None) -> None:
    hits = (hit_entry(hit, search.snippet(hit, results.query)) for hit in results.hits)
    facts = {
        "query": results.query.text,
        "complete": results.complete,
        "total_sessions": results.total_sessions,
    }
    json_list_to_stdout("hits", hits, before=facts, after={"next_cursor": cursor})


def hit_entry(hit: Hit, line: Snippet) -> dict[str, Any]:
    """Return a hit's JSON object in the output of `gemtui search --json`."""
    return {
        **fields(hit.session, "project", session="id"),
        "subagent": None if hit.file is hit.session else hit.file.id,
        "message": hit.message,
        "kind": hit.kind.word,
        **({"tool": hit.tool} if hit.tool else {}),
        **({Flag.LOST.value: True} if Flag.LOST in hit.session.flags else {}),
        "timestamp": iso(hit.time),
        "snippet": line.text,
        "spans": [list(span) for span in line.spans],
        "score": round(hit.score, 4),
    }


# --- lines ---------------------------------------------------------------------------------------


def _lines(search: Search, results: Results, ids: Collection[str]) -> Iterator[str]:
    """Yield a line for each session, followed by its hits, fitted to the terminal."""
    width, now = terminal_width(), datetime.now(UTC)
    marks = marks_of_user()
    short = short_ids(ids, [group.session.id for group in results.groups])
    for group in results.groups:
        head = _head(group, named(group.session, marks).title, short, now)
        yield head if width is None else ellipsis(head, width)
        for hit in group.hits:
            room = {} if width is None else {"width": max(20, width - _WHO - 4)}
            line = search.snippet(hit, results.query, **room)
            who = ellipsis(clean_line(hit.tool or hit.kind.word), _WHO)
            yield f"  {who:<{_WHO}}  {line.text if width is None else _marked(line)}"


def _head(group: SessionHits, title: str, ids: dict[str, str], now: datetime) -> str:
    session = group.session
    project = project_name(session.project, session.project_key)
    cells = (ids.get(session.id, session.id), relative(session.when, now), project, title)
    left_out = group.count - len(group.hits)
    more = f"  (+{counted(left_out, 'hit')})" if left_out else ""
    more += f"  [{Flag.LOST.word}]" if Flag.LOST in session.flags else ""
    return "  ".join(map(clean_line, cells)) + more


def _marked(line: Snippet) -> str:
    """Return a snippet with terminal codes that print the matches in bold."""
    pieces, at = [], 0
    for start, end in line.spans:
        pieces += [line.text[at:start], _BOLD, line.text[start:end], _PLAIN]
        at = end
    return "".join([*pieces, line.text[at:]])
