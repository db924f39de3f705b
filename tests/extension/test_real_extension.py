"""The extension in the real Gemini CLI: installed, in a session, taken out again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.detect import Cli, Detected, FoundBy, parse_help
from gemtui.extension.install import install_extension, remove_extension
from gemtui.extension.status import HookState, extension_state
from gemtui.paths import data_dir, extension_dir, live_dir, vault_dir
from tests.gated import put_hooks
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import MODEL, VERSION, GeminiCli, Running

pytestmark = pytest.mark.covers("gemtui/agent", "gemtui/runs")

ODD = 'it\'s "a" $HOME `id` ${extensionPath} $GEMINI_CWD é'
LARGE = "x" * 5_000_000
NOBODY_ANSWERS = {"GEMTUI_GATE": "/no/socket", "GEMTUI_PYTHON": "/usr/bin/python3"}


@pytest.fixture
def cli(gemini: GeminiCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Detected:
    """The real CLI in a home of its own; our data has an odd path."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ODD))
    for name, value in gemini.environment("http://127.0.0.1:1").items():
        monkeypatch.setenv(name, value)
    found = Cli(path=gemini.program, found_by=FoundBy.CALLER)
    return Detected(cli=found, version=VERSION, capabilities=parse_help(""), problem=None)


def _session(
    gemini: GeminiCli, content: str = "hello", more: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """A session that writes a file; the results of its calls."""
    write = call("write_file", file_path=str(gemini.project / "a.txt"), content=content)
    with ModelServer([answer(write), answer(text("Done."))]) as model:
        words = [str(gemini.program), "-o", "stream-json", "--approval-mode", "yolo"]
        words += ["-m", MODEL, "--prompt=go"]
        with Running(words, cli=gemini, url=model.url, more=more) as running:
            events = running.finish()
    return [each for each in events if each["type"] == "tool_result"]


@pytest.mark.every_run
def test_sessions_go_on_as_ever_and_leave_a_live_file(gemini: GeminiCli, cli: Detected) -> None:
    assert install_extension(cli).state is HookState.READY
    (result,) = _session(gemini, LARGE)
    assert result["status"] == "success"
    assert (gemini.project / "a.txt").read_text() == LARGE
    (live,) = live_dir().iterdir()
    told = json.loads(live.read_bytes())
    assert told["hook_event_name"] == "SessionEnd"
    assert Path(told["transcript_path"]).is_relative_to(gemini.store)


@pytest.mark.usefixtures("cli")
def test_a_session_is_copied_when_its_turn_ends(gemini: GeminiCli) -> None:
    put_hooks(gemini)
    vault_dir().mkdir()
    (vault_dir() / "on").touch()
    _session(gemini)
    (chat,) = gemini.store.glob("tmp/*/chats/*.jsonl")
    copy = Path(f"{vault_dir()}/copy{chat}").read_bytes()
    assert copy
    assert chat.read_bytes().startswith(copy)


@pytest.mark.parametrize("python", ["/no/python", sys.executable])
@pytest.mark.usefixtures("cli")
def test_a_run_that_asks_is_refused_where_nobody_answers(gemini: GeminiCli, python: str) -> None:
    put_hooks(gemini)
    (result,) = _session(gemini, more={**NOBODY_ANSWERS, "GEMTUI_PYTHON": python})
    assert result["error"]["type"] == "policy_violation"
    assert not (gemini.project / "a.txt").exists()


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        ({"hooksConfig": {"enabled": False}}, HookState.HOOKS_OFF),
        ({"hooksConfig": {"disabled": ["gemtui"]}}, HookState.HOOKS_OFF),
        ({"security": {"allowedExtensions": ["^/opt/"]}}, HookState.HOOKS_OFF),
        (None, HookState.DISABLED),
        ({"hooksConfig": {"disabled": ["other"]}}, HookState.READY),
    ],
)
@pytest.mark.usefixtures("cli")
def test_what_is_said_of_the_hooks_is_so(
    gemini: GeminiCli, settings: dict[str, Any] | None, state: HookState
) -> None:
    put_hooks(gemini)
    place = gemini.project / ".gemini/settings.json"
    if settings is None:
        _gemini(gemini, "extensions", "disable", "gemtui", "--scope", "workspace")
    else:
        place.parent.mkdir()
        place.write_text(json.dumps(settings))
    assert extension_state(cwd=gemini.project).state is state
    _session(gemini)
    assert any(live_dir().iterdir()) == (state is HookState.READY)


def _gemini(gemini: GeminiCli, *words: str) -> None:
    subprocess.run(
        [gemini.program, *words],
        cwd=gemini.project,
        env=gemini.environment("http://127.0.0.1:1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def test_removing_leaves_nothing_that_acts(gemini: GeminiCli, cli: Detected) -> None:
    _session(gemini)
    before = _files(gemini.store)
    install_extension(cli)
    assert remove_extension(cli).state is HookState.MISSING
    after = _files(gemini.store)
    new = {name for name in after if name not in before}
    assert {name for name in new if "gemtui" in name} == set()
    assert json.loads(after["extensions/extension-enablement.json"]) == {}
    assert {name: after[name] for name in before if name != "projects.json"} == {
        name: data for name, data in before.items() if name != "projects.json"
    }
    assert not extension_dir().exists()
    assert not live_dir().exists()


def test_installing_again_mends_what_is_broken(cli: Detected) -> None:
    install_extension(cli)
    (extension_dir() / "hook.sh").write_text("echo")
    assert extension_state().state is HookState.OLDER
    assert install_extension(cli).state is HookState.READY
    for path in (extension_dir() / "hooks/hooks.json", extension_dir() / "hooks"):
        path.unlink() if path.is_file() else path.rmdir()
    assert extension_state().state is HookState.GONE
    assert install_extension(cli).state is HookState.READY


def test_data_that_was_moved_is_linked_anew(
    cli: Detected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_extension(cli)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    assert install_extension(cli).source == data_dir() / "extension"


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
