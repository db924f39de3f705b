"""What a search narrows down to, how hits are grouped, and what leads to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import psutil
import pytest

from gemtui.marks import Mark
from gemtui.search.results import Results, snippet
from gemtui.search.search import NO_MARKS, Search
from gemtui.sessions.catalog.query import parse_query
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.search import block_text, pattern
from tests.rows import each_row, table
from tests.search.test_oracle import indexed
from tests.sessions import logs, stores

TABLES = table("search/search.json")
NOW = datetime(2026, 11, 22, 12, tzinfo=timezone(timedelta(0)))
LONG = "字" * 20 + "0123456789" * 400
"""A word that is nearly as long as words may be."""
PARSER, NOTES, CHILD = stores.uuid(1), stores.uuid(2), stores.uuid(3)


@pytest.fixture(params=["indexed", "direct"])
def search(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[Search]:
    """A search in a small store, by its index and without one."""
    write_store(home / ".gemini")
    folder = tmp_path / "cache" / "search" / "x"
    if request.param == "indexed":
        indexed(home / ".gemini", folder)
    with closing(Search(folder)) as made:
        yield made


def write_store(home: Path) -> None:
    stores.marker(home, "proj", "/home/ada/parser")
    stores.marker(home, "notes", "/home/ada/notes")
    records = table("search/stores.json", logs.built)
    records["parser"][1]["content"][0]["text"] = f"Why does the parser fall apart? {LONG}"
    stores.session(home, PARSER, records["parser"])
    stores.session(home, NOTES, records["notes"], key="notes")
    child = [logs.header(CHILD, kind="subagent"), logs.user("u1", "Investigate the tokenizer")]
    logs.write(home / "tmp/proj/chats" / PARSER / f"{CHILD}.jsonl", child)


def ask(
    search: Search,
    home: Path,
    text: str,
    marks: Mapping[str, Mark] = NO_MARKS,
    *,
    dropped: bool = False,
) -> Results:
    sessions = stores.read(home / ".gemini").sessions
    *_, results = search.find(parse_query(text, now=NOW), sessions, marks=marks, dropped=dropped)
    return results


def found(search: Search, home: Path, text: str, *, dropped: bool = False) -> list[str]:
    hits = ask(search, home, text, dropped=dropped).hits
    return sorted(f"{hit.session.id[:8]} {hit.message} {hit.kind.word}" for hit in hits)


@each_row("text, expected", TABLES["narrowed"])
def test_fields_narrow_down(search: Search, home: Path, text: str, expected: list[str]) -> None:
    assert found(search, home, text) == sorted(expected)


@each_row(
    "text, count",
    [
        (LONG, 1),
        (LONG[:3000], 1),
        (f"apart {LONG[:-1]}", 1),
        (f'"apart {LONG}"', 1),
        (f"apart-{LONG[:300]}", 1),
        (LONG[:200] + "x" * 300, 0),
        (LONG[:300] + "x" * 300, 0),
        (f"apart-{LONG[:300]}x", 0),
    ],
)
def test_a_very_long_word_is_found_by_its_beginning(
    search: Search, home: Path, text: str, count: int
) -> None:
    assert found(search, home, text) == ["00000001 u1 user"] * count


def test_dropped_messages_are_found_if_they_are_asked_for(search: Search, home: Path) -> None:
    assert found(search, home, "secret", dropped=True) == ["00000001 u2 user"]
    assert found(search, home, "parser", dropped=True) == []


def test_tags_and_pins_are_those_of_the_caller(search: Search, home: Path) -> None:
    marks = {
        NOTES: Mark(session=NOTES, tags=("later",), archived=True),
        PARSER: Mark(session=PARSER, pinned=True),
    }

    def sessions(text: str) -> set[str]:
        return {group.session.id for group in ask(search, home, text, marks).groups}

    assert sessions("tag:later") == sessions("tag:#Later") == sessions("-is:pinned") == {NOTES}
    assert sessions("is:pinned") == sessions("-tag:later") == {PARSER}
    assert sessions("is:archived") == {NOTES}
    assert sessions("-is:archived") == {PARSER}
    assert sessions("tag:late") == set()


def test_few_hits_let_words_be_alike_and_none_lets_them_be_inside(
    search: Search, home: Path
) -> None:
    exact = ask(search, home, "apart ")
    assert exact.note is None
    alike = ask(search, home, "tokeniser ")
    assert [hit.session.id for hit in alike.hits] == [PARSER]
    assert alike.note == "no matches for “tokeniser”: showing similar words instead"
    inside = ask(search, home, "okeniz ")
    assert [hit.session.id for hit in inside.hits] == [PARSER]
    assert inside.note == "no whole words match “okeniz”: showing matches inside other words"
    assert ask(search, home, '"tokeniser"').hits == []


def test_what_subagents_say_counts_as_the_session_s_and_opens_where_it_is(
    search: Search, home: Path
) -> None:
    (group,) = ask(search, home, "tokenizer").groups
    assert group.session.id == PARSER
    (hit,) = group.hits
    assert hit.file.id == CHILD


def test_a_subagent_counts_for_the_session_of_its_own_project(home: Path) -> None:
    gemini = home / ".gemini"
    for key in ("one", "two", "three"):
        stores.marker(gemini, key, f"/home/ada/{key}")
        said = [logs.header(PARSER, projectHash=stores.hashed(f"/home/ada/{key}"))]
        stores.session(gemini, PARSER, [*said, logs.user("u", key)], key=key)
    child = [logs.header(CHILD, kind="subagent"), logs.user("u1", "Investigate")]
    logs.write(gemini / "tmp/two/chats" / PARSER / f"{CHILD}.jsonl", child)
    with closing(Search(None)) as search:
        (group,) = ask(search, home, "investigate").groups
    assert (group.session.id, group.session.project) == (PARSER, "/home/ada/two")


def test_a_hit_leads_to_a_block_of_the_transcript(search: Search, home: Path) -> None:
    hits = ask(search, home, "parser").hits + ask(search, home, "secret", dropped=True).hits
    assert {hit.kind.word for hit in hits} == {"user", "tool"}
    for hit in hits:
        with SessionLog(hit.file.path) as log:
            log.refresh()
            messages = {message.id: message for message in transcript_of(log, dropped=True)}
            block = messages[hit.message].blocks[hit.block]
            assert search.text(hit) == block_text(block)


def test_hits_are_grouped_the_newer_ones_first_where_they_fit_alike(
    search: Search, home: Path
) -> None:
    results = ask(search, home, "pars")
    assert [group.session.id for group in results.groups] == [PARSER, NOTES]
    assert [group.count for group in results.groups] == [3, 1]
    assert (results.total_sessions, results.total_hits) == (2, 4)
    scores = [hit.score for hit in results.hits]
    assert scores == sorted(scores, reverse=True)


def test_a_limit_bounds_hits_and_not_what_is_counted(search: Search, home: Path) -> None:
    sessions = stores.read(home / ".gemini").sessions
    *_, results = search.find(parse_query("pars", now=NOW), sessions, limit=1)
    assert len(results.hits) == 1
    assert results.total_hits == 4


def test_the_best_of_very_many_come_before_they_are_counted(home: Path, tmp_path: Path) -> None:
    gemini, folder = home / ".gemini", tmp_path / "cache" / "search" / "x"
    said = [logs.user(f"u{number}", f"tide {number}", number) for number in range(2_100)]
    stores.saying(gemini, PARSER, *said)
    stores.saying(gemini, NOTES, logs.user("u", "the tide"))
    indexed(gemini, folder)
    with closing(Search(folder)) as search:
        first, last = search.find(
            parse_query("tide ", now=NOW), stores.read(gemini).sessions, limit=5
        )
    assert (len(first.hits), first.complete, last.complete) == (5, False, True)
    assert first.hits == last.hits
    assert first.total_hits < last.total_hits == 2_101
    assert (last.total_sessions, last.groups[0].count) in [(2, 2_100), (2, 1)]


def test_a_file_that_has_gone_has_no_text(search: Search, home: Path) -> None:
    (hit,) = ask(search, home, "tokenizer").hits
    hit.file.path.unlink()
    assert search.text(hit) is None
    assert search.snippet(hit, parse_query("tokenizer", now=NOW)).text == ""


def test_an_absolute_path_is_marked_as_the_transcript_shows_it(home: Path, tmp_path: Path) -> None:
    stores.marker(home / ".gemini", "proj", "/home/ada/parser")
    call = logs.call("c", args={"file_path": "/home/ada/parser/src/lexer.py"})
    reply = logs.gemini("g", "", toolCalls=[call])
    stores.saying(home / ".gemini", PARSER, logs.user("u", "Read it"), reply)
    with closing(Search(tmp_path / "cache")) as search:
        (hit,) = ask(search, home, "/home/ada/parser/src/lexer.py").hits
        query = parse_query("/home/ada/parser/src/lexer.py", now=NOW)
        shown, marked = search.snippet(hit, query), search.pattern(hit, query)
    assert [shown.text[start:end] for start, end in shown.spans] == ["src/lexer.py"]
    assert marked is not None
    assert marked.search("read_file  src/lexer.py")


def test_a_search_that_was_closed_opens_its_files_again(search: Search, home: Path) -> None:
    before = found(search, home, "parser")
    handles = open_files(home.parent)
    search.close()
    assert not open_files(home.parent)
    assert found(search, home, "parser") == before
    assert open_files(home.parent) == handles


def open_files(below: Path) -> set[str]:
    return {
        each.path for each in psutil.Process().open_files() if each.path.startswith(f"{below}/")
    }


def test_a_cancelled_search_reads_no_more_files(home: Path) -> None:
    write_store(home / ".gemini")
    sessions = stores.read(home / ".gemini").sessions
    with closing(Search(None)) as search:
        query = parse_query("parser", now=NOW)
        (last,) = search.find(query, sessions, cancelled=lambda: True)
        assert (last.total_hits, last.complete) == (0, False)
        (last,) = search.find(query, sessions)
        assert (last.total_hits, last.complete) == (3, True)


def test_a_beginning_that_goes_on_in_very_many_ways_is_no_damage(
    home: Path, tmp_path: Path
) -> None:
    gemini, folder = home / ".gemini", tmp_path / "cache" / "search" / "x"
    many = " ".join(f"p{number}" for number in range(30_000))
    stores.saying(gemini, PARSER, logs.user("u", f"the {many}"), logs.user("v", "the end p"))
    indexed(gemini, folder)
    sessions = stores.read(gemini).sessions
    with closing(Search(folder)) as search:
        for text in ("the-p", "the.end-p", "x" * 255, "é" * 120, f"{'é' * 120}-é", "a-" * 400):
            *_, results = search.find(parse_query(text, now=NOW), sessions)
            assert results.total_hits == {"the-p": 2, "the.end-p": 1}.get(text, 0)
            assert (search.damage, results.unindexed) == (None, 0)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("with_index", [True, False])
def test_accents_are_found_and_marked_composed_or_not(
    home: Path, tmp_path: Path, form: Literal["NFC", "NFD"], with_index: bool
) -> None:
    texts = [normalize(each, "Un Été à Zürich") for each in ("NFC", "NFD")]
    users = [logs.user(f"u{at}", text) for at, text in enumerate(texts)]
    stores.saying(home / ".gemini", PARSER, *users)
    folder = tmp_path / "cache"
    if with_index:
        indexed(home / ".gemini", folder)
    with closing(Search(folder)) as search:
        for query, count in (("été", 2), ('"été à"', 2), ("zür", 2), ("zürich -été", 0)):
            typed = normalize(form, query)
            assert len(ask(search, home, typed).hits) == count, query
            asked = parse_query(typed, now=NOW)
            assert all(snippet(text, asked).spans for text in texts if count)
    for text in texts:
        found = pattern(normalize(form, "été à"))
        assert found is not None
        assert found.search(text)


@pytest.mark.parametrize("with_index", [True, False])
def test_symbols_are_found_and_rank_above_what_has_only_the_words(
    home: Path, tmp_path: Path, with_index: bool
) -> None:
    texts = [
        "rated ⭐️ and 🔑 today",
        "in C++ and $HOME, `a->b` #include",
        "a.b.c home, include",
        "C, i++ or ⭐",
    ]
    users = [logs.user(f"u{at}", text, seconds=at) for at, text in enumerate(texts)]
    stores.saying(home / ".gemini", PARSER, *users)
    folder = tmp_path / "cache"
    if with_index:
        indexed(home / ".gemini", folder)
    with closing(Search(folder)) as search:
        for text, best, messages in TABLES["symbols"]:
            hits = ask(search, home, text).hits
            assert sorted(hit.message for hit in hits) == messages, text
            assert best is None or hits[0].message == best, text
            query = parse_query(text, now=NOW)
            assert all(search.snippet(hit, query).spans for hit in hits), text
        marked = search.snippet(ask(search, home, "C++").hits[0], parse_query("C++", now=NOW))
        assert [marked.text[start:end] for start, end in marked.spans] == ["C++"]
