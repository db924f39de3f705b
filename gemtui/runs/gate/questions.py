"""A run's questions to the user: what is asked, the effects of the calls, and the answers.

The app, the command line and the library all ask and answer through `Conversation`, so they only
have to display questions and read answers. Questions can be answered elsewhere as well: in another
terminal, on a phone or by a script. For this, a question has a name that consists of its number and
a token that identifies its call's effect, such as `3.9f2c41d05b7a6e18`. If the effect has changed
since the user saw it, the answer is rejected instead of being applied to the new effect.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

from gemtui.agent.approval import (
    RUN_ENDED,
    UNCHANGED,
    AnswerSource,
    Approval,
    ApprovalRequest,
    GateFolder,
    HookedCall,
    PassedCall,
    Settled,
)
from gemtui.agent.process_tree import is_inside
from gemtui.agents import CAN, Can
from gemtui.calls.effect import Effect
from gemtui.calls.paths import asked_path
from gemtui.errors import GemtuiError, InsideRunError, message_of
from gemtui.jsonout import fields, iso
from gemtui.policy.file.policy import Policy
from gemtui.runs.ending import RunState
from gemtui.runs.gate.proposal import Caution, Proposal, cautions, proposal_of
from gemtui.runs.gate.similar_calls import SimilarCalls, forget_always, keep_always, similar_calls
from gemtui.runs.listing import Run
from gemtui.transcript.model import Beyond, Consent

QUIET = 0.5
"""Seconds after a question's last line has been shown during which no answer counts.

Whoever answers sooner can't have read it: the keys were typed, or pasted, for something else.
"""
_SIGN = 1.0
"""Seconds between two signals that the user is there to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that a run has asked the user about a call.

    `settled`: how the question ended; None if it has not. `answered`: whether an answer exists, so
    that the question is waiting for the run and no longer for the user. `beyond`: whether the
    answer covers similar calls, and in which runs; None if it was for this call only. `source`:
    where the user answered; None if nobody has, or that is unknown.
    """

    request: ApprovalRequest
    settled: Settled | None = None
    answered: bool = False
    beyond: Beyond | None = None
    source: AnswerSource | None = None

    @property
    def number(self) -> int:
        """The question's number within the run, counted from 1."""
        return self.request.number

    @property
    def consent(self) -> Consent:
        """The decision about the call, which is WAITS until it is known."""
        return Consent.WAITS if self.settled is None else self.settled.consent

    @property
    def about(self) -> str:
        """The call's command, file or first argument, shortened."""
        args = self.request.requested
        first = next(iter(args.values()), "")
        return str(args.get("command") or asked_path(args) or first)[:200]

    def to_dict(self) -> dict[str, Any]:
        """Return the question as an entry of `gemtui runs show --json`."""
        return {
            **fields(self.request, "subagent", tool="tool_name"),
            **fields(self, "about", "consent", **{"from": "source"}),
            "reason": "" if self.settled is None else self.settled.reason,
        }

    def of_ended_run(self) -> Question:
        """Return the question as it is once its run has ended: nobody can answer it any more."""
        if self.settled is not None:
            return self
        return replace(self, settled=Settled(consent=Consent.ABANDONED, reason=RUN_ENDED))

    @property
    def waits(self) -> bool:
        """Whether the question is waiting for the user."""
        return self.settled is None and not self.answered

    @property
    def holds(self) -> bool:
        """Whether the answer still allows all similar calls."""
        return self.beyond in (Beyond.RUN, Beyond.ALWAYS)


@dataclass(frozen=True, slots=True)
class UnaskedCalls:
    """The records of calls that were made without asking the user.

    `passed`: calls that one of the user's own rules allowed. `hooked`: calls that another hook
    changed after they had been allowed.
    """

    passed: tuple[PassedCall, ...] = ()
    hooked: tuple[HookedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question together with the effect of its call.

    `proposal`: the call and what it would do. `similar`: the calls that “allow similar” would
    allow. `changed`: the call with the user's changes; None if there are none.
    """

    question: Question
    proposal: Proposal
    similar: SimilarCalls
    changed: Proposal | None = None

    @property
    def runs(self) -> Proposal:
        """The call that will be made if the user approves."""
        return self.changed or self.proposal

    @property
    def refusal(self) -> str | None:
        """Why the call can't be approved, as a clause; None if it can."""
        wanted = None if self.changed is None else self.changed.arguments.get("content")
        return self.runs.refusal(wanted if isinstance(wanted, str) else None)

    @property
    def effect(self) -> Effect:
        """The effect that the call will have if the user approves it."""
        return self.runs.effect

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Facts about the call the user should know before answering."""
        return cautions(self.question.request, self.runs)

    @property
    def has_similar(self) -> bool:
        """Whether the user can allow all similar calls with one answer."""
        return self.similar.rule is not None and self.changed is None


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of the user's answer to a question.

    `counts`: whether it took effect; if not, the question had already been answered elsewhere.
    `problem`: why its rule could not be saved for later runs; "" if it was saved or need not be.
    """

    counts: bool
    problem: str = ""

    def __bool__(self) -> bool:
        """Return whether the answer took effect."""
        return self.counts


class Conversation:
    """The questions of one run, and methods to answer them.

    The methods read and write files; each question is read only once. `cwd`: the run's folder.
    `source`: where the user answers, for the records.
    """

    def __init__(
        self, gate: GateFolder, cwd: Path, source: AnswerSource = AnswerSource.LIBRARY
    ) -> None:
        self._gate, self.cwd, self._source = gate, cwd, source
        self._questions: dict[int, Question] = {}
        self._all: tuple[Question, ...] = ()
        self._passed: dict[int, PassedCall] = {}
        self._hooked: dict[int, HookedCall] = {}
        self.unasked = UnaskedCalls()

    @classmethod
    def of(cls, run: Run, source: AnswerSource = AnswerSource.LIBRARY) -> Conversation:
        """Return the questions of a run, and methods to answer them."""
        return cls(GateFolder.of(run.folder), Path(run.cwd), source)

    def stay(self, gone: Event) -> None:
        """Signal to the run that the user is there to answer, until `gone` is set.

        Blocks; call it on a background thread.
        """
        while not gone.is_set():
            if self._gate.exists():
                with suppress(OSError):
                    self._gate.here()
            gone.wait(_SIGN)

    # --- questions -------------------------------------------------------------------------------

    def refresh(self) -> tuple[Question, ...]:
        """Read what is new, and return all questions of the run, in order."""
        if not self._gate.exists():
            return self._all
        for number, waits in self._gate.unanswered_by_number().items():
            question = self._questions.get(number)
            if question is None:
                request = self._gate.question(number)
                if request is None:
                    continue
                question = Question(request=replace(request, number=number))
            if question.settled is None and not waits:
                settled = self._gate.settled(number)
                if settled is not None or not question.answered:
                    question = self._with_answer(replace(question, settled=settled, answered=True))
            if question.holds and self._gate.is_revoked(number):
                question = replace(question, beyond=Beyond.TAKEN_BACK)
            self._questions[number] = question
        questions = tuple(self._questions[number] for number in sorted(self._questions))
        if questions != self._all:  # callers compare by identity
            self._all = questions
        passed = self._gate.passed_calls(self._passed)
        hooked = self._gate.hooked_calls(self._hooked)
        if passed or hooked:
            self._passed |= passed
            self._hooked |= hooked
            self.unasked = UnaskedCalls(tuple(self._passed.values()), tuple(self._hooked.values()))
        return self._all

    def _with_answer(self, question: Question) -> Question:
        """Return an answered question with what the answer covers, and where it was given."""
        beyond, answer = None, self._gate.answer_to(question.number)
        if answer is not None and answer.rules:
            beyond = Beyond.ALWAYS if answer.always else Beyond.RUN
        source = self._gate.answered_from(question.number)
        return replace(question, beyond=beyond, source=source)

    def asked(self, question: Question, arguments: Mapping[str, Any] | None = None) -> Asked:
        """Return a question together with what its call would do now.

        `arguments`: the user's arguments for the call; None means that they are unchanged.
        """
        request, changed = question.request, None
        if arguments is not None and arguments != request.requested:
            changed = proposal_of(request, self.cwd, arguments)
        similar = similar_calls(request, self.cwd)
        return Asked(question, proposal_of(request, self.cwd), similar, changed)

    def change(self, asked: Asked, text: str) -> Asked:
        """Return the question with its call changed to use the user's text.

        `text`: replaces the command, the file contents or the arguments that the question shows.
        Raises ValueError, with a message for the user, if the call can't write or run exactly this
        text.
        """
        context = asked.question.request.context
        if context is not None and Can.CHANGE not in CAN[context.agent]:
            raise ValueError(UNCHANGED)
        changed = self.asked(asked.question, asked.runs.changed(text))
        why = None if changed.changed is None else changed.changed.refusal(text)
        if why is not None:
            raise ValueError(why)
        return changed

    def still_true(self, asked: Asked) -> Asked | None:
        """Check whether the call would still do what the displayed question says.

        Returns None if it would, and otherwise the question with the call's current effect.
        `asked`: the question as it is displayed.
        """
        changed = None if asked.changed is None else asked.changed.arguments
        now = self.asked(asked.question, changed)
        return None if now == asked else now

    def require_outside(self) -> None:
        """Raise InsideRunError if the run itself started this process."""
        if is_inside(self._gate.run):
            raise InsideRunError

    # --- answers; each raises OSError if it can't be written, and InsideRunError ----------------

    def allow(self, asked: Asked) -> AnswerOutcome:
        """Approve the call as it is displayed.

        Raises ValueError if it can't be approved.
        """
        arguments = None if asked.changed is None else asked.changed.arguments
        return self._give(asked, _allowed(asked, arguments=arguments))

    def allow_similar(self, asked: Asked) -> AnswerOutcome:
        """Approve the call, and all similar calls in this run.

        Raises ValueError if no calls count as similar or this one can't be approved.
        """
        return self._give(asked, self._all_like(asked))

    def always(self, asked: Asked) -> AnswerOutcome:
        """Approve the call, and all similar calls in all runs.

        If the rule for later runs can't be saved, the outcome says so. Raises ValueError if no
        calls count as similar or this one can't be approved.
        """
        outcome = self._give(asked, replace(self._all_like(asked), always=True))
        if outcome and asked.similar.rule is not None:
            try:
                keep_always(asked.similar.rule)
            except (GemtuiError, OSError) as error:
                return replace(outcome, problem=message_of(error))
        return outcome

    def deny(self, asked: Asked, reason: str = "") -> AnswerOutcome:
        """Deny the call, and send the reason to the model."""
        return self._give(asked, Approval.deny(reason))

    def stop(self, asked: Asked, reason: str = "") -> AnswerOutcome:
        """Deny the call, and end the run for this reason."""
        return self._give(asked, Approval.stop(reason))

    def revoke(self) -> Question | None:
        """Revoke the newest “allow similar” answer, for this run and later ones.

        Returns the question that was answered; None if there is no such answer. Raises PolicyError
        and OSError.
        """
        for question in reversed(self.refresh()):
            if not question.holds:
                continue
            answer = self._gate.answer_to(question.number)
            if answer is None:
                return None
            self._gate.revoke(question.number)
            if answer.always:
                for rule in Policy.parse(answer.rules).rules:
                    forget_always(rule)
            return question
        return None

    def _all_like(self, asked: Asked) -> Approval:
        if not asked.has_similar:
            raise ValueError(asked.similar.words)
        return _allowed(asked, rules=asked.similar.toml)

    def _give(self, asked: Asked, approval: Approval) -> AnswerOutcome:
        self.require_outside()
        return AnswerOutcome(self._gate.answer(asked.question.number, approval, self._source))


def _allowed(asked: Asked, **what: Any) -> Approval:
    """Return an approval of a call as it is displayed; raise ValueError if there can't be one.

    `what`: arguments of `Approval.allow`.
    """
    if asked.refusal is not None:
        raise ValueError(asked.refusal)
    return Approval.allow(shown=asked.effect.mark, **what)


_TOKEN = 16
"""How many characters of its effect's digest a question's name contains.

With fewer, someone could construct a different effect that has the same token.
"""
_NAME = re.compile(r"([0-9]{1,9})(?:\.([0-9a-f]{16}))?")
_SETTLES = 5.0
"""How many seconds to wait until the run has reacted to an answer.

Runs check for answers four times a second.
"""
_STEP = 0.05


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that is waiting for the user, with what its call would do now."""

    run: Run
    asked: Asked

    @property
    def name(self) -> str:
        """The name for answering the question: its number and the effect's token."""
        return f"{self.asked.question.number}.{token_of(self.asked.effect)}"

    @property
    def changed(self) -> bool:
        """Whether the call's effect has changed since the question was asked."""
        return token_of(self.asked.effect) != first_token(self.asked)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as an entry of `gemtui runs questions --json`.

        It contains everything that is needed to answer.
        """
        asked, request, runs = self.asked, self.asked.question.request, self.asked.runs
        time = datetime.fromtimestamp(request.asked / 1000, UTC) if request.asked else None
        return {
            "run": self.run.id,
            "id": self.name,
            "project": self.run.cwd,
            **fields(request, *_REQUEST_FIELDS, session="session_id", tool="tool_name"),
            "asked": iso(time),
            "again": request.again or None,
            "server": request.server or None,
            "origin": request.origin or None,
            "effect": {
                **fields(asked.effect, *_EFFECT_FIELDS),
                **fields(runs, "line_ends", "remarks"),
                "diff": None if runs.diff is None else runs.diff.diff,
            },
            "dangers": [fields(danger, "why", "start", "end") for danger in runs.dangers],
            "cautions": [fields(caution, "text", "danger") for caution in asked.cautions],
            "changed": self.changed,
            "refusal": asked.refusal,
            "similar": None if asked.similar.rule is None else asked.similar.words,
        }


_REQUEST_FIELDS = ("number", "arguments", "requested", "because", "subagent")
_EFFECT_FIELDS = (
    "kind",
    "path",
    "before",
    "after",
    "command",
    "folder",
    "certain",
    "fails",
    "names",
    "executable",
)


def token_of(effect: Effect) -> str:
    """Return a token that identifies an effect and is short enough to type."""
    return effect.mark[:_TOKEN]


def first_token(asked: Asked) -> str:
    """Return the token of the call's effect when the question was asked."""
    return token_of(asked.question.request.effect or asked.effect)


def waiting_questions(runs: Iterable[Run]) -> Iterator[WaitingQuestion]:
    """Yield the unanswered questions of these runs, run by run and oldest first."""
    for run in runs:
        if run.state is RunState.RUNNING:
            conversation = Conversation.of(run)
            for question in conversation.refresh():
                if question.waits:
                    yield WaitingQuestion(run, conversation.asked(question))


def parse_name(name: str) -> tuple[int, str | None] | None:
    """Return the number and token in a question's name; None if the name is invalid.

    The token is None if the name has none.
    """
    match = _NAME.fullmatch(name)
    return None if match is None else (int(match[1]), match[2])


def outcome_of(run: Run, number: int) -> Settled | None:
    """Wait until a run has reacted to an answer, and return the question's outcome.

    Returns None if there is none after `_SETTLES` seconds or at the run's end. `number`: the
    question's number.
    """
    gate, until = GateFolder.of(run.folder), time.monotonic() + _SETTLES
    while (settled := gate.settled(number)) is None and time.monotonic() < until:
        if run.folder.exit() is not None:
            return gate.settled(number)
        time.sleep(_STEP)
    return settled
