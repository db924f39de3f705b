"""`gemtui runs questions`, `answer`, `say`, `queue`: a run that waits, served from elsewhere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from gemtui.agent.approval import AnswerSource, Approval, ApprovalRequest
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import RUN_TAG, Exit, Owner
from gemtui.paths import config_file, runs_dir, state_dir
from gemtui.runs.gate.questions import Conversation
from gemtui.runs.listing import find_run
from tests.cli.conftest import Gemtui, has, start, values
from tests.cli.test_run_ask import asking
from tests.gated import put_hooks
from tests.model_server import ModelServer, answer, text, writes
from tests.patience import until
from tests.real_cli import GeminiCli
from tests.rows import table
from tests.runs.test_gate import Asker, through
from tests.test_documents import SHAPES, TEXTS, names
from tests.tools.documents import ASSETS

TABLES = table("cli/runs_serve.json")

pytestmark = pytest.mark.covers("gemtui/commands", "gemtui/runs", "gemtui/extension")

ASKED = ApprovalRequest(
    tool_name="run_shell_command", arguments={"command": "make > all"}, number=1
)


@pytest.fixture
def asker(home: object, tmp_path: Path) -> Iterator[Asker]:
    """A run that goes on and asks, among the user's."""
    place = state_dir()
    place.mkdir(parents=True)
    made = Asker(place, project=tmp_path / "project")
    made.lives()
    yield made
    made.close()


def listed(gemtui: Gemtui, *words: str) -> list[dict[str, Any]]:
    answer = gemtui.ok("runs questions", *words, "--json")
    assert answer.json["version"] == 1
    found: list[dict[str, Any]] = answer.json["questions"]
    return found


def told_names(what: str) -> set[str]:
    """The names that the row about questions has, of a question and of its effect."""
    (row,) = re.findall(r"^\| `gemtui runs questions`.*", TEXTS[ASSETS / "commands.md"], re.M)
    shapes = re.findall(r"`(\{[^`]*\})`", row.partition(what)[2])
    return {name for shape in shapes[:2] for name in re.findall(r'"(\w+)"', shape)}


def test_a_question_has_all_that_a_person_needs_and_its_id_allows_it(
    asker: Asker, gemtui: Gemtui
) -> None:
    place = asker.project / "a.txt"
    place.write_text("one\n")
    waiting = asker.later("write_file", file_path="a.txt", content="two\n\x1b]0;x\x07\n")
    asker.question(1)
    (found,) = listed(gemtui)
    assert {*found, *found["effect"]} == told_names("a question"), "as assets/commands.md has it"
    has(found, run="run", number=1, tool="write_file")
    effect = found["effect"]
    has(effect, path=str(place), before="one\n")
    assert "-one\n+two\n" in effect["diff"]
    has(found, changed=False, refusal=None)
    told = gemtui("runs questions run")
    assert "\x1b" not in told.out
    assert f"gemtui runs answer run {found['id']} allow" in told.out
    answer = gemtui("runs answer run", found["id"], "allow")
    assert (answer.code, answer.out) == (0, "question 1: allowed\n")
    assert through(waiting.result())["content"] == "two\n\x1b]0;x\x07\n"
    assert listed(gemtui, "run") == []


def test_an_answer_to_what_has_changed_is_refused(asker: Asker, gemtui: Gemtui) -> None:
    place = asker.project / "a.txt"
    place.write_text("one\n")
    waiting = asker.later("write_file", file_path="a.txt", content="two\n")
    asker.question(1)
    (shown,) = listed(gemtui)
    place.write_text("meanwhile\n")
    for name in (shown["id"], "1"):
        gemtui("runs answer run", name, "allow").fails("the call has changed since it was shown")
    assert not asker.files.is_answered(1)
    (now,) = listed(gemtui)
    assert now["changed"]
    assert now["id"] != shown["id"]
    answer = gemtui("runs answer run", now["id"], "allow", "--json")
    assert (answer.code, answer.json["counted"], answer.json["consent"]) == (0, True, "allowed")
    assert set(answer.json) == names(SHAPES["runs answer"])
    assert waiting.result() is not None


@pytest.mark.parametrize("what", ["another name", "executable"])
def test_an_answer_is_tied_to_what_else_the_file_is(
    asker: Asker, gemtui: Gemtui, what: str
) -> None:
    place = asker.project / "a.txt"
    place.write_text("one\n")
    asker.later("write_file", file_path="a%2etxt", content="two\n")
    asker.question(1)
    (shown,) = listed(gemtui)
    has(shown["effect"], names=1, executable=False)
    assert (shown["arguments"]["file_path"], shown["requested"]["file_path"]) == (
        str(place),
        "a%2etxt",
    )
    told = gemtui("runs questions run").out
    assert "names (hard links)" not in told
    assert "executable" not in told
    if what == "executable":
        place.chmod(0o700)
    else:
        (asker.project / "b.txt").hardlink_to(place)
    gemtui("runs answer run", shown["id"], "allow").fails("the call has changed since it was shown")
    words = (
        "it is executable"
        if what == "executable"
        else "it has 2 names (hard links): the others change as well"
    )
    assert f"! {words}" in gemtui("runs questions run").out


def test_a_second_answer_says_so(asker: Asker, gemtui: Gemtui) -> None:
    waiting = asker.later("run_shell_command", command="make > all")
    asker.question(1)
    (shown,) = listed(gemtui)
    assert (shown["effect"]["command"], shown["similar"]) == ("make > all", None)
    assert "it writes a file" in shown["dangers"][0]["why"]
    assert shown["cautions"][0] == {"text": "> all: it writes a file", "danger": True}
    answer = gemtui("runs answer run 1 deny --because", "not now")
    assert (answer.code, answer.out) == (0, "question 1: denied\n")
    refused = waiting.result()
    assert refused is not None
    assert "not now" in refused["reason"]
    again = gemtui("runs answer run 1 allow --json")
    assert (again.code, again.json["counted"]) == (1, False)
    assert "the question has already been answered: denied" in again.complaint


def test_similar_calls_pass_after_one_answer(asker: Asker, gemtui: Gemtui) -> None:
    waiting = asker.later("run_shell_command", command="make all")
    asker.question(1)
    assert listed(gemtui)[0]["similar"].startswith("make all … (")
    gemtui.ok("runs answer run 1 allow --similar")
    assert waiting.result() is not None
    assert through(asker.call("run_shell_command", command="make all"))


def test_an_answer_that_names_nothing_is_a_usage_error(asker: Asker, gemtui: Gemtui) -> None:
    asker.files.ask(ASKED)
    for words, what in TABLES["an_answer_that_names_nothing_is_a_usage_error"]:
        gemtui("runs answer", *words).refuses(what)
        assert not asker.files.is_answered(1)


@pytest.mark.parametrize("sign", ["tag", "parent"])
@pytest.mark.parametrize("verdict", ["allow", "deny"])
def test_a_run_can_t_answer_its_own_question(
    asker: Asker, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch, sign: str, verdict: str
) -> None:
    asker.files.ask(ASKED)
    if sign == "tag":
        monkeypatch.setenv(RUN_TAG, "run")
    else:
        own, supervisor = os.getpid(), psutil.Process().parent()
        assert supervisor is not None
        asker.folder.write_owner(Owner(pid=supervisor.pid, began=supervisor.create_time(), cli=own))
    gemtui("runs answer run 1", verdict).refuses("the run itself started this program")
    assert not asker.files.is_answered(1)


def test_a_run_says_from_where_each_answer_came(asker: Asker, gemtui: Gemtui) -> None:
    for number, source in enumerate(AnswerSource, start=1):
        asker.files.ask(replace(ASKED, number=number))
        run = find_run(runs_dir(), "run")
        question = Conversation.of(run).refresh()[-1]
        talk = Conversation.of(run, source)
        assert talk.deny(talk.asked(question))
    asker.files.ask(replace(ASKED, number=5))
    gemtui.ok("runs answer run 5 deny")
    asker.files.ask(replace(ASKED, number=6))
    shown = gemtui.json("runs show run")["run"]["questions"]
    assert set(shown[0]) == {"tool", "about", "subagent", "consent", "reason", "from"}
    assert values(shown, "from") == ["pane", "shell", "terminal", "library", "terminal", None]
    assert json.loads((asker.files.path / "answer-1.json").read_text())["from"] == "pane"
    assert "by gemtui runs answer: run_shell_command" in gemtui("runs show run").out


def test_a_run_that_has_ended_takes_no_answer_and_no_message(asker: Asker, gemtui: Gemtui) -> None:
    asker.files.ask(ASKED)
    asker.folder.write_owner(Owner(pid=os.getpid(), began=1.0))
    asker.folder.finish(Exit(code=0, started=None, ended=None))
    assert listed(gemtui) == []
    gemtui("runs answer run 1 allow").fails("the run has ended")
    said = gemtui("runs say run hello")
    assert (said.code, said.complaint) == (
        1,
        "gemtui: run run has ended: queue a prompt for later with gemtui runs queue",
    )
    gemtui.ok("runs queue run", "and then").complains("when the run ends")


def test_messages_and_prompts_reach_the_run(asker: Asker, gemtui: Gemtui) -> None:
    said = gemtui("runs say run", "use \x1b tabs", "--json")
    assert set(said.json) == names(SHAPES["runs say"])
    gemtui.ok("runs queue run", "then test")
    told = gemtui("runs queue run")
    assert told.out == "use ␛ tabs\nthen test\n"
    waiting = gemtui.json("runs queue run")["waiting"]
    assert values(waiting, "text") == ["use \x1b tabs", "then test"]
    assert "use \\x1b tabs" in str(asker.hook("AfterTool", tool_name="glob", tool_input={}))
    next_prompt = asker.hook("AfterAgent")
    assert next_prompt is not None
    assert next_prompt["reason"] == "then test"
    assert PromptQueue.of(asker.folder).undelivered() == 0
    assert gemtui("runs say run", " ").code == 2


def test_who_is_second_while_answering_is_told(
    asker: Asker, gemtui: Gemtui, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another answer comes between the look at the question and ours."""
    asker.files.ask(ASKED)
    before = Conversation.asked

    def asked(self: Conversation, *words: Any) -> Any:
        asker.files.answer(1, Approval.deny())
        return before(self, *words)

    monkeypatch.setattr(Conversation, "asked", asked)
    gemtui("runs answer run 1 allow").fails("somebody else answered first")


@pytest.mark.usefixtures("relaunching")
def test_a_run_of_the_real_cli_is_served_from_another_terminal(
    on_loopback: GeminiCli, tmp_path: Path
) -> None:
    put_hooks(on_loopback)
    told = tmp_path / "told"
    config_file().parent.mkdir(parents=True)
    words = json.dumps(["sh", "-c", 'cat >> "$0"', str(told)])
    config_file().write_text(f"on_ask = {words}\non_ask_after = 1\non_end = {words}\n")
    turns = [
        answer(writes("a.txt", "a\n")),
        answer(writes("b.txt", "b\n")),
        answer(text("All done.")),
    ]
    with ModelServer(turns) as model, asking(on_loopback, model) as terminal:
        terminal.shows("? Gemini asks: write_file a.txt", "y allow")
        (first,) = served("runs", "questions")["questions"]
        until(lambda: told.exists())
        assert served("runs", "say", first["run"], "hurry up")["message"] == 1
        assert served("runs", "answer", first["run"], first["id"], "allow")["consent"] == "allowed"
        terminal.shows("Answered in another gemtui.", "? Gemini asks: write_file b.txt")
        denied = served("runs", "answer", first["run"], "2", "deny", "--because", "b is taken")
        assert denied["consent"] == "denied"
        terminal.shows("All done.")
        assert terminal.wait() == 0
        said = str([each.body for each in model.requests])
    assert (on_loopback.project / "a.txt").read_text() == "a\n"
    assert not (on_loopback.project / "b.txt").exists()
    assert "hurry up" in said
    assert "b is taken" in said
    until(lambda: '"event":"end"' in told.read_text())
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert events[0]["question"]["id"] == first["id"]
    assert events[-1]["run"]["id"] == first["run"]


def served(*words: str) -> Any:
    """What a command says in JSON, in a process of its own."""
    done = start(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
