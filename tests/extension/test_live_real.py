"""A real interactive session, from its first prompt to its end, as its hooks and files tell it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from gemtui.extension.live import LiveFolder, LiveSession, LiveState
from tests.gated import put_hooks
from tests.model_server import Gate, ModelServer, Turn, answer, call, text
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.terminal import Terminal

pytestmark = pytest.mark.covers("gemtui/agent")

YES, NO = "\r", "\x1b"


@dataclass(frozen=True, slots=True)
class Talk:
    """A person at the CLI, and what gemtui sees of it."""

    terminal: Terminal
    live: LiveFolder

    def comes_to(self, state: LiveState) -> LiveSession:
        """Read on until the session does this."""
        self.terminal.until(lambda: self.now(lambda live: live.state is state), state)
        return self.live.read()[0]

    def leaves(self) -> None:
        """With enter; a CLI that has little time takes the first for the choice of the command."""
        while not self.now(lambda live: live.state is LiveState.ENDED):
            self.terminal.press("\r")
            self.terminal.read(0.5)

    def now(self, holds: Callable[[LiveSession], bool]) -> bool:
        self.terminal.read(0.05)
        return any(map(holds, self.live.read()))


@contextmanager
def talk(gemini: GeminiCli, prompt: str, turns: list[Turn]) -> Iterator[Talk]:
    """A session in a terminal that begins with a prompt, where the extension is installed."""
    put_hooks(gemini)
    with ModelServer(turns) as model:
        environ = gemini.environment(model.url)
        words = [str(gemini.program), "-m", MODEL, "-i", prompt]
        with Terminal(words, environ=environ, folder=gemini.project) as terminal:
            yield Talk(terminal, LiveFolder())


def test_a_session_works_waits_with_the_change_idles_and_ends(gemini: GeminiCli) -> None:
    gate = Gate()
    edit = call("write_file", file_path="w.txt", content="x\n")
    with talk(gemini, "write it", [answer(edit, after=gate), answer(text("Done."))]) as person:
        working = person.comes_to(LiveState.WORKING)
        assert working.project == str(gemini.project)
        gate.open()
        question = person.comes_to(LiveState.WAITING).question
        assert question is not None
        assert question.diff is not None
        assert question.diff.path == str(gemini.project / "w.txt")
        assert "+x" in question.diff.diff
        person.terminal.shows("Allow once")
        person.terminal.press(YES)
        idle = person.comes_to(LiveState.IDLE)
        assert (idle.session, idle.pid) == (working.session, working.pid)
        assert Path(idle.name or "").read_text()
        person.terminal.press("/quit")
        person.terminal.shows("Exit the cli")
        person.leaves()
        person.terminal.wait()


def test_no_ends_the_waiting_though_no_hook_tells_it(gemini: GeminiCli) -> None:
    edit = call("write_file", file_path="w.txt", content="x\n")
    with talk(gemini, "write it", [answer(edit)]) as person:
        person.comes_to(LiveState.WAITING)
        person.terminal.shows("Allow once")
        person.terminal.press(NO)
        person.comes_to(LiveState.IDLE)


def test_a_command_that_was_allowed_works_until_it_is_done(
    gemini: GeminiCli, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    shell = call("run_shell_command", command=f"cat {fifo}")
    with talk(gemini, "run it", [answer(shell), answer(text("Done."))]) as person:
        question = person.comes_to(LiveState.WAITING).question
        assert question is not None
        assert (question.kind, question.about) == ("exec", f"cat {fifo}")
        person.terminal.shows("Allow once")
        person.terminal.press(YES)
        person.comes_to(LiveState.WORKING)
        fifo.write_text("hello\n")
        person.comes_to(LiveState.IDLE)


def test_a_session_that_is_killed_while_it_waits(gemini: GeminiCli) -> None:
    edit = call("write_file", file_path="w.txt", content="x\n")
    with talk(gemini, "write it", [answer(edit)]) as person:
        waiting = person.comes_to(LiveState.WAITING)
        cli = psutil.Process(waiting.pid)
        cli.kill()
        cli.wait(PATIENCE)
        assert person.comes_to(LiveState.KILLED).pid == waiting.pid
