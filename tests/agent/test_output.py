"""Turns of the model, counted in a growing file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.agent.output import NewEvents, TurnWatch

HELLO = '{"type":"message","role":"assistant","content":"a \\"tool_use\\" of é","delta":true}'
NOISE = '"tool_use" that is no JSON\n["tool_result"]\n{"type":"tool_use"'


def use(id: str) -> str:
    return f'{{"type":"tool_use","tool_name":"glob","tool_id":"{id}"}}'


def result(id: str) -> str:
    return f'{{"type":"tool_result","tool_id":"{id}","status":"success"}}'


TURN = (HELLO, use("a"), use("b"), result("a"), result("b"))
SECOND = (HELLO, use("c"), result("c"))


@pytest.mark.parametrize(
    ("lines", "turns"),
    [
        ((), 0),
        ((HELLO,), 0),
        (TURN[:-1], 0),
        (TURN, 1),
        ((*TURN, use("c")), 1),
        ((*TURN, *SECOND), 2),
        ((NOISE, *TURN, result("x")), 1),
    ],
)
def test_a_turn_is_over_with_its_last_result(
    tmp_path: Path, lines: tuple[str, ...], turns: int
) -> None:
    output = tmp_path / "out"
    output.write_text("".join(f"{line}\n" for line in lines))
    assert TurnWatch(output, turns).last_is_over()
    assert not TurnWatch(output, turns + 1).last_is_over()
    assert not TurnWatch(output, None).last_is_over()


@given(cuts=st.lists(st.integers(0, 400), max_size=5))
def test_it_does_not_matter_how_the_file_grows(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    output = tmp_path_factory.mktemp("out") / "out"
    output.write_bytes(b"")
    watch = TurnWatch(output, 2)
    data = "".join(f"{line}\n" for line in (*TURN, *SECOND)).encode()
    places = [0, *sorted(min(cut, len(data) - 1) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        assert not watch.last_is_over()
        with output.open("ab") as file:
            file.write(data[start:end])
    assert watch.last_is_over()


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert not TurnWatch(tmp_path / "none", 1).last_is_over()


def test_a_call_with_half_an_emoji_counts(tmp_path: Path) -> None:
    output = tmp_path / "out"
    call = r'{"type":"tool_use","tool_name":"glob","tool_id":"a","parameters":{"pattern":"\ud83d"}}'
    output.write_text(f"{call}\n{result('a')}\n")
    assert TurnWatch(output, 1).last_is_over()
    (event, _) = NewEvents(output, "tool_use", "tool_result").read()
    assert event["parameters"] == {"pattern": "\ufffd"}


def test_events_are_read_beyond_what_is_held_in_memory(tmp_path: Path) -> None:
    output = tmp_path / "out"
    long = '{"type":"message","content":"' + "x" * 5_000_000 + '"}'
    output.write_text(f"{long}\n{use('a')}\n{long}\n{use('b')}\n")
    events = NewEvents(output, "tool_use")
    assert [each["tool_id"] for each in events.read()] == ["a", "b"]
    assert list(events.read()) == []
    assert events.size == output.stat().st_size
