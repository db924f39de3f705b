"""The text of a call's arguments is the one that the CLI matches patterns against."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.policy.match.matching import arguments_text, json_text
from tests.rows import each_row, table

TABLES = table("policy/arguments.json")


def test_marks_stand_round_every_pair_of_the_outermost_object_only() -> None:
    text = arguments_text({"file_path": "a", "content": {"b": 1, "a": [True, None]}})
    assert text == '{\0"content":{"a":[true,null],"b":1}\0,\0"file_path":"a"\0}'


def test_no_arguments_are_an_empty_object() -> None:
    assert arguments_text({}) == "{}"


@each_row("value, text", [*TABLES["values_are_written_as_javascript_does"], (10**400, "null")])
def test_values_are_written_as_javascript_does(value: Any, text: str) -> None:
    assert json_text(value) == text


def test_keys_are_sorted_by_their_utf_16_units() -> None:
    assert json_text({"\uffff": 1, "🙂": 2, "a": 3}) == '{"a":3,"🙂":2,"\uffff":1}'


def test_values_may_be_nested_however_deep() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [{"a": deep}]
    assert arguments_text({"x": deep}).count("[") == 5000


JSON = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-(2**53), 2**53),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abé\n"), inner),
)


@given(JSON)
def test_a_value_is_the_json_of_it_with_sorted_keys(value: Any) -> None:
    assert json_text(value) == json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_says_the_same_value_again(number: float) -> None:
    assert float(json_text(number)) == number


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_numbers_are_those_of_javascript_itself() -> None:
    numbers = [
        sign * digit * 10.0**power
        for sign in (1, -1)
        for digit in (1, 1.5, 123456789.125)
        for power in range(-25, 25)
    ]
    script = "process.stdout.write(JSON.stringify(JSON.parse(process.argv[1])))"
    done = subprocess.run(
        ["node", "-e", script, json.dumps(numbers)], capture_output=True, text=True, check=True
    )
    assert f"[{','.join(map(json_text, numbers))}]" == done.stdout
