"""What sessions in other terminals do right now, in the list and around it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemtui.config import Config
from gemtui.extension.content import write
from gemtui.extension.live import LiveSession
from gemtui.paths import extension_dir, gemini_home, live_dir
from gemtui.ui.draw.theme import ASCII, UNICODE
from gemtui.ui.sessions.live import follow_live
from tests.extension.live_files import hook_input, process, write_live
from tests.extension.test_status import link
from tests.hostile import ATTACK, CONTROLS
from tests.patience import turns_until
from tests.ui.people import BOTH, NARROW, Person, person

HAIKU = "63a18d40-df0d-4a78-8965-77892f4a9218"
FRUIT = "cc1b3512-9f81-4eb0-b0f9-e9621be330ba"
STOCK = "eca88b17-7ab6-4ac8-a5ef-17d0b817feb7"


@pytest.fixture
def cli() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands in for the CLI's."""
    with process() as child:
        yield child


def tell(event: str, session: str, pid: int | None = None, **others: object) -> Path:
    """Let the hook of an event tell of a session; without a process that lives as long as we do."""
    content = hook_input(event, session_id=session, **others)
    return write_live(live_dir(), os.getpid() if pid is None else pid, content)


def row(me: Person, title: str) -> str:
    """The two lines of a session in the list, on one."""
    lines = me.text.split("\n")
    at = next(at for at, line in enumerate(lines) if title in line)
    return " ".join(lines[at : at + 2])


async def test_what_a_session_does_stands_in_its_row_and_an_open_one_is_not_continued_here(
    store: Path,
) -> None:
    async with person(store, BOTH) as me:
        tell("BeforeTool", HAIKU)
        await me.sees("● 1 working")
        assert "● Write a haiku" in row(me, "haiku")
        assert "working" in row(me, "haiku")
        tell("Notification", HAIKU)
        await me.sees("? 1 waiting: proj", "L shows")
        assert "? Write a haiku" in row(me, "haiku")
        assert "waiting" in row(me, "haiku")
        tell("AfterAgent", HAIKU)
        await me.until(lambda: "○ Write a haiku" in me.text)
        assert "idle" in row(me, "haiku")
        assert "waiting" not in me.text
        while me.chosen.id != HAIKU:
            await me.press("down")
        await me.press("c")
        await me.is_told("has this session open")
        tell("SessionEnd", HAIKU)
        await me.lacks("○")


async def test_several_are_counted(store: Path, cli: subprocess.Popen[bytes]) -> None:
    tell("Notification", HAIKU)
    tell("Notification", STOCK, os.getppid(), cwd="/home/dev/work/inventory")
    tell("BeforeAgent", FRUIT, cli.pid)
    async with person(store, NARROW) as me:
        await me.sees("? 2 waiting ", "● 1 working", "L shows")


async def test_a_session_that_is_killed_says_so(store: Path) -> None:
    with process() as gone:
        tell("Notification", HAIKU, gone.pid)
        async with person(store, NARROW) as me:
            await me.sees("? 1 waiting")
            gone.kill()
            await me.until(lambda: "◌ Write a haiku" in me.text)
            assert "killed" in row(me, "haiku")
            assert "waiting" not in me.text


async def test_ascii(store: Path, cli: subprocess.Popen[bytes]) -> None:
    tell("Notification", HAIKU)
    tell("BeforeTool", FRUIT, cli.pid)
    async with person(store, NARROW, Config(ascii=True)) as me:
        await me.sees("? 1 waiting", "* 1 working", "? Write a hai", "* Collecting")


# --- the one that waits --------------------------------------------------------------------------


async def test_its_key_shows_what_waits_and_the_next_wherever_it_is(store: Path) -> None:
    tell("Notification", STOCK, os.getppid(), cwd="/home/dev/work/inventory")
    tell("Notification", HAIKU)
    async with person(store, NARROW, project=Path("/home/dev/notes")) as me:
        await me.sees("2 wait")
        await me.press("slash", *"fruit", "down")
        await me.until(lambda: me.rows.has_focus and me.chosen.id == FRUIT)
        await me.does("L", "proj is waiting for you")
        await me.does("L", "inventory is waiting for you")
        await me.press("escape")
        assert me.chosen.id == STOCK
        await me.does("enter", "Explain the tests", "? waiting")
        await me.does("L", "inventory is waiting for you")
        await me.does("escape", "? waiting")
        assert me.view.has_focus


async def test_a_session_of_another_store_is_shown_as_well(store: Path) -> None:
    tell("Notification", "0f00-of-another-store")
    async with person(store, NARROW) as me:
        await me.sees("1 waiting")
        before = me.chosen.id
        await me.does("L", "proj is waiting for you", "w.txt")
        await me.does("L", "proj is waiting for you")
        await me.press("escape")
        assert me.chosen.id == before


async def test_its_key_says_where_none_waits_and_what_would_tell(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("L")
        await me.is_told(
            "Can't tell which sessions need you: install the extension (Extension in ^p)."
        )
        write()
        link(gemini_home(), extension_dir())
        await me.press("L")
        await me.until(lambda: "No session is waiting for you." in me.said)


async def test_that_nothing_goes_on_is_told_first() -> None:
    """What comes then is known to be new."""
    told: list[tuple[LiveSession, ...]] = []
    following = asyncio.create_task(follow_live(told.append))
    await turns_until(lambda: told)
    following.cancel()
    assert told == [()]


async def test_the_question_is_shown_with_the_change_and_when_it_was_answered(store: Path) -> None:
    tell("Notification", HAIKU)
    async with person(store, BOTH) as me:
        await me.sees("1 waiting")
        await me.does(
            "L",
            "proj is waiting for you",
            "Tool Confirm Write: w.txt requires editing",
            f"Answer in Gemini CLI (process {os.getpid()})",
            "/home/dev/proj/w.txt",
            "1 + x",
        )
        tell("AfterTool", HAIKU)
        await me.sees("Already answered")
        await me.does("escape", "● 1 working")
        assert me.rows.has_focus


async def test_about_tells_what_it_does_and_its_command_is_shown_with_what_is_hidden_in_it(
    store: Path,
) -> None:
    command = "echo \u202egnp.exe\u200b; rm -rf /tmp/x\x1b[8m"
    tell("Notification", HAIKU, details={"type": "exec", "command": command})
    async with person(store, NARROW) as me:
        await me.sees("1 waiting")
        await me.does("down i", "now", "waiting since", f"process {os.getpid()}: Tool Confirm")
        await me.does("escape L", "⟨U+202E⟩gnp.exe⟨U+200B⟩; rm -rf /tmp/x␛[8m")


async def test_foreign_text_stays_harmless(store: Path) -> None:
    tell(
        "Notification",
        HAIKU,
        cwd=f"/home/{ATTACK}".replace("\x00", ""),
        message=ATTACK,
        details={"type": "edit", "filePath": ATTACK, "fileDiff": f"@@ -1 +1 @@\n+{ATTACK}"},
    )
    async with person(store, NARROW) as me:
        await me.sees("1 waiting")
        await me.does("down i", "waiting since")
        assert not CONTROLS.search(me.text.replace("\n", "").encode())
        await me.does("escape L", "Answer in Gemini CLI")
        assert not CONTROLS.search(me.text.replace("\n", "").encode())


def test_no_two_states_have_the_same_sign() -> None:
    from gemtui.ui.sessions.live import STATE_WORDS, live_glyph

    for glyphs in (UNICODE, ASCII):
        assert len({live_glyph(state, glyphs) for state in STATE_WORDS}) == len(STATE_WORDS)
