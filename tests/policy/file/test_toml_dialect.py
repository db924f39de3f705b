"""TOML as the CLI's reader takes it; each text was given to that reader as well."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gemtui.policy.file.toml_dialect import TomlError, parse_toml
from tests.deep import some_of
from tests.policy.file.cli_toml import CliToml
from tests.rows import each_row, table

TABLES = table("policy/toml_dialect.json")


@each_row("text, value", TABLES["what_the_cli_reads"])
def test_what_the_cli_reads(text: str, value: Any) -> None:
    assert parse_toml(text) == {"a": value}


@each_row("text, line, column", TABLES["what_the_cli_does_not_read_has_its_place"])
def test_what_the_cli_does_not_read_has_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert "\n" not in str(caught.value)


@each_row("text, key", TABLES["a_list_of_mixed_types_is_refused_with_its_key"])
def test_a_list_of_mixed_types_is_refused_with_its_key(text: str, key: str) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(text)
    assert caught.value.key == key


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(TomlError, match="nested too deeply"):
        parse_toml("a = " + "[" * 100_000)


def test_a_number_that_python_cannot_read_is_refused() -> None:
    with pytest.raises(TomlError, match="too many digits"):
        parse_toml(f"a = {'1' * 10_000}\n")


# --- generated files, before the CLI's own reader as well -----------------------------------------

KEYS = st.sampled_from(TABLES["keys"])
HEADERS = st.tuples(st.sampled_from(["[{}]", "[{}]", "[[{}]]", "[ {} ]", "[{}"]), KEYS).map(
    lambda pair: pair[0].format(pair[1])
)
BLANKS = st.sampled_from(TABLES["blanks"])
ENDS = st.sampled_from(TABLES["ends"])
QUOTES = st.sampled_from(['"', "'", '"""', "'''"])
INSIDE = st.lists(st.sampled_from(TABLES["pieces"]), max_size=4).map("".join)
STRINGS = st.tuples(QUOTES, INSIDE, st.sampled_from(["", "", '"', '""', "'", "''"])).map(
    lambda parts: f"{parts[0]}{parts[1]}{parts[2]}{parts[0]}"
)
DIGITS = st.text("0123456789_.eE+-x", min_size=1, max_size=6)
WORDS = st.sampled_from(TABLES["words"])
SCALARS = WORDS | WORDS | STRINGS | DIGITS


def _between(opening: str, items: st.SearchStrategy[str], closing: str) -> st.SearchStrategy[str]:
    """Items in brackets, with blanks and commas that are mostly where they should be."""
    one = st.tuples(BLANKS, items, BLANKS, st.sampled_from([",", ",", ",", "", " ,"])).map("".join)
    return st.tuples(st.lists(one, max_size=3), BLANKS).map(
        lambda parts: f"{opening}{''.join(parts[0])}{parts[1]}{closing}"
    )


def _assignments(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(KEYS, st.sampled_from([" = ", "=", " =\t", "=\n"]), values).map("".join)


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        _between("[", inner, "]")
        | st.tuples(inner, BLANKS).map(lambda pair: f"[{pair[0]}{pair[1]},{pair[0]}]")
        | _between("{", _assignments(inner), "}")
    ),
    max_leaves=4,
)
LINES = st.tuples(_assignments(VALUES) | HEADERS | st.just(""), ENDS).map("".join)
DOCUMENTS = st.lists(LINES, max_size=5).map("".join)


@pytest.fixture(scope="module")
def cli_toml(gemini_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliToml]:
    """The CLI's own reader, for all examples."""
    with CliToml(gemini_program, tmp_path_factory.mktemp("toml")) as reader:
        yield reader


def _told(value: Any) -> Any:
    """A value as the CLI's side tells it."""
    match value:
        case bool() | str():
            return value
        case int() if abs(value) >= 2**53:
            return {"unsafe": True}
        case int() | float() if math.isfinite(value):
            return {"number": value}
        case float():
            return {"number": "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"}
        case dict():
            return {"table": sorted([key, _told(each)] for key, each in value.items())}
    return [_told(each) for each in value]


def _sorted(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\r\n", "\n")
        case {"table": rows}:
            return {"table": sorted([key, _sorted(each)] for key, each in rows)}
        case list():
            return [_sorted(each) for each in value]
    return value


def _read(text: str) -> Any:
    try:
        return _told(parse_toml(text))
    except TomlError:
        return None


@settings(max_examples=some_of(300), suppress_health_check=[HealthCheck.too_slow])
@given(text=DOCUMENTS)
@example(text='a = """x""""\n')
@example(text="a = '''x'''''\n")
@example(text="a = 1\r\r\n[b]\r\r\n")
@example(text="a = 12:00:00\nb = 1\n")
@example(text="a = [nan, 1.0]\n")
@example(text="a.b = 1\n[a]\nc = 2\n[a]\n")
@example(text="[a.b]\n[a]\nb.c = 1\n")
@example(text="a = { b.c = 1, b.d = [1_], }\n")
def test_every_file_that_is_read_is_read_as_by_the_cli_s_own_reader(
    cli_toml: CliToml, text: str
) -> None:
    read = _read(text)
    assert read is None or read == _sorted(cli_toml.read(text))
