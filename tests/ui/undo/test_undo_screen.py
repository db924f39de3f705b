"""Undo, redo and fork by keys, in the sessions pane and in the run pane."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
import pytest

from gemtui.agent.run_folder import Owner, Request, RunFolder
from gemtui.agent.trust import remember
from gemtui.paths import gemini_home
from gemtui.runs.listing import runs_dir
from gemtui.ui.run.prompt import PromptArea
from tests.sessions import logs
from tests.sessions.stores import marker, session, uuid
from tests.sessions.writes import wrote
from tests.ui.people import NARROW, WIDE, Person, person

HOSTILE = "\x1b]0;owned\x07\n\u202e.txt"
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    """A folder with a session of three prompts; the last two wrote files, one is edited since."""
    root = tmp_path / "tide"
    root.mkdir()
    shell = logs.call("c9", 62, name="run_shell_command", args={"command": "rm -rf build"})
    records: list[dict[str, Any]] = [
        logs.header(uuid(1)),
        logs.user("u1", "Look around.", 1),
        logs.gemini("g1", "A small project.", 2),
        logs.user("u2", "Draw the moon.", 10),
        wrote(root / "moon.py", None, "full\n", seconds=20),
        wrote(root / "sea.py", "calm\n", "storm\n", seconds=30),
        logs.user("u3", "Now clean up.", 50),
        wrote(root / "notes.md", "a\nb\nc\n", "a\nB\nc\n", seconds=55),
        wrote(root / HOSTILE, None, "bad\n", seconds=58),
        logs.gemini("g9", "Cleaned.", 60, toolCalls=[shell]),
    ]
    marker(gemini_home(), "proj", str(root))
    session(gemini_home(), uuid(1), records)
    (root / "moon.py").write_text("full\n")
    (root / "sea.py").write_text("storm\n")
    (root / "notes.md").write_text("a\nB, mine\nc\n")
    (root / HOSTILE).write_text("bad\n")
    remember(root)
    return root


async def to_second_prompt(me: Person) -> None:
    """Open the session with the cursor on the answer to its second prompt."""
    await me.sees("Look around.")
    await me.press("enter")
    await me.until(lambda: me.view.has_focus and me.view.total)
    await me.press("home", "right_curly_bracket", "down")


@SIZES
async def test_undo_shows_first_then_acts_and_leads_on_and_redo_leads_back(
    project: Path, size: tuple[int, int]
) -> None:
    async with person(gemini_home(), size, project=project) as me:
        await to_second_prompt(me)
        await me.press("U")
        await me.sees("Undo to before prompt 2 of 3: Draw the moon.", "files and chat")
        await me.sees("! leave alone notes.md", "restore sea.py", "remove moon.py")
        await me.sees("2 to remove", "rm -rf build", "with 1 earlier prompt")
        assert "\x1b]0" not in me.text
        assert "owned" in me.text
        assert (project / "moon.py").exists()
        await me.press("y")
        await me.sees("done", "1 left alone, 1 restored, 2 removed")
        assert not (project / "moon.py").exists()
        assert not (project / HOSTILE).exists()
        assert (project / "sea.py").read_text() == "calm\n"
        assert (project / "notes.md").read_text() == "a\nB, mine\nc\n"
        await me.press("R")
        await me.sees("Redo: take back the undo to before prompt 2", "restore moon.py")
        assert not (project / "moon.py").exists()
        await me.press("y")
        await me.sees("done", "restored")
        assert (project / "moon.py").read_text() == "full\n"
        assert (project / "sea.py").read_text() == "storm\n"
        await me.press("escape")
        await me.until(lambda: me.view.has_focus)
        await me.press("U")
        await me.sees("nothing has changed yet")
        await me.press("y")
        await me.sees("left alone")
        await me.press("c")
        await me.sees("continues session", "Look around.")
        assert me.app.screen.query_one(PromptArea).text == "Draw the moon."
        assert "Cleaned." not in me.text


async def test_of_a_file_left_alone_the_three_texts_can_be_read(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await to_second_prompt(me)
        await me.press("U")
        await me.sees("leave alone")
        await me.press("down")
        await me.sees("Changed since the session:", "+ B, mine")
        await me.press("enter")
        await me.sees("notes.md before the prompt", "1 of 5")
        assert "mine" not in me.text
        await me.press("tab")
        await me.sees("as the session left it")
        await me.press("tab")
        await me.sees("now", "B, mine")
        await me.press("escape", "down", "d")
        await me.sees("sea.py the change", "storm", "calm")


async def test_files_or_the_chat_alone_are_undone_on_demand(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await me.sees("Look around.")
        await me.press("U")
        await me.sees("before prompt 3 of 3")
        await me.press("s")
        await me.sees("files only", "nothing has changed yet")
        assert "new chat" not in me.text
        await me.press("s")
        await me.sees("chat only", "files are left as they are")
        await me.press("y")
        await me.sees("new chat", "with 2 earlier prompts", "done")
        assert (project / HOSTILE).exists()


def working_run(folder: Path) -> None:
    """A run that goes on in a folder, by what its own folder says."""
    run = RunFolder.create(runs_dir(), "working")
    run.write_request(Request(id="working", argv=("gemini",), cwd=str(folder), environ={}))
    run.write_owner(Owner(pid=os.getpid(), began=psutil.Process().create_time()))


async def test_while_a_run_works_undo_is_refused_with_the_reason(project: Path) -> None:
    working_run(project)
    async with person(gemini_home(), WIDE, project=project) as me:
        await me.sees("Look around.")
        await me.press("U")
        await me.sees("A run works in")
        await me.press("y", "d")
        assert (project / HOSTILE).exists()


async def test_a_fork_goes_on_before_a_prompt_and_leaves_files_alone(project: Path) -> None:
    async with person(gemini_home(), NARROW, project=project) as me:
        await to_second_prompt(me)
        await me.press("B")
        await me.sees("New chat from prompt 2 of 3", "Before this prompt")
        await me.press("enter")
        await me.sees("continues session", "A small project.")
        assert me.app.screen.query_one(PromptArea).text == "Draw the moon."
        assert (project / "moon.py").exists()
