"""Questions and answers as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemtui.agent.approval import Approval, ApprovalRequest, GateFolder, Settled
from gemtui.agent.run_folder import RunFolder
from gemtui.transcript.model import Consent


@pytest.fixture
def gate(tmp_path: Path) -> GateFolder:
    folder = GateFolder.of(RunFolder.create(tmp_path, "run"))
    folder.create()
    return folder


def question(number: int, **more: object) -> ApprovalRequest:
    return ApprovalRequest(
        tool_name="write_file", arguments={"file_path": "a", **more}, number=number, asked=5
    )


def test_what_is_asked_is_read_as_it_was_asked(gate: GateFolder) -> None:
    hostile = question(2, content="\0\x1b]0;x\x07 \ud800 é \u202e")
    gate.ask(hostile)
    gate.ask(question(1))
    assert [gate.question(each) for each in gate.question_numbers()] == [question(1), hostile]


def test_the_first_answer_counts(gate: GateFolder) -> None:
    gate.ask(question(1))
    assert gate.answer_to(1) is None
    assert gate.answer(1, Approval.deny("not there"))
    assert not gate.answer(1, Approval.allow())
    assert gate.answer_to(1) == Approval(consent=Consent.DENIED, reason="not there")


def test_a_question_is_open_until_it_is_settled(gate: GateFolder) -> None:
    gate.ask(question(1))
    assert gate.settled(1) is None
    gate.settle(1, Settled(consent=Consent.CHANGED, arguments={"file_path": "b"}, at=7))
    settled = gate.settled(1)
    assert settled is not None
    assert settled.arguments == {"file_path": "b"}


def test_files_that_are_none_of_it_are_no_questions_and_no_answers(gate: GateFolder) -> None:
    gate.ask(question(1))
    (gate.path / "question-x.json").write_text("{}")
    (gate.path / "question-3.json").write_text("{")
    (gate.path / "question-4.json").write_text(
        '{"tool_name": "ls", "arguments": {}, "asked": 1000000000000000000}'
    )
    (gate.path / "answer-1.json").write_text('{"consent": "maybe"}')
    assert gate.question_numbers() == [1, 3, 4]
    assert [gate.question(each) for each in (1, 3, 4)] == [question(1), None, None]
    assert gate.answer_to(1) is None


def test_everything_is_private(gate: GateFolder) -> None:
    gate.ask(question(1))
    assert gate.path.stat().st_mode & 0o777 == 0o700
    assert (gate.path / "question-1.json").stat().st_mode & 0o777 == 0o600


def test_a_run_that_does_not_ask_has_none(tmp_path: Path) -> None:
    folder = GateFolder.of(RunFolder.create(tmp_path, "run"))
    assert not folder.exists()
    assert folder.question_numbers() == []
