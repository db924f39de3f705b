"""The gate of Claude Code, spoken with over its pipe as the program speaks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pytest

from gemtui.agent.approval import ALTERED, DIFFERS, PASSED, Approval
from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import Abort, Request, RunFolder
from gemtui.agents import Agent
from gemtui.runs.gate.claude_gate import FORGED, LONGEST_WAIT, OTHER_MODE, SILENT, ClaudeGate
from gemtui.runs.gate.gate import TROUBLE
from tests.patience import until


class Program:
    """What Claude Code writes and reads, by the hand of a test."""

    agent, gate_type = Agent.CLAUDE, ClaudeGate

    def __init__(self, place: Path, *, ask: bool = True, keep: float = 0) -> None:
        self.project = place / "project"
        self.project.mkdir()
        self.folder = RunFolder.create(place / "runs", "run")
        self.folder.write(self.folder.prompt.name, "Hello")
        self.request = Request(
            id="run",
            argv=("claude",),
            cwd=str(self.project),
            environ={},
            stdin=True,
            about={"agent": self.agent, "ask": ask, "keep": keep},
        )
        self.now = 1_000_000.0
        self.gate = self.gate_type(self.folder, self.request, clock=lambda: self.now)
        self.folder.stdout.touch()
        self._reading: IO[bytes]
        self._ids = 0

    def begin(self, *, takes_hooks: bool = True) -> Any:
        """Start; return what `initialize` said."""
        self.gate.open(self.folder.path)
        reading, writing = os.pipe()
        self._reading = os.fdopen(reading, "rb")
        self.gate.connect(os.fdopen(writing, "wb", buffering=0))
        begin = self.reads()
        self.says(
            type="control_response",
            response={
                "subtype": "success" if takes_hooks else "error",
                "request_id": begin["request_id"],
            },
        )
        if takes_hooks:
            assert self.reads()["message"]["content"] == "Hello"
        return begin["request"]

    def end(self) -> None:
        self.gate.close()
        self._reading.close()

    def says(self, **line: object) -> None:
        with self.folder.stdout.open("ab") as output:
            output.write(json.dumps(line).encode() + b"\n")

    def reads(self) -> Any:
        """Return the next line of the program's input; None at its end."""
        line = self._reading.readline()
        return json.loads(line) if line else None

    def asks(self, **request: object) -> str:
        self._ids += 1
        id = f"request-{self._ids}"
        self.says(type="control_request", request_id=id, request=request)
        return id

    def hook(self, callback: str, tool: str, arguments: object, **more: object) -> str:
        called = {
            "tool_name": tool,
            "tool_input": arguments,
            "tool_use_id": "call",
            "cwd": str(self.project),
            **more,
        }
        return self.asks(subtype="hook_callback", callback_id=callback, input=called)

    def answered(self) -> Any:
        """Return the program's answer to what it asked: the hook's output, if that is one."""
        response = self.reads()["response"]
        answer = response.get("response", response)
        return answer.get("hookSpecificOutput", answer)

    def before(self, tool: str, arguments: object, **more: object) -> Any:
        self.hook("before", tool, arguments, **more)
        return self.answered()

    def after(self, tool: str, arguments: object, callback: str = "after", **more: object) -> Any:
        self.hook(callback, tool, arguments, **more)
        return self.answered()

    def answer(self, number: int, approval: Approval) -> None:
        files = self.gate.gate._files
        until(lambda: files.has_question(number))
        files.answer(number, approval)

    def is_told(self, problem: str) -> None:
        until(lambda: self.gate.problem() == problem)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.end()


def write(program: Program, content: str = "x") -> Mapping[str, Any]:
    return {"file_path": str(program.project / "a.txt"), "content": content}


def allowed(program: Program, arguments: Mapping[str, Any]) -> Any:
    id = program.hook("before", "Write", arguments)
    program.answer(1, Approval.allow())
    assert id
    return program.answered()


def test_no_prompt_is_sent_before_the_hooks_are_taken(program: Program) -> None:
    begin = program.begin()
    assert begin["subtype"] == "initialize"
    assert {hook["timeout"] for (hook,) in begin["hooks"].values()} == {LONGEST_WAIT}
    assert program.gate.problem() is None


def test_a_program_that_refuses_the_hooks_is_ended(program: Program) -> None:
    program.begin(takes_hooks=False)
    program.is_told(SILENT.format("Claude Code"))


def test_a_program_that_says_nothing_is_ended(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gemtui.runs.gate.claude_gate.ANSWER_WITHIN", -1.0)
    program.begin(takes_hooks=False)
    assert program.gate.problem() == SILENT.format("Claude Code")


def test_a_call_is_made_with_the_arguments_that_were_approved(program: Program) -> None:
    program.begin()
    program.hook("before", "Write", write(program))
    program.answer(1, Approval.allow(write(program, "mine")))
    assert program.answered() == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": write(program, "mine"),
    }


@pytest.mark.parametrize("approval", [Approval.deny("no"), Approval.stop("no")])
def test_a_refused_call_is_denied(approval: Approval, program: Program) -> None:
    program.begin()
    program.hook("before", "Write", write(program))
    program.answer(1, approval)
    answer = program.answered()
    assert answer["permissionDecision"] == "deny"
    assert "no" in answer["permissionDecisionReason"]


ODD: list[tuple[object, object, object]] = [
    ("Write", "no object", "call"),
    ("Write", None, "call"),
    ("", {}, "call"),
    ("Write", {}, ""),
    ("Write", {"file_path": 7, "content": "x"}, "call"),
]


@pytest.mark.parametrize(("tool", "arguments", "id"), ODD)
def test_a_call_that_can_not_be_understood_is_denied(
    tool: Any, arguments: object, id: object, program: Program
) -> None:
    program.begin()
    assert program.before(tool, arguments, tool_use_id=id)["permissionDecision"] == "deny"


def test_any_error_denies_the_call(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.begin()

    def fails(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(program.gate.gate, "before_call", fails)
    answer = program.before("Bash", {"command": "ls"})
    assert answer["permissionDecision"] == "deny"
    assert TROUBLE in answer["permissionDecisionReason"]


def test_a_question_that_the_program_withdraws_is_off(program: Program) -> None:
    program.begin()
    id = program.hook("before", "Write", write(program))
    until(lambda: program.gate.waiting)
    program.says(type="control_cancel_request", request_id=id)
    assert program.answered()["permissionDecision"] == "deny"
    until(lambda: not program.gate.waiting)


def test_a_run_that_does_not_ask_denies_what_would_be_asked(tmp_path: Path) -> None:
    program = Program(tmp_path, ask=False)
    program.begin()
    assert program.before("Write", write(program))["permissionDecision"] == "deny"
    assert program.before("Bash", {"command": "ls"})["permissionDecision"] == "allow"
    program.end()


def test_the_program_s_own_question_is_answered_like_the_gate(program: Program) -> None:
    program.begin()
    allowed(program, write(program))
    cases = [
        (write(program), "call", "allow"),
        (write(program, "other"), "call", "deny"),
        (write(program), "another call", "deny"),
    ]
    for arguments, id, behavior in cases:
        program.asks(subtype="can_use_tool", tool_name="Write", input=arguments, tool_use_id=id)
        assert program.answered()["behavior"] == behavior


def test_an_answer_that_gemtui_has_not_given_ends_the_run(program: Program) -> None:
    program.begin()
    id = program.hook("before", "Bash", {"command": "ls"})
    program.answered()
    program.says(type="control_response", response={"subtype": "success", "request_id": id})
    program.after("Bash", {"command": "ls"})
    assert program.gate.problem() is None
    program.says(type="control_response", response={"subtype": "success", "request_id": "other"})
    program.is_told(FORGED.format("Claude Code"))


def test_a_second_request_of_one_id_ends_the_run(program: Program) -> None:
    program.begin()
    id = program.hook("before", "Write", write(program))
    until(lambda: program.gate.waiting)
    called = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "other"}
    request = {"subtype": "hook_callback", "callback_id": "before", "input": called}
    program.says(type="control_request", request_id=id, request=request)
    program.is_told(FORGED.format("Claude Code"))
    program.answer(1, Approval.allow())
    assert program.answered()["permissionDecision"] == "deny"


def test_a_run_that_is_ended_makes_no_more_calls(program: Program) -> None:
    program.begin()
    program.gate.gate.end_with(ALTERED)
    assert program.before("Bash", {"command": "ls"})["permissionDecision"] == "deny"


def test_an_unknown_request_gets_an_error(program: Program) -> None:
    program.begin()
    program.asks(subtype="mcp_message")
    assert program.reads()["response"]["subtype"] == "error"


def result(*, fails: bool = False, **more: object) -> dict[str, object]:
    block = {"type": "tool_result", "tool_use_id": "call", "content": "ok", "is_error": fails}
    return {"type": "user", "message": {"content": [block]}, **more}


ACCEPTED = {"tool_result_meta": [{"id": "call", "permission_decision": {"decision": "accept"}}]}


@pytest.mark.parametrize("line", [result(), result(fails=True, **ACCEPTED)])
def test_a_call_that_was_made_without_the_gate_ends_the_run(
    line: dict[str, object], program: Program
) -> None:
    program.begin()
    program.says(**line)
    program.is_told(PASSED)


def test_a_denied_call_that_was_made_all_the_same_ends_the_run(program: Program) -> None:
    program.begin()
    program.hook("before", "Write", write(program))
    program.answer(1, Approval.deny())
    program.answered()
    program.says(**result())
    program.is_told(PASSED)


def test_a_call_that_was_refused_by_the_program_itself_is_no_problem(program: Program) -> None:
    program.begin()
    program.says(**result(fails=True))
    program.before("Bash", {"command": "ls"})
    assert program.gate.problem() is None


def test_a_call_with_other_arguments_than_approved_ends_the_run(program: Program) -> None:
    program.begin()
    allowed(program, write(program))
    program.after("Write", write(program, "other"))
    program.is_told(ALTERED)


@pytest.mark.parametrize(
    ("content", "problem"), [("x", None), ("other", DIFFERS)], ids=["as approved", "other"]
)
def test_the_file_is_compared_with_what_was_approved(
    content: str, problem: str | None, program: Program
) -> None:
    program.begin()
    allowed(program, write(program))
    (program.project / "a.txt").write_text(content)
    program.after("Write", {**write(program), "added": False})
    assert program.gate.problem() == problem
    if problem is not None:
        (difference,) = program.gate.gate._files.differences()
        assert (difference.approved, difference.found) == ("x", content)


def test_a_failed_call_must_leave_the_file_as_it_was(program: Program) -> None:
    program.begin()
    allowed(program, write(program))
    (program.project / "a.txt").write_text("x")
    program.after("Write", write(program), callback="failed")
    assert program.gate.problem() == DIFFERS


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions", 7])
def test_another_permission_mode_ends_the_run(mode: object, program: Program) -> None:
    program.begin()
    program.says(type="system", subtype="init", permissionMode=mode)
    program.is_told(OTHER_MODE.format("Claude Code"))


def test_messages_come_with_a_result_of_the_main_agent_alone(program: Program) -> None:
    program.begin()
    command = {"command": "ls"}
    PromptQueue.of(program.folder).send_message("Mind the gap")
    program.before("Bash", command, agent_id="a", agent_type="general")
    assert program.after("Bash", command, agent_id="a") == {}
    program.before("Bash", command)
    assert "Mind the gap" in program.after("Bash", command)["additionalContext"]


def test_the_next_prompt_follows_an_answer_and_then_the_input_ends(program: Program) -> None:
    program.begin()
    PromptQueue.of(program.folder).add_prompt("Next")
    program.says(type="result", subtype="success")
    assert program.reads()["message"]["content"] == "Next"
    program.says(type="result", subtype="success")
    assert program.reads() is None


@pytest.mark.parametrize("by", ["an answer", "a file"])
def test_a_run_that_is_stopped_gets_no_prompt(by: str, program: Program) -> None:
    program.begin()
    PromptQueue.of(program.folder).add_prompt("Next")
    if by == "an answer":
        program.hook("before", "Write", write(program))
        program.answer(1, Approval.stop())
        program.answered()
    elif by == "a file":
        program.folder.abort(Abort.TERM)
    program.says(type="result", subtype="success")
    assert program.reads() is None
    assert [prompt.text for prompt in PromptQueue.of(program.folder).prompts()] == ["Next"]


def test_a_kept_program_takes_a_prompt_until_its_time_is_over(tmp_path: Path) -> None:
    program = Program(tmp_path, keep=60)
    program.begin()
    assert program.gate.kept_until is None
    program.says(type="result", subtype="success")
    until(lambda: program.gate.kept_until == program.now + 60)
    PromptQueue.of(program.folder).add_prompt("Next")
    assert program.reads()["message"]["content"] == "Next"
    assert program.gate.kept_until is None
    program.says(type="result", subtype="success")
    until(lambda: program.gate.kept_until is not None)
    program.now += 61
    assert program.reads() is None
    PromptQueue.of(program.folder).add_prompt("For the next run")
    program.gate._go_on()
    assert [prompt.text for prompt in PromptQueue.of(program.folder).prompts()] == [
        "For the next run"
    ]
    program.end()


def test_a_kept_program_ends_without_an_interrupt(tmp_path: Path) -> None:
    program = Program(tmp_path, keep=60)
    program.begin()
    program.says(type="result", subtype="success")
    until(lambda: program.gate.kept_until is not None)
    assert program.gate.interrupt()
    assert program.reads() is None
    program.end()


def test_subagents_in_the_background_are_waited_for(program: Program) -> None:
    program.begin()
    change = {"type": "system", "subtype": "background_tasks_changed"}
    program.says(**change, tasks=[{"task_type": "local_agent"}])
    program.says(type="result", subtype="success")
    program.before("Bash", {"command": "ls"})
    assert program.gate.kept_until is None
    program.says(**change, tasks=[])
    until(lambda: program.gate.kept_until is not None)
    program.now += 3
    assert program.reads() is None


def test_an_interrupt_is_told_and_ends_the_input(program: Program) -> None:
    program.begin()
    assert program.gate.interrupt()
    assert program.reads()["request"] == {"subtype": "interrupt"}
    assert program.reads() is None


def test_a_program_that_has_not_begun_can_not_be_interrupted(program: Program) -> None:
    program.begin(takes_hooks=False)
    assert not program.gate.interrupt()


def test_a_program_that_has_ended_breaks_nothing(program: Program) -> None:
    program.begin()
    program._reading.close()
    program.hook("before", "Bash", {"command": "ls"}, tool_use_id="another call")
    program.says(**result())
    program.is_told(PASSED)


def test_a_program_that_reads_nothing_holds_nothing_up(program: Program) -> None:
    program.begin()
    PromptQueue.of(program.folder).add_prompt("word " * 200_000)
    program.says(type="result", subtype="success")
    until(lambda: program.gate._writing.locked())
    assert program.gate.interrupt()
    program.gate.close()
    assert program.gate.problem() is None
