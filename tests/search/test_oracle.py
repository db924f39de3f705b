"""What a search finds in any store is what reading all of it finds, with and without an index."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.search.index import WriteIndex, only_writer
from gemtui.search.indexer import update
from gemtui.search.results import Results
from gemtui.search.search import Search
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.query import parse_query
from gemtui.sessions.catalog.summary import Summary
from tests.deep import some_of
from tests.rows import table
from tests.search.oracle import everything, has
from tests.sessions import logs, stores

WORDS: list[str] = table("search/words.json")["any"]
IDS = ("a", "b", "c", "d")

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
tool = st.builds(
    lambda id, command, output, status: logs.call(
        id,
        name="run_shell_command",
        args={"command": command},
        status=status,
        result=[{"functionResponse": {"id": id, "response": {"output": output}}}],
        resultDisplay=output,
    ),
    st.sampled_from(("t1", "t2", "t3")),
    text,
    text,
    st.sampled_from(("success", "error", "cancelled")),
)
user = st.builds(logs.user, st.sampled_from(IDS), text)
gemini = st.builds(
    lambda id, said, thought, calls: logs.gemini(
        id, said, thoughts=[{"subject": thought, "description": ""}], toolCalls=calls
    ),
    st.sampled_from(IDS),
    st.one_of(st.just(""), text),
    text,
    st.lists(tool, max_size=2),
)
named = gemini.map(
    lambda record: (
        record
        | {
            "toolCalls": [],
            "content": [
                {"text": record["content"]},
                *(
                    {"functionCall": {"id": each["id"], "name": each["name"], "args": each["args"]}}
                    for each in record["toolCalls"]
                ),
            ],
        }
    )
)
message = st.one_of(user, gemini, named, st.builds(logs.info, st.sampled_from(IDS), text))
line = st.one_of(
    message,
    message,
    st.builds(lambda id: {"$rewindTo": id}, st.sampled_from((*IDS, "?"))),
    st.lists(message, max_size=3).map(lambda records: logs.restore(*records)),
    st.builds(lambda id, call: logs.reply(f"r{id}", call), st.sampled_from(IDS), st.just("t1")),
)
session = st.lists(line, max_size=9)
store = st.lists(session, min_size=1, max_size=3)
two = st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS))
query = st.one_of(
    st.sampled_from(WORDS).map(lambda word: f"{word} "),
    two.map(lambda words: f"{words[0]} {words[1]} "),
    text.map(lambda phrase: f'"{phrase}"'),
    two.filter(lambda words: words[1] != "->").map(lambda words: f"{words[0]} -{words[1]}"),
)


@contextmanager
def written(sessions: list[list[Any]], legacy: bool) -> Iterator[tuple[Path, list[Path]]]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / ".gemini"
        stores.marker(home, "proj", "/home/ada/proj")
        paths = []
        for number, records in enumerate(sessions):
            id = stores.uuid(number)
            if legacy and number == 0:
                messages = [record for record in records if "type" in record]
                paths.append(stores.legacy(home, id, messages, key="proj"))
            else:
                paths.append(stores.saying(home, id, *records))
        yield home, paths


def indexed(home: Path, folder: Path) -> None:
    with only_writer(folder) as mine:
        assert mine
        with closing(WriteIndex(folder)) as index:
            update(index, home)


NOW = datetime(2026, 11, 22, tzinfo=UTC)


def found(search: Search, asked: str, sessions: tuple[Summary, ...], dropped: bool) -> set[Any]:
    *_, results = search.find(parse_query(asked, now=NOW), sessions, limit=10_000, dropped=dropped)
    return facts(search, results)


def found_by_index(search: Search, asked: str, home: Path, dropped: bool) -> set[Any]:
    """What is found without the summaries of all sessions."""
    with closing(Index(home, cache=None)) as index:
        scope = search.scope(index, None)
        query = parse_query(asked, now=NOW)
        *_, results = search.find_in(query, scope, limit=10_000, dropped=dropped)
        return facts(search, results)


def facts(search: Search, results: Results) -> set[Any]:
    if results.note is not None:
        return set()
    assert results.complete
    assert results.total_hits == len(results.hits)
    assert results.total_sessions == len({hit.session.name for hit in results.hits})
    hits = [
        (hit.file.name, hit.message, hit.block, hit.kind.word, search.text(hit))
        for hit in results.hits
    ]
    assert len(set(hits)) == len(hits)
    return set(hits)


def wanted(asked: str, paths: list[Path], dropped: bool) -> set[Any]:
    yes, no = asked, []
    if " -" in asked.replace(" ->", " "):
        yes, _, excluded = asked.rpartition(" -")
        no = [excluded]
    terms = [yes] if '"' in yes else yes.split()
    return {
        (each.file, each.message, each.block, each.kind, each.text)
        for path in paths
        for each in everything(path)
        if each.dropped is dropped
        and all(has(each.text, term) for term in terms)
        and not any(has(each.text, term, exactly=True) for term in no)
    }


@settings(max_examples=some_of(120))
@given(sessions=store, asked=query, legacy=st.booleans(), dropped=st.booleans(), more=session)
def test_a_search_finds_what_reading_everything_finds(
    sessions: list[list[Any]], asked: str, legacy: bool, dropped: bool, more: list[Any]
) -> None:
    with written(sessions, legacy) as (home, paths), closing(Search(None)) as direct:

        def check(search: Search, *, by_index: bool = False) -> None:
            snapshot = stores.read(home).sessions
            names = {each.name for each in snapshot}
            readable = [path for path in paths if str(path) in names]
            expected = wanted(asked, readable, dropped)
            assert found(search, asked, snapshot, dropped) == expected
            if by_index:
                assert found_by_index(search, asked, home, dropped) == expected

        folder = home.parent / "search" / "index"
        check(direct)
        indexed(home, folder)
        with closing(Search(folder)) as search:
            check(search, by_index=True)
            assert search.damage is None
            stores.append(paths[-1], *more)
            check(search, by_index=True)
            indexed(home, folder)
            check(search, by_index=True)
            paths[0].unlink()
            check(search, by_index=True)
            indexed(home, folder)
            check(search, by_index=True)
            assert search.damage is None
