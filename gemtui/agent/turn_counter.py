"""Count the model's turns in a run, for a CLI that can't limit them itself."""

from __future__ import annotations

from math import inf
from pathlib import Path

import orjson

from gemtui.agent.tail import NewLines

_CALL, _RESULT, _TEXT = b'"tool_use"', b'"tool_result"', b'"assistant"'


class TurnLimit:
    """Detects when turn number `limit` is over; if `limit` is None, it never is.

    A turn is one answer of the model together with the tool calls in it. The CLI reports all calls
    first, then all results (assets/gemini-cli.md#events), and calls the model again after the last
    result. An answer without calls ends the run by itself.
    """

    def __init__(self, limit: int | None) -> None:
        self.exceeded = False
        """Whether the CLI began another answer before gemtui could end the run."""
        self._left = inf if limit is None else limit
        self._had_results = False
        self._waiting: set[str] = set()

    @property
    def last_is_over(self) -> bool:
        """Whether the last turn that the limit allows is over."""
        return self._left <= 0

    @property
    def between_turns(self) -> bool:
        """Whether all tool calls have results and the model has written nothing since."""
        return self._had_results and not self._waiting

    def note_text(self) -> None:
        """Record that the model has written text."""
        self._had_results = False
        if self._left <= 0:
            self.exceeded = True

    def calls(self, id: str) -> None:
        """Record a tool call."""
        self.note_text()
        self._waiting.add(id)

    def has_result(self, id: str) -> None:
        """Record a tool call's result."""
        self._had_results = True
        if id in self._waiting:
            self._waiting.remove(id)
            self._left -= not self._waiting


class TurnWatch:
    """Counts the turns in a CLI's growing output file, for the supervisor.

    Without a limit, it only detects whether the model is between two turns.
    """

    def __init__(self, output: Path, limit: int | None) -> None:
        self._lines = NewLines(output)
        self._turns = TurnLimit(limit)
        self._counts = limit is not None
        self._read = (_CALL, _RESULT) if self._counts else (_CALL, _RESULT, _TEXT)
        """Strings in the lines to parse; text doesn't matter when turns are counted."""

    def last_is_over(self) -> bool:
        """Read new output; return whether the last turn that the limit allows is over."""
        if self._counts:
            self._look()
        return self._turns.last_is_over

    def between_turns(self) -> bool:
        """Read new events; return whether the CLI is about to call the model.

        Use this only for runs without a turn limit.
        """
        self._look()
        return self._turns.between_turns

    def _look(self) -> None:
        for line in self._lines.read():
            self._count(line)

    def _count(self, line: bytes) -> None:
        if not any(word in line for word in self._read):
            return
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return
        if not isinstance(event, dict):
            return
        if event.get("type") == "tool_use":
            self._turns.calls(str(event.get("tool_id")))
        elif event.get("type") == "message" and event.get("role") == "assistant":
            self._turns.note_text()
        elif event.get("type") == "tool_result":
            self._turns.has_result(str(event.get("tool_id")))
