"""`gemtui extension`: what it says, what it asks, and what it makes of a CLI that fails."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from gemtui.extension import install as action
from gemtui.extension.install import before_install
from gemtui.paths import config_file, extension_dir, gemini_home
from tests.cli.conftest import Gemtui, has, put
from tests.cli.shapes import fits
from tests.extension.stand_in import stand_in
from tests.terminal import Terminal


@pytest.fixture
def cli(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that links and forgets extensions as the CLI does."""
    return stand_in(tmp_path, monkeypatch)


def test_it_is_installed_and_removed(cli: Path, gemtui: Gemtui) -> None:
    before = gemtui("extension status --json")
    assert (before.code, before.json["version"]) == (1, 1)
    fits(before.json["extension"], "Extension")
    assert before.json["extension"]["state"] == "missing"
    installed = gemtui.ok("extension install --yes")
    for word in (str(extension_dir()), str(gemini_home()), "Google does not vet", "every Gemini"):
        assert word in " ".join(installed.out.split())
    gemtui.ok("extension status")
    assert gemtui.json("doctor")["extension"]["state"] == "ready"
    gemtui.ok("extension remove --yes")
    assert not extension_dir().exists()
    words = (cli.parent / "words").read_text().splitlines()
    assert words == [f"extensions link {extension_dir()} --consent", "extensions uninstall gemtui"]
    assert gemtui("extension remove --yes").complaint.endswith("is not installed")


def test_installing_again_asks_nobody(cli: Path, gemtui: Gemtui) -> None:
    gemtui("extension install --yes")
    (extension_dir() / "hook.sh").write_text("")
    assert gemtui("doctor").code == 1
    gemtui.ok("extension install")
    gemtui.ok("extension status")
    assert len((cli.parent / "words").read_text().splitlines()) == 1


def test_the_doctor_says_why_hooks_can_take_no_checkpoints(
    cli: Path, gemtui: Gemtui, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> str:
        (problem,) = gemtui.json("doctor")["problems"] or [""]
        return str(problem)

    put(config_file(), 'checkpoints = "always"\n')
    assert "has no effect: gemtui's extension is not installed" in said()
    gemtui("extension install --yes")
    assert said() == ""
    starter = extension_dir() / "checkpoint.sh"
    whole, moved = starter.read_text(), tmp_path / "it's moved"
    starter.write_text(whole.replace(sys.executable, shlex.quote(str(moved))))
    assert f"{moved}, the Python that its hooks start, no longer exists: gemtui e" in said()
    moved.write_text("#!/bin/sh\nexit 1\n")
    moved.chmod(0o755)
    assert "can't load gemtui" in said()
    moved.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    assert said() == ""
    monkeypatch.setenv("GEMTUI_CONFIG", str(tmp_path / "other.toml"))
    assert said() == ""
    (tmp_path / "other.toml").write_text('checkpoints = "always"\n')
    assert "its hooks read the settings in" in said()
    gemtui.ok("extension install")
    assert said() == ""
    starter.unlink()
    assert "can't be read" in said()


def test_the_server_for_agents_is_there_only_if_it_is_wanted(cli: Path, gemtui: Gemtui) -> None:
    manifest = extension_dir() / "gemini-extension.json"
    for words, offered in (((), False), (("--mcp",), True), ((), True), (("--no-mcp",), False)):
        gemtui.ok("extension install --yes", *words)
        servers = json.loads(manifest.read_text()).get("mcpServers", {})
        assert (list(servers) == ["gemtui"]) is offered
        status = gemtui.json("extension status")["extension"]
        has(status, state="ready", mcp=offered)
    refused = gemtui("extension install --mcp")
    assert refused.code == 2  # nobody can be asked
    assert "mcpServers" not in manifest.read_text()


@pytest.mark.parametrize("command", ["install", "remove"])
def test_where_nobody_can_be_asked_nothing_is_done(cli: Path, gemtui: Gemtui, command: str) -> None:
    if command == "remove":
        gemtui("extension install --yes")
    before = gemtui.json("extension status")
    gemtui("extension", command).refuses("--yes")
    assert gemtui.json("extension status") == before


def test_a_person_is_asked(cli: Path, tmp_path: Path) -> None:
    for key, installed in (("n", False), ("y", True)):
        words = [sys.executable, "-m", "gemtui", "extension", "install"]
        with Terminal(words, environ=dict(os.environ), folder=tmp_path, columns=80) as terminal:
            terminal.shows("Install the extension?")
            terminal.press(key, "\r")
            assert terminal.wait() == (0 if installed else 1)
        assert extension_dir().exists() is installed


def test_an_extension_of_somebody_else_is_left_alone(cli: Path, gemtui: Gemtui) -> None:
    theirs = gemini_home() / "extensions/gemtui/gemini-extension.json"
    put(theirs, json.dumps({"name": "gemtui", "version": "1"}))
    assert "not gemtui's" in gemtui("extension install --yes").complaint
    assert "not installed" in gemtui("extension remove --yes").complaint
    assert theirs.exists()
    assert not extension_dir().exists()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("link) echo much; echo 'no\x1b[31m such'; exit 7;;", "failed with exit code 7: no"),
        ("link) ;;", "did not install"),
        ("link) exec /bin/sleep 100;;", "took longer than 0.2 s"),
    ],
)
def test_a_cli_that_fails_is_told_in_words(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    gemtui: Gemtui,
    does: str,
    said: str,
) -> None:
    stand_in(tmp_path, monkeypatch, does)
    if "sleep" in does:
        monkeypatch.setattr(action, "LIMIT", 0.2)
    answer = gemtui("extension install --yes")
    assert answer.code == 1
    assert said in answer.complaint
    assert "\x1b" not in answer.err
    assert not extension_dir().exists()


def test_without_a_cli_there_is_nothing_to_install(
    home: Path, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GEMINI_CLI_PATH", str(tmp_path / "none"))
    gemtui("extension install --yes").fails("GEMINI_CLI_PATH")
    assert not extension_dir().exists()


def test_a_cli_without_such_hooks_is_too_old(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gemtui: Gemtui
) -> None:
    stand_in(tmp_path, monkeypatch, version="0.25.2")
    answer = gemtui("extension install --yes")
    assert answer.code == 1
    assert "Gemini CLI 0.25.2 does not run hooks of extensions" in answer.complaint
    assert not extension_dir().exists()


@pytest.mark.parametrize(
    ("program", "is_cached"),
    [
        ("~/.cache/uv/archive-v0/1/bin/python", True),
        ("~/.cache/pipx/1/bin/python", True),
        ("~/.local/pipx/.cache/1/bin/python", True),
        ("/caches/uv/archive-v0/1/bin/python", True),
        ("/elsewhere/1/bin/python", True),
        ("~/.local/share/uv/tools/gemtui/bin/python", False),
        ("~/.local/share/pipx/venvs/gemtui/bin/python", False),
    ],
)
def test_a_python_that_a_cache_may_lose_is_named_before_its_hooks_are_installed(
    program: str, is_cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    path = str(Path(program).expanduser())
    monkeypatch.setattr("sys.executable", path)
    told = "\n".join(before_install({"UV_CACHE_DIR": "/elsewhere"}))
    assert ("a cache that uv or pipx may empty" in told) is is_cached
