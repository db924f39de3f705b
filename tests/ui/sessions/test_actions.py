"""What one can do with a session: export it, open its files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gemtui.config import Config, load_config
from gemtui.paths import config_file
from gemtui.ui.kit.messages import FileRequested
from tests.terminal import Terminal
from tests.ui.people import NARROW, STORE, WIDE, copy_store, keys, person


async def test_export_writes_the_form_and_file_that_were_chosen_over_no_other_file(
    store: Path,
) -> None:
    Path("there.md").write_text("mine")
    Path("loop").symlink_to("loop")
    unknown = "That folder does not exist."
    async with person(store, NARROW) as me:
        await me.does("down e", "Markdown", "Write-a-haiku-file-63a18d40.md")
        await me.does("down down", "Write-a-haiku-file-63a18d40.txt")
        await me.press("enter")
        path = Path("Write-a-haiku-file-63a18d40.txt")
        await me.until(path.exists)
        await me.hears("Exported to ", 1)
        assert "frog leaps in" in path.read_text()

        await me.does("home enter", "Answer one.")
        await me.press(*keys("e down down down tab ctrl+u 'out.json enter"))
        await me.hears("Exported to ", 2)
        assert json.loads(Path("out.json").read_text())["session"]["title"] == "first question"

        await me.press(*keys("e tab ctrl+u 'there.md enter"))
        await me.sees("That file already exists. Choose another name.")
        await me.press("ctrl+u", *str(store / "tmp" / "x.md"), "enter")
        await me.sees("That folder belongs to Gemini CLI")
        await me.does("ctrl+u 'missing/x.md enter", unknown)
        await me.does("ctrl+u '~nobody-has-it/x.md enter", "~nobody-has-it/x.md", unknown)
        await me.press("escape")
        for name in ("n" * 300, "a" * 4096, "there.md/below", "loop"):
            before = me.heard("Nothing was exported")
            await me.press("e", "tab", "ctrl+u")
            await me.burst(f"\x1b[200~{name}\x1b[201~")
            await me.press("enter")
            await me.until(
                lambda: unknown in me.text or me.heard("Nothing was exported") > before  # noqa: B023
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
        await me.does("e", "[x] Redact")
        await me.does("tab tab space", "[ ] Redact")


async def test_an_export_into_a_git_repository_is_not_without_a_word(store: Path) -> None:
    Path(".git").mkdir()
    async with person(store, NARROW) as me:
        await me.does("e", "is a git repository: take care not to commit this.")


async def test_a_file_that_is_gone_and_that_there_is_no_editor_are_said(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person(store, NARROW, config=Config()) as me:
        await me.does("down enter", "write_file")
        await me.press("right_square_bracket", "o")
        await me.is_told("no longer exists")
        me.home.post_message(FileRequested(str(store / "projects.json")))
        await me.is_told("no editor is set")
        await me.command("settings")
        await me.hears("no editor is set", 2)
        assert "# theme = " in config_file().read_text()
        assert load_config(config_file()) == Config()
        await me.does("ctrl+p 'doctor enter", "gemtui doctor", "settings")


@contextmanager
def editing(folder: Path, program: str, words: str = "") -> Iterator[Terminal]:
    """The app while this program, its editor, has the file that a session wrote."""
    home, written, editor = folder / "home", folder / "haiku.txt", folder / "ed it"
    shutil.copytree(STORE, home)
    written.write_text("old pond\n")
    for path in home.glob(".gemini/tmp/notes/chats/*63a18d40*"):
        path.write_text(path.read_text().replace("/home/dev/notes/haiku.txt", str(written)))
    editor.write_text(program)
    editor.chmod(0o755)
    environ = dict(os.environ, GEMINI_CLI_HOME=str(home), VISUAL=f"'{editor}' {words}")
    command = [sys.executable, "-m", "gemtui", "--session", "63a18d40"]
    with Terminal(command, environ=environ, folder=folder) as terminal:
        terminal.shows("write_file", "? keys")
        terminal.press("]", "o")
        terminal.shows("EDITING")
        yield terminal
        terminal.press("\n")
        terminal.until(
            lambda: "EDITING" not in terminal.text and "write_file" in terminal.text, "the app"
        )
        terminal.press("\x11")
        assert terminal.wait() == 0


def test_the_editor_gets_the_terminal_and_the_file(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = f'#!/bin/sh\necho "$@" > "{seen}"\necho EDITING\nread line\n'
    with editing(tmp_path, program, "--wait"):
        pass
    assert seen.read_text() == f"--wait {tmp_path / 'haiku.txt'}\n"


@pytest.mark.deep
def test_ctrl_c_in_an_editor_is_the_editors(tmp_path: Path) -> None:
    program = (
        f"#!{sys.executable}\nimport os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "os.write(1, b'EDITING')\nsignal.sigwait({signal.SIGINT})\n"
        "os.write(1, b'KEPT')\ninput()\n"
    )
    with editing(tmp_path, program) as terminal:
        os.killpg(terminal.process.pid, signal.SIGINT)  # as the terminal does for ctrl+c
        terminal.shows("KEPT")


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
