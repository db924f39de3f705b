"""A log that grows: what is new is indexed alone, and the index holds what the log says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemtui.search import indexer as module
from gemtui.search.index import WriteIndex, only_writer
from gemtui.search.indexer import Following, update
from gemtui.search.search import Search
from tests.deep import some_of
from tests.search.test_oracle import found, session, wanted, written
from tests.sessions import logs, stores

ID = stores.uuid(1)


@contextmanager
def followed(folder: Path) -> Iterator[tuple[WriteIndex, Following]]:
    with (
        only_writer(folder) as mine,
        closing(WriteIndex(folder)) as index,
        closing(Following(index)) as following,
    ):
        assert mine
        yield index, following


@settings(max_examples=some_of(60))
@given(
    before=session,
    more=st.lists(session, min_size=1, max_size=5),
    asked=st.sampled_from(("parse ", "message ", "tail x1 ")),
    dropped=st.booleans(),
)
def test_whatever_a_log_grows_by_the_index_holds_what_it_says(
    before: list[Any], more: list[list[Any]], asked: str, dropped: bool
) -> None:
    with (
        pytest.MonkeyPatch.context() as patch,
        written([before], legacy=False) as (home, (path,)),
        closing(Search(home.parent / "search" / "index")) as search,
        followed(home.parent / "search" / "index") as (index, following),
    ):
        patch.setattr(module, "_OPEN", 2)
        patch.setattr(module, "_MANY", 1)
        for records in ([], *more):
            stores.append(path, *records)
            update(index, home, following=following)
            sessions = stores.read(home).sessions
            row = index.rows[str(path)]
            assert row.size == path.stat().st_size
            assert found(search, asked, sessions, dropped) == wanted(asked, [path], dropped)
            assert search.damage is None


def test_only_the_end_of_a_log_is_indexed_again(home: Path, tmp_path: Path) -> None:
    store = home / ".gemini"
    said = [logs.user(f"u{number}", f"word{number}") for number in range(200)]
    path = stores.saying(store, ID, *said)
    with followed(tmp_path / "search" / "x") as (index, following):

        def numbers() -> tuple[int, ...]:
            update(index, store, following=following)
            return index.rows[str(path)].numbers

        first, end = numbers()
        stores.append(path, logs.user("v", "another word"))
        assert numbers() == (first, end + 1)
        stores.append(path, *(logs.user(f"v{number}", "more") for number in range(80)))
        assert numbers() == (first, end + 2, end + 3)
        stores.append(path, {"$rewindTo": "v79"})
        assert numbers() == (first, end + 2, end + 4)
        stores.append(path, {"$rewindTo": "u100"})
        assert numbers() == (end + 5, end + 6)
        path.write_bytes(path.read_bytes()[:5000] + b"\n")
        assert set(numbers()).isdisjoint(range(end + 7))


def test_a_log_that_stops_being_one_is_forgotten(home: Path, tmp_path: Path) -> None:
    store = home / ".gemini"
    path = stores.saying(store, ID, logs.user("u", "common"))
    folder = tmp_path / "search" / "x"
    with followed(folder) as (index, following), closing(Search(folder)) as search:
        update(index, store, following=following)
        assert len(found(search, "common ", stores.read(store).sessions, False)) == 1
        path.write_bytes(b"no session\n")
        update(index, store, following=following)
        assert len(index.rows[str(path)].numbers) == 1
        path.unlink()
        update(index, store, following=following)
        assert not index.rows
