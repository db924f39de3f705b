"""One conversation of a run with its person, whoever draws it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemtui.agent.approval import Approval, ApprovalRequest, GateFolder
from gemtui.policy.file.policy_files import path_of
from gemtui.runs.gate.questions import AnswerOutcome, Asked, Conversation
from gemtui.runs.gate.similar_calls import ALWAYS

COMMAND = {"tool_name": "run_shell_command", "arguments": {"command": "make all"}}


@pytest.fixture
def gate(home: Path, tmp_path: Path) -> GateFolder:
    del home
    folder = GateFolder(tmp_path / "gate")
    folder.create()
    return folder


def talk(gate: GateFolder, project: Path, **call: Any) -> tuple[Conversation, Asked]:
    number = len(gate.question_numbers()) + 1
    gate.ask(ApprovalRequest(number=number, **call))
    talking = Conversation(gate, project)
    return talking, talking.asked(talking.refresh()[-1])


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (Conversation.allow, ("allowed", False)),
        (Conversation.allow_similar, ("allowed", True)),
        (Conversation.always, ("allowed", True)),
        (Conversation.deny, ("denied", False)),
        (Conversation.stop, ("stopped", False)),
    ],
)
def test_the_first_answer_counts_and_a_second_says_so(
    gate: GateFolder,
    tmp_path: Path,
    answer: Callable[[Conversation, Asked], AnswerOutcome],
    kept: tuple[str, bool],
) -> None:
    talking, asked = talk(gate, tmp_path, **COMMAND)
    assert answer(talking, asked)
    written = gate.answer_to(1)
    assert written is not None
    assert (written.consent.value, bool(written.rules)) == kept
    assert not answer(talking, asked)


def test_always_is_kept_only_if_the_answer_counted(gate: GateFolder, tmp_path: Path) -> None:
    talking, asked = talk(gate, tmp_path, **COMMAND)
    gate.answer(1, Approval.deny())
    assert not talking.always(asked)
    assert not path_of(ALWAYS).exists()
    talking, asked = talk(gate, tmp_path, **COMMAND)
    assert talking.always(asked)
    assert "make" in path_of(ALWAYS).read_text()
    revoked = talking.revoke()
    assert revoked is not None
    assert revoked.number == 2
    assert "make" not in path_of(ALWAYS).read_text()


def test_a_call_that_does_something_else_by_now_is_not_still_true(
    gate: GateFolder, tmp_path: Path
) -> None:
    (place := tmp_path / "a.txt").write_text("1\n")
    given = {"file_path": "a.txt", "content": "2\n"}
    talking, asked = talk(gate, tmp_path, tool_name="write_file", arguments=given)
    assert talking.still_true(asked) is None
    place.write_text("3\n")
    now = talking.still_true(asked)
    assert now is not None
    assert now.effect.before == "3\n"
    assert talking.allow(now)
    written = gate.answer_to(1)
    assert written is not None
    assert written.shown == now.effect.mark != asked.effect.mark


def test_what_would_fail_can_t_be_allowed(gate: GateFolder, tmp_path: Path) -> None:
    given = {"file_path": "a.txt", "old_string": "1", "new_string": "2"}
    talking, asked = talk(gate, tmp_path, tool_name="replace", arguments=given)
    with pytest.raises(ValueError, match="does not exist"):
        talking.allow(asked)
    assert not gate.is_answered(1)


@pytest.mark.parametrize(
    ("servers", "ambiguous"), [(("srv", "mcp_srv"), True), (("srv", "other"), False)]
)
def test_a_tool_that_two_servers_may_have_has_no_similar_ones(
    gate: GateFolder, tmp_path: Path, servers: tuple[str, ...], ambiguous: bool
) -> None:
    settings = tmp_path / ".gemini/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"mcpServers": {name: {"command": "x"} for name in servers}}))
    _, asked = talk(gate, tmp_path, tool_name="mcp_srv_look", arguments={})
    assert (asked.similar.rule is None) is ambiguous
    assert ("ambiguous" in asked.similar.words) is ambiguous
