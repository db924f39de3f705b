"""What one can do with a session: export, delete, open its files."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gemtui.agent.gemini import UnguardedAdapter
from gemtui.agent.options import AgentOptions
from gemtui.config import Config
from gemtui.sessions.catalog.summary import Flag
from gemtui.ui.kit.messages import FileRequested
from tests.fake_cli import INIT, FakeCli
from tests.sessions.stores import append
from tests.terminal import Terminal
from tests.ui.people import NARROW, STORE, WIDE, copy_store, person


async def test_export_writes_the_form_and_file_that_were_chosen(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("down e", "Markdown", "Write-a-haiku-file-63a18d40.md")
        await me.does("down down", "Write-a-haiku-file-63a18d40.txt")
        await me.press("enter")
        path = Path("Write-a-haiku-file-63a18d40.txt")
        await me.until(path.exists)
        await me.is_told("Exported to ")
        assert "frog leaps in" in path.read_text()


async def test_export_of_records_is_json(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("enter", "Answer one.")
        await me.press("e", "down", "down", "down", "tab", "ctrl+u", *"out.json", "enter")
        await me.is_told("Exported to ")
        assert json.loads(Path("out.json").read_text())["session"]["title"] == "first question"


async def test_export_overwrites_nothing_and_leaves_the_store_alone(store: Path) -> None:
    Path("there.md").write_text("mine")
    async with person(store, NARROW) as me:
        await me.does(
            "e tab ctrl+u 'there.md enter", "That file already exists. Choose another name."
        )
        await me.press("ctrl+u", *str(store / "tmp" / "x.md"), "enter")
        await me.sees("That folder belongs to Gemini CLI")
        await me.does("ctrl+u 'missing/x.md enter", "That folder does not exist.")
        await me.does(
            "ctrl+u '~nobody-has-it/x.md enter",
            "~nobody-has-it/x.md",
            "That folder does not exist.",
        )
        await me.press("escape")
    assert Path("there.md").read_text() == "mine"
    assert not (store / "tmp" / "x.md").exists()


async def test_a_redacted_export_shows_before_what_it_replaces(store: Path) -> None:
    token = "gh" + "p_" + "aB3x" * 9
    chats = store / "tmp/secrets/chats"
    chats.mkdir(parents=True)
    time = "2026-11-23T10:00:00.000Z"
    records = (
        {"sessionId": "5ec2e7-1", "projectHash": "0" * 64, "startTime": time, "lastUpdated": time},
        {"id": "m1", "timestamp": time, "type": "user", "content": [{"text": f"Use {token}"}]},
        {"id": "m2", "timestamp": time, "type": "gemini", "content": f"{token} it is, a@b.org"},
    )
    (chats / "session-2026-11-23T10-00-5ec2e7.jsonl").write_text(
        "".join(json.dumps(record) + "\n" for record in records)
    )
    async with person(store, NARROW) as me:
        await me.does(
            "e tab tab space",
            "[x] Redact",
            "3 places: ghp_… (40 characters) -> [redacted:github-token-1]",
            "1 place: a@… (7 characters) -> [redacted:email-1]",
        )
        await me.press("enter")
        await me.is_told("Exported to ")
        (path,) = Path().glob("*.md")
        assert token[:12] not in path.name + path.read_text()
        assert "[redacted:email-1]" in path.read_text().replace("\\", "")


async def test_delete_lists_the_files_and_takes_no_for_an_answer(store: Path) -> None:
    async with person(store, WIDE) as me:
        await me.does(
            "down d", "Delete this session?", "Write a haiku file", "to the system's trash"
        )
        await me.sees(*(path.name for path in me.chosen.files))
        files = me.chosen.files
        await me.press("enter")
        assert all(path.exists() for path in files)
        await me.does("d", "Delete this session?")
        await me.press("n")
        assert all(path.exists() for path in files)


@pytest.fixture
def trash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trash of the test's own: the system's is looked for once per process."""
    place = tmp_path / "trash"
    place.mkdir()

    def move(path: Path) -> None:
        shutil.move(path, tempfile.mkdtemp(dir=place))

    monkeypatch.setattr("send2trash.send2trash", move)
    return place


async def test_delete_moves_the_files_away_and_the_row_with_them(store: Path, trash: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("down")
        gone, others = me.chosen, set(store.rglob("session-*")) - set(me.chosen.files)
        await me.does("d", "Delete this session?")
        await me.press("y")
        await me.until(lambda: not any(path.exists() for path in gone.files))
        await me.lacks("Write a haiku file")
        assert all(path.exists() for path in others)
        assert {path.name for path in trash.glob("*/*")} == {path.name for path in gone.files}
        assert "2 paths moved to the trash, u to undo" in me.said


async def test_delete_from_the_transcript_leads_to_the_list(store: Path, trash: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("down enter", "frog leaps in")
        gone = me.home.pane.summary
        assert gone is not None
        await me.does("d", "Delete this session?", "Write a haiku file")
        await me.press("y")
        await me.until(lambda: me.rows.has_focus)
        assert not any(path.exists() for path in gone.files)


async def test_deleting_a_live_session_says_so(store: Path, trash: Path) -> None:
    async with person(store, NARROW) as me:
        await me.press("down")
        append(me.chosen.path, {"$set": {"lastUpdated": datetime.now(UTC).isoformat()}})
        await me.until(lambda: Flag.LIVE in me.chosen.flags)
        await me.does("d", "It is still being written")


async def test_the_last_session_deleted_leaves_the_empty_store(tmp_path: Path, trash: Path) -> None:
    home = copy_store(tmp_path)
    for path in (*home.glob("tmp/*/chats/**/*.json*"), *home.glob("tmp/*/checkpoint-*")):
        if "9babadd1" not in path.name:
            path.unlink()
    async with person(home, WIDE) as me:
        await me.sees("Add a docstring to Stock", "run_shell_command")
        await me.does("d", "Delete this session?")
        await me.does("y", "No sessions yet.")


async def test_without_a_trash_it_asks_again_before_deleting_for_good(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_trash(path: Path) -> None:
        raise OSError("there is no trash")

    monkeypatch.setattr("send2trash.send2trash", no_trash)
    async with person(store, NARROW) as me:
        await me.press("down")
        gone = me.chosen.files
        await me.does("d", "Delete this session?")
        await me.does("y", "Delete permanently?", "Write a haiku file", "can't be moved")
        await me.sees("The system reported: there is no trash")
        await me.does("y", "Delete permanently (D)")
        assert all(path.exists() for path in gone)
        await me.press("D")
        await me.until(lambda: not any(path.exists() for path in gone))


async def test_a_file_that_is_gone_is_said(store: Path) -> None:
    async with person(store, NARROW) as me:
        await me.does("down enter", "write_file")
        await me.press("right_square_bracket", "o")
        await me.is_told("no longer exists")


def test_the_editor_gets_the_terminal_and_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(STORE, home)
    written, seen = tmp_path / "haiku.txt", tmp_path / "seen"
    written.write_text("old pond\n")
    for path in home.glob(".gemini/tmp/notes/chats/*63a18d40*"):
        path.write_text(path.read_text().replace("/home/dev/notes/haiku.txt", str(written)))
    editor = tmp_path / "ed it"
    editor.write_text(f'#!/bin/sh\necho "$@" > "{seen}"\necho EDITING\nread line\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    environ = dict(os.environ, GEMINI_CLI_HOME=str(home), VISUAL=f"'{editor}' --wait")
    words = [sys.executable, "-m", "gemtui", "--session", "63a18d40"]
    with Terminal(words, environ=environ, folder=tmp_path) as terminal:
        terminal.shows("write_file", "? keys")
        terminal.press("]", "o")
        terminal.shows("EDITING")
        terminal.press("\n")
        terminal.until(
            lambda: "EDITING" not in terminal.text and "write_file" in terminal.text, "the app"
        )
        terminal.press("\x11")
        assert terminal.wait() == 0
    assert seen.read_text() == f"--wait {written}\n"


async def test_no_editor_is_said_with_the_way_out(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    async with person(store, NARROW, config=Config()) as me:
        me.home.post_message(FileRequested(str(store / "projects.json")))
        await me.is_told("no editor is set")


@pytest.mark.deep
def test_ctrl_c_in_an_editor_is_the_editors(tmp_path: Path) -> None:
    home, editor = tmp_path / "home", tmp_path / "editor"
    shutil.copytree(STORE, home)
    written = tmp_path / "haiku.txt"
    written.write_text("old pond\n")
    for path in home.glob(".gemini/tmp/notes/chats/*63a18d40*"):
        path.write_text(path.read_text().replace("/home/dev/notes/haiku.txt", str(written)))
    editor.write_text(
        f"#!{sys.executable}\nimport os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "os.write(1, b'EDITING')\nsignal.sigwait({signal.SIGINT})\n"
        "os.write(1, b'KEPT')\ninput()\n"
    )
    editor.chmod(0o755)
    environ = dict(os.environ, GEMINI_CLI_HOME=str(home), VISUAL=str(editor))
    words = [sys.executable, "-m", "gemtui", "--session", "63a18d40"]
    with Terminal(words, environ=environ, folder=tmp_path) as terminal:
        terminal.shows("write_file", "? keys")
        terminal.press("]", "o")
        terminal.shows("EDITING")
        os.killpg(terminal.process.pid, signal.SIGINT)  # as the terminal does for ctrl+c
        terminal.shows("KEPT")
        terminal.press("\n")
        terminal.until(
            lambda: "EDITING" not in terminal.text and "write_file" in terminal.text, "the app"
        )
        terminal.press("\x11")
        assert terminal.wait() == 0


@pytest.mark.parametrize("name", ["n" * 300, "a" * 4096, "file/below", "loop"])
async def test_a_file_that_can_not_be_is_said(store: Path, name: str) -> None:
    Path("file").touch()
    Path("loop").symlink_to("loop")
    async with person(store, NARROW) as me:
        await me.press("down", "e", "tab", "ctrl+u")
        await me.burst(f"\x1b[200~{name}\x1b[201~")
        await me.press("enter")
        await me.until(
            lambda: (
                "That folder does not exist." in me.text
                or any("Nothing was exported" in said for said in me.said)
            )
        )


@pytest.mark.parametrize("project", ["/" + "n" * 300, "/a\0b", "/dev/null/x"])
async def test_a_project_that_can_not_be_is_said(tmp_path: Path, project: str) -> None:
    store = copy_store(tmp_path)
    for marker in store.rglob(".project_root"):
        marker.write_text(project)
    async with person(store, WIDE) as me:
        await me.press("c")
        await me.is_told("can't be continued")
        await me.does("n", "enter starts a run")
        await me.type("look at @x")
        await me.does("ctrl+g", "Prompt from a file")
        await me.burst(f"\x1b[200~{'n' * 300}\x1b[201~\r")
        await me.sees("File not found.")
        await me.does("escape ctrl+o", "More folders")
        await me.press("ctrl+s")
        await me.until(lambda: "is not a folder" in me.text or "not a path" in me.text)


async def test_a_session_in_which_a_run_goes_on_is_not_deleted(
    store: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    fake_cli(f"print:{INIT}", "wait")
    async with person(store, WIDE) as me:
        await me.press("down")
        chosen = me.chosen
        await me.does("d", "Delete this session?")
        options = AgentOptions(cwd=tmp_path, resume=chosen.id)
        run = await asyncio.to_thread(UnguardedAdapter().start, "go on", options)
        await me.press("y")
        await me.is_told("A run is using this session")
        assert chosen.path.exists()
        run.abort()
        await run.wait()
