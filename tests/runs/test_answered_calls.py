"""Questions at their calls: which belongs to which, and what a card is told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gemtui.agent.approval import (
    Approval,
    ApprovalRequest,
    GateFolder,
    HookedCall,
    PassedCall,
    Settled,
)
from gemtui.agent.run_folder import RunFolder
from gemtui.runs.gate.answered_calls import AnsweredCalls
from gemtui.runs.gate.questions import Conversation, Question, UnaskedCalls
from gemtui.transcript.model import (
    Author,
    Consent,
    Message,
    Text,
    ToolCall,
    ToolStatus,
    Transcript,
)
from tests.rows import each_row, table


def call(id: str, name: str = "write_file", **args: Any) -> ToolCall:
    return ToolCall(id=id, name=name, args=args, status=ToolStatus.RUNNING)


def transcript(*calls: ToolCall) -> Transcript:
    said = Message(id="m0", author=Author.USER, blocks=(Text(text="go"),), prompt=True, time=at(0))
    made = Message(id="m1", author=Author.MODEL, blocks=calls, time=at(10))
    last = Message(id="m2", author=Author.MODEL, blocks=(Text(text="done"),), time=at(30))
    return Transcript.of((said, made, last))


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def question(
    number: int, args: Mapping[str, Any], consent: Consent | None = None, **more: Any
) -> Question:
    settled_keys = {key: more.pop(key) for key in ("arguments", "reason", "at") if key in more}
    request = ApprovalRequest(
        tool_name=more.pop("tool", "write_file"),
        arguments=args,
        number=number,
        asked=20_000,
        **more,
    )
    settled = None if consent is None else Settled(consent=consent, **settled_keys)
    return Question(request=request, settled=settled, answered=settled is not None)


def built(row: dict[str, Any]) -> Any:
    """The call, or the question, of a table."""
    if "call" in row:
        made = call(*row["call"], **row["args"])
        if row.get("ran"):
            made = replace(
                made, status=ToolStatus.SUCCESS, time=at(60), duration=timedelta(seconds=50)
            )
        return replace(made, status=ToolStatus(row.get("status", made.status)))
    if "question" in row:
        consent = Consent(row.pop("consent")) if "consent" in row else None
        number, args = row.pop("question")
        return question(number, args, consent, **row)
    return row


def facts(call: ToolCall) -> dict[str, Any]:
    """What the table tells of a call."""
    answer = call.answer
    return {
        "consent": "" if answer is None else answer.consent,
        "status": call.status,
        "args": dict(call.args),
        "asked": answer and answer.asked,
        "reason": answer and answer.reason,
        "subagent": answer and answer.subagent,
        "seconds": call.duration and call.duration.total_seconds(),
    }


@each_row("promise, calls, steps", table("runs/answered_calls.json", built))
def test_cards_are_told_of_questions_as_promised(
    promise: str, calls: list[ToolCall], steps: list[Any]
) -> None:
    cards = AnsweredCalls()
    for questions, expected in steps:
        found = cards.with_answers(transcript(*calls), questions)
        cards_facts = [facts(made) for made in found.calls()]
        shown: dict[str, Any] = {
            name: [card[name] for card in cards_facts] for name in facts(calls[0])
        }
        shown["messages"] = [outline.id for outline in found.outlines]
        assert {name: shown[name] for name in expected} == expected, promise


def test_what_did_not_change_keeps_its_outline() -> None:
    before = transcript(call("a", file_path="1"))
    cards = AnsweredCalls()
    asked = question(1, {"file_path": "1"}), question(2, {"file_path": "1"}, subagent=True)
    first, second = cards.with_answers(before, asked), cards.with_answers(before, asked)
    assert all(one is other for one, other in zip(first.outlines, second.outlines, strict=True))
    assert first.outlines[0] is before.outlines[0]
    assert cards.with_answers(before, ()) is before


def test_questions_are_followed_as_files(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run")
    gate = GateFolder.of(folder)
    questions = Conversation(gate, tmp_path)
    assert questions.refresh() == ()
    gate.create()
    gate.ask(ApprovalRequest(tool_name="glob", arguments={"pattern": "\ud800\0"}, number=2))
    gate.ask(ApprovalRequest(tool_name="glob", arguments={}, number=1))
    seen = questions.refresh()
    assert [each.number for each in seen if each.waits] == [1, 2]
    assert questions.refresh() is seen
    assert gate.answer(1, Approval.allow())
    assert not gate.answer(1, Approval.deny())
    assert [each.number for each in questions.refresh() if each.waits] == [2]
    assert questions.refresh()[0].settled is None
    gate.settle(1, Settled(consent=Consent.ALLOWED))
    gate.settle(2, Settled(consent=Consent.ABANDONED))
    assert [each.settled and each.settled.consent for each in questions.refresh()] == [
        Consent.ALLOWED,
        Consent.ABANDONED,
    ]
    assert gate.waiting() == []


def test_a_call_tells_by_which_rule_it_passed_and_that_a_hook_changed_it() -> None:
    """Of two alike, the one whose id the gate wrote down; a hook's arguments are what ran."""
    calls = call("a", "glob", pattern="*"), call("b", "glob", pattern="*"), call("c", file_path="1")
    rule = "rule 2 of work.toml"
    passed = PassedCall(tool_name="glob", arguments={"pattern": "*"}, rule=rule, tool_use_id="b")
    granted = PassedCall(
        tool_name="write_file",
        arguments={"file_path": "1"},
        rule="a rule",
        answer=3,
        tool_use_id="c",
    )
    hooked = HookedCall(tool_name="glob", arguments={"pattern": "/etc/*"}, tool_use_id="a")
    cards = AnsweredCalls()
    found = cards.with_answers(transcript(*calls), [], UnaskedCalls((passed, granted), (hooked,)))
    assert [(each.rule, each.hooked, dict(each.args)) for each in found.calls()] == [
        ("", True, {"pattern": "/etc/*"}),
        (rule, False, {"pattern": "*"}),
        ("your answer to question 3", False, {"file_path": "1"}),
    ]
    asked = question(1, {"file_path": "2"}, Consent.ALLOWED, tool_use_id="c", hooked=True)
    (_, _, last) = cards.with_answers(transcript(*calls), [asked]).calls()
    assert (last.hooked, dict(last.args)) == (True, {"file_path": "2"})
