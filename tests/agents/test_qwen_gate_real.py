"""Runs of the real Qwen Code, which asks gemtui before its calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.events import DoneStatus
from gemtui.agent.qwen import OWN_RULES
from gemtui.calls.effects import ANNOUNCED
from tests.agents.programs import QWEN_SETTINGS, Qwen
from tests.agents.work import Answer, Ran, Work, by_name, stop, wait
from tests.model_server import ModelServer, Part, answer, call, shell, text, writes

pytestmark = [
    pytest.mark.covers("gemtui/agent", "gemtui/calls", "gemtui/runs", "tests/agents"),
    pytest.mark.timeout(600),  # the first test installs the program
]

ALLOWED = {"permissions": {"allow": ["write_file", "edit", "run_shell_command"]}}


class QwenWork(Work):
    """With the model that Qwen Code talks to."""

    requests: Sequence[str] = ()

    def allow_all(self) -> None:
        """Let the settings of the user and of the project allow the calls."""
        settings = {**QWEN_SETTINGS, **ALLOWED}
        (self.home / ".qwen/settings.json").write_text(json.dumps(settings))
        (self.project / ".qwen").mkdir()
        (self.project / ".qwen/settings.json").write_text(json.dumps(ALLOWED))

    def write(self, name: str, content: str) -> Part:
        return writes(str(self.project / name), content)

    def ask(self, *turns: Any, answer: Answer, prompt: str = "Do it", **more: Any) -> Ran:
        """Run a prompt to its end."""
        with ModelServer(turns) as model:
            try:
                return self.until_end(prompt, model.url, answer, model="gemini-2.5-flash", **more)
            finally:
                self.requests = [json.dumps(request.body) for request in model.requests]


@pytest.fixture
def work(qwen_program: Path, tmp_path: Path) -> QwenWork:
    return QwenWork(Qwen(qwen_program, tmp_path / "qwen").set_up())


@pytest.mark.parametrize("rules", ["no rules", "rules that allow all"])
def test_a_call_is_made_only_if_it_was_allowed(rules: str, work: QwenWork) -> None:
    if rules != "no rules":
        work.allow_all()
    (work.project / "old.txt").write_text("one\ntwo\n")
    old = str(work.project / "old.txt")
    ran = work.ask(
        answer(text("No."), work.write("denied.txt", "x")),
        answer(text("Fault."), work.write("raises.txt", "x")),
        answer(text("Mine."), work.write("changed.txt", "x")),
        answer(text("Run."), shell("touch denied")),
        answer(text("Yes."), work.write("allowed.txt", "ours\n")),
        answer(text("Read."), call("read_file", file_path=old)),
        answer(text("Edit."), call("edit", file_path=old, old_string="two", new_string="2")),
        answer(text("Run."), shell("touch made")),
        answer(text("Done.")),
        answer=by_name,
    )
    assert ran.results == ["denied"] * 4 + ["success"] * 4
    names = {path.name for path in work.project.iterdir() if path.is_file()}
    assert names == {"old.txt", "allowed.txt", "made"}
    assert (work.project / "old.txt").read_text() == "one\n2\n"
    assert (work.project / "allowed.txt").read_text() == "ours\n"
    assert any("use tabs" in request for request in work.requests)
    effects = {request.tool_name: request.effect for request in ran.asked}
    assert effects["edit"] is not None
    assert effects["edit"].after == "one\n2\n"
    assert ANNOUNCED in effects["edit"].remarks
    assert ran.done.status is DoneStatus.SUCCESS
    assert OWN_RULES in ran.notes


def test_a_run_that_does_not_ask_makes_no_call_that_needs_an_answer(work: QwenWork) -> None:
    work.allow_all()
    ran = work.ask(
        answer(text("Write."), work.write("a.txt", "x")),
        answer(text("Done.")),
        answer=by_name,
        approve=None,
    )
    assert ran.results == ["denied"]
    assert not (work.project / "a.txt").exists()


def test_a_stopped_run_gives_up_its_question(work: QwenWork) -> None:
    turns = (answer(text("Write."), work.write("a.txt", "x")), answer(text("Done.")))
    ran = work.ask(*turns, answer=wait, seen=stop)
    assert ran.done.status is DoneStatus.INTERRUPTED
    assert not (work.project / "a.txt").exists()


def test_a_session_is_continued_with_the_next_prompt(work: QwenWork) -> None:
    first = work.ask(answer(text("A.")), answer=by_name, prompt="One").done
    assert first.resume_token is not None
    again = work.ask(
        answer(text("B.")), answer=by_name, prompt="Two", resume=first.resume_token
    ).done
    assert (again.status, again.result) == (DoneStatus.SUCCESS, "B.")
    assert again.resume_token == first.resume_token
    assert all(said in work.requests[0] for said in ("One", "A.", "Two"))
