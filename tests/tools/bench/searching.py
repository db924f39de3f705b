"""Search over whole stores: making the index, asking it, asking the files, the command."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Queue
from statistics import median

import orjson
import psutil

from gemtui.search.file_list import index_folder
from gemtui.search.index import ReadIndex, WriteIndex, only_writer
from gemtui.search.indexer import Indexer, IndexerState, IndexProgress, update
from gemtui.search.matching import engine_query
from gemtui.search.results import Results
from gemtui.search.search import Search
from gemtui.sessions.catalog.catalog import Snapshot
from gemtui.sessions.catalog.index import Index
from gemtui.sessions.catalog.query import parse_query
from gemtui.sessions.read.session_log import SessionLog
from gemtui.text import counted
from tests.terminal import Terminal
from tests.tools.bench import minimal
from tests.tools.bench.commands import FLOOR, cpu
from tests.tools.bench.make_store import make_session, store_in
from tests.tools.bench.measure import Cost, Row, alone, medians, resident
from tests.tools.bench.reading import parse_lines, read_bytes
from tests.tools.bench.starting import at_rest, environ
from tests.tools.bench.used_store import make_used_store

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
TYPED = ("parser", "record tokens", RARE, "qqxxyyzz", "tool:edit file")
HITS = 200
LARGE = 20_000_000
IDLE, SILENCE, BETWEEN_KEYS = 10.0, 2.0, 0.15
CLEAR, ESCAPE, QUIT = "\x15", "\x1b", "\x11"
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
        home = store_in(folder, count, make_used_store)
        chats = next(home.glob(".gemini/tmp/*/chats"))
        small, large = (make_session(chats, size=each, seed=each) for each in (40_000, LARGE))
        _say(small, RARE)
        name = f"{count:,} sessions, {_bytes(home) / 1e6:,.0f} MB"
        yield from _indexing(home, name, min(repeat, 3))
        with closing(Index(home / ".gemini", cache=home / "cache" / "gemtui")) as store:
            snapshot = store.load(publish=lambda _: None, cancelled=lambda: False)
            yield from _asking(home, snapshot, name, repeat)
            yield from _without(home, snapshot, name, min(repeat, 3))
            yield _following(home, store, small, f"{name}: a changed session", repeat)
            yield _following(home, store, large, f"{name}: a live session of 20 MB", repeat)
            snapshot = store.load(publish=lambda _: None, cancelled=lambda: False)
        yield from _command(home, name, repeat)
        yield from _in_the_app(home, snapshot, name)


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
            plain = engine_query(parse_query(words, now=NOW))
            floor = _middle(partial(index.words.search, plain, HITS), 5 * repeat)
            cost = _middle(partial(_ask, search, snapshot, words), 5 * repeat)
            what = f"search {name}: {what}"
            yield Row(what=what, cost=cost, floor="tantivy, its best hits", least=floor.seconds)


def _ask(search: Search, snapshot: Snapshot, words: str) -> int:
    query = parse_query(words, now=NOW)
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
    """From a session that has grown to a word of it that the index finds.

    The first time is not counted: an indexer that has just started reads all of the session.
    """
    told: Queue[IndexProgress] = Queue()
    indexer = Indexer(home / ".gemini", _folder(home), told.put)
    times = []
    with closing(Search(_folder(home))) as search:
        _wait(told)
        for number in range(repeat + 1):
            word = f"followed{path.stem[-8:]}{number}"
            _say(path, word)
            began = time.perf_counter()
            snapshot = store.update([path])
            indexer.notify_changed()
            _wait(told)
            assert _ask(search, snapshot, f'"{word}"') == 1
            times.append(time.perf_counter() - began)
    indexer.stop()
    floor = _middle(partial(_replay, path), repeat)
    cost = Cost(seconds=median(times[1:]), memory=0)
    what = f"search {name} is in the index"
    return Row(what=what, cost=cost, floor="replay of the session", least=floor.seconds)


def _wait(told: Queue[IndexProgress]) -> None:
    while told.get(timeout=600).state is not IndexerState.DONE:
        pass


def _replay(path: Path) -> None:
    with SessionLog(path) as log:
        log.refresh()


def _command(home: Path, name: str, repeat: int) -> Iterator[Row]:
    asked = ("a rare word", "a common word")
    words = [("-m", "gemtui", "search", "--everywhere", "--json", QUERIES[each]) for each in asked]
    cpu(words[0], home)
    runs = [[cpu(each, home) for each in (FLOOR, *words)] for _ in range(repeat)]
    floor, *costs = medians(runs)
    for what, cost in zip(asked, costs, strict=True):
        what = f"gemtui search, {name}: {what}"
        yield Row(what=what, cost=cost, floor='python -c "import click"', least=floor.seconds)


# --- in the app ----------------------------------------------------------------------------------


def _in_the_app(home: Path, snapshot: Snapshot, name: str) -> Iterator[Row]:
    """From a key to hits on the screen, counted later; then what the app costs at rest."""
    floor = at_rest(minimal.__name__, minimal.LINE, home)
    words = [sys.executable, "-m", "gemtui"]
    with Terminal(words, environ=environ(home), folder=Path.cwd()) as terminal:
        terminal.shows(f"{sum(not each.hidden for each in snapshot.sessions):,} ")
        terminal.press("F")
        terminal.shows("search all sessions")
        times = sorted(_typed(terminal, home, snapshot))
        for what, at in (("median", 0.5), ("95 % of them", 0.95)):
            cost = Cost(seconds=times[int(at * len(times))], memory=0)
            what = f"search {name}: a key to hits on the screen, {what}"
            yield Row(what=what, cost=cost, floor="a frame of 60 a second", least=1 / 60)
        terminal.press(ESCAPE)
        terminal.hides("search all sessions")
        while terminal.read(SILENCE):
            pass
        app = psutil.Process(terminal.process.pid)
        all_of_it = [app, *app.children(recursive=True)]
        before = _cpu(all_of_it)
        time.sleep(IDLE)
        used = Cost(seconds=_cpu(all_of_it) - before, memory=0)
        what = f"search {name}: CPU of the app and its indexer at rest"
        yield Row(what=what, cost=used, floor=f"{IDLE:.0f} s", least=IDLE)
        for what, process in zip(("the app", "its indexer"), all_of_it, strict=False):
            cost = Cost(seconds=0, memory=resident(process.pid))
            what = f"search {name}: memory of {what} at rest"
            yield Row(what=what, cost=cost, floor="minimal Textual app", least_memory=floor.memory)
        terminal.press(QUIT)
        terminal.wait()


def _typed(terminal: Terminal, home: Path, snapshot: Snapshot) -> Iterator[float]:
    """The times from keys to what they find; keys that change no number are not counted."""
    with closing(Search(_folder(home))) as search:
        for word in TYPED:
            before: tuple[bytes, ...] = ()
            for end in range(1, len(word) + 1):
                query = parse_query(word[:end], now=NOW)
                found = search.find(query, snapshot.sessions, limit=HITS)
                after = tuple(_told(results).encode() for results in found)
                _wait_for_next_key(terminal)
                at, began = len(terminal.raw), time.perf_counter()
                terminal.press(word[end - 1])
                if not {*after} & {*before}:
                    _shows_any(terminal, at, after)
                    yield time.perf_counter() - began
                before = after
            terminal.press(CLEAR)


def _told(results: Results) -> str:
    """What the screen says of results; the last ones may come so soon that it says no other."""
    hits, sessions = results.total_hits, results.total_sessions
    return f"{counted(hits, 'hit')} in {counted(sessions, 'session')}"


def _shows_any(terminal: Terminal, at: int, texts: Collection[bytes]) -> None:
    """Wait until one of the texts is painted, behind the first `at` bytes of the output."""
    terminal.until(lambda: any(text in terminal.raw[at:] for text in texts), repr(texts))


def _wait_for_next_key(terminal: Terminal) -> None:
    """Let time pass as somebody does who types quickly."""
    end = time.monotonic() + BETWEEN_KEYS
    while (left := end - time.monotonic()) > 0:
        terminal.read(left)


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes)


def _middle(work: Callable[[], object], repeat: int) -> Cost:
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return Cost(seconds=median(times), memory=0)
