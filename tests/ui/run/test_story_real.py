"""A person lets an agent work, goes home with a question open, and answers it in the morning.

By keys in a terminal of 80 columns, on the real CLI.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gemtui.agent.approval import GateFolder
from gemtui.paths import runs_dir
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.policy_files import path_of
from gemtui.runs.gate.questions import QUIET
from gemtui.runs.gate.similar_calls import ALWAYS
from gemtui.runs.listing import list_runs
from tests.model_server import ModelServer, answer, call, text
from tests.real_cli import MODEL, GeminiCli
from tests.terminal import Terminal

pytestmark = pytest.mark.covers("gemtui/runs", "gemtui/extension")

TAB, ENTER, ESCAPE = "\t", "\r", "\x1b"
CTRL_O, CTRL_P, CTRL_S = "\x0f", "\x10", "\x13"
EDITOR = """#!/bin/sh
printf 'editing\\033[2J\\033[H'
echo mine >> "$1"
"""


def opened(cli: GeminiCli, model: ModelServer, editor: Path) -> Terminal:
    environ = {**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url, "EDITOR": str(editor)}
    environ |= {"GEMINI_MODEL": MODEL, "TERM_PROGRAM": "", "TMUX": "", "STY": "", "VISUAL": ""}
    words = [sys.executable, "-m", "gemtui"]
    return Terminal(words, environ=environ, folder=cli.project, columns=80, rows=24)


def asked(terminal: Terminal, *texts: str) -> None:
    """Wait until a question takes keys."""
    terminal.shows("y allow", *texts)
    terminal.read_for(2 * QUIET)


def test_a_question_waits_through_the_night(on_loopback: GeminiCli, tmp_path: Path) -> None:
    project, editor = on_loopback.project, tmp_path / "editor"
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    turns = [
        answer(call("write_file", file_path="a.txt", content="a\n")),
        answer(call("run_shell_command", command="git add a.txt")),
        answer(*(call("run_shell_command", command=f"touch {n}") for n in range(5))),
        answer(text("All done.")),
    ]
    with ModelServer(turns) as model:
        with opened(on_loopback, model, editor) as evening:
            evening.shows("No sessions here yet")
            evening.press(CTRL_P)
            evening.shows("Commands")
            evening.press("extension", ENTER)
            evening.shows("Install the extension?")
            evening.read_for(2 * QUIET)
            evening.press("y")
            evening.shows("Installed. Its hooks run")
            evening.press("2")
            evening.shows("enter starts a run")
            evening.shows("mode ask")
            evening.press("go", ENTER)
            asked(evening, "a new file", "1 + a")
            evening.press("e")
            asked(evening, "changed by you", "2 + mine")
            assert evening.lines[0].startswith(" gemtui"), "the screen is whole again"
            assert "editing" not in evening.text
            evening.press("y")
            asked(evening, "$ git add a.txt")
            evening.press("A")
            asked(evening, "of 5", "1 run_shell_command touch 0")
            came_first = re.search(r"(\d) of 5", evening.text)
            assert came_first is not None
            evening.press("h" * (int(came_first[1]) - 1))
            asked(evening, "1 of 5", "$ touch 0")
            assert len(Policy.load(path_of(ALWAYS)).rules) == 1
            evening.press("u")
            evening.until(lambda: not Policy.load(path_of(ALWAYS)).rules, "an empty policy")
            asked(evening, "$ touch 0")
            evening.press("n")
            asked(evening, "1 of 4", "$ touch 1")
            evening.hang_up()
            evening.process.send_signal(signal.SIGKILL)
        with opened(on_loopback, model, editor) as morning:
            morning.shows("A run needs your approval")
            morning.press("2")
            for left in (3, 2, 1):
                asked(morning, f"1 of {left + 1}", f"$ touch {4 - left}", "mode ask")
                morning.press("y")
            asked(morning, "$ touch 4")
            morning.press("y")
            morning.shows("All done.", "1 tool call was denied")
    assert (project / "a.txt").read_text() == "a\nmine\n"
    assert sorted(each.name for each in project.glob("[0-9]")) == ["1", "2", "3", "4"]
    (run,) = list_runs(runs_dir())
    assert len(GateFolder(run.folder.path / "gate").question_numbers()) == 7
    told = subprocess.run(["git", "status", "--short", "a.txt"], cwd=project, capture_output=True)
    assert told.stdout == b"A  a.txt\n"
