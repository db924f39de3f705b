"""The README's pictures, drawn by the real app on the demo store.

    python -m tests.tools.pictures

writes them into `assets/`; the same program gives the same bytes.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.theme import Theme

from gemtui.config import Config
from gemtui.demo import POLICIES, PROJECT
from gemtui.ui.draw.theme import DARK, LIGHT
from tests.ui.demos import demo_store
from tests.ui.people import NARROW, NOW, WIDE, Person, person

ASSETS = Path(__file__).parents[2] / "assets"
Scene = Callable[[Person], Awaitable[None]]


async def sessions(me: Person) -> None:
    """The list, and beside it the session under its cursor."""
    await me.sees("You", "tidewatch/moon.py")


async def listed(me: Person) -> None:
    """The list alone."""
    await me.sees("Add the moon phase")


async def find(me: Person) -> None:
    """A session with a failed test, and a search in it."""
    await filtered(me, "last line")
    await me.press("enter")
    await me.sees("You")
    await me.press("/")
    await me.sees("find in this transcript")
    await me.type("tail")
    await me.press("enter")
    await me.sees(" of ")
    await me.press("n")


async def search(me: Person) -> None:
    """Words in all that was said."""
    await me.press("F")
    await me.type("harbour")
    await me.sees("hits in", "An unknown harbour")
    await me.press("down")


async def reading(me: Person) -> None:
    """A transcript on the whole of a small terminal."""
    await me.press("enter")
    await me.sees("You")
    await me.press("]", "]", "]")


async def filtered(me: Person, text: str) -> None:
    """Leave one session in the list."""
    await me.press("/")
    await me.type(text)
    await me.press("enter")
    await me.until(lambda: me.rows.rows.shown == 1)


async def policy(me: Person) -> None:
    """The demo's policy of every day, with a rule that was just switched off."""
    await me.press("3")
    await me.sees("everyday", "Findings", "read_many_files", "the words")
    await me.press("down", "down", "space")
    await me.sees("unsaved change", "◌ allow")


SCENES: dict[str, tuple[tuple[int, int], Theme, Scene]] = {
    "sessions": (WIDE, DARK, sessions),
    "find": (WIDE, LIGHT, find),
    "search": (WIDE, DARK, search),
    "policy": (WIDE, DARK, policy),
    "narrow-list": (NARROW, DARK, listed),
    "narrow-reading": (NARROW, DARK, reading),
}


RUN = Path(__file__).parents[1] / "ui/run/__snapshots__/test_run_snapshots"
"""The run pane is drawn by its own test; the README shows what that holds."""


async def draw(folder: Path) -> None:
    """Write one SVG per scene into `folder`, and those of the run pane."""
    for name, state in (("run", "ended"), ("ask", "question-edit")):
        drawn = (RUN / f"test_each_state_of_a_run[{state}].svg").read_text(encoding="utf-8")
        (folder / f"{name}.svg").write_text(_alone(drawn), encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="gemtui-pictures-") as place:
        home = demo_store(Path(place), now=NOW)
        os.environ["HOME"] = str(home)
        shutil.copytree(POLICIES, home / ".config/gemtui/policies")
        for name, (size, theme, scene) in SCENES.items():
            project = home / PROJECT if scene is policy else None
            config = Config(theme=theme.name)
            async with person(home / ".gemini", size, config, demo=True, project=project) as me:
                await scene(me)
                await me.pilot.pause()
                svg = me.app.export_screenshot(title="gemtui")
                (folder / f"{name}.svg").write_text(_alone(svg), encoding="utf-8")


def _alone(svg: str) -> str:
    """Return a picture that looks the same in every viewer, and loads nothing.

    Fonts are left to the reader's own. Blanks at the ends of a text become a shift: some viewers
    drop them, and stretch what remains to the length of the whole.
    """
    return _TEXT.sub(_without_blank_ends, re.sub(r"@font-face\s*\{[^}]*\}", "", svg))


_CELL = 12.2
"""Width of a character in the pictures that Rich draws."""
_BLANK = "&#160;"
_TEXT = re.compile(r'<text ([^>]*?)x="([\d.]+)"([^>]*?)textLength="([\d.]+)"([^>]*)>([^<]*)</text>')


def _without_blank_ends(found: re.Match[str]) -> str:
    before, x, between, length, after, text = found.groups()
    drawn = text.replace(_BLANK, " ").replace("\n", " ")
    left = len(drawn) - len(drawn.lstrip(" "))
    if left == len(drawn):
        return ""
    right = len(drawn) - len(drawn.rstrip(" "))
    shifted = f"{float(x) + left * _CELL:.5g}"
    shorter = f"{float(length) - (left + right) * _CELL:.5g}"
    drawn = drawn.strip(" ").replace(" ", _BLANK)
    return f'<text {before}x="{shifted}"{between}textLength="{shorter}"{after}>{drawn}</text>'


if __name__ == "__main__":
    os.environ.update(TZ="UTC", TEXTUAL_ANIMATIONS="none")
    time.tzset()
    asyncio.run(draw(ASSETS))
