"""What a row of the list of sessions looks like, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from textual.strip import Strip

from gemtui.agents import Agent
from gemtui.extension.live import LiveState
from gemtui.marks import Mark
from gemtui.sessions.catalog.columns import Sort
from gemtui.sessions.catalog.entries import ListEntry, ListQuery, SessionRow
from gemtui.sessions.catalog.listing import Days, Heading, Listing, Row, View
from gemtui.sessions.catalog.summary import Flag, Summary
from gemtui.sessions.store.store import SessionKind
from gemtui.text import Clean, clean_line
from gemtui.transcript.usage import Usage
from gemtui.ui.draw.theme import ASCII, UNICODE, Glyphs, Look, Role, plain_look
from gemtui.ui.sessions.row import RowContext, draw_heads, draw_row, row_heights
from tests.rows import each_row, table
from tests.sessions.summaries import NOW, summary

PLAIN = RowContext(query=ListQuery(""))
PARSER = summary("4ba95511", "Fix the JSONL parser", prompts=41, tools=12, tokens=212_000)


TABLE = table("ui/row.json")


def look(width: int, glyphs: Glyphs = UNICODE) -> Look:
    return plain_look(width, now=NOW, glyphs=glyphs)


def row_of(session: Summary, mark: Mark | None = None) -> Row:
    listing = Listing()
    listing.replace_all([session])
    listing.mark({} if mark is None else {mark.session: mark})
    return listing.arrange(View(everywhere=True, hidden=True)).rows[-1]


def session(changes: dict[str, Any]) -> Summary:
    """The session of the table, with these changes."""
    made: dict[str, Any] = {}
    if "flags" in changes:
        made["flags"] = frozenset(map(Flag, changes["flags"]))
    if "tokens" in changes:
        made["tokens"] = Usage(total=changes["tokens"])
    return replace(PARSER, **(changes | made))


def context(query: str, around: dict[str, Any]) -> RowContext:
    """What the table tells of the list around a row."""
    made: dict[str, Any] = {}
    if "sort" in around:
        made["sort"] = Sort(around["sort"])
    if "live" in around:
        made["live"] = LiveState(around["live"])
    return RowContext(query=ListQuery(query), **(around | made))


def marked(strips: Sequence[Strip], style_of: Look) -> list[str]:
    """What stands on the ground of a match."""
    ground = style_of[Role.MATCH].bgcolor
    parts = (part for strip in strips for part in strip)
    return [text for text, style, _ in parts if style and style.bgcolor == ground]


@each_row("promise, changes, width, options, expected", TABLE)
def test_a_row_is_drawn_as_promised(
    promise: str,
    changes: dict[str, Any],
    width: int,
    options: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    mark = None
    if "mark" in options:
        words = options["mark"]
        mark = Mark(session=PARSER.id, **(words | {"tags": tuple(words["tags"])}))
    row = row_of(session(changes), mark)
    style_of = look(width, ASCII if "ascii" in options else UNICODE)
    around = context(options.get("query", ""), options["around"])
    strips = draw_row(row, style_of, around, *row_heights([row], width))
    assert {strip.cell_length for strip in strips} == {width}
    lines = [strip.text for strip in strips]
    text = " ".join(" ".join(lines).split())
    shown = {
        "lines": lines,
        "text": text,
        "facts": lines[-1].strip(),
        "sign": lines[0][1],
        "bar": "".join(line[0] for line in lines),
        "age": lines[0].split()[-1],
        "is ascii": text.isascii(),
        "marked": marked(strips, style_of),
        "has": [words for words in expected.get("has", ()) if words in text],
        "lacks": [words for words in expected.get("lacks", ()) if words not in text],
        "facts starts": lines[-1].strip()[: len(expected.get("facts starts", ""))],
    }
    assert {name: shown[name] for name in expected} == expected, promise


@pytest.mark.parametrize(
    ("width", "sort", "heads"),
    [
        (64, "updated", "project prompts failed used"),
        (64, "tokens", "project tokens failed used"),
        (80, "updated", "project prompts failed used"),
        (84, "updated", "project prompts tools failed used"),
        (84, "tokens", "project prompts tokens failed used"),
        (84, "started", "project prompts tools failed began"),
        (130, "failures", "project model prompts tools tokens failed used"),
    ],
)
def test_columns_have_headings_above_their_numbers(width: int, sort: str, heads: str) -> None:
    around = RowContext(query=ListQuery(""), sort=Sort(sort))
    drawn = "".join(piece.text for piece in draw_heads(look(width), around))
    assert drawn.split() == heads.split()
    made = session({"prompts": 41, "tool_calls": 7, "failed_calls": 3})
    (strip,) = draw_row(row_of(made), look(width), around, 1)
    line, offset = strip.text, width - len(drawn)
    for head, number in (("prompts", "41"), ("tools", "7"), ("failed", "3")):
        if head in drawn:
            end = offset + drawn.index(head) + len(head)
            assert line[:end].endswith(f" {number}")


@pytest.mark.parametrize("width", [64, 80, 130])
def test_states_leave_room_for_the_beginning_of_the_title(width: int) -> None:
    made = session({"flags": [Flag.TORN, Flag.BURIED, Flag.GHOST, Flag.EMPTY, Flag.NOT_RESUMABLE]})
    (strip,) = draw_row(row_of(made), look(width), PLAIN, 1)
    assert PARSER.title[:19] in strip.text


def test_what_belongs_to_the_row_above_is_indented() -> None:
    row = row_of(replace(PARSER, kind=SessionKind.SUBAGENT))
    assert isinstance(row, SessionRow)
    child = replace(row, depth=1)
    first, second = draw_row(child, look(44), PLAIN, 2)
    assert first.text.startswith("   └ Fix the JSONL parser")
    assert second.text.startswith("     subagent · ")


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


def test_what_belongs_to_a_session_of_another_day_has_its_age() -> None:
    around = RowContext(query=ListQuery(""), days=Days(NOW, None))
    old = ListEntry(summary("old", hours=14), Clean("api"), "old")
    shown = [
        draw_row(SessionRow(old, old.key, depth), look(44), around, 2)[0].text for depth in (0, 1)
    ]
    assert [line.split()[-1] for line in shown] == ["22:00", "14h"]


@each_row("width", [40, 80])
def test_a_row_has_the_letter_of_its_agent_where_there_are_several(width: int) -> None:
    row = row_of(replace(PARSER, agent=Agent.CLAUDE))
    around = RowContext(query=ListQuery(""), agents=True)
    first, *_ = draw_row(row, look(width), around, *row_heights([row], width))

    assert first.text.split()[:2] == ["C", "Fix"]
