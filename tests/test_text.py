from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gemtui.text import (
    Clean,
    cells,
    clean,
    clean_line,
    ellipsis,
    file_name,
    one_line,
    relative,
    size,
)

CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FORBIDDEN = (set(CONTROLS) - set("\n\t")) | set(BIDI) | set("\u2028\u2029")

PIECES = ["\u2028", "\u2029", "\ud83d", "\udc00", "\r\n", "\x1b\\", "\x1b[", "\x1b]52;c;"]
PIECES += ["\x1bP", "\x1b_", "\x9b3", "\x9d0;", "\x9c", "31m", "[", "]", *CONTROLS, *BIDI]
foreign = st.lists(
    st.one_of(st.text(), st.text(st.characters()), st.sampled_from(PIECES)),
).map("".join)


@given(foreign)
def test_nothing_that_controls_a_terminal_is_left(text: str) -> None:
    cleaned = clean(text)
    assert not FORBIDDEN & set(cleaned)
    cleaned.encode()  # no lone surrogate


@given(foreign)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    assert clean_line(clean_line(text)) == clean_line(text)


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_harmless_text_is_kept_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mx", "x"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b[31", ""),
        ("\x1b[31é", "é"),
        ("\x1b", ""),
        ("\x1b(Bx\x1b7y\x1bcz", "xyz"),
        ("a\x1b]52;c;cm0gLXJm\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bPq#0;2\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e", "abcde"),
        ("a\x1b]52;c;cut short\nnext line", "a\nnext line"),
        ("a\x1b]52;c;\x1b[31mb", "ab"),
        ("\x1b\x1b[31m[31m", "[31m"),
        ("one\r\ntwo\rthree\x85four\u2028five\u2029six", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("a\x00b\x07c\x08d\x7fe\x0bf", "abcdef"),
        ("\ud800x", "\ufffdx"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("\u2066a\u2069\u200e\u061cb", "ab"),
        ("👨\u200d👩\u200d👧 نص", "👨\u200d👩\u200d👧 نص"),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "evil", ["\x9d", "\x9d\n", "\x1b]", "\x1b[", "\x1b[1", "\x1b[ ", "\x1b]a\n"]
)
def test_cleaning_takes_time_in_proportion_to_the_text(evil: str) -> None:
    def seconds(times: int) -> float:
        start = time.perf_counter()
        clean(evil * times)
        return time.perf_counter() - start

    assert min(seconds(100_000) for _ in range(3)) < 60 * min(seconds(10_000) for _ in range(3))


def test_plain_text_is_only_scanned() -> None:
    plain = "A line of plain text, as most of them are: (ä, 日本).\n" * 20_000

    def seconds(work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    fast = min(seconds(lambda: clean(plain)) for _ in range(5))
    floor = min(seconds(lambda: re.findall(r"[^\n]", plain)) for _ in range(2))
    assert fast < floor / 2


def test_clean_line_is_one_line() -> None:
    assert clean_line("  a \n\t b\r\n\u2028c\x1b[0m ") == "a b c"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "日本語 ok",
        "e\u0301",
        "👍🏽!",
        "👨\u200d👩\u200d👧",
        "❤️x",
        "🇩🇪",
        "1️⃣",
        "각",
        "हिन्दी",
        "✓●…·—",
        "ﷺ",
        "\u200b",
    ],
)
def test_cells_agree_with_what_is_drawn(text: str) -> None:
    assert cells(clean(text)) == cell_len(text)


@given(st.text(), st.integers(0, 20), st.sampled_from(["…", "...", ""]))
def test_ellipsis_never_exceeds_the_width(text: str, width: int, mark: str) -> None:
    line = clean_line(text)
    short = ellipsis(line, width, mark=mark)
    assert cells(short) <= width
    if cells(line) <= width:
        assert short == line


def test_ellipsis_cuts_at_the_end() -> None:
    assert ellipsis(Clean("hello world"), 8) == "hello w…"
    assert ellipsis(Clean("hello world"), 7) == "hello…"
    assert ellipsis(Clean("日本語"), 4) == "日…"
    assert ellipsis(Clean("hello"), 4, mark="...") == "h..."
    assert ellipsis(Clean("hello"), 2, mark="...") == ""


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(seconds=-90), "now"),
        (timedelta(seconds=59), "now"),
        (timedelta(seconds=60), "1m"),
        (timedelta(minutes=119), "1h"),
        (timedelta(hours=23, minutes=59), "23h"),
        (timedelta(days=3, hours=5), "3d"),
        (timedelta(days=7), "1w"),
        (timedelta(days=364), "52w"),
        (timedelta(days=800), "2y"),
    ],
)
def test_relative(ago: timedelta, words: str) -> None:
    now = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert relative(now - ago, now) == words


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Fix the parser", "Fix-the-parser"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\x1b]0;t\x07b\nc\u202e", "ab-c"),
        ('x<>:"/\\|?*y', "x-y"),
        ("-rf", "rf"),
        ("con.txt", "_con.txt"),
        ("trailing. ", "trailing"),
        ("...", "untitled"),
        ("", "untitled"),
        ("日本語", "日本語"),
        ("हिन्दी में", "हिन्दी-में"),
        ("Fix a[0], b=@c -- now! ❤️", "Fix-a-0-b-c-now"),
        ("snake_case.py", "snake_case.py"),
    ],
)
def test_file_name(text: str, name: str) -> None:
    assert file_name(text) == name


@given(foreign)
def test_a_file_name_is_always_one_safe_name(text: str) -> None:
    name = file_name(text)
    assert 0 < len(name.encode()) <= 151
    assert not {char for char in name if char.isascii() and not char.isalnum()} - set("._-")
    assert "--" not in name
    assert name[0] not in ".-"
    assert name[-1] not in ".-"


def test_size() -> None:
    sizes = [0, 999, 1000, 1_234_567, 999_949, 999_950, 5 * 10**9]
    assert [size(number) for number in sizes] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "999.9 kB",
        "1.0 MB",
        "5.0 GB",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("git  push ", "git  push "),
        ("a\tb\r\nc\u2028d", "a b c d"),
        ("a\x1b[31m  b\x1b]0;x\x07\u202e", "a  b"),
    ],
)
def test_a_line_that_keeps_its_blanks(text: str, line: str) -> None:
    assert one_line(text) == line
