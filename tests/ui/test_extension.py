"""The extension of Gemini CLI, installed and taken out by keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gemtui.extension.content import write
from gemtui.extension.status import HookState, extension_state
from gemtui.paths import extension_dir
from tests.extension.stand_in import LINKS, stand_in
from tests.ui.people import BOTH, NARROW, WIDE, copy_store, person


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "home"))
    return copy_store(tmp_path)


async def test_all_of_the_question_is_seen_where_it_has_room(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(store.parent))
    monkeypatch.setenv("XDG_DATA_HOME", str(store.parent / "data"))
    async with person(store, WIDE) as me:
        await me.command("extension")
        await me.sees(
            "Install the extension?", "can ask you before a run", "gemtui extension remove"
        )


async def test_the_answers_are_seen_however_low_the_screen_is(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    async with person(store, (60, 30)) as me:
        for rows in (12, 14, 17, 18, 20, 29, 30):
            await me.pilot.resize_terminal(60, rows)
            await me.command("extension")
            await me.sees("Install the extension?", "Cancel (n)", "Install it (y)")
            await me.press("escape")


async def test_it_is_installed_and_taken_out(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    async with person(store, BOTH) as me:
        await me.command("extension")
        await me.sees("Install the extension?", "run in every Gemini CLI session")
        await me.does("down down", "Google does not vet")
        await me.press("y")
        await me.is_told("Installed. ")
        assert extension_state().state is HookState.READY
        await me.command("extension")
        await me.sees("hooks run in every Gemini CLI session")
        await me.does("down enter", "Remove the extension?", "gemini extensions uninstall")
        await me.press("y")
        await me.is_told("Removed. ")
    assert extension_state().state is HookState.MISSING
    assert not extension_dir().exists()


async def test_asked_for_again_meanwhile_it_is_installed_once(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = f"link) /bin/cat {tmp_path}/go >> {tmp_path}/gone;"
    os.mkfifo(tmp_path / "go")
    stand_in(tmp_path, monkeypatch, LINKS.replace("link)", slow))
    async with person(store, NARROW) as me:
        await me.command("extension")
        await me.sees("Install the extension?")
        await me.press("y")
        await me.is_told("is working")
        await me.command("extension")
        (tmp_path / "go").write_text("on\n")
        await me.is_told("Installed. ")
        assert "Install the extension" not in me.text
        assert (tmp_path / "gone").read_text() == "on\n"


async def test_no_is_no(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for from a text field, which has keys of its own."""
    stand_in(tmp_path, monkeypatch)
    async with person(store, NARROW) as me:
        await me.does("2", "enter starts a run")
        await me.press("a")
        await me.command("extension")
        await me.sees("Install the extension?")
        await me.press("enter")
        await me.lacks("Install the extension?")
    assert not extension_dir().exists()


async def test_what_is_broken_is_mended(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch)
    async with person(store, NARROW) as me:
        await me.command("extension")
        await me.sees("Install the extension?")
        await me.press("y")
        await me.is_told("Installed. ")
        (extension_dir() / "hook.sh").write_text("")
        await me.command("extension")
        await me.sees("gemtui extension install", "Reinstall")
        await me.press("enter")
        await me.until(lambda: extension_state().state is HookState.READY)


async def test_a_cli_that_fails_is_said(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, "link) echo no such thing; exit 3;;")
    async with person(store, NARROW) as me:
        await me.command("extension")
        await me.sees("Install the extension?")
        await me.press("y")
        await me.is_told("exit code 3: no such thing")
    assert not extension_dir().exists()


async def test_one_of_somebody_else_is_left_alone(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, LINKS)
    write()
    theirs = store / "extensions/gemtui"
    theirs.mkdir(parents=True)
    (theirs / "gemini-extension.json").write_text('{"name": "gemtui", "version": "1"}')
    async with person(store, NARROW) as me:
        await me.command("extension")
        await me.is_told("that is not gemtui's")
    assert theirs.exists()
