"""ctrl+z, `fg`, and signals from outside, in a shell with job control."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from gemtui.agent.approval import ApprovalRequest, GateFolder
from gemtui.agent.trust import remember
from gemtui.paths import runs_dir
from gemtui.runs.gate.questions import QUIET
from gemtui.runs.listing import list_runs
from tests.fake_cli import INIT, FakeCli
from tests.patience import PATIENCE
from tests.terminal import Terminal
from tests.ui.test_end import STORE, restored

pytestmark = [pytest.mark.deep, pytest.mark.covers("gemtui/ui/app.py", "gemtui/ui/kit")]

SHELL = """
import fcntl, os, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
"""
CTRL_Z = "\x1a"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Terminal]:
    shutil.copytree(STORE, tmp_path / "home")
    environ = dict(os.environ, GEMINI_CLI_HOME=str(tmp_path / "home"), PS1="ready: ")
    environ.pop("PYTEST_CURRENT_TEST", None)
    words = [sys.executable, "-c", SHELL]
    with Terminal(words, environ=environ, folder=tmp_path) as terminal:
        terminal.shows("ready:")
        yield terminal


def begin(shell: Terminal, line: str = "{} -m gemtui") -> None:
    shell.press(line.format(sys.executable), "\r")
    shell.shows("? keys")


def stopped(shell: Terminal) -> None:
    """See the prompt of the shell at a terminal that is as it was before."""
    prompts = shell.raw.count(b"ready:")
    shell.until(lambda: shell.raw.count(b"ready:") > prompts, "the shell")
    assert restored(shell.raw)
    assert shell.cooked


def continued(shell: Terminal, *texts: str, columns: int = 120, rows: int = 36) -> None:
    """Bring it back on an empty screen of this size, and see all of it."""
    shell.resize(columns, rows)
    shell.press("fg\r")
    shell.shows("gemtui", "keys", "^p commands", *texts)
    while shell.read(0.3):  # it is drawn for the old size first
        pass
    assert all(text in shell.text for text in texts)
    for mode in (b"\x1b[?1003h", b"\x1b[?2004h", b"\x1b[>", b"\x1b[?1049h", b"\x1b]2;"):
        off = b"\x1b[23;2t" if mode.startswith(b"\x1b]") else mode.replace(b"h", b"l")
        assert shell.raw.rfind(mode) > shell.raw.rfind(off.replace(b">", b"<u"))
    assert not shell.cooked


def _says_of_its_jobs(shell: Terminal, words: bytes) -> bool:
    """Return whether the shell says this of its jobs."""
    shell.press("jobs -l\r")
    return words in shell.raw


def test_ctrl_z_and_fg_keep_what_is_typed_in_every_pane_and_dialog(shell: Terminal) -> None:
    begin(shell)
    states = (
        ("", "1 Sessions]", ""),
        ("mheron", "heron", "\x1b"),
        ("3", "3 Policy]", ""),
        ("2fix the tide", "fix the tide", ""),
    )
    for at, (keys, text, leave) in enumerate(states):
        shell.press(keys)
        shell.shows(text)
        shell.press(CTRL_Z)
        stopped(shell)
        size = (80, 24) if at % 2 else (120, 36)
        continued(shell, text, columns=size[0], rows=size[1])
        if leave:
            shell.press(leave)
            shell.hides(text)
    shell.press("\x11")
    shell.shows("ready:")


def test_a_question_waits_through_ctrl_z_and_is_answered_after_fg(
    fake_cli: FakeCli, shell: Terminal, tmp_path: Path
) -> None:
    program = fake_cli(f"print:{INIT}", "wait")
    remember(tmp_path)
    begin(shell, f"GEMINI_CLI_PATH={program} {{}} -m gemtui")
    shell.press("2")
    shell.shows("enter starts a run")
    shell.press("go\r")
    shell.shows("waiting for the model", "^c stop")
    (run,) = list_runs(runs_dir())
    gate = GateFolder.of(run.folder)
    gate.create()
    push = {"command": "git push origin topic"}
    gate.ask(ApprovalRequest(tool_name="run_shell_command", arguments=push, number=1))
    shell.shows("Gemini asks", "origin topic")
    for columns, rows in ((80, 24), (120, 36)):
        shell.press(CTRL_Z)
        stopped(shell)
        assert gate.answer_to(1) is None
        continued(shell, "Gemini asks", "origin topic", columns=columns, rows=rows)
    if "Press esc to answer" in shell.text:  # the question appeared while keys were pressed
        shell.press("\x1b")
        while shell.read(1):
            pass
    for _ in range(int(PATIENCE)):  # a key pressed too soon after a drawing doesn't count
        shell.press("y")
        shell.read_for(2 * QUIET)
        if gate.answer_to(1) is not None:
            break
    assert gate.answer_to(1) is not None
    shell.hides("Gemini asks")


def test_signals_from_outside_stop_it_and_bg_does_not_take_the_terminal(shell: Terminal) -> None:
    begin(shell, "{} -m gemtui & echo job $!; fg")
    shell.until(lambda: b"job " in shell.raw.partition(b"\r\n")[2], "the process id")
    number = int(shell.raw.rpartition(b"job ")[2].split()[0])
    os.kill(number, signal.SIGTSTP)
    stopped(shell)
    shell.press("bg\r")
    shell.until(partial(_says_of_its_jobs, shell, b"tty output"), "the job is stopped again")
    continued(shell, "1 Sessions]")
    prompts = shell.raw.count(b"ready:")
    os.kill(number, signal.SIGSTOP)
    shell.until(lambda: shell.raw.count(b"ready:") > prompts, "the shell")
    continued(shell, "1 Sessions]")
    shell.press("2")
    shell.shows("2 Run]")
    shell.press(CTRL_Z)
    stopped(shell)
    shell.press("kill %1; fg; echo code $?\r")
    shell.shows("code 143")
    assert shell.cooked


def test_the_program_that_started_it_stops_with_it(shell: Terminal) -> None:
    begin(shell, "sh -c '{} -m gemtui; echo over'")
    shell.press(CTRL_Z)
    stopped(shell)
    continued(shell)
    shell.press("\x11")
    shell.shows("over")


def test_the_screen_is_back_where_nothing_was_stopped_or_started(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("no program")
    editor.chmod(0o700)
    environ = dict(os.environ, EDITOR=str(editor))
    words = [sys.executable, "-m", "gemtui", "--demo"]
    with Terminal(words, environ=environ, folder=tmp_path) as terminal:
        terminal.shows("? keys", "Add the moon phase")
        terminal.press(CTRL_Z)
        terminal.shows("There is no shell to return to")
        terminal.press("\r")
        terminal.shows("esc back", "following")
        terminal.press("\x1b[H", "]]o")
        terminal.shows("Exec format error")
        terminal.press("\x11")
        assert terminal.wait() == 0
