"""TOML as the CLI's reader takes it; each text was given to that reader as well."""

from __future__ import annotations

from typing import Any

import pytest

from gemtui.policy.file.toml_dialect import TomlError, parse_toml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = { b = 1, }\n", {"b": 1}),
        ("a = { b = { c = 'x, }', }, }\n", {"b": {"c": "x, }"}}),
        ("a = 1  # bell \x07\n", 1),
        ("a = 1_0\r\n", 10),
        ("a = 1.0\n", 1.0),
        ("a = 'x, }'\n", "x, }"),
        ('a = """\n, }"""\n', ", }"),
        ("a = [[1], ['x']]\n", [[1], ["x"]]),
        ("a = []\n", []),
    ],
)
def test_what_the_cli_reads(text: str, value: Any) -> None:
    assert parse_toml(text) == {"a": value}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("\ufeffa = 1\n", 1, 1),
        ("a = 1\nb = \n", 2, 5),
        ("a = 1\na = 2\n", 2, 6),
        ("a = 1\nb = 'x", 2, 7),
        ("[[rule]\n", 1, 7),
        ("a = { b = 1, }\nc = \n", 2, 5),
        ('a = "\x01"\n', 1, 6),
        ("a = { b = 1,\n c = 2 }\n", 1, 13),
    ],
)
def test_what_the_cli_does_not_read_has_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a = [1, 'x']\n", ("a",)),
        ("a = [1, 1.5]\n", ("a",)),
        ("a = [true, 1]\n", ("a",)),
        ("a = [{}, []]\n", ("a",)),
        ("[[rule]]\n[[rule]]\ntoolName = ['x', 1]\n", ("rule", 1, "toolName")),
        ("[[rule]]\ntoolAnnotations = { a = [1, 'x'] }\n", ("rule", 0, "toolAnnotations", "a")),
    ],
)
def test_a_list_of_mixed_types_is_refused_with_its_path(
    text: str, path: tuple[str | int, ...]
) -> None:
    with pytest.raises(TomlError) as caught:
        parse_toml(text)
    assert caught.value.path == path


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(TomlError, match="nested too deeply"):
        parse_toml("a = " + "[" * 100_000)


def test_a_number_that_python_cannot_read_is_refused() -> None:
    with pytest.raises(TomlError, match="too many digits"):
        parse_toml(f"a = {'1' * 10_000}\n")
