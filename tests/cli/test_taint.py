"""The commands over strings that attack the terminal: none of them is printed as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemtui.policy.file.policy_files import policies_dir
from tests import hostile
from tests.cli.conftest import Gemtui
from tests.fake_cli import FakeCli
from tests.rows import each_row


@pytest.fixture
def folder(home: Path, tmp_path: Path, fake_cli: FakeCli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Hostile sessions, policies, marks and a CLI; the hostile folder in which commands start."""
    hostile.make_store(home)
    events = tmp_path / "events"
    events.write_text("\n".join(map(json.dumps, hostile.EVENTS)) + "\n")
    fake_cli(f"err:{hostile.FILE_NAME}", f"file:{events}", "exit:1")
    policies_dir().mkdir(parents=True)
    (policies_dir() / "mine.toml").write_text(hostile.POLICY)
    (home / ".gemini/policies").mkdir()
    (home / ".gemini/policies" / f"{hostile.FILE_NAME}.toml").write_text(hostile.WRONG_POLICY)
    folder = tmp_path / hostile.FILE_NAME
    folder.mkdir()
    (folder / f"{hostile.FILE_NAME}.md").write_text(hostile.ATTACK.replace("\ud800", ""))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    return folder


COMMANDS = (
    "sessions --everywhere --hidden",
    "show evil0000",
    "show evil0000 --format markdown",
    "files --everywhere",
    "recover evil",
    "stats --everywhere",
    "fork evil0000",
    "trust",
    "vault",
    "worktrees",
    "run Go",
    "run Go --dry-run",
    "runs",
    "doctor",
    "policy list",
    "policy show mine",
    "policy check mine",
    "policy flags mine",
    "policy explain --tool run_shell_command --policy mine",
    "policy replay mine --everywhere",
    "policy suggest --everywhere",
)


@each_row("line", COMMANDS)
def test_nothing_foreign_is_printed_as_it_is(folder: Path, gemtui: Gemtui, line: str) -> None:
    answer = gemtui(line)
    assert hostile.ACTS.findall((answer.out + answer.err).expandtabs().replace("\n", "")) == []
