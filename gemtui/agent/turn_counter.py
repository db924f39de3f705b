"""Count the model's turns in a run, for a CLI that can't limit them itself."""

from __future__ import annotations

from math import inf
from pathlib import Path

import orjson

from gemtui.agent.tail import NewLines

_CALL, _RESULT = b'"tool_use"', b'"tool_result"'


class TurnLimit:
    """Detects when turn number `limit` is over; None = never.

    A turn is one answer of the model with all tools that it calls. The CLI reports all calls first,
    then all results (assets/gemini-cli.md#events), and asks the model again after the last one. An
    answer without calls ends the run by itself.
    """

    def __init__(self, limit: int | None) -> None:
        self.exceeded = False
        """Whether the CLI, being faster than gemtui, began an answer after the last turn."""
        self._left = inf if limit is None else limit
        self._waiting: set[str] = set()

    @property
    def last_is_over(self) -> bool:
        """Whether the last turn is over."""
        return self._left <= 0

    def says(self) -> None:
        """Count a text of the model."""
        if self._left <= 0:
            self.exceeded = True

    def calls(self, id: str) -> None:
        """Count a tool call."""
        self.says()
        self._waiting.add(id)

    def has_result(self, id: str) -> None:
        """Count the result of a tool call."""
        if id in self._waiting:
            self._waiting.remove(id)
            self._left -= not self._waiting


class TurnWatch:
    """Counts the turns in a CLI's growing output file, for the supervisor.

    Only lines that can be a call or a result are parsed, so that a fast answer costs next to
    nothing.
    """

    def __init__(self, output: Path, limit: int | None) -> None:
        self._lines = NewLines(output)
        self._turns = TurnLimit(limit)
        self._counts = limit is not None

    def last_is_over(self) -> bool:
        """Read new output; return whether the last turn is over."""
        if self._counts:
            for line in self._lines.look():
                self._count(line)
        return self._turns.last_is_over

    def _count(self, line: bytes) -> None:
        if _CALL not in line and _RESULT not in line:
            return
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            return
        if not isinstance(event, dict):
            return
        if event.get("type") == "tool_use":
            self._turns.calls(str(event.get("tool_id")))
        elif event.get("type") == "tool_result":
            self._turns.has_result(str(event.get("tool_id")))
