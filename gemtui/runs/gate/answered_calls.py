"""Add a run's questions and their answers to the tool calls in its transcript."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace as message_with
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from gemtui.agent.approval import STOPPED_BY_USER, HookedCall, PassedCall
from gemtui.runs.gate.own_times import Waits, waits_of, with_own_times
from gemtui.runs.gate.questions import Question, UnaskedCalls
from gemtui.transcript.model import (
    Answer,
    Author,
    Block,
    Consent,
    DiffDisplay,
    Message,
    Outline,
    ToolCall,
    ToolStatus,
    Transcript,
    outline,
)
from gemtui.transcript.rows import OutlineRow, insert_row, of_rows
from gemtui.transcript.tools import WRITING, ToolKind, kind_of, requested_change

_Record = Question | PassedCall | HookedCall
_ByCall = dict[str | None, list[_Record]]
"""Maps a call's id to everything recorded about the call when it was checked."""
_NONE = UnaskedCalls()
_STATUS = {
    Consent.WAITS: ToolStatus.RUNNING,
    Consent.ALLOWED: ToolStatus.SUCCESS,
    Consent.CHANGED: ToolStatus.SUCCESS,
}


class AnsweredCalls:
    """Adds a run's questions to its tool calls, and remembers how they were matched.

    A question without a call id is matched to the first call that has no question yet and has the
    same tool and arguments; failing that, to the first with the same tool. A subagent's question is
    shown separately, because the run's output does not contain subagents' calls.
    """

    def __init__(self) -> None:
        self.calls: dict[int, str] = {}
        """Maps each question's number to the id of the call it is about."""
        self._made: dict[int, tuple[Outline, object, Message, Outline]] = {}

    def with_answers(
        self, transcript: Transcript, questions: Sequence[Question], unasked: UnaskedCalls = _NONE
    ) -> Transcript:
        """Return the transcript with questions and answers added to its calls.

        `unasked`: the records of calls that were made without asking the user. A call's duration is
        the time that it took itself (see `own_times`). Unchanged messages keep their `Outline`
        objects.
        """
        self._match(transcript, questions)
        by_call: _ByCall = defaultdict(list)
        for passed in unasked.passed:
            by_call[passed.tool_use_id].append(passed)
        for hooked in unasked.hooked:
            by_call[hooked.tool_use_id].append(hooked)
        for question in questions:
            if question.number in self.calls:
                by_call[self.calls[question.number]].append(question)
        waits = waits_of(questions)
        rows = [self._row(transcript, at, by_call, waits) for at in range(len(transcript))]
        for question in questions:
            if question.request.subagent:
                self._insert(rows, question)
        unchanged = len(rows) == len(transcript) and all(isinstance(row, int) for _, row in rows)
        return transcript if unchanged else of_rows(transcript, rows)

    def _match(self, transcript: Transcript, questions: Sequence[Question]) -> None:
        """Match questions that have no call yet to calls that have no question yet."""
        matched, free = self.calls.keys(), None
        for question in questions:
            if question.number in matched or question.request.subagent:
                continue
            if free is None:
                taken = set(self.calls.values())
                free = [call for call in transcript.calls() if call.id not in taken]
            call = _call_of(question, free)
            if call is not None:
                self.calls[question.number] = call.id
                free.remove(call)

    def _row(self, transcript: Transcript, at: int, by_call: _ByCall, waits: Waits) -> OutlineRow:
        line = transcript.outlines[at]
        if not line.calls:
            return line, at
        message = transcript.read(at)
        calls = [block for block in message.blocks if isinstance(block, ToolCall)]
        records = [by_call.get(call.id) for call in calls]
        asked = records, waits
        made = self._made.get(at)
        if made is None or made[0] is not line or made[1] != asked:
            blocks = tuple(
                _with_records(block, by_call[block.id])
                if isinstance(block, ToolCall) and block.id in by_call
                else block
                for block in message.blocks
            )
            blocks = with_own_times(_in_turn(blocks), waits)
            changed = message_with(message, blocks=blocks)
            made = self._made[at] = (line, asked, changed, outline(changed))
        return (line, at) if made[2].blocks == message.blocks else (made[3], made[2])

    def _insert(self, rows: list[OutlineRow], question: Question) -> None:
        """Insert a separate message for a subagent's question, sorted by time."""
        key = -question.number
        made = self._made.get(key)
        if made is None or made[1] is not question:
            message = _own_message(question)
            made = self._made[key] = (outline(message), question, message, outline(message))
        insert_row(rows, (made[3], made[2]))


def _in_turn(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Mark a turn's calls that wait for an earlier question, or were not made after a stop.

    If the user stopped the run at a call, the calls of later batches were not made, nor those whose
    question was still open. A call that was allowed before may have been made. Gemini CLI reports
    them as blocked by a hook that fails.
    """
    queued, unanswered, unmade = set[str](), set[str](), set[str]()
    is_waiting = is_stopped = False
    for batch in _batches(blocks):
        consents = {call.id: call.answer.consent for call in batch if call.answer is not None}
        if is_stopped:
            unmade |= {call.id for call in batch if call.status is not ToolStatus.SUCCESS}
        is_stopped = is_stopped or Consent.STOPPED in consents.values()
        is_waiting = is_waiting or Consent.WAITS in consents.values()
        for call in batch:
            consent = consents.get(call.id)
            if consent in (Consent.WAITS, Consent.ABANDONED):
                unanswered.add(call.id)
            if is_waiting and consent is not Consent.WAITS and call.status is ToolStatus.RUNNING:
                queued.add(call.id)
    if is_stopped:
        unmade |= unanswered
    answer = Answer(consent=Consent.ABANDONED, reason=STOPPED_BY_USER)
    marked = list[Block]()
    for block in blocks:
        if isinstance(block, ToolCall) and block.id in unmade:
            block = replace(
                block, status=ToolStatus.CANCELLED, answer=answer, output=None, error=None
            )
        elif isinstance(block, ToolCall) and block.id in queued:
            block = replace(block, status=ToolStatus.QUEUED)
        marked.append(block)
    return tuple(marked)


def _batches(blocks: Sequence[Block]) -> list[list[ToolCall]]:
    """Return a turn's calls in the order in which they are made.

    The CLI asks its hooks about a turn's calls in order. It asks separately about each call that
    edits files or has `wait_for_previous`, and asks at the same time about all the calls between
    two of these. The calls of a batch are made once all of them are decided, and the next batch is
    asked about after that (assets/gemini-cli.md#hooks).
    """
    batches: list[list[ToolCall]] = []
    for call in (block for block in blocks if isinstance(block, ToolCall)):
        if batches and not _is_alone(call) and not _is_alone(batches[-1][0]):
            batches[-1].append(call)
        else:
            batches.append([call])
    return batches


def _is_alone(call: ToolCall) -> bool:
    kind = kind_of(call.name)
    return kind in WRITING or kind is ToolKind.TOPIC or call.args.get("wait_for_previous") is True


def _call_of(question: Question, calls: Sequence[ToolCall]) -> ToolCall | None:
    wanted, same_tool = question.request, None
    for call in calls:
        if wanted.tool_use_id is not None:
            if call.id == wanted.tool_use_id:
                return call
        elif call.name == wanted.tool_name:
            if dict(call.args) == dict(wanted.requested):
                return call
            same_tool = same_tool or call
    return same_tool


def _answer(question: Question) -> tuple[Answer, Mapping[str, Any]]:
    """Return a question's answer, and the arguments with which the call was made."""
    request, settled = question.request, question.settled
    changed, reason = None, ""
    if settled is not None:
        changed = settled.arguments if settled.consent is Consent.CHANGED else None
        reason = settled.reason
    answer = Answer(
        consent=question.consent,
        asked=None if changed is None else request.requested,
        reason=reason,
        subagent=request.subagent,
        beyond=question.beyond,
        agent=request.agent,
    )
    return answer, request.requested if changed is None else changed


def _answered(call: ToolCall, question: Question) -> ToolCall:
    answer, args = _answer(question)
    if call.hooked:
        args = call.args
    display = call.display
    # a diff without the original text comes from the call's arguments, not from the CLI
    if answer.asked is not None and isinstance(display, DiffDisplay) and display.original is None:
        display = requested_change(kind_of(call.name), args, call.output)
    return replace(
        call,
        answer=answer,
        args=args,
        status=_status(call, answer),
        hooked=call.hooked or question.request.hooked,
        display=display,
    )


def _with_records(call: ToolCall, records: Sequence[_Record]) -> ToolCall:
    """Return the call with the facts from its records, made when it was checked.

    For a question, these are the answer and the arguments; otherwise, the rule that allowed the
    call, or the arguments that another hook gave it.
    """
    for record in records:
        match record:
            case PassedCall(answer=0):
                call = replace(call, rule=record.rule)
            case PassedCall():
                call = replace(call, rule=f"your answer to question {record.answer}")
            case HookedCall():
                call = replace(call, args=record.arguments, hooked=True)
            case Question():
                call = _answered(call, record)
    return call


def _status(call: ToolCall, answer: Answer) -> ToolStatus:
    """Return the status of a call whose question has been answered.

    A denied call is marked as denied at once, because the CLI doesn't report a denial until every
    call in the turn has a result. It reports a call at which the user stopped the run as failed.
    """
    if answer.consent is Consent.STOPPED and call.status is not ToolStatus.SUCCESS:
        return ToolStatus.DENIED
    if call.status is not ToolStatus.RUNNING or answer.consent in _STATUS:
        return call.status
    return ToolStatus.DENIED


def _own_message(question: Question) -> Message:
    answer, args = _answer(question)
    call = ToolCall(
        id=f"question-{question.number}",
        name=question.request.tool_name,
        args=args,
        status=_STATUS.get(answer.consent, ToolStatus.DENIED),
        answer=answer,
    )
    return Message(
        id=f"question-{question.number}",
        author=Author.MODEL,
        blocks=(call,),
        time=datetime.fromtimestamp(question.request.asked / 1000, UTC),
    )
