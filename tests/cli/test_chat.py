"""`gemtui chat`: a conversation as a screen reader gets it, with the real CLI on loopback."""

from __future__ import annotations

import os
import pty
import re
import sys
from functools import partial
from pathlib import Path

import pytest

from gemtui.agent.events import Event, TextDelta
from gemtui.agent.options import AgentOptions
from gemtui.commands.app import open_app
from gemtui.commands.chat import Chat, LineTerminal, SpokenShow, change_lines, text_lines
from gemtui.paths import config_file
from gemtui.runs.adapter import GeminiAdapter
from gemtui.runs.gate.questions import QUIET
from tests.cli.conftest import Gemtui, put
from tests.gated import put_hooks
from tests.model_server import Gate, ModelServer, answer, call, shell, text
from tests.real_cli import MODEL, GeminiCli
from tests.terminal import Terminal

pytestmark = pytest.mark.covers(
    "gemtui/commands", "gemtui/runs", "gemtui/extension", "gemtui/agent", "gemtui/checkpoints"
)

STEPS = "one\ntwo\nthree\n"
EDIT = call(
    "replace",
    file_path="steps.txt",
    instruction="Add a step",
    old_string="two\n",
    new_string="two\n\tand half\n",
)


class Talk(Terminal):
    """`gemtui chat` at a terminal, whose output is read as a screen reader reads it."""

    def __init__(self, cli: GeminiCli, model: ModelServer, mode: str) -> None:
        environ = {**os.environ, "GOOGLE_GEMINI_BASE_URL": model.url, "TERM": "dumb"}
        self._heard = 0
        options = ("-m", MODEL, "--approval-mode", mode)
        command = [sys.executable, "-m", "gemtui", "chat", *options]
        super().__init__(command, environ=environ, folder=cli.project, rows=200)

    @property
    def spoken(self) -> str:
        """All output; the terminal itself writes a line's end as CR LF."""
        return self.raw.decode().replace("\r\n", "\n")

    def hears(self, *texts: str) -> None:
        """Wait until all of this is said after what was heard before."""
        for words in texts:
            self.until(partial(self._has, words), words)
            self._heard = self.spoken.index(words, self._heard) + len(words)

    def _has(self, words: str) -> bool:
        return words in self.spoken[self._heard :]

    def says(self, line: str) -> None:
        self.press(f"{line}\r")

    def replies(self, question: str, line: str) -> None:
        """Answer once a question can have been read; what is typed before does not count."""
        self.hears(question)
        self.read_for(2 * QUIET)
        self.says(line)


@pytest.mark.usefixtures("relaunching")
def test_a_first_task_with_a_question_a_refusal_and_an_undo_is_only_lines(
    on_loopback: GeminiCli,
) -> None:
    put_hooks(on_loopback)
    file = on_loopback.project / "steps.txt"
    file.write_text(STEPS)
    stopped = Gate()
    turns = [
        answer(text("There are\tthree steps.\nShall I add one?")),
        answer(EDIT),
        answer(shell("rm -rf steps.txt")),
        answer(text("I added a step.")),
        answer(text("As you like.")),
        answer(text("Never said."), after=stopped),
    ]
    with ModelServer(turns) as model, Talk(on_loopback, model, "default") as talk:
        talk.hears("A conversation with Gemini in", "Type help", "You: ")
        talk.says("What is\\")
        talk.hears("Next line: ")
        talk.says("here?")
        talk.hears("Gemini: There are    three steps.\n  Shall I add one?\nDone.\nYou: ")
        talk.says("Add one")
        talk.hears("Gemini asks to write steps.txt:\nadded line 3:  and half\n")
        talk.replies("stop: ", "yes")
        talk.hears("Gemini has changed steps.txt.\n")
        talk.hears("asks to run this command:\nrm -rf steps.txt\n", "Warning: rm -rf steps.txt:")
        talk.replies("stop: ", "no keep it")
        talk.hears(
            "Not done: denied", "Gemini: I added a step.\n", "Files written: steps.txt.\nYou: "
        )
        assert "\tand half" in file.read_text()
        talk.says("undo")
        talk.hears("would be restored: steps.txt\n")
        talk.replies("Do this? Answer yes or no: ", "yes")
        talk.hears("restored: steps.txt\n", "Done.\nYou: ")
        assert file.read_text() == STEPS
        talk.says("Leave it\rundo\r")
        talk.hears("3 lines. Write more, or press enter to send: ")
        talk.says("as it is")
        talk.hears("4 lines. Write more, or press enter to send: ")
        talk.says("")
        talk.hears("Gemini: As you like.\n", "Done.\nYou: ")
        resumed = str(model.requests[-1].body)
        talk.says("Wait")
        stopped.reached.wait()
        talk.says("")
        talk.hears("Gemini is thinking.\n")
        talk.says("stop")
        talk.hears("Stopping.\n", "You: ")
        talk.says("quit")
        assert talk.wait() == 0
    assert "What is\\nhere?" in resumed
    assert "Leave it\\nundo\\n\\nas it is" in resumed
    assert "Add one" not in resumed
    assert not re.findall(r"[^\n -~]", talk.spoken)


@pytest.mark.usefixtures("relaunching")
def test_changes_that_nobody_was_asked_about_are_told(on_loopback: GeminiCli) -> None:
    put_hooks(on_loopback)
    on_loopback.project.joinpath("steps.txt").write_text(STEPS)
    turns = [answer(EDIT), answer(text("It is done."))]
    with ModelServer(turns) as model, Talk(on_loopback, model, "auto_edit") as talk:
        talk.hears("You: ")
        talk.says("Add one")
        talk.hears("Gemini has changed steps.txt.\nIn steps.txt: added line 3:  and half\n")
        talk.hears("Gemini: It is done.\n", "You: ")
        talk.press("\x04")
        assert talk.wait() == 0


@pytest.mark.parametrize(
    ("variable", "setting", "is_plain"),
    [("1", "false", True), (None, "true", True), ("0", "true", False), (None, "false", False)],
)
def test_gemtui_itself_is_the_conversation_if_plain_is_chosen(
    variable: str | None, setting: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[object]()
    monkeypatch.setattr("gemtui.commands.chat.start_chat", lambda given: started.append(given))
    monkeypatch.setattr("gemtui.commands.app._app", lambda *_: None)
    if variable is not None:
        monkeypatch.setenv("GEMTUI_PLAIN", variable)
    put(config_file(), f"plain = {setting}\n")
    open_app(None, session="latest", demo=False, ascii=False)
    assert started == ([{"resume": "latest"}] if is_plain else [])


def test_without_a_terminal_it_says_what_to_use(gemtui: Gemtui) -> None:
    gemtui("chat").refuses("gemtui chat needs a terminal: without one, use gemtui run PROMPT")


def test_no_line_of_a_command_can_pass_for_one_of_gemtui() -> None:
    hidden = "rm -rf src\nAnswered in another gemtui.\nGemini asks to run this command:\r\nls\n"
    assert list(text_lines(hidden)) == [
        "line 1: rm -rf src",
        "line 2: Answered in another gemtui.",
        "line 3: Gemini asks to run this command:␍",
        "line 4: ls",
    ]
    assert list(text_lines("ls\n")) == ["ls"]


def test_no_line_of_an_answer_can_pass_for_one_of_gemtui(tmp_path: Path) -> None:
    with (tmp_path / "printed").open("w+b") as printed:
        show = SpokenShow(LineTerminal(-1, printed.fileno()), set())
        for part in ("Yes.\nGemini asks to run", " this:\rls\u2028Answer yes", " or no:\n"):
            show.output(Event(payload=TextDelta(delta=part), timestamp=0))
        printed.seek(0)
        lines = printed.read().decode().splitlines()
    assert lines == ["Gemini: Yes.", "  Gemini asks to run this:", "  ls", "  Answer yes or no:"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cut sooner, and drop the end")
async def test_a_line_that_the_terminal_has_cut_is_not_taken(tmp_path: Path) -> None:
    typing, reading = pty.openpty()
    with (tmp_path / "printed").open("w+b") as printed:
        os.write(typing, b"a" * 5000 + b"\n" + b"b" * 4094 + b"\n")
        line = await LineTerminal(reading, printed.fileno()).line()
        printed.seek(0)
        said = printed.read().decode()
    for end in (typing, reading):
        os.close(end)
    assert line == "b" * 4094
    assert said.startswith("Not read, because the terminal cuts lines after 4,095 bytes.")


async def test_stop_is_no_prompt_when_nothing_works_any_more(tmp_path: Path) -> None:
    typed = [[], ["Stop"]]

    class Typist(LineTerminal, frozen=True):
        async def lines(self) -> list[str]:
            return typed.pop()

    with (tmp_path / "printed").open("w+b") as printed:
        terminal = Typist(-1, printed.fileno())
        assert await Chat(GeminiAdapter(), AgentOptions(), terminal).talk() == 0
        printed.seek(0)
        assert b"You: Gemini is not working.\nYou: " in printed.read()


def test_changes_are_told_with_their_numbers_and_without_hidden_characters() -> None:
    diff = "--- a\n+++ a\n@@ -4,3 +4,3 @@\n same\n-old\u202e\n+\n+new\x1b[31m\n@@ -20 +21 @@\n-x\n"
    assert list(change_lines(diff)) == [
        "removed line 5: old⟨U+202E⟩",
        "added line 5: empty",
        "added line 6: new␛[31m",
        "removed line 20: x",
    ]
    assert list(change_lines("-was\n+is\n")) == ["-was", "+is"]
