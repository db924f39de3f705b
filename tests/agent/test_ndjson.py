"""Chunks -> lines -> values."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent.output import Malformed, NdjsonReader, Parsed, read_ndjson


async def collect(chunks: Iterable[bytes | str], **options: int) -> list[Parsed | Malformed]:
    async def source() -> AsyncIterator[bytes | str]:
        for chunk in chunks:
            yield chunk

    return [line async for line in read_ndjson(source(), **options)]


async def test_two_lines_are_two_objects() -> None:
    assert await collect([b'{"a":1}\n{"b":2}\n']) == [Parsed(data={"a": 1}), Parsed(data={"b": 2})]


def test_nothing_is_given_before_the_line_feed() -> None:
    reader = NdjsonReader()
    assert list(reader.feed('{"a"')) == []
    assert list(reader.feed(":1")) == []
    assert list(reader.feed("}\n")) == [Parsed(data={"a": 1})]


async def test_a_broken_line_between_good_ones() -> None:
    good, bad, last = await collect([b'{"a":1}\n{bad json}\r\n[2]\r\n'])
    assert good == Parsed(data={"a": 1})
    assert isinstance(bad, Malformed)
    assert (bad.ok, bad.raw) == (False, "{bad json}")
    assert last == Parsed(data=[2])


async def test_blank_lines_are_nothing_and_a_last_line_needs_no_line_feed() -> None:
    assert await collect([b"\n\r\n  \n", b'{"a":1}']) == [Parsed(data={"a": 1})]
    assert await collect([]) == []


async def test_a_cut_last_line_is_one_error() -> None:
    good, cut = await collect([b'{"a":1}\n{"b":'])
    assert good.ok
    assert isinstance(cut, Malformed)
    assert cut.raw == '{"b":'


async def test_separators_of_unicode_stay_inside_a_line() -> None:
    (line,) = await collect(['{"a":"x\u2028y\u0085z"}\n'])
    assert line == Parsed(data={"a": "x\u2028y\u0085z"})


async def test_bytes_that_are_no_text_are_an_error_with_replaced_bytes() -> None:
    (line,) = await collect([b"\xff\xfe garbage\n"])
    assert isinstance(line, Malformed)
    assert line.raw == "\ufffd\ufffd garbage"


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_line_over_the_limit_is_cut_and_the_next_one_is_read(size: int) -> None:
    data = orjson.dumps({"a": "x" * 500}) + b'\n{"b":2}\n'
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    cut, after = await collect(chunks, limit=100)
    assert isinstance(cut, Malformed)
    assert "100" in cut.error
    assert len(cut.raw) == 100
    assert after == Parsed(data={"b": 2})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(values=st.lists(VALUES, max_size=6), cuts=st.lists(st.integers(0, 400)))
def test_any_split_gives_the_same_values(values: list[object], cuts: list[int]) -> None:
    data = b"".join(orjson.dumps(value) + b"\n" for value in values)
    reader = NdjsonReader()
    lines: list[Parsed | Malformed] = []
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in itertools.pairwise(edges):
        lines += reader.feed(data[start:end])
    lines += reader.close()
    assert lines == [Parsed(data=value) for value in values]


@given(chunks=st.lists(st.binary(max_size=50) | st.text(max_size=20), max_size=6))
def test_any_bytes_never_raise(chunks: list[bytes | str]) -> None:
    reader = NdjsonReader(limit=40)
    lines = [line for chunk in chunks for line in reader.feed(chunk)]
    lines += reader.close()
    assert all(isinstance(line, Parsed | Malformed) for line in lines)
