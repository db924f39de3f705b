"""`gemtui sessions move`, also for the real Gemini CLI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Gemtui
from tests.cli.shapes import fits
from tests.model_server import ModelServer, answer, text
from tests.patience import PATIENCE
from tests.real_cli import GeminiCli
from tests.sessions import stores
from tests.sessions.stores import LONG_AGO, uuid

pytestmark = pytest.mark.covers(
    "gemtui/commands/moving.py", "gemtui/sessions/store/moved_project.py"
)


def test_the_plan_is_shown_first_and_nothing_changes_without_an_answer(
    home: Path, gemtui: Gemtui, tmp_path: Path
) -> None:
    store, old, new = home / ".gemini", tmp_path / "old", tmp_path / "new"
    new.mkdir()
    stores.marker(store, "proj", str(old))
    chat = stores.session(store, uuid(1))
    busy = gemtui("sessions move --yes", old, new)
    assert busy.code == 1
    assert "written within the last minute" in busy.err
    os.utime(chat, (LONG_AGO, LONG_AGO))
    asked = gemtui("sessions move", old, new)
    assert asked.code == 2
    assert "--yes" in asked.err
    shown = gemtui("sessions move --dry-run", old, new)
    assert shown.code == 0
    assert f"write {new} to" in shown.out
    assert stores.read(store).sessions[0].project == str(old)
    done = gemtui.json("sessions move --yes", old, new)
    fits(done, "ProjectMove")
    assert {name: done[name] for name in ("from", "to", "folder", "files", "moved")} == {
        "from": str(old),
        "to": str(new),
        "folder": "proj",
        "files": [str(chat)],
        "moved": True,
    }
    assert stores.read(store).sessions[0].project == str(new)
    again = gemtui("sessions move --yes", old, new)
    assert again.code == 1
    assert "has no sessions" in again.err


def test_gemini_cli_lists_and_resumes_the_sessions_in_the_new_folder(
    on_loopback: GeminiCli, gemtui: Gemtui
) -> None:
    old, new = on_loopback.project, on_loopback.folder / "renamed"

    def gemini(folder: Path, *words: str) -> str:
        done = subprocess.run(
            [on_loopback.program, *words],
            cwd=folder,
            check=True,
            env=on_loopback.environment(model.url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.stdout + done.stderr

    with ModelServer(lambda _: answer(text("Blue."))) as model:
        gemini(old, "--prompt=Which colour?")
        old.rename(new)
        (before,) = stores.read(on_loopback.store).sessions
        assert before.id not in gemini(new, "--list-sessions")
        for chat in on_loopback.store.rglob("chats/*.jsonl"):
            os.utime(chat, (LONG_AGO, LONG_AGO))
        moved = gemtui("sessions move --yes", old, new)
        assert moved.code == 0, moved.err
        assert before.id in gemini(new, "--list-sessions")
        gemini(new, "--resume=latest", "--prompt=And now?")
    (session,) = stores.read(on_loopback.store).sessions
    assert (session.id, session.project, session.prompts) == (before.id, str(new), 2)
