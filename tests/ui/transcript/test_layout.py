"""The line on the top row holds still, whatever heights turn out to be."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from gemtui.transcript.model import Outline
from gemtui.ui.transcript.layout import Anchor, Layout
from gemtui.ui.transcript.message import Drawn
from tests.ui.talks import outlines, plain_drawing

SCREEN = 10


@dataclass
class World:
    """Messages with true heights; the sheet guesses `guess` for each."""

    heights: dict[str, int]
    guess: int = 5
    room: int = 5_000
    drawn: list[str] = field(default_factory=list)

    def sheet(self) -> Layout:
        sheet = Layout(self.draw, lambda _: self.guess, room=self.room)
        self.now = sheet
        sheet.show(outlines(list(self.heights)))
        return sheet

    def draw(self, index: int) -> Drawn:
        id = self.now.outlines[index].id
        self.drawn.append(id)
        return plain_drawing(self.heights[id], id)

    def seen(self, top: int) -> list[tuple[str, int]]:
        """What is on the screen; fails where it shows an estimate."""
        rows = []
        for row in range(min(SCREEN, self.now.heights.total)):
            place = self.now.place(top + row)
            assert place is not None
            assert place.drawn.height == self.heights[self.now.outlines[place.message].id]
            rows.append((self.now.outlines[place.message].id, place.line))
        return rows


def world(heights: list[int], guess: int = 5) -> World:
    return World({f"m{index}": height for index, height in enumerate(heights)}, guess)


worlds = st.builds(world, st.lists(st.integers(1, 15), min_size=1, max_size=40), st.integers(1, 15))


def whole(world: World) -> list[tuple[str, int]]:
    return [(id, line) for id, height in world.heights.items() for line in range(height)]


@given(worlds, st.lists(st.integers(-SCREEN, SCREEN), max_size=12))
def test_what_stays_on_the_screen_moves_by_as_much_as_was_scrolled(
    world: World, moves: list[int]
) -> None:
    sheet = world.sheet()
    top = sheet.settle(Anchor(0, 0, 0), SCREEN)
    for move in moves:
        before = dict(zip(world.seen(top), range(SCREEN), strict=False))
        end = max(0, sheet.heights.total - SCREEN)
        wanted = max(0, min(top + move, end))
        moved = wanted - top
        top = sheet.settle(sheet.anchor(wanted, SCREEN), SCREEN)
        after = dict(zip(world.seen(top), range(SCREEN), strict=False))
        clamped = top in (0, max(0, sheet.heights.total - SCREEN))
        shared = before.keys() & after.keys()
        assert clamped or all(after[line] == before[line] - moved for line in shared)


@given(worlds, st.integers(0, 600))
def test_any_place_shows_a_gapless_piece_of_the_whole(world: World, line: int) -> None:
    sheet = world.sheet()
    rows = world.seen(sheet.settle(sheet.anchor(line, SCREEN), SCREEN))
    lines = whole(world)
    first = lines.index(rows[0])
    assert rows == lines[first : first + SCREEN]
    assert len(rows) == min(SCREEN, len(lines))


@given(worlds)
def test_the_end_is_the_end(world: World) -> None:
    sheet = world.sheet()
    assert world.seen(sheet.settle_end(SCREEN)) == whole(world)[-SCREEN:]


@given(worlds, st.integers(0, 600), st.lists(st.integers(1, 15), max_size=5), st.data())
def test_a_newer_state_leaves_the_screen_alone(
    world: World, line: int, more: list[int], data: st.DataObject
) -> None:
    sheet = world.sheet()
    top = sheet.settle(sheet.anchor(line, SCREEN), SCREEN)
    before = world.seen(top)
    anchor = sheet.anchor(top, SCREEN)
    gone = data.draw(st.integers(0, 2))
    old = sheet.outlines
    kept = old[: len(old) - gone] if anchor.message < len(old) - gone else old
    world.heights |= {f"n{index}": height for index, height in enumerate(more)}
    same = sheet.show((*kept, *outlines([f"n{index}" for index in range(len(more))])))
    assert same == len(kept)
    world.heights = {outline.id: world.heights[outline.id] for outline in sheet.outlines}
    top = sheet.settle(anchor, SCREEN)
    if top < max(0, sheet.heights.total - SCREEN):
        assert world.seen(top)[0] == before[0]


def test_only_what_is_in_sight_is_drawn_and_only_once() -> None:
    world_ = world([5] * 1000)
    sheet = world_.sheet()
    top = sheet.settle(Anchor(500, 0, 0), SCREEN)
    world_.seen(top)
    sheet.settle(sheet.anchor(top, SCREEN), SCREEN)
    assert world_.drawn == ["m500", "m501"]


def test_a_newer_state_keeps_the_heights_of_messages_that_moved_until_they_are_seen() -> None:
    world_ = world([5, 4, 3, 2])
    sheet = world_.sheet()
    sheet.settle(Anchor(0, 0, 0), 20)
    world_.drawn.clear()
    a, b, c, d = sheet.outlines
    changed = Outline(id=c.id, author=c.author, size=7)
    world_.heights = {"m0": 5, "x": 6, "m1": 4, "m2": 9, "m3": 2}
    assert sheet.show((a, *outlines(["x"]), b, changed, d)) == 1
    assert list(sheet.heights) == [5, 5, 4, 3, 2]
    sheet.settle(Anchor(0, 0, 0), 30)
    assert world_.drawn == ["m0", "x", "m1", "m2", "m3"]
    assert list(sheet.heights) == [5, 6, 4, 9, 2]
    world_.drawn.clear()
    assert sheet.show(sheet.outlines) == 5
    sheet.settle(Anchor(0, 0, 0), 30)
    assert world_.drawn == []


def test_drawings_are_bounded_by_their_lines() -> None:
    world_ = World({f"m{index}": 5 for index in range(100)}, room=40)
    sheet = world_.sheet()
    for index in range(100):
        sheet.settle(Anchor(index, 0, 0), SCREEN)
    world_.drawn.clear()
    sheet.settle(Anchor(93, 0, 0), SCREEN)
    assert world_.drawn == []
    sheet.settle(Anchor(0, 0, 0), SCREEN)
    assert world_.drawn == ["m0", "m1"]


def test_a_screen_of_tall_messages_is_kept_however_small_the_room() -> None:
    world_ = World({"m0": 50, "m1": 50}, room=10)
    sheet = world_.sheet()
    top = sheet.settle(Anchor(1, 0, 5), SCREEN)
    world_.seen(top)
    assert sorted(world_.drawn) == ["m0", "m1"]


def test_after_forgetting_all_a_place_keeps_its_share_of_the_message() -> None:
    world_ = world([40, 40])
    sheet = world_.sheet()
    sheet.drawn(1)
    top = sheet.settle(Anchor(1, 20, 0), SCREEN)
    assert world_.seen(top)[0] == ("m1", 20)
    sheet.forget_all()
    anchor = sheet.anchor(top, SCREEN)
    world_.heights = {"m0": 20, "m1": 20}
    assert world_.seen(sheet.settle(anchor, SCREEN))[0] == ("m1", 10)
