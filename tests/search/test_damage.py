"""An index with damage gives the hits that the files give, and is made anew."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gemtui.search.search import Search
from gemtui.sessions.catalog.query import parse_query
from tests.deep import DEEP
from tests.search.test_oracle import NOW, indexed
from tests.sessions import logs, stores

ASKED = ("parser ", "parser tail", '"tail of"', "praser ", "qqxxyyzz", "tool:shell", "par")
MANY = 5


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes() or b"?")
    data[len(data) // 2] ^= 0x55
    file.write_bytes(data)


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: list[Callable[[Path], object]] = [
    flip,
    lambda file: file.write_bytes(b""),
    lambda file: os.truncate(file, file.stat().st_size // 2),
    Path.unlink,
    fifo,
    folder,
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    home = tmp_path / ".gemini"
    stores.marker(home, "proj", "/home/ada/proj")
    for number in range(MANY):
        call = logs.call("t", name="run_shell_command", args={"command": f"tail {number}"})
        said = [
            logs.user("u", f"The parser {'of it ' * number}"),
            logs.gemini("g", "the tail of a parser", toolCalls=[call]),
        ]
        stores.saying(home, stores.uuid(number), *said)
    return home


def answers(search: Search, home: Path) -> list[Any]:
    snapshot = stores.read(home).sessions
    found = []
    for asked in ASKED:
        *_, results = search.find(parse_query(asked, now=NOW), snapshot, limit=50)
        assert results.complete
        found.append([(hit.file.name, hit.message, hit.block) for hit in results.hits])
    return found


def test_any_damaged_file_gives_the_hits_of_the_files_and_is_healed(
    store: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "search" / "whole"
    indexed(store, whole)
    for text in ("A parser that is replaced", "The parser of it"):
        stores.saying(store, stores.uuid(1), logs.user("u", text))
        indexed(store, whole)
    assert list(whole.rglob("*.del"))
    with closing(Search(None)) as direct:
        expected = answers(direct, store)
    assert all(expected[at] for at in (0, 1, 2, 3, 5, 6))
    with closing(Search(whole)) as search:
        assert answers(search, store) == expected
        assert search.damage is None
    files = [file for file in sorted(whole.rglob("*")) if file.is_file()]
    kinds = files if DEEP else {file.suffix or file.name: file for file in files}.values()
    for number, (file, (at, damage)) in enumerate(product(kinds, enumerate(DAMAGES))):
        broken = tmp_path / "search" / str(number)
        shutil.copytree(whole, broken)
        damage(broken / file.relative_to(whole))
        with closing(Search(broken)) as search:
            assert answers(search, store) == expected, (file.name, at)
        indexed(store, broken)
        with closing(Search(broken)) as search:
            assert answers(search, store) == expected, (file.name, at)
            assert search.damage is None, (file.name, at)
        shutil.rmtree(broken)


def test_half_an_index_gives_the_same_order(store: Path, tmp_path: Path) -> None:
    index = tmp_path / "search" / "half"
    chats = sorted((store / "tmp/proj/chats").iterdir())
    away = tmp_path / "away"
    away.mkdir()
    for file in chats[::2]:
        shutil.move(file, away)
    indexed(store, index)
    for file in away.iterdir():
        shutil.move(file, store / "tmp/proj/chats")
    with closing(Search(None)) as direct, closing(Search(index)) as half:
        assert answers(half, store) == answers(direct, store)


def test_nested_arguments_of_mcp_tools_are_found(tmp_path: Path) -> None:
    home = tmp_path / ".gemini"
    args = {"owner": "ada", "issue": {"title": "one\nzebra", "labels": ["quokka", {"n": [42]}]}}
    call = logs.call("t", name="mcp_tracker_create", args=args)
    stores.marker(home, "proj", "/home/ada/proj")
    stores.saying(home, stores.uuid(1), logs.gemini("g", "", toolCalls=[call]))
    with closing(Search(None)) as search:
        for word in ("zebra ", "quokka ", "42 ", "tracker "):
            *_, results = search.find(parse_query(word, now=NOW), stores.read(home).sessions)
            (hit,) = results.hits
            assert search.snippet(hit, parse_query(word, now=NOW)).spans, word
