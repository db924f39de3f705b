"""Small files that anybody may have put there: no command waits for one, or reads it without end.

What is not a regular file, too large or of a wrong shape is said in words that name it.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from gemtui.agent.settings import load_settings, settings_problems
from gemtui.agent.trust import trust_of
from gemtui.cli import main
from gemtui.config import Config, keep_setting, load_config
from gemtui.errors import ConfigError
from gemtui.paths import config_file, gemini_home, runs_dir
from gemtui.policy.engine.decide import Engine
from gemtui.policy.model.rules import ApprovalMode, Call
from gemtui.runs.effective_policy import effective_policy
from tests.cli.conftest import Gemtui
from tests.fake_cli import INIT, OK, FakeCli, says
from tests.odd_json import spoilt
from tests.rows import each_row, table
from tests.terminal import Terminal

pytestmark = pytest.mark.covers(
    "gemtui/commands", "gemtui/files.py", "gemtui/jsonfile.py", "gemtui/ui/app.py"
)

MOST_MEMORY = 700_000_000
"""Bytes of address space of a command: a read without end would take them all."""
SECONDS = 90
ONE_BY_ONE = """
import json, sys
from gemtui.cli import main
for line in json.loads(sys.argv[1]):
    code = main(line.split())
    assert code in (0, 1, 2), (line, code)
"""


def listening(path: Path) -> None:
    short = Path(tempfile.mkdtemp()) / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(short))
    short.rename(path)
    short.parent.rmdir()


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(50_000_000)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "socket": listening,
    "folder": Path.mkdir,
    "large": large,
    "loop": lambda path: path.symlink_to(path.name),
    "nested": lambda path: path.write_text('{"a":' * 10_000),
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe{"),
    "a list": lambda path: path.write_text("[1]"),
}
COMMANDS = (
    "doctor",
    "run Go --quiet",
    "run Go --dry-run",
    "runs",
    "sessions --everywhere",
    "policy list",
    "policy check mine",
    "policy explain --tool glob --policy mine",
)


def run_folder() -> Path:
    return runs_dir() / "0"


def places() -> list[Path]:
    """Every small file that others may have written, as the environment says where they are."""
    home, state = gemini_home(), Path(os.environ["XDG_STATE_HOME"]) / "gemtui"
    cache, run = Path(os.environ["XDG_CACHE_HOME"]) / "gemtui", run_folder()
    return [
        home / "settings.json",
        home / "trustedFolders.json",
        home / "projects.json",
        home / "policies" / "theirs.toml",
        home / "tmp" / "p" / ".project_root",
        home / "tmp" / "p" / "chats" / "session-2026-01-01T00-00-aaaaaaaa.jsonl",
        home / "history" / "p" / ".project_root",
        Path(".gemini").absolute() / "settings.json",
        config_file().parent / "policies" / "mine.toml",
        cache / "cli-version.json",
        cache / "cli-help.json",
        state / "trusted.json",
        state / "prompts.jsonl",
        *(run / f"{name}.json" for name in ("request", "supervisor", "exit", "before", "after")),
        *(run / name for name in ("abort", "prompt.txt", "stdout.ndjson", "stderr.txt")),
    ]


@pytest.fixture
def started_in(
    home: Path, fake_cli: FakeCli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder that a command starts in, with a CLI that answers."""
    fake_cli(f"print:{INIT}", says("Hi."), f"print:{OK}")
    monkeypatch.chdir(project)
    return project


def put(hostile: Callable[[Path], object]) -> None:
    for path in places():
        path.parent.mkdir(parents=True, exist_ok=True)
        hostile(path)
    os.utime(run_folder(), (0, 0))


def bounded(*commands: str) -> subprocess.CompletedProcess[bytes]:
    """The commands one after the other in a process with bounded memory, and not for ever."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    return subprocess.run(
        [sys.executable, "-P", "-c", ONE_BY_ONE, json.dumps(commands)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        preexec_fn=bound,
        check=False,
    )


@pytest.mark.parametrize(
    "name",
    [name if name == "fifo" else pytest.param(name, marks=pytest.mark.deep) for name in HOSTILE],
)
def test_no_command_waits_or_breaks(started_in: Path, name: str) -> None:
    put(HOSTILE[name])
    said = bounded(*COMMANDS)
    out, err = said.stdout.decode(), said.stderr.decode()
    assert said.returncode == 0, err
    for path in (started_in / ".gemini/settings.json", gemini_home() / "projects.json"):
        assert f"{path} can't be read: " in out
    assert "Hi.\n" in out
    assert f"{run_folder()} contains no readable run" in err


def test_the_settings_of_gemtui_itself_are_named(started_in: Path) -> None:
    places = {name: started_in / f"{name}.toml" for name in HOSTILE.keys() - {"a list"}}
    for name, path in places.items():
        HOSTILE[name](path)
    deep, digits = started_in / "deep.toml", started_in / "digits.toml"
    deep.write_text("a = " + "[" * 5000 + "]" * 5000)
    digits.write_text("a = " + "9" * 5000)
    for path in (*places.values(), deep, digits):
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        assert str(path) in str(caught.value)
        with pytest.raises(ConfigError):
            keep_setting(path, "theme", "x")


@pytest.mark.deep
@pytest.mark.parametrize("name", ["fifo", "endless", "large"])
def test_the_app_starts_among_them(started_in: Path, name: str) -> None:
    put(HOSTILE[name])
    words = [sys.executable, "-P", "-m", "gemtui"]
    with Terminal(words, environ=dict(os.environ), folder=started_in) as screen:
        screen.shows("1 Sessions")
        screen.press("3")
        screen.shows("Approval mode")
        screen.press("2")
        screen.shows("enter starts a run")


@each_row(
    "text, why",
    [
        ("{", "not valid JSON"),
        ("5", "not a JSON object"),
        ('{"a":' * 101 + "1" + "}" * 101, "nested more than 100 levels deep"),
        (" " * 4_000_001, "larger than 4,000,000 bytes"),
    ],
)
def test_settings_that_can_not_be_read_are_said_with_the_way_out(
    started_in: Path, gemtui: Gemtui, text: str, why: str
) -> None:
    path = gemini_home() / "settings.json"
    path.write_text(text)
    (problem,) = settings_problems(os.environ, started_in)
    assert problem.startswith(f"{path} can't be read: {why}")
    assert "exit code 52): repair or remove it" in problem
    for line in ("run Go", "policy list", "policy explain --tool glob"):
        gemtui(line).tells(problem)


SETTINGS = table("cli/settings.json")


@given(
    found=spoilt(SETTINGS),
    trusted=spoilt({"/x": "TRUST_FOLDER", "/": "TRUST_PARENT"}),
    registry=spoilt({"projects": {"/x": "x", "/y/z": "z"}}),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_shape_of_settings_breaks_what_reads_them(
    home: Path, tmp_path: Path, found: Any, trusted: Any, registry: Any
) -> None:
    (home / ".gemini/settings.json").write_text(json.dumps(found))
    (home / ".gemini/trustedFolders.json").write_text(json.dumps(trusted))
    (home / ".gemini/projects.json").write_text(json.dumps(registry))
    assert main(["sessions", "--everywhere"]) == 0
    trust_of(tmp_path)
    stands = effective_policy(workspace=tmp_path)
    for mode in ApprovalMode:
        engine = Engine(stands.policy, mode=mode, setup=stands.setup)
        engine.explain(Call("run_shell_command", {"command": "ls"}))
        engine.explain(Call("mcp_a_t", {}))
    assert main(["policy", "list", "--json"]) == (
        0 if isinstance(found, dict) and isinstance(trusted, dict) else 1
    )


def test_comments_are_left_out_and_texts_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": "x // y /* z */", /* "b": 1, */ "c": "\\"//" // end\n} /* open')
    assert load_settings(path) == {"a": "x // y /* z */", "c": '"//'}


def test_a_config_that_is_not_there_has_the_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path / "none.toml") == Config()
