"""Reading without a screen: summaries of whole stores, one large session, one huge log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson

from gemtui.sessions.catalog.index import Index
from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from tests.tools.bench.claude_store import SESSIONS as CLAUDE
from tests.tools.bench.claude_store import make_claude
from tests.tools.bench.make_store import make_session, store_in
from tests.tools.bench.measure import Cost, Row, alone, medians

SESSIONS = ".gemini/tmp/*/chats/**/*.json*"


def read_bytes(home: Path) -> None:
    """Floor: all bytes of all sessions."""
    for path in home.glob(SESSIONS):
        path.read_bytes()


def parse_lines(home: Path) -> None:
    """Floor: orjson over all lines; the other form in one piece."""
    for path in home.glob(SESSIONS):
        data = path.read_bytes()
        for line in [data] if path.suffix == ".json" else data.splitlines():
            with suppress(orjson.JSONDecodeError):  # the last one may be cut
                orjson.loads(line)


def summarise_all(home: Path) -> None:
    """What the list does after its first rows."""
    index = Index(home / ".gemini", cache=home / "cache")
    snapshot = index.load(publish=lambda snapshot: None, cancelled=lambda: False)
    assert snapshot.complete
    index.close()


def parse_file(path: Path) -> None:
    """Floor: orjson over one log, line by line, nothing kept."""
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def load_file(path: Path) -> None:
    """A whole transcript with its outlines; bodies are read when they are drawn."""
    with SessionLog(path) as log:
        log.refresh()
        assert len(transcript_of(log)) > 0


def read_bodies(path: Path) -> None:
    """Every message of a transcript, as an export reads it."""
    with SessionLog(path) as log:
        log.refresh()
        for message in transcript_of(log):
            assert message.blocks is not None


def stores(folder: Path, counts: list[int], repeat: int) -> Iterator[Row]:
    """Summaries of whole stores, first and second start."""
    for count in counts:
        home = store_in(folder, count)
        size = sum(path.stat().st_size for path in home.glob(SESSIONS))
        what = f"summaries of {count:,} sessions, {size / 1e6:,.0f} MB"
        runs = [_summaries(home) for _ in range(repeat)]
        read, parsed, first, second = medians(runs)
        for start, cost in (("first start", first), ("second start", second)):
            name = f"{what}, {start}"
            yield Row(what=name, cost=cost, floor="read all bytes", least=read.seconds)
            yield Row(what=name, cost=cost, floor="orjson over all lines", least=parsed.seconds)


def _summaries(home: Path) -> list[Cost]:
    """Both floors, the first start, the second."""
    shutil.rmtree(home / "cache", ignore_errors=True)
    return [alone(work, home) for work in (read_bytes, parse_lines, summarise_all, summarise_all)]


def of_claude(folder: Path, count: int, repeat: int) -> Iterator[Row]:
    """All sessions of a store of Claude Code's, most bytes of which are skipped."""
    home = store_in(folder, count, make_claude)
    size = sum(path.stat().st_size for path in home.glob(CLAUDE))
    runs = [[alone(work, home) for work in (parse_claude, load_claude)] for _ in range(repeat)]
    floor, loaded = medians(runs)
    what = f"load {count:,} sessions of Claude Code, {size / 1e6:,.0f} MB, no screen"
    yield Row(what=what, cost=loaded, floor="orjson over all lines", least=floor.seconds)


def parse_claude(home: Path) -> None:
    """Floor: orjson over all lines of all sessions."""
    for path in home.glob(CLAUDE):
        parse_file(path)


def load_claude(home: Path) -> None:
    """All transcripts with their outlines, one after the other."""
    for path in home.glob(CLAUDE):
        load_file(path)


def session(folder: Path, size: int, repeat: int) -> Iterator[Row]:
    """One large session."""
    path = make_session(folder, size=size)
    name = f"{size / 1e6:,.0f} MB session"
    works = (parse_file, load_file, read_bodies)
    runs = [[alone(work, path) for work in works] for _ in range(repeat)]
    floor, loaded, bodies = medians(runs)
    for what, cost in (("load", loaded), ("read every body of", bodies)):
        what = f"{what} a {name}, no screen"
        yield Row(what=what, cost=cost, floor="orjson over it", least=floor.seconds)
    path.unlink()
