"""Chunks -> lines -> values."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent.output import Malformed, NdjsonReader, Parsed, read_ndjson

A = Parsed(data={"a": 1})
B = Parsed(data={"b": 2})
LONG = orjson.dumps({"a": "x" * 500})


async def collect(chunks: Iterable[bytes | str]) -> list[Parsed | Malformed]:
    async def source() -> AsyncIterator[bytes | str]:
        for chunk in chunks:
            yield chunk

    return [line async for line in read_ndjson(source(), limit=100)]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b'{"a":1}\n{"b":2}\n'], [A, B]),
        (["{", '"a":1', "}\n"], [A]),
        ([b'{"a":1}\n{bad json}\r\n[2]\r\n'], [A, "{bad json}", Parsed(data=[2])]),
        ([b"\n\r\n  \n", b'{"a":1}'], [A]),
        ([], []),
        ([b'{"a":1}\n{"b":'], [A, '{"b":']),
        (['{"a":"x\u2028y\u0085z"}\n'], [Parsed(data={"a": "x\u2028y\u0085z"})]),
        ([b"\xff\xfe garbage\n"], ["\ufffd\ufffd garbage"]),
        ([LONG, b'\n{"b":2}\n'], [LONG[:100].decode(), B]),
        ([bytes([byte]) for byte in LONG + b'\n{"b":2}\n'], [LONG[:100].decode(), B]),
    ],
)
async def test_lines_are_values_or_the_text_that_is_none(
    chunks: list[bytes | str], lines: list[Parsed | str]
) -> None:
    found = await collect(chunks)
    assert [each.raw if isinstance(each, Malformed) else each for each in found] == lines
    assert [each.ok for each in found] == [isinstance(each, Parsed) for each in lines]


def test_nothing_is_given_before_the_line_feed() -> None:
    reader = NdjsonReader()
    assert list(reader.feed('{"a":1}')) == []
    assert list(reader.feed("\n")) == [A]


async def test_a_line_over_the_limit_names_the_limit() -> None:
    (cut,) = await collect([LONG])
    assert isinstance(cut, Malformed)
    assert "100" in cut.error


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
