"""Commands come apart as in the CLI: the expected values are those of its own functions."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemtui.calls.shell.parser import has_redirection, parse_command, unwrapped
from gemtui.calls.shell.words import shell_words
from tests.deep import some_of
from tests.rows import each_row, table

TABLES = table("calls/parser.json")


@each_row("command, parts", TABLES["a_command_is_split_into_its_parts"])
def test_a_command_is_split_into_its_parts(command: str, parts: list[str]) -> None:
    reading = parse_command(command)
    assert reading.parsed
    assert [part.text for part in reading.parts] == parts
    assert [part.whole for part in reading.parts] == [text == command for text in parts]


@each_row("command", TABLES["what_can_not_be_parsed_has_no_parts"])
def test_what_can_not_be_parsed_has_no_parts(command: str) -> None:
    reading = parse_command(command)
    assert (reading.parsed, reading.parts, reading.roots) == (False, (), ())


@each_row("command, redirected", TABLES["redirections_are_found"])
def test_redirections_are_found(command: str, redirected: bool) -> None:
    assert has_redirection(command) is redirected
    assert parse_command(command).redirected is redirected


def test_a_part_knows_whether_it_redirects_alone() -> None:
    assert [p.redirected for p in parse_command("echo $(a > o) > x; b").parts] == [
        True,
        False,
        False,
    ]


@each_row("command, inner", TABLES["wrappers_are_opened"])
def test_wrappers_are_opened(command: str, inner: str | None) -> None:
    assert unwrapped(command) == (command if inner is None else inner)
    assert [part.inner for part in parse_command(command).parts] in ([inner], [])


@each_row("command, roots", TABLES["the_names_of_commands"])
def test_the_names_of_commands(command: str, roots: list[str]) -> None:
    assert parse_command(command).roots == tuple(roots)


@each_row("command, found", TABLES["words_are_those_of_the_package_that_the_cli_uses"])
def test_words_are_those_of_the_package_that_the_cli_uses(command: str, found: list[str]) -> None:
    assert [word.text for word in shell_words(command)] == found


@each_row("command", ["echo ${", "echo ${}", "echo ${a b}", '"${"'])
def test_a_broken_substitution_gives_no_words(command: str) -> None:
    with pytest.raises(ValueError, match="bad substitution"):
        shell_words(command)


_ODD = st.text(
    st.one_of(st.sampled_from("'\"\\$&;|<>()# \n\t`{}[]=a1*!~-"), st.characters()), max_size=60
)


@given(_ODD)
def test_no_text_is_too_odd(command: str) -> None:
    reading = parse_command(command)
    assert reading.redirected is has_redirection(command)
    assert reading.parsed or not reading.parts
    for part in reading.parts:
        assert part.text in command
        assert part.inner is None or part.inner == unwrapped(part.text)


@each_row("text", ["a;", "é;", "(", "$(", "'", "x", "\0", "< ", "\ud800"])
def test_a_very_long_text_is_read_in_bounded_work(text: str) -> None:
    command = text * some_of(160_000)
    start = time.thread_time()
    reading = parse_command(command)
    unwrapped(command)
    assert reading.text == command
    assert time.thread_time() - start < 60
