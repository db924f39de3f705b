"""Review by keys: look, revert a hunk, comment on a line, go on with the comments."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from gemtui.config import Config
from gemtui.paths import gemini_home
from gemtui.ui.review.screen import ReviewScreen
from gemtui.ui.run.screen import RunScreen
from tests.fake_cli import INIT, OK, FakeCli, ends, uses
from tests.runs.reviewed import LINES, recorded, shell, with_checkpoints
from tests.ui.people import BOTH, NARROW, Person, person
from tests.ui.run.test_screen import runner


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Path:
    del home
    recorded(tmp_path / "proj")
    with_checkpoints(tmp_path / "proj")
    return tmp_path / "proj"


async def reviewing(me: Person) -> ReviewScreen:
    await me.sees("Change the text.")
    await me.press("H")
    screen = await me.on(ReviewScreen)
    await me.until(lambda: screen.files.items)
    return screen


async def test_a_hunk_is_reverted_and_comments_become_the_next_prompt(project: Path) -> None:
    async with person(gemini_home(), BOTH) as me:
        screen = await reviewing(me)
        await me.sees("a.txt", "write_file", "you", "run_shell_command: sed -i")
        await me.does("down enter down down down c", "Comment on a.txt:2")
        await me.does("'why enter", "▌ why")
        await me.does("escape space r", "Revert?", "a.txt:2  write_file")
        await me.press("y")
        await me.until(lambda: not screen._marked)
        assert (project / "a.txt").read_text() == "".join(LINES).replace("line 7", "mine")
        await me.is_told("Reverted hunks in 1 file")
        await me.until(lambda: not screen.asking)  # until then, keys do nothing
        await me.press("p")
        pane = await me.on(RunScreen)
        await me.until(lambda: "a.txt:2: why" in pane.prompt.text)
        assert "    2 + agent" in pane.prompt.text


async def test_while_its_run_works_reverts_wait_for_the_end(
    home: Path, tmp_path: Path, fake_cli: FakeCli
) -> None:
    (tmp_path / "proj").mkdir()
    trusted = json.dumps({str(tmp_path / "proj"): "TRUST_FOLDER"})
    (home / ".gemini/trustedFolders.json").write_text(trusted)
    project, gate, last = tmp_path / "proj", tmp_path / "gate", tmp_path / "last"
    used = uses("t1", "write_file", "a.txt")
    fake_cli(f"print:{INIT}", used, f"until:{gate}", ends("t1"), f"until:{last}", f"print:{OK}")
    async with runner(home, project, NARROW) as me:
        await me.ask("write a file")
        await me.sees("● write_file")
        (project / "a.txt").write_text("one\n")
        gate.touch()
        await me.sees("✓ write_file")
        await me.press("escape", "H")
        await me.on(ReviewScreen)
        for _ in range(100):  # until its checkpoint is taken
            if "write_file" not in me.text:
                await me.press("ctrl+r")
        await me.does("space r", "once it is done")
        await me.does("y", "once the agent is done")
        assert (project / "a.txt").exists()
        last.touch()
        await me.until(lambda: not (project / "a.txt").exists())
        await me.sees("Nothing to review")


async def test_a_revert_says_before_which_later_lines_stay(project: Path) -> None:
    shell(project, "k2", "tee b.txt", "later\n")
    async with person(gemini_home(), NARROW) as me:
        screen = await reviewing(me)
        rows = [each.hunk and each.hunk.owner.command for each in screen.files.items]
        await me.press(*["down"] * rows.index("sed -i s/old/new/ b.txt"), "enter")
        await me.sees("tee b.txt  changed lines written by")
        await me.does(
            "escape space r", "Revert?", "not reverted: b.txt:1: run_shell_command: tee b.txt"
        )
        await me.press("y")
        await me.until(lambda: not screen._marked)
        assert (project / "b.txt").read_text() == "old\nlater\n"


async def test_git_and_the_clipboard_get_what_was_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("/bin/sh", "-c", "pwd > where")
    async with person(gemini_home(), NARROW, Config(git_tool=words)) as me:
        monkeypatch.setattr(type(me.app), "suspend", lambda _: nullcontext())
        await reviewing(me)
        await me.press("y")
        await me.until(lambda: me.app.clipboard == "Change the text.")
        await me.press("Y")
        await me.until(lambda: me.app.clipboard == "a.txt\nb.txt\nnew.txt")
        await me.press("g")
        await me.until(lambda: (project / "where").exists())
        assert (project / "where").read_text() == f"{project}\n"
