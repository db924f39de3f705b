"""What a row of the list of sessions looks like, as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.strip import Strip

from gemtui.extension.live import LiveState
from gemtui.marks import Mark
from gemtui.sessions.catalog.listing import (
    Days,
    Heading,
    ListEntry,
    Listing,
    ListQuery,
    Row,
    SessionRow,
    Sort,
    View,
)
from gemtui.sessions.catalog.summary import NO_TITLE, Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.text import Clean, clean_line
from gemtui.transcript.model import Usage
from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs, Look, Role, plain_look
from gemtui.ui.sessions.row import RowContext, draw_row, row_height
from tests.rows import each_row
from tests.sessions.summaries import NOW, summary

PLAIN = RowContext(query=ListQuery(""))
PARSER = summary("4ba95511", "Fix the JSONL parser", prompts=41, tools=12, tokens=212_000)


def look(width: int, glyphs: Glyphs = UNICODE) -> Look:
    return plain_look(width, now=NOW, glyphs=glyphs)


def row_of(session: Summary, mark: Mark | None = None) -> Row:
    listing = Listing()
    listing.replace_all([session])
    listing.mark({} if mark is None else {mark.session: mark})
    return listing.arrange(View(everywhere=True, hidden=True)).rows[-1]


def drawn(
    session: Summary,
    width: int,
    around: RowContext = PLAIN,
    glyphs: Glyphs = UNICODE,
    mark: Mark | None = None,
) -> list[str]:
    row = row_of(session, mark)
    strips = draw_row(row, look(width, glyphs), around, row_height(row, width))
    assert {strip.cell_length for strip in strips} == {width}
    return [strip.text for strip in strips]


def squeezed(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def test_a_narrow_pane_has_two_lines() -> None:
    assert drawn(PARSER, 44) == [
        "   Fix the JSONL parser                  1h ",
        "   gemtui · 2.5-pro · 41 prompts · 12 tools ",
    ]


def test_facts_go_in_order_when_it_gets_narrower() -> None:
    failing = replace(PARSER, failed_calls=2, ended_badly=True)
    facts = {width: drawn(failing, width)[1].strip() for width in (63, 50, 44, 36, 24)}
    assert facts == {
        63: "gemtui · 2.5-pro · 41 prompts · 12 tools · 2 failed",
        50: "gemtui · 41 prompts · 12 tools · 2 failed",
        44: "gemtui · 41 prompts · 2 failed",
        36: "gemtui · 41 prompts · 2 failed",
        24: "2 failed",
    }


def test_a_project_that_need_not_be_named_leaves_room_for_tokens() -> None:
    around = RowContext(query=ListQuery(""), projects=False)
    assert drawn(PARSER, 50, around)[1].strip() == "2.5-pro · 41 prompts · 12 tools · 212k tokens"


def test_a_wide_pane_has_one_line_with_columns() -> None:
    assert drawn(PARSER, 80) == [
        "   Fix the JSONL parser                gemtui       41 prompts   12 tools    1h "
    ]
    failing = replace(PARSER, failed_calls=2, ended_badly=True, prompts=1)
    assert squeezed(drawn(failing, 80)) == "✗ Fix the JSONL parser gemtui 1 prompt 2 failed 1h"


def test_only_a_session_that_ended_badly_has_a_red_mark() -> None:
    went_on = drawn(replace(PARSER, failed_calls=2), 80)[0]
    assert "2 failed" in went_on
    assert not went_on.strip().startswith("✗")


def test_marks_of_the_user_give_way_to_the_title() -> None:
    mark = Mark(session="4ba95511", name="The tail", tags=("bug", "parser"), pinned=True)
    assert squeezed(drawn(PARSER, 80, mark=mark)).startswith("★ The tail #bug #parser gemtui")
    long = replace(mark, name="A name that takes all of the line")
    assert "#" not in drawn(PARSER, 80, mark=long)[0]
    title, facts = drawn(PARSER, 44, mark=mark)
    assert title.startswith("   ★ The tail")
    assert facts.strip() == "gemtui · #bug · #parser · 41 prompts"
    assert drawn(PARSER, 44, glyphs=ASCII, mark=mark)[0].startswith("   ^ The tail")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("jsonl", "Fix the JSONL parser"),
        ("umbrella", "…with an umbrella in it and mor…"),
        ("955", "id 4ba95511"),
        ("#bug", ""),
    ],
)
def test_a_row_tells_what_matches_that_it_does_not_show(words: str, why: str) -> None:
    note = "nothing here\nand then a day with an umbrella in it and more that is not of interest"
    mark = Mark(session="4ba95511", name="The tail", note=note, tags=("bug",), archived=True)
    facts = drawn(PARSER, 63, RowContext(query=ListQuery(words)), mark=mark)[1].strip()
    assert facts.startswith(f"{why} · archived" if why else "archived")


def test_a_very_wide_pane_has_all_columns() -> None:
    failing = replace(PARSER, failed_calls=2, ended_badly=True)
    assert squeezed(drawn(failing, 130)) == (
        "✗ Fix the JSONL parser gemtui 2.5-pro 41 prompts 12 tools 212k tokens 2 failed 1h"
    )


@each_row(
    ("flags", "sign", "words"),
    [
        ((Flag.LIVE,), "●", "live"),
        ((Flag.FAILED_PROMPT,), "!", "failed prompt"),
        ((Flag.TORN, Flag.BURIED), "!", "incomplete · replaced messages"),
        ((Flag.GHOST,), " ", "ghost"),
        ((Flag.EMPTY,), " ", "empty"),
        ((Flag.DUPLICATE,), " ", "copy"),
    ],
)
def test_no_sign_stands_without_a_word(flags: tuple[Flag, ...], sign: str, words: str) -> None:
    flagged = replace(PARSER, flags=frozenset(flags))
    narrow, wide = drawn(flagged, 44), drawn(flagged, 80)
    assert narrow[0][1] == wide[0][1] == sign
    assert narrow[1].strip().startswith(words)
    assert words.split(" · ")[0] in wide[0]


def test_one_that_has_ended_is_not_live_though_it_was_just_written() -> None:
    live = replace(PARSER, flags=frozenset({Flag.LIVE}), waits=True)
    ended = drawn(live, 80, RowContext(query=ListQuery(""), live=LiveState.ENDED))
    assert "live" not in ended[0]
    assert "tool active" not in ended[0]
    assert "●" not in ended[0]


def test_a_live_session_that_waits_for_a_tool_says_so() -> None:
    waiting = replace(PARSER, waits=True)
    assert "tool active" not in drawn(waiting, 44)[1]
    live = replace(waiting, flags=frozenset({Flag.LIVE}))
    assert drawn(live, 44)[1].strip().startswith("live · tool active · gemtui")
    assert "live  tool active" in drawn(live, 80)[0]


def test_words_that_say_the_same_twice_are_left_out() -> None:
    empty = replace(PARSER, title=NO_TITLE, flags=frozenset({Flag.EMPTY}), prompts=0, tool_calls=0)
    assert drawn(empty, 44)[1].strip() == "gemtui · 2.5-pro · 212k tokens"
    ghost = replace(empty, flags=frozenset({Flag.GHOST, Flag.DUPLICATE}))
    assert drawn(ghost, 44)[1].strip() == "ghost · gemtui · 2.5-pro · 212k tokens"


@each_row(
    ("total", "words"),
    [
        (0, "0 tokens"),
        (999, "999 tokens"),
        (1_900, "1.9k tokens"),
        (46_669, "47k tokens"),
        (999_499, "999k tokens"),
        (999_600, "1.0M tokens"),
        (9_484_312, "9.5M tokens"),
    ],
)
def test_tokens_are_few_characters(total: int, words: str) -> None:
    counted = replace(PARSER, tokens=Usage(total=total))
    assert drawn(counted, 63)[1].strip().endswith(f" · {words}")


def test_counts_that_are_not_known_yet_are_no_numbers() -> None:
    assert drawn(replace(PARSER, partial=True), 44)[1].strip() == (
        "gemtui · 2.5-pro · … prompts · … tools"
    )
    assert "… prompts    … tools" in drawn(replace(PARSER, partial=True), 80)[0]


def test_what_belongs_to_the_row_above_is_indented() -> None:
    child = SessionRow(row_of(replace(PARSER, kind=SessionKind.SUBAGENT)).entry, depth=1)  # type: ignore[union-attr]
    first, second = draw_row(child, look(44), PLAIN, 2)
    assert first.text.startswith("   └ Fix the JSONL parser")
    assert second.text.startswith("     subagent · ")


def test_the_cursor_is_a_bar_on_each_line() -> None:
    chosen = RowContext(query=ListQuery(""), chosen=True, focused=True)
    assert [line[0] for line in drawn(PARSER, 44, chosen)] == ["▌", "▌"]
    assert [line[0] for line in drawn(PARSER, 44, chosen, ASCII)] == [">", ">"]


def test_wide_characters_keep_the_columns_in_place() -> None:
    for title in ("日本語のREADMEを書いて、長いタイトルも試してください", "🎉👩‍👩‍👧 é"):
        for width in (30, 44, 63, 64, 80, 130):
            assert drawn(replace(PARSER, title=title), width)[0].rstrip().endswith("1h")


def test_ascii_has_no_other_signs() -> None:
    for width in (44, 80):
        for line in drawn(replace(PARSER, title="x" * 90), width, glyphs=ASCII):
            assert line.isascii()


def matches(strip: Strip, style_of: Look) -> list[str]:
    background = style_of[Role.MATCH].bgcolor
    return [text for text, style, _ in strip if style and style.bgcolor == background]


@pytest.mark.parametrize("width", [44, 80])
def test_what_was_searched_for_is_marked(width: int) -> None:
    around = RowContext(query=ListQuery("parser gem"))
    row = row_of(PARSER)
    strips = draw_row(row, look(width), around, row_height(row, width))
    assert [text for strip in strips for text in matches(strip, look(width))] == ["parser", "gem"]


@pytest.mark.parametrize("width", [44, 80])
def test_an_id_is_named_if_only_it_matches(width: int) -> None:
    around = RowContext(query=ListQuery("955"))
    row = row_of(PARSER)
    strips = draw_row(row, look(width), around, row_height(row, width))
    assert "id 4ba95511" in "".join(strip.text for strip in strips)
    assert [text for strip in strips for text in matches(strip, look(width))] == ["955"]


def test_a_heading_says_how_many_are_below_it() -> None:
    heading = Heading("/home/dev/src/gemtui", clean_line("~/src/gemtui"), 23, folded=False)
    (strip,) = draw_row(heading, look(44), PLAIN, 1)
    assert strip.text == " ▾ ~/src/gemtui                          23 "
    folded = Heading("x", heading.name, 23, folded=True)
    assert draw_row(folded, look(44), PLAIN, 1)[0].text.startswith(" ▸ ")


def test_a_long_path_loses_its_beginning() -> None:
    heading = Heading("x", Clean("/srv/very/long/path/to/a/project"), 3, folded=False)
    (strip,) = draw_row(heading, look(30), PLAIN, 1)
    assert strip.text == " ▾ …/path/to/a/project      3 "


@each_row("width", [44, 80, 130])
@each_row(
    ("sort", "shows"),
    [
        (Sort.STARTED, "began 2h"),
        (Sort.PROJECT, "gemtui"),
        (Sort.TOKENS, "212k tokens"),
        (Sort.TOOLS, "12 tools"),
        (Sort.FAILURES, "0 failed"),
    ],
)
def test_what_the_list_is_sorted_by_is_shown(width: int, sort: Sort, shows: str) -> None:
    around = RowContext(query=ListQuery(""), projects=False, sort=sort)
    assert shows in squeezed(drawn(PARSER, width, around))


@each_row("width", [44, 80, 130])
@each_row(
    ("sort", "shows"),
    [(Sort.TOKENS, "? tokens"), (Sort.TOOLS, "0 tools"), (Sort.FAILURES, "2 failed")],
)
def test_zero_and_unknown_are_shown_where_they_order_the_list(
    width: int, sort: Sort, shows: str
) -> None:
    bare = replace(PARSER, tool_calls=0, tokens=Usage(), failed_calls=2, ended_badly=True)
    around = RowContext(query=ListQuery(""), projects=False, sort=sort)
    text = squeezed(drawn(bare, width, around))
    assert shows in text
    assert "2 failed" in text


def test_what_belongs_to_a_session_of_another_day_has_its_age() -> None:
    around = RowContext(query=ListQuery(""), days=Days(NOW, None))
    old = ListEntry(summary("old", hours=14), Clean("api"), "old")
    shown = [draw_row(SessionRow(old, depth), look(44), around, 2)[0].text for depth in (0, 1)]
    assert [line.split()[-1] for line in shown] == ["22:00", "14h"]
