"""What all panes have in common: where headings, rules and the first column stand."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from gemtui.config import Config
from gemtui.ui.draw.theme import DARK
from gemtui.ui.transcript.view import READING
from tests.fake_cli import INIT, FakeCli, says
from tests.ui.people import NARROW, WIDE, Person, copy_store, person
from tests.ui.planners import policy

Pane = Callable[[Person], Awaitable[None]]
HUGE = (200, 50)


async def sessions(me: Person) -> None:
    await me.does("down", "Here is another.")


async def run(me: Person) -> None:
    await me.does("2", "enter starts a run")
    await me.does("'Say space 'it. enter", "Said.", "Files changed")


async def policies(me: Person) -> None:
    await me.does("3", "Command", "read_file", "4 rules")


PANES = {"sessions": sessions, "run": run, "policies": policies}


@pytest.fixture
def store(tmp_path: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with sessions, a CLI that answers, a policy, a trusted folder."""
    home = copy_store(tmp_path)
    (home / "trustedFolders.json").write_text(json.dumps({str(home): "TRUST_FOLDER"}))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home.parent))
    fake_cli(f"print:{INIT}", says("Said."), "wait")
    policy("work")
    return home


@pytest.mark.parametrize("size", [WIDE, HUGE])
@pytest.mark.parametrize("pane", PANES)
async def test_headings_and_the_rules_below_them_stand_on_the_same_rows(
    store: Path, pane: str, size: tuple[int, int]
) -> None:
    async with person(store, size, project=store) as me:
        await PANES[pane](me)
        _, headings, rules, *_ = me.text.splitlines()
        left, right = headings.split("▏")
        assert left[0] == right[0] == " "
        assert left[1:2].strip()
        assert right[1:2].strip()
        assert [set(side) for side in rules.split("▏")] == [{"─"}, {"─"}]


async def test_the_rule_below_the_part_with_the_focus_has_the_accent(store: Path) -> None:
    async with person(store, WIDE, replace(Config(), theme=DARK.name)) as me:
        await sessions(me)
        line = me.app.get_css_variables()["line"].lower()
        await me.until(lambda: _rules(me) == [DARK.accent, line])
        await me.press("tab")
        await me.until(lambda: _rules(me) == [line, DARK.accent])


def _rules(me: Person) -> list[str | None]:
    """The colours of the rules below the headings."""
    row = me.app.screen._compositor.render_strips()[2]
    inks = [part.style.color for part in row if part.style and set(part.text) == {"─"}]
    return [ink.triplet.hex if ink and ink.triplet else None for ink in inks]


async def test_on_a_huge_screen_lines_are_as_long_as_one_reads_them(store: Path) -> None:
    async with person(store, HUGE) as me:
        await sessions(me)
        assert me.view.page.look is not None
        assert me.view.page.look.width == READING
        await me.press("z")
        assert me.view.page.look.width == me.view.scrollable_size.width - 1
        await me.press("z")
        assert me.view.page.look.width == READING


async def test_on_a_small_screen_a_transcript_has_the_row_of_the_rule(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("down enter", "You")
        assert "▌ You" in me.text.splitlines()[2]
