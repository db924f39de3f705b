"""The gate of Qwen Code, spoken with over its pipe as the program speaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import DIFFERS, UNCHANGED, Approval
from gemtui.agents import Agent
from gemtui.runs.gate.qwen_gate import LONGEST_WAIT, QwenGate
from tests.patience import until
from tests.runs.test_claude_gate import Program


class Qwen(Program):
    """What Qwen Code writes and reads."""

    agent, gate_type = Agent.QWEN, QwenGate

    def question(self, tool: str, arguments: object) -> None:
        request = {"tool_name": tool, "tool_use_id": "call", "input": arguments}
        self.asks(subtype="can_use_tool", **request)

    def has_result(self, *, fails: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": "call", "is_error": fails, "content": "x"}
        self.says(type="user", message={"content": [block]})


@pytest.fixture
def qwen(tmp_path: Path) -> Iterator[Qwen]:
    program = Qwen(tmp_path)
    yield program
    program.end()


def write(qwen: Qwen) -> Mapping[str, Any]:
    return {"file_path": str(qwen.project / "a.txt"), "content": "x"}


def test_qwen_code_is_told_to_wait_as_long_as_it_can(qwen: Qwen) -> None:
    assert qwen.begin()["timeout"] == {"canUseTool": LONGEST_WAIT}


def test_an_allowed_call_is_made_with_its_own_arguments(qwen: Qwen) -> None:
    qwen.begin()
    qwen.question("write_file", write(qwen))
    qwen.answer(1, Approval.allow())
    assert qwen.answered() == {"behavior": "allow", "updatedInput": write(qwen)}


def test_a_changed_call_is_denied(qwen: Qwen) -> None:
    qwen.begin()
    qwen.question("write_file", write(qwen))
    qwen.answer(1, Approval.allow({**write(qwen), "content": "mine"}))
    assert qwen.answered() == {"behavior": "deny", "message": UNCHANGED}


@pytest.mark.parametrize("arguments", [None, "x", ["x"]])
def test_a_question_that_makes_no_sense_is_denied(qwen: Qwen, arguments: object) -> None:
    qwen.begin()
    qwen.question("write_file", arguments)
    assert qwen.answered()["behavior"] == "deny"


def test_a_question_is_off_once_its_call_has_a_result(qwen: Qwen) -> None:
    qwen.begin()
    qwen.question("write_file", write(qwen))
    until(lambda: qwen.gate.waiting)
    qwen.has_result(fails=True)
    assert qwen.answered()["behavior"] == "deny"
    assert not qwen.gate.waiting


def test_a_file_with_another_text_than_was_allowed_ends_the_run(qwen: Qwen) -> None:
    qwen.begin()
    qwen.question("write_file", write(qwen))
    qwen.answer(1, Approval.allow())
    qwen.answered()
    (qwen.project / "a.txt").write_text("another")
    qwen.has_result()
    qwen.is_told(DIFFERS)


def test_qwen_code_ends_after_its_prompt(qwen: Qwen) -> None:
    qwen.begin()
    qwen.says(type="result", subtype="success")
    assert qwen.reads() is None
