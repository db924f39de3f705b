"""Questions at their calls: which belongs to which, and what a card is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gemtui.agent.approval import (
    STOPPED_BY_USER,
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
    Answer,
    Author,
    Consent,
    Message,
    Text,
    ToolCall,
    ToolStatus,
    Transcript,
)


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


def told(found: Transcript) -> list[tuple[str, str]]:
    return [(each.id, each.answer.consent if each.answer else "") for each in found.calls()]


def answered(calls: Iterable[ToolCall], *questions: Question) -> Transcript:
    return AnsweredCalls().with_answers(transcript(*calls), questions)


def test_a_question_belongs_to_the_call_with_its_arguments() -> None:
    calls = call("a", file_path="1"), call("b", file_path="2"), call("c", file_path="2")
    cards = AnsweredCalls()
    found = cards.with_answers(transcript(*calls), [question(1, {"file_path": "2"})])
    assert told(found) == [("a", ""), ("b", Consent.WAITS), ("c", "")]
    more = [question(1, {"file_path": "2"}, Consent.ALLOWED), question(2, {"file_path": "2"})]
    found = cards.with_answers(transcript(*calls), more)
    assert told(found) == [("a", ""), ("b", Consent.ALLOWED), ("c", Consent.WAITS)]


def test_a_question_that_names_its_call_belongs_to_no_other() -> None:
    calls = call("a", file_path="1"), call("b", file_path="1")
    found = answered(calls, question(1, {"file_path": "1"}, tool_use_id="b"))
    assert told(found) == [("a", ""), ("b", Consent.WAITS)]
    found = answered(calls, question(1, {}, tool_use_id="z"))
    assert told(found) == [("a", ""), ("b", "")]


def test_a_changed_call_tells_both() -> None:
    changed = question(
        1, {"command": "git push"}, Consent.CHANGED, arguments={"command": "git log"}
    )
    found = answered([call("a", command="git push")], changed)
    (made,) = found.calls()
    assert made.args == {"command": "git log"}
    assert made.answer is not None
    assert made.answer.asked == {"command": "git push"}


def test_a_call_that_was_denied_does_not_run_until_the_others_of_its_turn_end() -> None:
    denied = question(1, {"file_path": "1"}, Consent.DENIED, tool_use_id="a")
    allowed = question(2, {"file_path": "1"}, Consent.ALLOWED, tool_use_id="b")
    calls = call("a", file_path="1"), call("b", file_path="1")
    found = answered(calls, denied, allowed)
    assert [each.status for each in found.calls()] == [ToolStatus.DENIED, ToolStatus.RUNNING]


def test_a_sub_agents_question_has_a_card_of_its_own_in_its_place() -> None:
    asked = question(1, {"file_path": "9"}, Consent.DENIED, reason="not now", subagent=True)
    found = answered([call("a", file_path="9")], asked)
    assert [each.id for each in found.outlines] == ["m0", "m1", "question-1", "m2"]
    own = found.calls()[1]
    assert own.answer is not None
    assert (own.answer.subagent, own.answer.reason) == (True, "not now")
    assert own.status is ToolStatus.DENIED


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


def test_calls_that_are_not_made_before_an_answer_are_queued() -> None:
    calls = (
        call("done", "run_shell_command", command="a"),
        call("asked", file_path="1"),
        call("next", file_path="2"),
        call("shell", "run_shell_command", command="b"),
        call("also", "run_shell_command", command="c"),
    )
    first = answered(calls, question(1, {"file_path": "1"}))
    running, queued = ToolStatus.RUNNING, ToolStatus.QUEUED
    assert [each.status for each in first.calls()] == [running, running, queued, queued, queued]
    both = [
        question(1, {"command": "b"}, Consent.ALLOWED, tool="run_shell_command"),
        question(2, {"command": "c"}, tool="run_shell_command"),
    ]
    second = answered(calls, *both)
    assert [each.status for each in second.calls()] == [running] * 3 + [queued, running]
    over = answered(calls, question(1, {"file_path": "1"}, Consent.ALLOWED))
    assert {each.status for each in over.calls()} == {running}


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


def test_a_call_has_its_own_time_without_the_wait_for_an_answer() -> None:
    def ran(id: str, **more: Any) -> ToolCall:
        return replace(
            call(id, **more), status=ToolStatus.SUCCESS, time=at(60), duration=timedelta(seconds=50)
        )

    def times(calls: Sequence[ToolCall], *questions: Question) -> list[float | None]:
        found = answered(calls, *questions)
        durations = (each.duration for each in found.calls())
        return [None if each is None else each.total_seconds() for each in durations]

    first, second = ran("a", file_path="1"), ran("b", file_path="2")
    denied = replace(second, status=ToolStatus.DENIED)
    waited = question(1, {"file_path": "1"}, Consent.ALLOWED, at=50_000)
    again = question(2, {}, Consent.ALLOWED, at=55_000, subagent=True)
    assert times([first]) == [50]
    assert times([first], waited) == [20]
    assert times([first], waited, again) == [15, None]
    assert times([first, denied], waited) == [20, None]
    assert times([first, second], waited) == [None, None]


def test_after_a_stop_the_other_calls_were_not_run() -> None:
    made, stopped, written, listed = (call(id, file_path=id) for id in "abcd")
    listed = replace(listed, name="glob")
    questions = (
        question(1, {"file_path": "a"}, Consent.ALLOWED),
        question(2, {"file_path": "b"}, Consent.STOPPED),
    )
    for status in (ToolStatus.RUNNING, ToolStatus.UNCONFIRMED, ToolStatus.ERROR):
        calls = (replace(each, status=status) for each in (made, stopped, written, listed))
        first, second, *others = answered(calls, *questions).calls()
        assert [each.answer and each.answer.consent for each in (first, second)] == [
            Consent.ALLOWED,
            Consent.STOPPED,
        ]
        assert (first.status, second.status) == (status, ToolStatus.DENIED)
        for other in others:
            assert other.status is ToolStatus.CANCELLED
            assert other.answer == Answer(consent=Consent.ABANDONED, reason=STOPPED_BY_USER)
    same_batch = (call(id, "run_shell_command", command=id) for id in "bc")
    stop = question(1, {"command": "b"}, Consent.STOPPED, tool="run_shell_command")
    waits = question(2, {"command": "c"}, tool="run_shell_command")
    _, last = answered(same_batch, stop, waits).calls()
    assert last.answer == Answer(consent=Consent.ABANDONED, reason=STOPPED_BY_USER)
