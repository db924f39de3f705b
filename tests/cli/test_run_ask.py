"""`gemtui run --ask` in a terminal, with the real CLI on loopback."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gemtui.agent.approval import ApprovalRequest, GateFolder
from gemtui.commands.run_ask import AskingTerminal, TerminalQuestions, question_lines
from gemtui.paths import runs_dir
from gemtui.runs.gate.questions import QUIET, Conversation, Question
from gemtui.runs.listing import list_runs
from gemtui.transcript.model import Consent
from tests.cli.test_run_real import begin, finish
from tests.gated import put_hooks
from tests.model_server import ModelServer, answer, shell, text, writes
from tests.patience import PATIENCE
from tests.real_cli import MODEL, GeminiCli
from tests.rows import each_row, table
from tests.terminal import Terminal

TABLES = table("cli/run_ask.json")

pytestmark = pytest.mark.covers(
    "gemtui/commands", "gemtui/runs", "gemtui/extension", "gemtui/agent"
)


def asking(cli: GeminiCli, model: ModelServer, editor: Path | None = None) -> Terminal:
    options = ("-C", str(cli.project), "-m", MODEL, "--approval-mode", "default", "--ask")
    environ = {**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url, "EDITOR": str(editor or "")}
    environ |= {"TERM_PROGRAM": "WezTerm", "TMUX": "", "STY": ""}
    words = [sys.executable, "-m", "gemtui", "run", *options, "go"]
    return Terminal(words, environ=environ, folder=cli.project, rows=100)


def ready(terminal: Terminal, number: int) -> None:
    """Wait until a question can be answered for the n-th time; what is typed before is dropped."""
    wanted = "x stop run:"
    terminal.until(lambda: terminal.text.count(wanted) == number, f"{number} times {wanted}")
    terminal.read_for(2 * QUIET)


@pytest.mark.usefixtures("relaunching")
def test_each_answer_in_a_terminal(on_loopback: GeminiCli) -> None:
    put_hooks(on_loopback)
    project = on_loopback.project
    turns = [
        answer(writes("a.txt", "a\n")),
        answer(writes("b.txt", "b\n")),
        answer(shell("echo asked > ran.txt")),
        answer(shell("git add a.txt")),
        answer(shell("git add ran.txt")),
        answer(writes("c.txt", "c\n")),
        answer(shell("git add c.txt")),
        answer(text("All done.")),
    ]
    with ModelServer(turns) as model, asking(on_loopback, model) as terminal:
        ready(terminal, 1)
        terminal.shows("? Gemini asks: write_file a.txt", "+a", "y allow")
        terminal.press("y\r")
        ready(terminal, 2)
        terminal.shows("? Gemini asks: write_file b.txt")
        terminal.press("y but not there\r")
        ready(terminal, 3)
        terminal.press("n b is taken\r")
        ready(terminal, 4)
        terminal.shows("! > ran.txt: it writes a file", "$ echo asked > ran.txt")
        terminal.press("a\r")
        ready(terminal, 5)
        terminal.shows("not available: it writes a file")
        terminal.press("e echo changed > ran.txt\r")
        ready(terminal, 6)
        terminal.shows("the call with your changes:", "$ echo changed > ran.txt")
        terminal.press("y\r")
        ready(terminal, 7)
        terminal.shows("a and A allow git add … (")
        terminal.press("a\r")
        terminal.shows("? Gemini asks: write_file c.txt", "u revoke")
        ready(terminal, 8)
        terminal.press("u\r")
        terminal.shows("Revoked: git add … (")
        ready(terminal, 9)
        (project / "c.txt").write_text("meanwhile\n")
        terminal.press("y\r")
        terminal.shows(
            "A file has changed since this call was shown. Check the call again:", "-meanwhile"
        )
        ready(terminal, 10)
        assert (project / "c.txt").read_text() == "meanwhile\n"
        terminal.press("y\r")
        ready(terminal, 11)
        terminal.shows("? Gemini asks: run_shell_command", "$ git add c.txt")
        terminal.press("n\r")
        terminal.shows("All done.")
        assert terminal.wait() == 0
        said = str([each.body for each in model.requests])
    assert (project / "a.txt").exists()
    assert not (project / "b.txt").exists()
    assert (project / "ran.txt").read_text() == "changed\n"
    assert "b is taken" in said


@pytest.mark.usefixtures("relaunching")
def test_stopping_ends_the_run(on_loopback: GeminiCli) -> None:
    put_hooks(on_loopback)
    turns = [answer(writes("a.txt", "a\n")), answer(text("On."))]
    with ModelServer(turns) as model, asking(on_loopback, model) as terminal:
        ready(terminal, 1)
        terminal.press("x\r")
        assert terminal.wait() == 130
        rung = b"\a\x1b]777;notify;gemtui: greeter;a run needs approval: write_file\x1b\\"
        assert terminal.raw.count(rung) == terminal.raw.count(b"\x1b]777;") == 1
    assert not (on_loopback.project / "a.txt").exists()


LEADS = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT), 1)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Starts a program at its terminal, with its output in a file."""


def test_with_json_it_asks_at_the_terminal_and_ends_with_it(
    on_loopback: GeminiCli, tmp_path: Path
) -> None:
    put_hooks(on_loopback)
    project, out = on_loopback.project, tmp_path / "out"
    turns = [answer(writes(f"{name}.txt", "x")) for name in "ab"]
    with ModelServer(turns) as model:
        options = ("-C", str(project), "-m", MODEL, "--approval-mode", "default", "--ask", "--json")
        words = [sys.executable, "-c", LEADS, str(out), "-m", "gemtui", "run", *options, "go"]
        environ = {**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url}
        with Terminal(words, environ=environ, folder=project, columns=80, rows=24) as terminal:
            ready(terminal, 1)
            terminal.press("q\r")
            terminal.shows("unknown answer: type one of these")
            ready(terminal, 2)
            terminal.press("y\r")
            ready(terminal, 3)
            terminal.hang_up()
            terminal.process.wait(PATIENCE)
    events = [json.loads(line) for line in out.read_bytes().splitlines()]
    requests = [each for each in events if each["type"] == "permission_request"]
    assert [each["payload"]["input"]["file_path"] for each in requests] == ["a.txt", "b.txt"]
    assert events[-1]["payload"]["status"] == "interrupted"
    assert [each.name for each in project.glob("*.txt")] == ["a.txt"]
    (run,) = list_runs(runs_dir())
    assert run.state == "ended"


@pytest.mark.parametrize("words", [("--ask",), ("--ask", "--json")])
def test_without_a_terminal_nothing_is_started(
    on_loopback: GeminiCli, words: tuple[str, ...]
) -> None:
    put_hooks(on_loopback)
    with ModelServer([answer(text("On."))]) as model:
        process = begin(on_loopback, model, "go", *words)
        code, out, err = finish(process)
        assert not model.requests
    assert (code, out) == (2, "")
    assert "--ask needs a terminal" in err


@each_row("tool, args", TABLES["no_argument_is_left_out"])
def test_no_argument_is_left_out(tool: str, args: dict[str, str], tmp_path: Path) -> None:
    question = Question(request=ApprovalRequest(tool_name=tool, arguments=args))
    asked = Conversation(GateFolder(tmp_path), tmp_path).asked(question)
    lines = list(question_lines(asked, tmp_path))
    assert any("beside" in line for line in lines)
    assert ("  Gemini says: Lists" in lines) is ("description" in args)


LONG = "\n".join(f"echo {number}" for number in range(40)) + "\nrm -rf /"


class SmallTerminal:
    """A terminal of 24 rows in which a call is asked about; `shown`: what is printed on it."""

    def __init__(self, place: Path, command: str) -> None:
        self.ours, self.theirs = os.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.gate = GateFolder(place / "gate")
        self.gate.create()
        request = ApprovalRequest(
            tool_name="run_shell_command", arguments={"command": command}, number=1
        )
        self.gate.ask(request)
        self.shown = ""
        talk = Conversation(self.gate, place)
        asking = TerminalQuestions(AskingTerminal(self.theirs, self.theirs), talk)
        self.answer = asyncio.ensure_future(asking.ask(talk.refresh()[0]))

    async def prints(self, *words: str) -> None:
        """Wait until all of this is printed after what was typed last."""
        async with asyncio.timeout(PATIENCE):
            while not all(word in self.shown for word in words):
                self.shown += (await asyncio.to_thread(os.read, self.ours, 65536)).decode()

    def types(self, text: str) -> None:
        self.shown = ""
        os.write(self.ours, text.encode())

    async def close(self) -> None:
        self.answer.cancel()
        await asyncio.gather(self.answer, return_exceptions=True)
        for each in (self.ours, self.theirs):
            os.close(each)


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[Callable[[str], SmallTerminal]]:
    made: list[SmallTerminal] = []

    def one(command: str) -> SmallTerminal:
        made.append(SmallTerminal(tmp_path, command))
        return made[-1]

    yield one
    for each in made:
        await each.close()


async def test_a_yes_prints_the_rest_of_a_long_call_before_it_counts(
    small: Callable[[str], SmallTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a terminal of 24 rows the danger at the end of a command is printed first."""
    monkeypatch.setattr(AskingTerminal, "typed_within", nothing_typed)
    terminal = small(LONG)
    await terminal.prints(
        "! rm -rf /: it can delete", "more lines: press y to show the rest", "x stop run:"
    )
    assert terminal.shown.index("! rm -rf /") < terminal.shown.index("$ echo 0")
    assert "echo 39" not in terminal.shown
    assert terminal.shown.count("\n") < 24
    terminal.types("y\n")
    await terminal.prints("$ echo 39", "$ rm -rf /", "Your answer is still needed", "x stop run:")
    assert not terminal.answer.done()
    terminal.types("y\n")
    await terminal.answer
    written = terminal.gate.answer_to(1)
    assert written is not None
    assert written.consent is Consent.ALLOWED


async def nothing_typed(_terminal: AskingTerminal, _seconds: float) -> bool:
    return False


@pytest.mark.parametrize("typed", ["y\n", "a\n", "n\n", "y\ny\ny\n"])
async def test_what_is_typed_as_soon_as_a_question_is_shown_is_no_answer(
    small: Callable[[str], SmallTerminal], typed: str
) -> None:
    terminal = small("make")
    await terminal.prints("x stop run:")
    terminal.types(typed)
    await terminal.prints("ignored, because the question had only just appeared", "x stop run:")
    assert not terminal.gate.is_answered(1)


async def test_a_paste_can_t_allow_a_call_whose_end_it_makes_visible(
    small: Callable[[str], SmallTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question has been read for a while; its end has not."""
    waits = AskingTerminal.typed_within
    read = iter([True])

    async def typed_within(terminal: AskingTerminal, seconds: float) -> bool:
        return False if next(read, False) else await waits(terminal, seconds)

    monkeypatch.setattr(AskingTerminal, "typed_within", typed_within)
    terminal = small(LONG)
    await terminal.prints("x stop run:")
    terminal.types("y\ny\ny")
    await terminal.prints("$ rm -rf /", "ignored, because the question had only just appeared")
    terminal.shown = terminal.shown.partition("ignored")[2]
    await terminal.prints("x stop run:")
    assert not terminal.gate.is_answered(1)


async def test_in_a_closed_terminal_nothing_is_ignored_and_a_question_ends() -> None:
    opposite, own = os.openpty()
    os.close(opposite)
    terminal = AskingTerminal(own, own)
    assert not await terminal.typed_within(0)
    assert await terminal.line() is None
    os.close(own)
