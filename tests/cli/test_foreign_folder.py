"""No code of the folder that a person stands in is run, whoever made it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gemtui.agent.adapter import UnguardedAdapter
from gemtui.agent.events import Done, DoneStatus
from gemtui.agent.options import AgentOptions
from gemtui.policy.match import pattern_process
from gemtui.processes import find_program
from tests.cli.conftest import start
from tests.fake_cli import HELP, INIT, OK, FakeCli, says
from tests.foreign_folder import ForeignFolder
from tests.model_server import ModelServer, answer, text
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.terminal import Terminal

pytestmark = pytest.mark.covers("gemtui/commands", "gemtui/processes.py", "gemtui/agent")

COMMANDS = [
    "run Go --quiet",
    "run Go --dry-run",
    "runs",
    "doctor",
    "sessions --everywhere",
    "policy list",
    'policy explain --tool run_shell_command --args {"command":"ls"}',
]


ONE_BY_ONE = """
import json, sys
from gemtui.cli import main
for line in json.loads(sys.argv[1]):
    assert main(line.split()) == 0, line
"""


def test_no_command_runs_what_lies_in_its_folder(foreign: ForeignFolder, fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", says("Hi."), f"print:{OK}")
    commands = subprocess.run(
        [sys.executable, "-P", "-c", ONE_BY_ONE, json.dumps(COMMANDS)],
        cwd=foreign.path,
        env={**os.environ, "PATH": foreign.path_variable, "TMUX": "/nowhere,1,0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert foreign.ran == []
    assert commands.stdout.startswith(b"Hi.\n")


def test_a_cli_in_the_folder_is_not_the_one_that_is_found(
    foreign: ForeignFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(foreign.path)
    assert find_program("sh", {"PATH": foreign.path_variable}) == shutil.which("sh")
    monkeypatch.setenv("PATH", os.pathsep.join(("", ".", "../foreign")))
    assert find_program("gemini") is None
    assert find_program("./gemini") == "./gemini"


async def test_relative_entries_of_pythonpath_are_not_of_that_folder(
    foreign: ForeignFolder, own_places: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "help").write_text(HELP)
    cli = tmp_path / "cli"
    cli.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --help ] && exec /bin/cat {shlex.quote(str(tmp_path / "help"))}\n'
        f"pwd >&2; echo \"$PYTHONPATH\" >&2; echo '{INIT}'; echo '{OK}'\n"
    )
    cli.chmod(0o755)
    monkeypatch.chdir(foreign.path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".", "../foreign")))
    adapter = UnguardedAdapter(cli=Path("../cli"), runs=Path("../runs"))
    events = [event async for event in adapter.run("Go", AgentOptions(cwd=Path()))]
    assert foreign.ran == []
    assert isinstance(events[-1].payload, Done)
    assert events[-1].payload.status is DoneStatus.SUCCESS
    (words,) = (tmp_path / "runs").glob("*/stderr.txt")
    assert words.read_text().split("\n") == [str(foreign.path), os.environ["PYTHONPATH"], ""]


def test_patterns_are_tried_by_a_python_of_ours(
    foreign: ForeignFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(foreign.path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".")))
    pattern_process.end()
    try:
        assert pattern_process.found("(a+)+b", "aab", 5.0)
    finally:
        pattern_process.end()
    assert foreign.ran == []


def test_as_a_module_it_takes_nothing_more_from_the_folder(
    foreign: ForeignFolder, fake_cli: FakeCli
) -> None:
    """Python itself has looked for `gemtui` there before any line of ours is run."""
    for path in foreign.path.glob("*.py"):
        if path.stem in sys.stdlib_module_names:
            path.unlink()
    shutil.rmtree(foreign.path / "gemtui")
    fake_cli(f"print:{INIT}", says("Hi."), f"print:{OK}")
    for line in ("run Go --quiet", "doctor"):
        start(line, cwd=foreign.path, environ={"PATH": foreign.path_variable})
    assert foreign.ran == []


@pytest.mark.deep
def test_the_app_takes_nothing_from_the_folder(foreign: ForeignFolder, fake_cli: FakeCli) -> None:
    fake_cli(f"print:{INIT}", says("Hi."), f"print:{OK}")
    environ = {**os.environ, "PATH": foreign.path_variable}
    words = [sys.executable, "-P", "-m", "gemtui"]
    with Terminal(words, environ=environ, folder=foreign.path) as screen:
        screen.shows("No sessions here yet")
        screen.press("3")
        screen.shows("No policy yet")
        screen.press("2")
        screen.shows("enter starts a run", "gemini 0.61.0")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.wait() == 128 + signal.SIGTERM
    assert foreign.ran == []


def test_the_editor_is_no_program_of_the_folder(
    foreign: ForeignFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gemtui.editor import NoEditor, editor_program

    monkeypatch.chdir(foreign.path)
    monkeypatch.setenv("PATH", os.pathsep.join(("", ".")))
    with pytest.raises(NoEditor, match="nano was not found on PATH"):
        editor_program("nano")


async def test_the_real_cli_runs_in_such_a_folder(
    foreign: ForeignFolder, gemini: GeminiCli, tmp_path: Path
) -> None:
    with ModelServer([answer(text("Hi."))]) as model:
        environ = {**os.environ, **gemini.environment(model.url)}
        adapter = UnguardedAdapter(cli=gemini.program, runs=tmp_path / "runs", environ=environ)
        options = AgentOptions(cwd=foreign.path, model=MODEL, trust=True)
        async with asyncio.timeout(PATIENCE):
            events = [event async for event in adapter.run("Hello", options)]
    assert isinstance(events[-1].payload, Done)
    assert events[-1].payload.status is DoneStatus.SUCCESS
    assert foreign.ran == []
