"""Read a run's questions: which are unanswered, and how the others were answered."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

from gemtui.agent.approval import ApprovalRequest, HookedCall, PassedCall, Settled
from gemtui.agent.gate_folder import GateFolder
from gemtui.calls.paths import asked_path
from gemtui.policy.file.policy import Policy
from gemtui.runs.gate.granted import forget_always
from gemtui.transcript.model import Beyond, Consent

_SIGN = 1.0
"""Seconds between two signals that the user is there to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that a run has asked the user about a call.

    `settled`: how the question ended; None if it has not. `answered`: whether an answer exists, so
    that the question is waiting for the run and no longer for the user. `beyond`: whether the
    answer covers similar calls, and in which runs; None if it was for this call only.
    """

    request: ApprovalRequest
    settled: Settled | None = None
    answered: bool = False
    beyond: Beyond | None = None

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
        args = self.request.arguments
        first = next(iter(args.values()), "")
        return str(args.get("command") or asked_path(args) or first)[:200]

    def to_dict(self) -> dict[str, Any]:
        """Return the question as an entry of `gemtui runs show --json`."""
        return {
            "tool": self.request.tool_name,
            "about": self.about,
            "subagent": self.request.subagent,
            "consent": self.consent.value,
            "reason": "" if self.settled is None else self.settled.reason,
        }

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


class Questions:
    """Reads a run's questions, each file only once."""

    def __init__(self, gate: GateFolder) -> None:
        self._gate = gate
        self._known: dict[int, Question] = {}
        self.all: tuple[Question, ...] = ()
        self._passed: dict[int, PassedCall] = {}
        self._hooked: dict[int, HookedCall] = {}
        self.unasked = UnaskedCalls()

    def stay(self, gone: Event) -> None:
        """Signal to the run that the user is there to answer, until `gone` is set.

        Blocks; call it on a background thread.
        """
        while not gone.is_set():
            if self._gate.exists():
                with suppress(OSError):
                    self._gate.here()
            gone.wait(_SIGN)

    def refresh(self) -> tuple[Question, ...]:
        """Read what is new, and return all questions of the run, in order."""
        if not self._gate.exists():
            return self.all
        for number, waits in self._gate.unanswered_by_number().items():
            known = self._known.get(number)
            if known is None:
                request = self._gate.question(number)
                if request is None:
                    continue
                known = Question(request=replace(request, number=number))
            if known.settled is None:
                settled, answered = None if waits else self._gate.settled(number), not waits
                if (settled, answered) != (known.settled, known.answered):
                    known = replace(known, settled=settled, answered=answered)
                    known = replace(known, beyond=self._beyond(number) if answered else None)
            if known.holds and self._gate.is_revoked(number):
                known = replace(known, beyond=Beyond.TAKEN_BACK)
            self._known[number] = known
        found = tuple(self._known[number] for number in sorted(self._known))
        if found != self.all:
            self.all = found
        self._read_unasked()
        return self.all

    def _read_unasked(self) -> None:
        passed, hooked = (self._gate.passed_calls(self._passed), self._gate.hooked_calls(self._hooked))
        if passed or hooked:
            self._passed |= passed
            self._hooked |= hooked
            self.unasked = UnaskedCalls(tuple(self._passed.values()), tuple(self._hooked.values()))

    def _beyond(self, number: int) -> Beyond | None:
        answer = self._gate.answer_to(number)
        if answer is None or not answer.rules:
            return None
        return Beyond.ALWAYS if answer.always else Beyond.RUN

    def revoke_newest(self) -> Question | None:
        """Revoke the newest “allow similar” answer, for this run and later ones.

        Returns the question that was answered; None if there is no such answer. Raises PolicyError
        and OSError.
        """
        newest = next((each for each in reversed(self.refresh()) if each.holds), None)
        answer = None if newest is None else self._gate.answer_to(newest.number)
        if newest is None or answer is None:
            return None
        self._gate.revoke(newest.number)
        if answer.always:
            for rule in Policy.parse(answer.rules).rules:
                forget_always(rule)
        return newest
