"""The questions of one run as a reader follows them: which wait, and what became of the others."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from gemtui.agent.approval import Approval, ApprovalRequest, Settled
from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.run_folder import RunFolder
from gemtui.transcript.tools import asked_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a run asked.

    `settled`: None = nothing has become of it yet. `answered`: by anybody, so that it waits for
    the run and no longer for a person.
    """

    request: ApprovalRequest
    settled: Settled | None = None
    answered: bool = False

    @property
    def number(self) -> int:
        """Its place among the questions of the run, from 1."""
        return self.request.number

    @property
    def about(self) -> str:
        """The command, the file, or the first argument of the call, shortened."""
        args = self.request.arguments
        first = next(iter(args.values()), "")
        return str(args.get("command") or asked_path(dict(args)) or first)[:200]

    def to_dict(self) -> dict[str, Any]:
        """One entry of `gemtui runs show --json`; `fate`: `waits` while nothing has come of it."""
        settled = self.settled
        return {
            "tool": self.request.tool_name,
            "about": self.about,
            "subagent": self.request.subagent,
            "fate": "waits" if settled is None else settled.fate.value,
            "reason": "" if settled is None else settled.reason,
        }

    @property
    def waits(self) -> bool:
        """Whether it waits for a person."""
        return self.settled is None and not self.answered


class Questions:
    """Reads the questions of a run; each file once."""

    def __init__(self, folder: RunFolder) -> None:
        self._gate = GateFolder.of(folder)
        self._known: dict[int, Question] = {}
        self.all: tuple[Question, ...] = ()

    def look(self, *, here: bool = False) -> tuple[Question, ...]:
        """Read what is new, and return all questions so far, in their order.

        `here`: say to the run that somebody is there to answer.
        """
        if not self._gate.exists():
            return self.all
        if here:
            with suppress(OSError):
                self._gate.here()
        waiting = set(self._gate.waiting())
        for number in self._gate.numbers():
            known = self._known.get(number)
            if known is None:
                request = self._gate.question(number)
                if request is None:
                    continue
                known = Question(request=replace(request, number=number))
            if known.settled is None:
                settled = None if number in waiting else self._gate.settled(number)
                answered = number not in waiting
                if (settled, answered) != (known.settled, known.answered):
                    known = replace(known, settled=settled, answered=answered)
            self._known[number] = known
        found = tuple(self._known[number] for number in sorted(self._known))
        if found != self.all:
            self.all = found
        return self.all

    def answer(self, number: int, approval: Approval) -> bool:
        """Answer a question; False where somebody else has answered. Raises OSError."""
        return self._gate.answer(number, approval)
