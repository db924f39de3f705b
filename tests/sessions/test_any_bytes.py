"""Whatever stands in the files of a store, the list of sessions comes, and says what it lacks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemtui.sessions.catalog.index import Index
from tests.deep import some_of
from tests.sessions.stores import MAIN, load, uuid

RECORDED = sorted(
    path.read_bytes() for path in MAIN.rglob("chats/*.json*") if path.stat().st_size < 10_000
)
KEYS = (
    "id sessionId projectHash startTime lastUpdated kind summary directories messages type content "
    "displayContent timestamp tokens input total model toolCalls status args file_path name result "
    "functionResponse response error text thought $set $rewindTo user gemini info main subagent"
)
WORDS = KEYS.split()

text = st.one_of(st.sampled_from(WORDS), st.text(max_size=5))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(), text),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def harmed(draw: st.DrawFn) -> bytes:
    """A recorded session with a piece replaced by other bytes."""
    data = draw(st.sampled_from(RECORDED))
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, len(data)))
    return data[:start] + draw(st.binary(max_size=20)) + data[end:]


@st.composite
def odd_records(draw: st.DrawFn) -> bytes:
    """Lines of JSON with the names that the CLI uses, in places where it does not use them."""
    lines: list[Any] = draw(st.lists(values, max_size=6))
    head = {"sessionId": uuid(1), "projectHash": "x"}
    return b"".join(orjson.dumps(line) + b"\n" for line in [head, *lines])


@settings(
    max_examples=some_of(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
@given(st.lists(st.one_of(st.binary(max_size=200), harmed(), odd_records()), max_size=4))
def test_any_bytes(contents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        chats = Path(folder) / ".gemini" / "tmp" / "proj" / "chats"
        chats.mkdir(parents=True)
        for number, content in enumerate(contents):
            ending = "json" if number % 2 else "jsonl"
            (chats / f"session-2026-11-20T23-04-{number:08}.{ending}").write_bytes(content)
        index = Index(Path(folder) / ".gemini", cache=Path(folder) / "cache")
        found = load(index)
        shown = [path for session in found.sessions for path in session.files]
        assert sorted([*shown, *(each.path for each in found.unreadable)]) == sorted(
            chats.iterdir()
        )
        for session in found.sessions:
            orjson.dumps(session.to_dict())
            assert index.find(str(session.path)).id == session.id
        index.close()
        again = Index(Path(folder) / ".gemini", cache=Path(folder) / "cache")
        assert load(again).sessions == found.sessions
        again.close()
