"""The process that keeps an index up to date: whatever happens to it, the next search is right."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue

import psutil
import pytest
import tantivy

from gemtui.jsonin import loads
from gemtui.search import read_documents
from gemtui.search import search as search_module
from gemtui.search.file_list import FileList
from gemtui.search.index import ReadIndex, WriteIndex, only_writer
from gemtui.search.indexer import Indexer, IndexerState, IndexProgress, update
from gemtui.search.search import Search
from gemtui.sessions.catalog.query import parse_query
from gemtui.sessions.read import session_log
from gemtui.sessions.store import readers
from tests.deep import a_quarter_of
from tests.patience import PATIENCE
from tests.rows import table
from tests.search.test_oracle import indexed
from tests.sessions import logs, stores

NOW = datetime(2026, 11, 22, tzinfo=UTC)


class Watched:
    """An indexer, and what it has told."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.told: Queue[IndexProgress] = Queue()
        self.indexer = Indexer(home, folder, self.told.put)

    def wait(self, state: IndexerState) -> IndexProgress:
        """The next word of this state."""
        while (progress := self.told.get(timeout=PATIENCE)).state is not state:
            pass
        return progress

    @property
    def process(self) -> psutil.Process:
        assert self.indexer._worker is not None
        return psutil.Process(self.indexer._worker.pid)


@contextmanager
def indexer(home: Path, folder: Path) -> Iterator[Watched]:
    watched = Watched(home, folder)
    try:
        yield watched
    finally:
        watched.indexer.stop()


@pytest.fixture
def store(home: Path) -> Path:
    for number in range(12):
        say(home / ".gemini", number, f"word{number} common")
    return home / ".gemini"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "search" / "x"


def say(home: Path, number: int, text: str) -> Path:
    return stores.saying(home, stores.uuid(number), logs.user("u", text))


def found(home: Path, folder: Path | None, text: str) -> tuple[set[str], int, str | None]:
    """The sessions that a new search finds, how many files the index lacks, and its damage."""
    with closing(Search(folder)) as search:
        sessions = stores.read(home).sessions
        *_, results = search.find(parse_query(f'"{text}"', now=NOW), sessions, limit=10_000)
        assert results.note is None
        return {hit.session.id for hit in results.hits}, results.unindexed, search.damage


ALL = {stores.uuid(number) for number in range(12)}


def test_a_store_is_indexed_and_followed(store: Path, folder: Path) -> None:
    with indexer(store, folder) as watched:
        assert watched.wait(IndexerState.DONE) == IndexProgress(
            state=IndexerState.DONE, done=12, total=12
        )
        assert found(store, folder, "common") == (ALL, 0, None)
        say(store, 3, "another thing")
        say(store, 12, "a new thing")
        watched.indexer.notify_changed()
        assert watched.wait(IndexerState.DONE).total == 13
    assert found(store, folder, "thing") == ({stores.uuid(3), stores.uuid(12)}, 0, None)
    assert found(store, folder, "word3") == (set(), 0, None)


def test_what_the_index_lacks_is_read_from_the_files(store: Path, folder: Path) -> None:
    indexed(store, folder)
    say(store, 3, "another thing")
    say(store, 12, "a new thing")
    assert found(store, folder, "thing") == ({stores.uuid(3), stores.uuid(12)}, 2, None)
    assert found(store, folder, "common") == (ALL - {stores.uuid(3)}, 2, None)


def test_what_the_index_holds_is_given_before_the_rest_is_read(store: Path, folder: Path) -> None:
    indexed(store, folder)
    say(store, 3, "another common thing")
    sessions, query = stores.read(store).sessions, parse_query("common ", now=NOW)
    with closing(Search(folder)) as search:
        first, second = search.find(query, sessions)
        assert (first.total_hits, first.complete) == (11, False)
        assert (second.total_hits, second.complete) == (12, True)
        (again,) = search.find(query, sessions)
        assert (again.total_hits, again.complete, again.unindexed) == (12, True, 1)


def test_many_files_without_an_index_are_read_until_there_are_hits_enough(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "AT_ONCE", 1)
    sessions, query = stores.read(store).sessions, parse_query("common ", now=NOW)
    with closing(Search(None)) as search:
        every = list(search.find(query, sessions))
        assert [each.total_hits for each in every] == list(range(13))
        assert [each.complete for each in every] == [False] * 12 + [True]
        *_, some = search.find(query, sessions, limit=3)
        assert (len(some.hits), some.complete) == (3, False)
        *_, rare = search.find(parse_query("word7 ", now=NOW), sessions, limit=3)
        assert (rare.total_hits, rare.complete) == (1, True)


def test_files_without_an_index_are_not_passed_over_for_how_words_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_module, "AT_ONCE", 1)
    home, folder = tmp_path / "other", tmp_path / "cache" / "search" / "other"
    stores.marker(home, "proj", "/home/ada/proj")
    records = table("search/stores.json", logs.built)
    for number, record in enumerate(records["odd messages"]):
        stores.saying(home, stores.uuid(number), record)
    indexed(home, folder)
    sessions = stores.read(home).sessions
    with closing(Search(folder)) as search, closing(Search(None)) as direct:
        for asked in records["asked"]:
            *_, found = search.find(parse_query(asked, now=NOW), sessions)
            *_, read = direct.find(parse_query(asked, now=NOW), sessions)
            assert found.total_hits == 1, asked
            assert [each.line for each in read.hits] == [each.line for each in found.hits], asked


def test_a_warm_start_parses_no_line(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = []

    def counted(data: bytes) -> object:
        parsed.append(data)
        return loads(data)

    monkeypatch.setattr(session_log, "loads", counted)
    indexed(store, folder)
    lines = len(parsed)
    assert lines >= 24
    indexed(store, folder)
    assert len(parsed) == lines
    changed = say(store, 3, "another thing")
    indexed(store, folder)
    assert lines < len(parsed) <= lines + 3 * len(changed.read_bytes().splitlines())


def test_sessions_that_are_gone_are_forgotten(store: Path, folder: Path) -> None:
    indexed(store, folder)
    for path in (store / "tmp/proj/chats").iterdir():
        path.unlink()
    indexed(store, folder)
    with closing(WriteIndex(folder)) as index:
        assert index.rows == {}


def test_one_writes_and_the_next_one_takes_over(store: Path, folder: Path) -> None:
    with indexer(store, folder) as first:
        first.wait(IndexerState.DONE)
        with indexer(store, folder) as second:
            second.wait(IndexerState.WAITING)
            say(store, 12, "a new thing")
            first.indexer.stop()
            assert second.wait(IndexerState.DONE).total == 13
            assert found(store, folder, "thing") == ({stores.uuid(12)}, 0, None)


def test_an_indexer_ends_with_its_parent(store: Path, folder: Path) -> None:
    with indexer(store, folder) as watched:
        watched.wait(IndexerState.DONE)
        worker = watched.indexer._worker
        assert worker is not None
        worker.finish()
        assert worker._process.wait(PATIENCE) == 0
        watched.wait(IndexerState.ENDED)


def test_a_store_that_changes_meanwhile_is_right_in_the_end(store: Path, folder: Path) -> None:
    with indexer(store, folder) as watched:
        for number in range(40):
            say(store, number % 15, f"round{number} common")
            watched.indexer.notify_changed()
            latest = found(store, folder, f"round{number}")[0]
            assert latest == {stores.uuid(number % 15)}
        while found(store, folder, "common")[1]:
            watched.wait(IndexerState.DONE)
    expected = {stores.uuid(number) for number in range(15)}
    assert found(store, folder, "common") == (expected, 0, None)


@pytest.mark.deep
def test_killed_at_any_point_the_next_search_is_right(store: Path, folder: Path) -> None:
    chosen = random.Random(7)
    for number in range(12, 80):
        say(store, number, f"word{number} common " + "much more text " * 2000)
    expected = {stores.uuid(number) for number in range(80)}
    for attempt in a_quarter_of(range(6)):
        with indexer(store, folder) as watched:
            process, enough = watched.process, chosen.randrange(200_000)
            while watched.told.empty() and bytes_in(folder) < enough:
                time.sleep(0.0005)
            process.kill()
            watched.wait(IndexerState.ENDED)
        assert found(store, folder, "common")[0] == expected
        say(store, attempt, f"attempt{attempt} common")
        assert found(store, folder, f"attempt{attempt}")[0] == {stores.uuid(attempt)}
    indexed(store, folder)
    assert found(store, folder, "common") == (expected, 0, None)
    assert found(store, folder, "word0") == (set(), 0, None)


@pytest.mark.deep
def test_killed_while_a_log_grows_the_next_search_is_right(store: Path, folder: Path) -> None:
    path, chosen = say(store, 0, "common"), random.Random(3)
    words = []
    for attempt in a_quarter_of(range(5)):
        with indexer(store, folder) as watched:
            watched.wait(IndexerState.DONE)
            for number in range(chosen.randrange(1, 20)):
                words.append(f"grown{attempt}x{number}")
                stores.append(path, logs.user(words[-1], words[-1]))
                watched.indexer.notify_changed()
                if chosen.random() < 0.3:
                    watched.wait(IndexerState.DONE)
            watched.process.kill()
            watched.wait(IndexerState.ENDED)
        assert {word for word in words if hits(store, folder, word) != 1} == set()
        assert found(store, folder, "common")[0] == ALL
    indexed(store, folder)
    assert {word for word in words if hits(store, folder, word) != 1} == set()
    assert found(store, folder, "common") == (ALL, 0, None)


def hits(home: Path, folder: Path, word: str) -> int:
    with closing(Search(folder)) as search:
        *_, results = search.find(parse_query(f'"{word}"', now=NOW), stores.read(home).sessions)
        return results.total_hits


def test_indexes_of_stores_that_are_gone_are_removed(store: Path, home: Path, folder: Path) -> None:
    gone, there, kept = (home / name / ".gemini" for name in ("gone", "there", "kept"))
    folders = {each: folder.with_name(each.parent.name) for each in (gone, there, kept)}
    for each, at in folders.items():
        say(each, 1, "common")
        with indexer(each, at) as watched:
            watched.wait(IndexerState.DONE)
    shutil.rmtree(gone)
    shutil.rmtree(kept)
    (folder.parent / "no index").mkdir()
    with only_writer(folders[kept]) as mine, indexer(store, folder) as watched:
        assert mine
        watched.wait(IndexerState.DONE)
    assert {each.name for each in folder.parent.iterdir()} == {"x", "there", "kept", "no index"}


def bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def test_a_reader_process_that_is_killed_loses_nothing(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MUCH", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with only_writer(folder), closing(WriteIndex(folder)) as index:

        def kill(done: int, total: int) -> None:
            for child in psutil.Process().children():
                with suppress(psutil.Error):
                    if f"{read_documents.__name__}:serve" in child.cmdline():
                        child.send_signal(signal.SIGKILL)

        update(index, store, told=kill)
    assert found(store, folder, "common") == (ALL, 0, None)


# --- damage --------------------------------------------------------------------------------------


def of_words(folder: Path) -> Path:
    (words,) = folder.glob("words-*")
    return words


def no_words(folder: Path) -> None:
    shutil.rmtree(of_words(folder))


def no_list(folder: Path) -> None:
    (folder / "files.sqlite3").unlink()


def foreign_list(folder: Path) -> None:
    no_list(folder)
    in_list("create table file (x)")(folder)


def in_list(sql: str) -> Callable[[Path], None]:
    """Change the list of an index behind its back."""

    def change(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "files.sqlite3")) as database, database:
            database.execute(sql)

    return change


def older_engine(folder: Path) -> None:
    of_words(folder).rename(folder / "words-0.1-x")
    in_list("update index_name set name = 'words-0.1-x'")(folder)


def garbage(name: str) -> Callable[[Path], None]:
    """Write what is no file of an index in the place of one."""

    def overwrite(folder: Path) -> None:
        (path,) = folder.glob(name)
        path.write_bytes(b"garbage" * 999)

    return overwrite


def half_a_list(folder: Path) -> None:
    os.truncate(folder / "files.sqlite3", 5000)


def foreign_words(folder: Path) -> None:
    without("*")(folder)
    schema = tantivy.SchemaBuilder().add_text_field("other").build()
    tantivy.Index(schema, path=str(of_words(folder))).writer(15_000_000, 1).commit()


def without(names: str) -> Callable[[Path], None]:
    """Remove files of the words."""

    def remove(folder: Path) -> None:
        for path in of_words(folder).glob(names):
            path.unlink()

    return remove


missing_segment = without("*.term")


@pytest.mark.parametrize(
    "damage",
    [
        garbage("files.sqlite3"),
        half_a_list,
        no_list,
        foreign_list,
        in_list("pragma user_version = 999"),
        older_engine,
        no_words,
        garbage("words-*/meta.json"),
        foreign_words,
        missing_segment,
        without("*"),
    ],
)
def test_what_is_broken_old_or_foreign_is_made_anew(
    store: Path, folder: Path, damage: Callable[[Path], None]
) -> None:
    indexed(store, folder)
    damage(folder)
    assert found(store, folder, "common")[:2] == (ALL, 12)
    with only_writer(folder), closing(WriteIndex(folder)) as index:
        update(index, store)
        if damage is not no_list:
            assert index.renewed is not None
            assert index.renewed.startswith("the search index was rebuilt: ")
    assert found(store, folder, "common") == (ALL, 0, None)


def filled(entry: Path) -> None:
    entry.mkdir()
    (entry / "inside").mkdir()


def nowhere(entry: Path) -> None:
    entry.symlink_to("nowhere")


@pytest.mark.parametrize("other", [filled, nowhere, os.mkfifo])
def test_what_is_in_the_place_of_a_file_of_the_index_makes_way(
    store: Path, folder: Path, other: Callable[[Path], None]
) -> None:
    with indexer(store, folder) as watched:
        watched.wait(IndexerState.DONE)
    names = [path.name for path in folder.iterdir() if path.is_file()]
    assert {"lock", "home", "files.sqlite3"} <= {*names}
    for name in (*names, "checked", "files.sqlite3-journal"):
        (folder / name).unlink(missing_ok=True)
        other(folder / name)
        with indexer(store, folder) as watched:
            watched.wait(IndexerState.DONE)
        assert found(store, folder, "common") == (ALL, 0, None), name


def test_words_without_a_row_in_the_list_are_removed_by_the_next_writer(
    store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexed(store, folder)
    with monkeypatch.context() as broken:
        broken.setattr(FileList, "change", full_disk)
        say(store, 3, "never listed")
        with pytest.raises(OSError, match="full"):
            indexed(store, folder)
    assert numbers(folder)[0] > numbers(folder)[1]
    indexed(store, folder)
    indexed(store, folder)
    assert numbers(folder)[0] == numbers(folder)[1]
    assert hits(store, folder, "never listed") == 1


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "full")


def numbers(folder: Path) -> tuple[set[int], set[int]]:
    """The numbers under which there are words, and those in the list."""
    with closing(ReadIndex(folder)) as index:
        listed = {number for row in index.rows.values() for number in row.numbers}
        return set(index.words.numbers()), listed


def test_an_index_that_is_deleted_while_it_is_kept_is_made_anew(store: Path, folder: Path) -> None:
    with indexer(store, folder) as watched, closing(Search(folder)) as search:
        watched.wait(IndexerState.DONE)
        sessions = stores.read(store).sessions
        query = parse_query("common ", now=NOW)
        *_, before = search.find(query, sessions)
        no_words(folder)
        *_, without = search.find(query, sessions)
        watched.wait(IndexerState.DONE)
        *_, after = search.find(query, sessions)
    assert [each.unindexed for each in (before, without, after)] == [0, 12, 0]
    assert {each.total_sessions for each in (before, without, after)} == {12}


def test_damage_that_a_search_meets_is_mended_while_the_index_is_kept(
    store: Path, folder: Path
) -> None:
    with indexer(store, folder) as watched:
        watched.wait(IndexerState.DONE)
        missing_segment(folder)
        assert found(store, folder, "common")[:2] == (ALL, 12)
        assert "rebuilt: it is corrupt" in (watched.wait(IndexerState.DONE).note or "")
        assert found(store, folder, "common") == (ALL, 0, None)


# --- where nothing can be written ----------------------------------------------------------------


def test_a_full_disk_is_said_and_done_without(store: Path, tmp_path: Path) -> None:
    for number in range(12):
        many = random.Random(number).randbytes(150_000).hex(" ", 5)
        say(store, number, f"common {many}")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400000,mode=700", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk can be made by root on Linux alone")
    try:
        folder = disk / "search" / "x"
        with indexer(store, folder) as watched:
            assert "space" in (watched.wait(IndexerState.FAILED).note or "")
        assert found(store, folder, "common")[0] == ALL
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_the_index_is_private(store: Path, folder: Path) -> None:
    indexed(store, folder)
    for private in (folder.parent, folder, of_words(folder)):
        assert private.stat().st_mode & 0o777 == 0o700
    assert (folder / "files.sqlite3").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_read_only_is_said_and_done_without(store: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    folder = closed / "search" / "x"
    if os.geteuid() == 0:
        folder = Path("/proc/nothing/x")
    with indexer(store, folder) as watched:
        assert watched.wait(IndexerState.FAILED).note
    assert found(store, folder, "common")[:2] == (ALL, 12)
