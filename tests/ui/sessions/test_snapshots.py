"""How each state looks, wide and narrow, on the demo store; states that name our temporary folder
are looked at in text (`test_states.py`).

After a change that is meant: `pytest tests/ui/test_snapshots.py --snapshot-update`, and look at
what changed before it is committed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from gemtui.config import Config
from gemtui.extension.live import LiveQuestion, LiveSession, LiveState
from gemtui.kept.vault import keep_all, turn_on
from gemtui.marks import MarkEdit, Marks
from gemtui.paths import live_dir
from gemtui.sessions.catalog.entries import SessionRow
from gemtui.transcript.model import DiffDisplay
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.sessions.live_question import LiveQuestionScreen
from tests.extension.live_files import hook_input, write_live
from tests.rows import table
from tests.ui.demos import demo_store
from tests.ui.people import NARROW, NOW, WIDE, Person, person

Scene = Callable[[Person], Awaitable[None]]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The demo store in a home folder, so that paths on the screen begin with `~`."""
    home = demo_store(tmp_path, now=NOW)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir("/")
    monkeypatch.delenv("GEMINI_CLI_HOME")
    return home / ".gemini"


# --- states ------------------------------------------------------------------------------------


async def listed(me: Person) -> None:
    await me.sees("Add the moon phase")
    if me.app.size.width >= WIDE[0]:
        await me.until(lambda: me.home.pane.summary is not None and me.view.total)


async def opened(me: Person) -> None:
    await listed(me)
    await me.press("slash")
    await me.type("last line of")
    await me.press("enter")
    await me.until(lambda: me.rows.rows.shown == 1)
    await me.does("enter", "The evening tide")
    await me.until(lambda: me.view.has_focus)


async def copied(me: Person) -> None:
    await opened(me)
    await me.press("y")
    await me.until(lambda: me.said)


async def marked(me: Person) -> None:
    await listed(me)
    ids = [row.key for row in me.rows.rows.rows if isinstance(row, SessionRow)]
    marks = Marks()
    note = "Ask the harbour office\nabout neap tides."
    marks.edit(ids[:1], MarkEdit(name="Moon phases", add=("tides",), note=note, pinned=True))
    marks.edit(ids[1:3], MarkEdit(add=("shop", "i18n"), pinned=True))
    marks.edit(ids[3:4], MarkEdit(archived=True))
    await me.sees("Moon phases", "Pinned")
    await me.until(lambda: ids[3] in me.home.marks.marks)


async def files(me: Person) -> None:
    await listed(me)
    await me.does("w", "Changed files", "167 files", "tidewatch/api.py", "3 writes")
    await me.lacks("reading")


async def history(me: Person) -> None:
    await files(me)
    await me.does("'checkout enter", "History of", "5 writes in 2 sessions")
    await me.press("down")
    await me.until(lambda: len(me.app.screen.query_one(LineView).text) > 100)


STATES: dict[str, Scene] = {
    "files": files,
    "history": history,
    "list": listed,
    "transcript": opened,
    "copied": copied,
    "marked": marked,
}
SCENES = table("ui/scenes.json")
"""Others: the state that comes before, and the steps from there."""


async def act(me: Person, scene: str) -> None:
    before, steps = SCENES.get(scene, (scene, []))
    await STATES[before](me)
    await me.walks(steps)


@pytest.mark.parametrize("state", [*STATES, *SCENES])
async def test_each_state(demo: Path, snapshot: SnapshotAssertion, state: str) -> None:
    async with person(demo, WIDE, demo=True) as me:
        await act(me, state)
        await me.looks_in_both_sizes(snapshot)


async def vault_question(me: Person) -> None:
    await listed(me)
    await me.does("V", "Keep all sessions?")


async def test_a_narrow_window_shows_no_position_though_the_hidden_transcript_says_nothing(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person(demo) as me:
        await me.sees("message 1 of 4")
        await me.does("d", "Delete")
        me.app.workers.cancel_group(me.home, "store")
        with monkeypatch.context() as patch:
            patch.setattr(me.view, "post_message", lambda message: True)
            await me.pilot.resize_terminal(*NARROW)
        assert "message 1 of" not in me.home.status.render().plain


async def kept(me: Person) -> None:
    await listed(me)
    await me.sees("kept")
    await me.press("down")
    if me.app.size.width > 80:  # the session beside the list follows the cursor
        await me.sees("have to be translated?")


async def vault(me: Person) -> None:
    await kept(me)
    await me.does("V", "turn it off")


OF_THE_VAULT = {"vault_question": vault_question, "kept": kept, "vault": vault}


@pytest.mark.parametrize("scene", OF_THE_VAULT)
async def test_the_vault(
    demo: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch, scene: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(demo.parent / ".local/share"))
    if scene != "vault_question":
        turn_on()
        keep_all(demo)
        for name in ("session-*-689ff8da.jsonl", "session-*-43f7b105.jsonl"):
            for path in demo.glob(f"tmp/*/chats/{name}"):
                path.unlink()
    async with person(demo, WIDE) as me:
        await OF_THE_VAULT[scene](me)
        await me.looks_in_both_sizes(snapshot)


@pytest.mark.parametrize("store", ["missing", "empty", "damaged"])
async def test_stores_without_sessions(demo: Path, snapshot: SnapshotAssertion, store: str) -> None:
    shutil.rmtree(demo)
    if store != "missing":
        (demo / "tmp" / "tidewatch" / "chats").mkdir(parents=True)
    if store == "damaged":
        (demo / "tmp" / "tidewatch" / "chats" / "session-no.jsonl").write_text("no session\n")
    async with person(demo) as me:
        await me.looks_in_both_sizes(snapshot)


@pytest.mark.parametrize("theme", ["gemtui-light", "ansi-dark"])
async def test_themes(demo: Path, snapshot: SnapshotAssertion, theme: str) -> None:
    async with person(demo, WIDE, replace(Config(), theme=theme), demo=True) as me:
        await act(me, "failure")
        await me.looks_as(snapshot)


async def test_no_color(
    demo: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with person(demo, WIDE, demo=True) as me:
        await act(me, "failure")
        await me.looks_as(snapshot)


async def test_ascii(demo: Path, snapshot: SnapshotAssertion) -> None:
    async with person(demo, WIDE, Config(ascii=True), demo=True) as me:
        await act(me, "failure")
        await me.looks_in_both_sizes(snapshot)


@pytest.mark.parametrize(("columns", "rows"), [(50, 12), (200, 50)])
async def test_unusual_sizes(
    demo: Path, snapshot: SnapshotAssertion, columns: int, rows: int
) -> None:
    async with person(demo, (columns, rows), demo=True) as me:
        await listed(me)
        await me.reads_as(snapshot)


# --- what sessions do right now ------------------------------------------------------------------

EDIT = (
    "--- tide.py\n+++ tide.py\n@@ -1,2 +1,2 @@\n def height(moon):\n-    return 1\n+    return 2\n"
)
DETAILS = {"type": "edit", "filePath": "/home/ada/tidewatch/tide.py", "fileDiff": EDIT}
CHANGE = DiffDisplay(diff=EDIT, path="/home/ada/tidewatch/tide.py", name="tide.py")


async def going_on(me: Person) -> None:
    """One session waits and another one works."""
    first, second, *_ = [row for row in me.rows.rows.rows if isinstance(row, SessionRow)]
    told = {
        "cwd": "/home/ada/tidewatch",
        "message": "Tool Confirm Write: tide.py",
        "details": DETAILS,
    }
    for row, pid, event in (
        (first, os.getpid(), "Notification"),
        (second, os.getppid(), "BeforeTool"),
    ):
        content = hook_input(event, session_id=row.entry.summary.id, **told)
        write_live(live_dir(), pid, content)
    await me.sees("? 1 waiting: tidewatch", "working")


@pytest.mark.parametrize("ascii", [False, True], ids=["unicode", "ascii"])
async def test_what_goes_on(demo: Path, snapshot: SnapshotAssertion, ascii: bool) -> None:
    async with person(demo, NARROW if ascii else WIDE, Config(ascii=ascii)) as me:
        await listed(me)
        await going_on(me)
        await (me.reads_as(snapshot) if ascii else me.looks_in_both_sizes(snapshot))


async def test_what_a_session_asks(
    demo: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the store has no such session
    monkeypatch.setattr(LiveQuestionScreen, "update_live", lambda screen, live: None)
    question = LiveQuestion(message="Tool Confirm Write: tide.py", diff=CHANGE)
    asks = LiveSession(
        pid=4711,
        session="s",
        state=LiveState.WAITING,
        since=NOW,
        project="/home/ada/tidewatch",
        question=question,
    )
    async with person(demo) as me:
        await me.app.push_screen(LiveQuestionScreen(asks, tty="/dev/pts/3"))
        await me.sees("return 2")
        await me.looks_in_both_sizes(snapshot)
