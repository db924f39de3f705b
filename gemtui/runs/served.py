"""Questions of runs for whoever is not in front of gemtui: another terminal, a phone, a script.

A question is named by its number and by what was shown of it, such as `3.9f2c41d05b7a6e18`. So an
answer to something that has changed since is refused, not given to what it has become.
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
from gemtui.runs.cautions import cautions
from gemtui.runs.conversation import Asked, Conversation
from gemtui.runs.ending import RunState
from gemtui.runs.listing import Run
from gemtui.sessions.summary import iso

_TOKEN = 16
"""Characters of an effect's mark in the name of a question; fewer could be made to fit."""
_NAME = re.compile(r"([0-9]{1,9})(?:\.([0-9a-f]{16}))?")
_SETTLES = 5.0
"""Seconds in which a run says what became of an answer; it looks four times a second."""
_STEP = 0.05


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that waits for a person, with what its call does now."""

    run: Run
    asked: Asked

    @property
    def name(self) -> str:
        """What `answer` takes: the number, and the token of what is shown."""
        return f"{self.asked.question.number}.{token_of(self.asked.effect)}"

    @property
    def changed(self) -> bool:
        """Whether the call does something else by now than when it was asked about."""
        return token_of(self.asked.effect) != first_token(self.asked)

    def to_dict(self) -> dict[str, Any]:
        """One entry of `gemtui runs questions --json`; all that a person needs to answer."""
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
            "dangers": [
                {"why": each.why, "start": each.start, "end": each.end} for each in runs.dangers
            ],
            "cautions": [
                {"text": each.text, "danger": each.danger} for each in cautions(request, runs)
            ],
            "changed": self.changed,
            "refusal": self.asked.refusal,
            "similar": None if self.asked.similar.rule is None else self.asked.similar.words,
        }


def _moment(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None


def _effect(asked: Asked) -> Mapping[str, Any]:
    """What a yes lets happen. `before`, `after`: whole texts; null = no such file, or unknown."""
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
    """Return what tells one effect from another, short enough to be typed."""
    return effect.mark[:_TOKEN]


def first_token(asked: Asked) -> str:
    """Return the token of what the call did when it was asked about."""
    return token_of(asked.question.request.effect or asked.effect)


def conversation_of(run: Run) -> Conversation:
    """Return the conversation of a run with whoever answers."""
    return Conversation(GateFolder.of(run.folder), Path(run.cwd))


def waiting_questions(runs: Iterable[Run]) -> Iterator[WaitingQuestion]:
    """Yield the questions of these runs that wait for a person, the oldest of each run first."""
    for run in runs:
        if run.state is RunState.RUNNING:
            talking = conversation_of(run)
            for question in talking.look():
                if question.waits:
                    yield WaitingQuestion(run, talking.asked(question))


def parse_name(name: str) -> tuple[int, str | None] | None:
    """Return the number and the token in the name of a question; None for other text."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), found[2])


def outcome_of(run: Run, number: int, *, patience: float = _SETTLES) -> Settled | None:
    """Return what the run made of an answer; None = it has not said within `patience` seconds."""
    gate, until = GateFolder.of(run.folder), time.monotonic() + patience
    while (settled := gate.settled(number)) is None and time.monotonic() < until:
        if run.folder.exit() is not None:
            return gate.settled(number)
        time.sleep(_STEP)
    return settled
