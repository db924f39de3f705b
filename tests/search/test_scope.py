"""Where a search looks: by the index alone it is the same as with the summaries of all sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gemtui.kept.vault import keep_all, turn_on
from gemtui.search.results import Results
from gemtui.search.search import Search
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.newest import NewestSessions, Unsure
from gemtui.sessions.catalog.query import parse_query
from gemtui.sessions.catalog.selection import listed_sessions
from tests.search.test_oracle import indexed
from tests.sessions import logs, stores

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ADA, BOB = Path("/home/ada/parser"), Path("/home/bob")
COPIED, ASKER, CHILD, TWICE = map(stores.uuid, range(4))


@pytest.fixture
def store(home: Path) -> Path:
    """Copies, subagents, an id that two projects have, a hash for a folder."""
    gemini = home / ".gemini"
    stores.marker(gemini, "ada", str(ADA))
    stores.marker(gemini, "bob", str(BOB))
    said = [logs.user("u", "common word"), logs.gemini("g", "an answer")]
    stores.saying(gemini, COPIED, *said, key="ada")
    stores.legacy(gemini, COPIED, said, key=stores.hashed(str(ADA)))
    stores.saying(gemini, ASKER, *said, key="ada")
    stores.legacy(gemini, ASKER, [], key="ada")
    subagent(gemini, "ada", ASKER, CHILD)
    for key in ("ada", "bob"):
        other = {"projectHash": stores.hashed(str(ADA if key == "ada" else BOB))}
        stores.session(gemini, TWICE, [logs.header(TWICE, **other), *said], key=key)
        subagent(gemini, key, TWICE, f"helper-{key}")
    stores.session(gemini, stores.uuid(9), [logs.header(stores.uuid(9))], key="bob")
    return gemini


def subagent(home: Path, key: str, parent: str, id: str) -> None:
    records = [logs.header(id, kind="subagent"), logs.user("u", "a common question")]
    logs.write(home / "tmp" / key / "chats" / parent / f"{id}.jsonl", records)


@pytest.fixture
def search(store: Path, tmp_path: Path) -> Iterator[Search]:
    folder = tmp_path / "cache" / "search" / "x"
    indexed(store, folder)
    with closing(Search(folder)) as made:
        yield made


def with_all(search: Search, store: Path, project: Path | None) -> Results:
    sessions = tuple(listed_sessions(stores.read(store), project=project, hidden=True))
    *_, results = search.find(parse_query("common", now=NOW), sessions)
    return results


def by_index(search: Search, store: Path, project: Path | None) -> Results:
    with closing(Index(store, cache=None)) as index:
        scope = search.scope(index, project)
        *_, results = search.find_in(parse_query("common", now=NOW), scope)
        return results


def facts(results: Results) -> Any:
    groups = [
        (group.session.name, group.count, {(hit.file.name, hit.message) for hit in group.hits})
        for group in results.groups
    ]
    return sorted(groups), results.total_hits, results.total_sessions, results.unindexed


@pytest.mark.parametrize("project", [None, ADA, BOB, Path("/nowhere")])
def test_the_index_alone_tells_where_to_look(
    search: Search, store: Path, project: Path | None
) -> None:
    before = facts(with_all(search, store, project))
    assert facts(by_index(search, store, project)) == before
    assert before[2] == {None: 4, ADA: 3, BOB: 1}.get(project, 0)
    stores.session(store, stores.uuid(7), [logs.header(), logs.user("u", "common")], key="ada")
    (store / "tmp/ada/chats" / CHILD).with_suffix(".jsonl").unlink(missing_ok=True)
    assert facts(by_index(search, store, project)) == facts(with_all(search, store, project))


def test_a_subagent_counts_for_the_session_in_use_not_for_its_copy(
    search: Search, store: Path
) -> None:
    (group,) = [each for each in with_all(search, store, ADA).groups if each.session.id == ASKER]
    assert {hit.file.id for hit in group.hits} == {ASKER, CHILD}
    assert group.session.format == "jsonl"


def test_the_list_and_the_search_put_the_same_files_together(home: Path, tmp_path: Path) -> None:
    """With copies, in the vault too, with sessions without a header, and with ids that begin
    alike.
    """
    gemini, said = home / ".gemini", [logs.user("u", "common word"), logs.gemini("g", "an answer")]
    stores.marker(gemini, "ada", str(ADA))
    stores.saying(gemini, COPIED, *said, key="ada")
    stores.legacy(gemini, COPIED, said, key=stores.hashed(str(ADA)))
    for minute in ("2026-11-20T23-04", "2026-11-20T23-05"):
        stores.session(gemini, ASKER, said, key="ada", minute=minute)
    for end, minute in (("1", "2026-11-20T23-06"), ("2", "2026-11-20T23-07")):
        id = f"{TWICE[:-1]}{end}"
        stores.saying(gemini, id, *said, key="ada", minute=minute)
    lost = stores.saying(gemini, CHILD, *said, key="ada")
    both = stores.saying(gemini, stores.uuid(5), *said, said[0], key="ada")
    turn_on()
    keep_all(gemini)
    lost.unlink()
    replaced = both.with_suffix(".new")
    logs.write(replaced, [logs.header(stores.uuid(5)), logs.user("v", "common from the start")])
    replaced.replace(both)
    folder = tmp_path / "cache" / "search" / "x"
    indexed(gemini, folder)
    sessions = stores.read(gemini).sessions
    assert sorted(len(each.names) for each in sessions) == [1, 1, 1, 1, 1, 2, 2]
    with closing(Search(folder)) as search:
        assert facts(by_index(search, gemini, None)) == facts(with_all(search, gemini, None))
    with closing(Index(gemini, cache=tmp_path / "cache")) as index:
        listed = {each.names for each in NewestSessions(index).listed(project=None, hidden=False)}
    assert listed == {each.names for each in sessions}


def test_only_summaries_of_what_is_found_are_read(search: Search, store: Path) -> None:
    stores.session(store, stores.uuid(8), [logs.header(), logs.user("u", "rare")], key="ada")
    for number in range(20, 40):
        id = stores.uuid(number)
        stores.saying(store, id, logs.user("u", "else"), key="ada")
    with closing(Index(store, cache=None)) as index, pytest.raises(Unsure):
        Search(None).scope(index, None)
    indexed(store, search._folder)  # type: ignore[arg-type]
    with closing(Index(store, cache=None)) as index:
        *_, results = search.find_in(parse_query("rare ", now=NOW), search.scope(index, None))
        assert results.total_hits == 1
        assert len(index.known()) < 10


def test_where_a_project_is_not_known_all_sessions_are_asked(home: Path, tmp_path: Path) -> None:
    store, folder = home / ".gemini", tmp_path / "cache" / "search" / "x"
    stores.saying(store, COPIED, logs.user("u", "common"))
    indexed(store, folder)
    with closing(Search(folder)) as search, pytest.raises(Unsure):
        by_index(search, store, None)
