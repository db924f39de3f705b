"""The files of tidewatch, the demo's small Python service, as its sessions find and make them."""

from __future__ import annotations

README = """\
# tidewatch

Answers when the tide is high or low, from the text tables that harbour offices publish.

    python -m tidewatch.api tables/

    $ curl localhost:8040/tides/tromso
    {"harbour": "tromso", "tides": [{"when": "2026-03-01T03:12", "height": 2.7}]}
"""

PYPROJECT = """\
[project]
name = "tidewatch"
version = "0.3.0"
requires-python = ">=3.11"

[project.optional-dependencies]
test = ["pytest"]
"""

PARSE = '''\
"""Tide tables of a harbour office: one line per high or low water."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Tide:
    harbour: str
    when: datetime
    height: float  # metres above chart datum


def parse(text: str) -> list[Tide]:
    *lines, _ = text.split("\\n")
    return [_tide(line) for line in lines if line and not line.startswith("#")]


def _tide(line: str) -> Tide:
    harbour, day, time, height = line.split()
    return Tide(harbour, datetime.fromisoformat(f"{day}T{time}"), float(height))
'''

TEST_PARSE = '''\
from datetime import datetime

import pytest

from tidewatch.parse import Tide, parse

TABLE = """\\
# harbour  day         time   metres
tromso     2026-03-01  03:12  2.7
tromso     2026-03-01  09:31  0.4
"""


def test_each_line_is_a_tide() -> None:
    assert parse(TABLE) == [
        Tide("tromso", datetime(2026, 3, 1, 3, 12), 2.7),
        Tide("tromso", datetime(2026, 3, 1, 9, 31), 0.4),
    ]


def test_an_unfinished_download_keeps_what_is_whole() -> None:
    assert len(parse(TABLE + "tromso     2026-03-0")) == 2


@pytest.mark.parametrize("line", ["tromso", "tromso 2026-03-01 late 2.7"])
def test_a_broken_line_is_an_error(line: str) -> None:
    with pytest.raises(ValueError):
        parse(f"{line}\\n")
'''

STORE = '''\
"""Parsed tables on disk, so that a restart does not fetch them again."""

import json
from datetime import datetime, timedelta
from pathlib import Path

from tidewatch.parse import Tide

KEEP = timedelta(hours=12)


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, harbour: str, tides: list[Tide], now: datetime) -> None:
        rows = [[tide.when.isoformat(), tide.height] for tide in tides]
        self._path(harbour).write_text(json.dumps({"saved": now.isoformat(), "tides": rows}))

    def load(self, harbour: str, now: datetime) -> list[Tide] | None:
        try:
            kept = json.loads(self._path(harbour).read_text())
        except FileNotFoundError:
            return None
        if now - datetime.fromisoformat(kept["saved"]) > KEEP:
            return None
        return [Tide(harbour, datetime.fromisoformat(w), h) for w, h in kept["tides"]]

    def _path(self, harbour: str) -> Path:
        return self.folder / f"{harbour}.json"
'''

TEST_STORE = """\
from datetime import datetime, timedelta
from pathlib import Path

from tidewatch.parse import Tide
from tidewatch.store import Store

NOW = datetime(2026, 3, 1, 12, 0)
TIDES = [Tide("tromso", NOW, 2.7)]


def test_a_saved_table_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save("tromso", TIDES, NOW)
    assert store.load("tromso", NOW + timedelta(hours=1)) == TIDES


def test_an_old_table_does_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save("tromso", TIDES, NOW)
    assert store.load("tromso", NOW + timedelta(days=1)) is None
"""

API = '''\
"""GET /tides/<harbour> as JSON."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from tidewatch.parse import parse
from tidewatch.store import Store

Start = Callable[[str, list[tuple[str, str]]], object]


class Api:
    def __init__(self, tables: Path, store: Store) -> None:
        self.tables, self.store = tables, store

    def __call__(self, environ: dict[str, str], start: Start) -> Iterable[bytes]:
        harbour = environ["PATH_INFO"].rsplit("/", 1)[-1]
        tides = self.store.load(harbour, datetime.now())
        if tides is None:
            text = (self.tables / f"{harbour}.txt").read_text()
            tides = parse(text)
            self.store.save(harbour, tides, datetime.now())
        rows = [{"when": f"{t.when:%Y-%m-%dT%H:%M}", "height": t.height} for t in tides]
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"harbour": harbour, "tides": rows}).encode()]
'''

TEST_API = """\
import json
from pathlib import Path

from tidewatch.api import Api
from tidewatch.store import Store


def ask(folder: Path, path: str) -> tuple[str, dict[str, object]]:
    said: list[str] = []
    api = Api(folder, Store(folder))
    body = b"".join(api({"PATH_INFO": path}, lambda status, headers: said.append(status)))
    return said[0], json.loads(body)


def test_the_tides_of_a_harbour(tmp_path: Path) -> None:
    (tmp_path / "tromso.txt").write_text("tromso 2026-03-01 03:12 2.7\\n")
    status, body = ask(tmp_path, "/tides/tromso")
    assert status == "200 OK"
    assert body["tides"] == [{"when": "2026-03-01T03:12", "height": 2.7}]
"""

MOON = '''\
"""How much of the moon is lit."""

from datetime import datetime

NEW_MOON = datetime(2000, 1, 6, 18, 14)
MONTH = 29.530588853  # days from one new moon to the next


def phase(when: datetime) -> float:
    """Where the moon is between two new moons: 0 new, 0.5 full."""
    return (when - NEW_MOON).total_seconds() / 86400 / MONTH % 1
'''
