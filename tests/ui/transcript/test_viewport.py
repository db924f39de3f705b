"""Place, cursor, folds and following, without an app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as message_with
from operator import eq
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gemtui.transcript.model import Transcript
from gemtui.ui.transcript.cursor import FAILURE, NEXT_PROMPT, TOOL, Cursor, Target, next_target
from gemtui.ui.transcript.viewport import Viewport
from tests.rows import each_row, table
from tests.ui.talks import Talk, answer, built, long_talk, look, paragraphs, prompt, tool

HEIGHT = 12
TARGETS = {"prompt": NEXT_PROMPT, "tool": TOOL, "failure": FAILURE}


def page_of(talk: Talk, *, height: int = HEIGHT, width: int = 60, end: bool = False) -> Viewport:
    page = Viewport()
    page.resize(look(width), height)
    page.show(talk.now(), fresh=True, end=end)
    return page


def screen(page: Viewport) -> list[str]:
    rows = (page.row(row) for row in range(page.height))
    return ["" if place is None else place.drawn.strips[place.line].text.rstrip() for place in rows]


def jump(page: Viewport, target: Target, step: int) -> bool:
    found = next_target(page.transcript, page.cursor, target, step)
    if found is not None:
        key = page.transcript.outlines[found.message].id
        page.jump(found, key, at_top=target.at_top)
    return found is not None


def under_cursor(page: Viewport) -> str:
    """The first line of the block under the cursor that says something of its own."""
    part = page.part()
    assert part is not None
    return page.sheet.drawn(page.cursor.message).strips[part.start].text


class Story:
    """A viewport, and what the table does to it."""

    def __init__(self, story: dict[str, Any]) -> None:
        self.talk = Talk(*story["talk"]) if "talk" in story else long_talk(story["turns"])
        self.page = page_of(self.talk, height=story.get("height", HEIGHT), end="end" in story)
        self.marked: list[str] = []
        self.under = ""

    def act(self, name: str, *values: Any) -> object:
        page, talk = self.page, self.talk
        keys: dict[str, Callable[[], object]] = {
            "up": page.up,
            "down": page.down,
            "page": lambda: page.page(1),
            "page back": lambda: page.page(-1),
            "fold": page.fold,
            "fold all": page.fold_everything,
            "follow": page.follow,
            "start": page.start,
            "stay": lambda: page.move_cursor(page.cursor),
            "mark": self.mark,
            "": lambda: None,
        }
        if name in keys:
            return keys[name]()
        target, _, back = name.partition(" ")
        if target in TARGETS:
            return jump(page, TARGETS[target], -1 if back else 1)
        match name:
            case "scroll by":
                page.scroll_to(page.top + values[0])
            case "height":
                page.resize(look(), values[0])
            case "again":
                page.show(talk.now(), fresh=False)
            case "add":
                page.show(talk.add(*values), fresh=False)
            case "last":
                page.show(talk.become((*talk.messages[:-1], *values)), fresh=False)
            case "weave":
                page.show(talk.become((*values, *talk.messages)), fresh=False)
            case "keep":
                page.show(talk.become(talk.messages[: values[0]]), fresh=False)
            case _:
                raise AssertionError(name)
        return None

    def mark(self) -> None:
        self.marked, self.under = screen(self.page), under_cursor(self.page)

    def shows(self, result: object, expected: dict[str, Any]) -> dict[str, Any]:
        """What the table tells of the viewport."""
        page, lines = self.page, screen(self.page)
        text = "\n".join(lines)
        part = page.part()
        return {
            "result": result,
            "top": page.top,
            "cursor": list(page.cursor),
            "message": page.cursor.message,
            "following": page.following,
            "at end": page.at_end,
            "unseen": page.news.messages,
            "grown": page.news.grown,
            "first": lines[: len(expected.get("first", ()))],
            "last": lines[-1],
            "has": [line for line in expected.get("has", ()) if line in text],
            "lacks": [line for line in expected.get("lacks", ()) if line not in text],
            "as marked": all(map(eq, lines, self.marked)) and bool(self.marked),
            "under as marked": part is not None and under_cursor(page) == self.under,
        }


@each_row("story", table("ui/viewport.json", built))
def test_the_viewport_does_as_promised(story: dict[str, Any]) -> None:
    viewport = Story(story)
    for step, expected in story["steps"]:
        result = viewport.act(*([step] if isinstance(step, str) else step))
        shown = viewport.shows(result, expected)
        assert {name: shown[name] for name in expected} == expected, step


# --- moving ------------------------------------------------------------------------------------


def test_down_goes_from_block_to_block_and_the_block_is_whole_on_the_screen() -> None:
    page = page_of(long_talk())
    seen = []
    for _ in range(9):
        seen.append(page.cursor)
        start, end = page.stops.inside(page.cursor)
        top = page.sheet.heights.top(page.cursor.message)
        assert page.top <= top + start
        assert top + end <= page.top + HEIGHT
        page.down()
    assert seen[:6] == [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0)]
    for back in reversed(seen):
        page.up()
        assert page.cursor == back


def test_down_and_up_walk_a_tall_block_by_lines() -> None:
    page = page_of(Talk(prompt("p", "hi"), answer("a", paragraphs(20)), prompt("q", "thanks")))
    page.down()
    assert page.cursor == (1, 0)
    assert screen(page)[0] == "▌ paragraph 0"
    tops = []
    while page.cursor == (1, 0):
        tops.append(page.top)
        page.down()
    assert tops == list(range(tops[0], tops[0] + 40 - HEIGHT + 1))
    assert page.cursor == (2, 0)
    page.up()
    assert screen(page)[-2:] == ["▌ paragraph 19", ""]
    for _ in range(40 - HEIGHT):
        page.up()
    assert (page.cursor, screen(page)[0]) == ((1, 0), "▌ paragraph 0")
    page.up()
    assert page.cursor == (0, 0)


def test_pages_and_both_ends() -> None:
    page = page_of(long_talk())
    before = screen(page)
    page.page(1)
    assert screen(page)[0] == before[-1]
    page.page(-1)
    assert screen(page) == before
    for _ in range(200):
        page.page(1)
    assert page.following
    assert page.cursor == (39, 2)
    page.start()
    assert (page.top, page.cursor, page.following) == (0, (0, 0), False)


def test_scrolling_keeps_the_cursor_in_sight() -> None:
    page = page_of(long_talk())
    page.scroll_to(30)
    place = page.row(0)
    assert place is not None
    assert page.cursor == page.stops.at(place, below=True)
    page.scroll_to(0)
    assert page.cursor.message < 4


@given(
    st.lists(st.sampled_from(["up", "down", "page", "back", "fold", "tool", "end"]), max_size=25)
)
def test_the_cursor_is_always_on_a_real_block_in_sight(steps: list[str]) -> None:
    page = page_of(long_talk(6))
    act: dict[str, Callable[[], object]] = {
        "up": page.up,
        "down": page.down,
        "page": lambda: page.page(1),
        "back": lambda: page.page(-1),
        "fold": page.fold,
        "tool": lambda: jump(page, TOOL, 1),
        "end": page.follow,
    }
    for step in steps:
        act[step]()
        start, end = page.stops.inside(page.cursor)
        top = page.sheet.heights.top(page.cursor.message)
        assert top + start < page.top + HEIGHT
        assert top + end > page.top
        assert 0 <= page.top <= page.end
        part = page.part()
        assert part is not None
        assert part.block == page.cursor.block


def test_a_jump_that_comes_too_late_goes_nowhere() -> None:
    talk = long_talk()
    page = page_of(talk)
    page.show(talk.become(talk.messages[1:]), fresh=False)
    page.jump(Cursor(4, 0), "p2", at_top=True)
    page.jump(Cursor(400, 0), "p200", at_top=True)
    assert page.cursor == (0, 0)
    assert page.top == 0


# --- folding -----------------------------------------------------------------------------------


def test_folding_keeps_the_block_on_its_row() -> None:
    page = page_of(long_talk())
    jump(page, TOOL, 1)
    jump(page, TOOL, 1)
    before = screen(page)
    row = next(row for row, line in enumerate(before) if "run t1" in line)
    assert page.fold()
    assert "run t1" in screen(page)[row]
    assert any("row 5" in line for line in screen(page))
    assert page.fold()
    assert screen(page) == before


def test_folds_stay_when_the_message_changes() -> None:
    talk = long_talk(2)
    page = page_of(talk, height=40)
    jump(page, TOOL, 1)
    page.fold()
    changed = message_with(talk.messages[1], model="gemini-2.5-pro")
    page.show(talk.become((talk.messages[0], changed, *talk.messages[2:])), fresh=False)
    part = page.part()
    assert part is not None
    assert not part.folded
    assert page.cursor == (1, 2)


# --- newer states ------------------------------------------------------------------------------


def test_only_bodies_in_sight_are_read_and_unchanged_ones_never_again() -> None:
    talk = long_talk(500)
    page = page_of(talk)
    assert len(talk.reads) < 8
    talk.reads.clear()
    page.show(talk.add(prompt("new", "more")), fresh=False)
    screen(page)
    assert talk.reads == []


def test_a_call_that_an_unseen_answer_makes_is_told_of() -> None:
    talk = long_talk()
    page = page_of(talk)
    *before, last = talk.messages
    page.show(talk.become((*before, answer(last.id, *last.blocks, tool("n", "")))), fresh=False)
    assert page.news.grown


def test_what_is_still_being_read_is_no_news() -> None:
    talk = long_talk(3)
    page = Viewport()
    page.resize(look(), 100)
    page.show(talk.now(), fresh=True, loading=True)
    assert not page.following
    page.show(long_talk(30).now(), fresh=False)
    assert (page.top, page.news.messages, page.following) == (0, 0, False)


def test_what_is_shown_or_hidden_on_request_is_no_news() -> None:
    talk = long_talk()
    page = page_of(talk)
    page.show(talk.add(prompt("lost", "a lost prompt")), fresh=False, news=False)
    page.show(talk.become(talk.messages[:-1]), fresh=False, news=False)
    page.show(talk.become(()), fresh=False, news=False)
    assert page.news.messages == 0


def test_another_session_starts_anew() -> None:
    page = page_of(long_talk(), end=True)
    page.fold_everything()
    page.show(long_talk(7).now(), fresh=True)
    assert (page.top, page.cursor, page.following) == (0, (0, 0), False)
    assert page.folds.all is None


def test_a_message_that_grows_while_it_is_followed() -> None:
    talk = Talk(prompt("p", "go"), answer("a", paragraphs(3)))
    page = page_of(talk, end=True)
    for count in range(4, 30):
        page.show(talk.become((talk.messages[0], answer("a", paragraphs(count)))), fresh=False)
        assert f"▌ paragraph {count - 1}" in screen(page)
        assert page.following


# --- other sizes -------------------------------------------------------------------------------


def test_another_width_keeps_the_message_at_the_top_and_comes_back_exactly() -> None:
    talk = Talk(*(answer(f"a{n}", f"start {n} " + "many words " * 60) for n in range(20)))
    page = page_of(talk)
    page.scroll_to(page.sheet.heights.top(7) + 5)
    before, top = screen(page), page.row(0)
    assert top is not None
    for width in (*range(59, 30, -1), *range(30, 61)):
        page.resize(look(width), HEIGHT)
        place = page.row(0)
        assert place is not None
        assert place.message == top.message
    assert screen(page) == before


@given(
    cursor=st.tuples(st.integers(4, 50), st.integers(0, 2)),
    sizes=st.lists(st.tuples(st.integers(24, 120), st.integers(3, 40)), min_size=1, max_size=5),
)
def test_the_cursor_keeps_its_block_in_sight_through_other_sizes(
    cursor: tuple[int, int], sizes: list[tuple[int, int]]
) -> None:
    page = page_of(long_talk(30), width=119, height=36)
    page.go(Cursor(*cursor))
    kept = page.cursor
    for width, height in sizes:
        page.resize(look(width), height)
        assert page.cursor == kept
        top = page.sheet.heights.top(kept.message)
        start, end = (top + line for line in page.stops.inside(kept))
        assert page.top <= start
        assert min(end, start + height) <= page.top + height


def test_shown_before_there_is_a_size() -> None:
    page = Viewport()
    page.show(long_talk().now(), fresh=True, end=True)
    page.resize(look(), HEIGHT)
    assert page.at_end
    assert page.following
    assert "t19" in under_cursor(page)


def test_a_hundred_thousand_outlines_are_not_read() -> None:
    talk = long_talk(10)
    outlines = talk.now().outlines
    many = tuple(replace(outlines[n % 20], id=f"m{n}") for n in range(100_000))
    reads: list[int] = []

    def read(index: int) -> object:
        reads.append(index)
        return message_with(talk.messages[index % 20], id=f"m{index}")

    page = Viewport()
    page.resize(look(), HEIGHT)
    page.show(Transcript(outlines=many, read=read), fresh=True)  # type: ignore[arg-type]
    page.follow()
    screen(page)
    assert len(reads) < 20
