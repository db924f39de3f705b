"""How far a search for hits has come, in words, from its first moment to its end."""

from __future__ import annotations

import asyncio
from threading import Thread
from types import SimpleNamespace
from typing import Any

from gemtui.search.documents import DocumentKind
from gemtui.search.results import Hit, Results
from gemtui.sessions.catalog.query import Query
from gemtui.ui.draw.theme import UNICODE
from gemtui.ui.kit.reading import Reading
from gemtui.ui.sessions.hits import HitFeed
from tests.sessions.summaries import summary

QUERY = Query(text="x")


def results(**numbers: Any) -> Results:
    return Results(query=QUERY, total_sessions=2, total_hits=5, **numbers)


async def test_a_search_says_how_many_sessions_it_has_searched_and_what_it_found_so_far() -> None:
    widget: Any = SimpleNamespace(
        app=SimpleNamespace(glyphs=UNICODE), call_after_refresh=lambda drawn: drawn()
    )
    heard: list[str] = []
    feed = HitFeed(widget, lambda _first: heard.append(feed.words))
    found = [results(complete=False, unread=4), results(complete=False, unread=1)]
    search: Any = SimpleNamespace(find=lambda *_args, **_options: iter(found))
    feed.begin()
    assert feed.words == "searching…"
    reading, sessions = Reading(), [summary(f"s{at}") for at in range(5)]
    thread = Thread(target=feed.look, args=(search, QUERY, sessions, reading))
    thread.start()
    while len(heard) < 3:
        await reading_on()
    thread.join()
    assert heard[:3] == [
        "searching… 1 of 5 sessions, 5 hits in 2 sessions so far",
        "searching… 4 of 5 sessions, 5 hits in 2 sessions so far",
        "5 hits in 2 sessions, after 4 of 5 sessions",
    ]
    feed.begin()
    assert feed.words == "searching… 0 of 5 sessions"


async def reading_on() -> None:
    """Let the event loop take what the thread has found."""
    await asyncio.sleep(0.001)


def test_a_hit_is_known_by_its_place_without_looking_through_its_sessions() -> None:
    session: Any = SimpleNamespace(name="session.jsonl")  # can't be hashed
    hit = Hit(
        session=session,
        file=session,
        message="m1",
        block=0,
        kind=DocumentKind.USER,
        tool="",
        time=None,
        score=1.0,
        rank=0,
    )
    assert {hit: "its line"}[hit] == "its line"
