"""Code in colours: nothing is lost, whatever the language, and the wrong text costs little."""

from __future__ import annotations

from time import thread_time

import pytest

from gemtui.text import Clean, clean
from gemtui.ui.draw.code import highlight, language_of
from gemtui.ui.draw.lines import plain
from gemtui.ui.draw.theme import Role
from tests.hostile import ATTACK
from tests.rows import each_row
from tests.ui.transcript.samples import look

_NAMES = """python javascript jsx typescript tsx json html xml css scss bash console docker yaml
    toml ini sql c cpp java kotlin go rust ruby php swift csharp lua perl markdown diff make"""
LANGUAGES = _NAMES.split()
PYTHON = '''import os


def first(x: int) -> str:
    """A docstring
    over lines."""
    return 'one'  # why


class Second:
    value = 1.5
'''


def shown(code: str, language: str) -> str:
    return "\n".join(plain(row) for row in highlight(Clean(code), Clean(language), look(80)))


@each_row("language", [*LANGUAGES, "no such language", ""])
@each_row("code", [clean(ATTACK), PYTHON * 20, "", "\n\n\n", "\tx\n", "<<A\n" * 500, "'" * 400])
def test_no_character_is_lost(code: str, language: str) -> None:
    assert shown(code, language).rstrip("\n") == code.expandtabs(4).rstrip("\n")


@each_row(
    ("text", "role"),
    [
        ("import", Role.KEYWORD),
        ("first", Role.NAME),
        ("'one'", Role.STRING),
        ("# why", Role.COMMENT),
        ("1.5", Role.NUMBER),
        ("Second", Role.NAME),
    ],
)
def test_tokens_have_roles(text: str, role: Role) -> None:
    pieces = [piece for row in highlight(Clean(PYTHON), Clean("py"), look(80)) for piece in row]
    assert next(piece.style for piece in pieces if piece.text == text) == look(80)[role]


def test_a_long_file_is_coloured_to_its_end() -> None:
    rows = list(highlight(Clean(PYTHON * 60), Clean("python"), look(80)))
    assert rows[-2][0].text == "class"
    assert rows[-2][0].style == look(80)[Role.KEYWORD]


@each_row(
    ("language", "code"),
    [
        ("java", "a b " * 3000),
        ("java", ("a b " * 15 + "\n") * 190),
        ("python", "\n" * 12_000),
        ("python", "\n " * 6_000),
        ("markdown", "\n" * 12_000),
        ("c", "\n\n" * 6_000),
        ("systemd", "a" * 12_000),
        ("make", "漢" * 12_000),
        ("ini", "=" * 12_000),
    ],
)
def test_text_that_would_hang_the_patterns_is_plain(language: str, code: str) -> None:
    start = thread_time()
    assert len(shown(code, language)) >= len(code) - 1
    assert thread_time() - start < 0.5


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "py"),
        ("Makefile", "Makefile"),
        ("x.tar.gz", "gz"),
        (r"C:\a.b\Makefile", "Makefile"),
    ],
)
def test_languages_of_files(path: str, language: str) -> None:
    assert language_of(Clean(path)) == language
