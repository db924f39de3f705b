"""Search over whole stores: making the index, asking it, asking the files, the command."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Queue
from statistics import median

import orjson

from gemtui.search.file_list import index_folder
from gemtui.search.index import ReadIndex, WriteIndex, only_writer
from gemtui.search.indexer import Indexer, Progress, State, update
from gemtui.search.matching import engine_query
from gemtui.search.query import parse
from gemtui.search.search import Search
from gemtui.sessions.index import Index
from gemtui.sessions.records import SessionLog
from gemtui.sessions.snapshot import Snapshot
from tests.bench.listing import LOOK
from tests.bench.make_store import make_session, make_store
from tests.bench.measure import Cost, Row, alone, medians
from tests.bench.reading import parse_lines, read_bytes
from tests.bench.starting import environ

RARE = "heliotrope"
QUERIES = {
    "a rare word": RARE,
    "a common word": "parser ",
    "a beginning of words": "pa",
    "one letter": "p",
    "a phrase": '"the parser keeps"',
    "a mistyped word": "heliotorpe ",
    "inside of words": "eliotrop ",
    "words and fields": "record tool:edit is:failed after:2026-11-01 ",
}
HITS = 200
SHOWN = 30
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def _folder(home: Path) -> Path:
    return index_folder(home / "cache" / "gemtui", home / ".gemini")


def make_index(home: Path) -> None:
    """All of an index, or what changed since."""
    with only_writer(_folder(home)), closing(WriteIndex(_folder(home))) as index:
        update(index, home / ".gemini")


def rows(folder: Path, counts: list[int], repeat: int) -> Iterator[Row]:
    """Stores of several sizes; one word of all stands in a single session."""
    for count in counts:
        home = folder / f"search-{count}"
        size = make_store(home, count)
        changing = make_session(next(home.glob(".gemini/tmp/*/chats")), size=40_000, seed=99)
        _say(changing, RARE)
        name = f"{count:,} sessions, {size / 1e6:,.0f} MB"
        yield from _indexing(home, name, min(repeat, 3))
        with closing(Index(home / ".gemini", cache=home / "cache" / "gemtui")) as store:
            snapshot = store.load(publish=lambda _: None, cancelled=lambda: False)
            yield from _asking(home, snapshot, name, repeat)
            yield from _without(home, snapshot, name, min(repeat, 3))
            yield _following(home, store, changing, name, repeat)
        yield from _command(home, name, repeat)
        shutil.rmtree(home)


def _say(path: Path, text: str) -> None:
    record = {"id": text, "timestamp": "2026-11-20T12:00:00.000Z", "type": "user", "content": text}
    with path.open("ab") as file:
        file.write(orjson.dumps(record) + b"\n")


def _indexing(home: Path, name: str, repeat: int) -> Iterator[Row]:
    runs = []
    for _ in range(repeat):
        shutil.rmtree(_folder(home), ignore_errors=True)
        runs.append(
            [alone(each, home) for each in (read_bytes, parse_lines, make_index, make_index)]
        )
    read, parsed, made, again = medians(runs)
    what = f"search index of {name}"
    yield Row(what=what, cost=made, floor="read all bytes", least=read.seconds)
    yield Row(what=what, cost=made, floor="orjson over all lines", least=parsed.seconds)
    what = f"{what}, nothing changed"
    yield Row(what=what, cost=again, floor="read all bytes", least=read.seconds)
    size = Cost(seconds=0, memory=_bytes(_folder(home)))
    store = _bytes(home / ".gemini")
    yield Row(what=f"search index of {name}: size", cost=size, floor="store", least_memory=store)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _asking(home: Path, snapshot: Snapshot, name: str, repeat: int) -> Iterator[Row]:
    """Hits with the lines that fit on a screen; the floor is the engine alone."""
    with closing(Search(_folder(home))) as search, closing(ReadIndex(_folder(home))) as index:
        for what, words in QUERIES.items():
            plain = engine_query(parse(words, now=NOW))
            floor = _middle(partial(index.words.search, plain, HITS), 5 * repeat)
            cost = _middle(partial(_ask, search, snapshot, words), 5 * repeat)
            what = f"search {name}: {what}"
            yield Row(what=what, cost=cost, floor="tantivy, its best hits", least=floor.seconds)


def _ask(search: Search, snapshot: Snapshot, words: str) -> int:
    query = parse(words, now=NOW)
    *_, results = search.find(query, snapshot.sessions, limit=HITS)
    for hit in results.hits[:SHOWN]:
        search.snippet(hit, query, width=100)
    return results.total_hits


def _without(home: Path, snapshot: Snapshot, name: str, repeat: int) -> Iterator[Row]:
    with closing(Search(None)) as search:
        floor = _middle(lambda: read_bytes(home), repeat)
        for what in ("a rare word", "a common word"):
            cost = _middle(partial(_ask, search, snapshot, QUERIES[what]), repeat)
            what = f"search {name} without an index: {what}"
            yield Row(what=what, cost=cost, floor="read all bytes", least=floor.seconds)


def _following(home: Path, store: Index, path: Path, name: str, repeat: int) -> Row:
    """From a session that has grown to a word of it that the index finds."""
    told: Queue[Progress] = Queue()
    indexer = Indexer(home / ".gemini", _folder(home), told.put)
    times = []
    with closing(Search(_folder(home))) as search:
        _wait(told)
        for number in range(repeat):
            _say(path, f"followed{number}")
            began = time.perf_counter()
            snapshot = store.update([path])
            indexer.look()
            _wait(told)
            assert _ask(search, snapshot, f'"followed{number}"') == 1
            times.append(time.perf_counter() - began)
    indexer.stop()
    floor = _middle(partial(_replay, path), repeat)
    cost = Cost(seconds=median(times), memory=0)
    what = f"search {name}: a changed session is in the index"
    return Row(what=what, cost=cost, floor="replay of the session", least=floor.seconds)


def _wait(told: Queue[Progress]) -> None:
    while told.get(timeout=600).state is not State.DONE:
        pass


def _replay(path: Path) -> None:
    with SessionLog(path) as log:
        log.refresh()


def _command(home: Path, name: str, repeat: int) -> Iterator[Row]:
    look = ("-c", LOOK, str(home / ".gemini" / "tmp"))
    words = ("-m", "gemtui", "search", "--everywhere", "--json", RARE)
    runs = [[_process(each, home) for each in (look, words)] for _ in range(repeat)]
    floor, cost = medians(runs)
    yield Row(
        what=f"gemtui search, {name}", cost=cost, floor="stat of all files", least=floor.seconds
    )


def _process(words: tuple[str, ...], home: Path) -> Cost:
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], env=environ(home), capture_output=True, check=True)
    return Cost(seconds=time.perf_counter() - began, memory=0)


def _middle(work: Callable[[], object], repeat: int) -> Cost:
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return Cost(seconds=median(times), memory=0)
