"""Let users answer a run's questions elsewhere: another terminal, phone or script.

A question's name consists of its number and a token that identifies its call's effect, such as
`3.9f2c41d05b7a6e18`. Therefore, if the effect has changed since the user saw it, the answer is
rejected instead of being applied to the new effect.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemtui.agent.approval import Settled
from gemtui.agent.gate_folder import GateFolder
from gemtui.calls.effect import Effect
from gemtui.runs.ending import RunState
from gemtui.runs.gate.cautions import cautions
from gemtui.runs.gate.conversation import Asked, Conversation
from gemtui.runs.listing import Run
from gemtui.sessions.catalog.summary import iso

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
        request, runs = self.asked.question.request, self.asked.runs
        return {
            "run": self.run.id,
            "number": request.number,
            "id": self.name,
            "project": self.run.cwd,
            "session": request.session_id,
            "asked": iso(_moment(request.asked)),
            "tool": request.tool_name,
            "arguments": request.arguments,
            "because": request.because,
            "again": request.again or None,
            "subagent": request.subagent,
            "server": request.server or None,
            "origin": request.origin or None,
            "effect": _effect(self.asked),
            "dangers": [{"why": each.why, "start": each.start, "end": each.end} for each in runs.dangers],
            "cautions": [{"text": each.text, "danger": each.danger} for each in cautions(request, runs)],
            "changed": self.changed,
            "refusal": self.asked.refusal,
            "similar": None if self.asked.similar.rule is None else self.asked.similar.words,
        }


def _moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def _effect(asked: Asked) -> Mapping[str, Any]:
    """Return what happens if the user approves, as JSON values.

    `before`, `after`: the whole contents; null if the file does not exist or its contents are
    unknown.
    """
    does, runs = asked.effect, asked.runs
    return {
        "kind": does.kind.value,
        "path": does.path,
        "before": does.before,
        "after": does.after,
        "diff": None if runs.diff is None else runs.diff.diff,
        "line_ends": list(runs.line_ends),
        "command": does.command,
        "folder": does.folder,
        "certain": does.certain,
        "fails": does.fails,
        "remarks": list(runs.remarks),
    }


def token_of(effect: Effect) -> str:
    """Return a token that identifies an effect and is short enough to type."""
    return effect.mark[:_TOKEN]


def first_token(asked: Asked) -> str:
    """Return the token of the call's effect when the question was asked."""
    return token_of(asked.question.request.effect or asked.effect)


def conversation_of(run: Run) -> Conversation:
    """Return the object that reads and answers a run's questions."""
    return Conversation(GateFolder.of(run.folder), Path(run.cwd))


def waiting_questions(runs: Iterable[Run]) -> Iterator[WaitingQuestion]:
    """Yield the unanswered questions of these runs, run by run and oldest first."""
    for run in runs:
        if run.state is RunState.RUNNING:
            talking = conversation_of(run)
            for question in talking.refresh():
                if question.waits:
                    yield WaitingQuestion(run, talking.asked(question))


def parse_name(name: str) -> tuple[int, str | None] | None:
    """Return the number and token in a question's name; None if the name is invalid.

    The token is None if the name has none.
    """
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), found[2])


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
